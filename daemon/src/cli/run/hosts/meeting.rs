//! The rendezvous of the hosts of a program that a launcher has started on each of them: one process of each host connects to the
//! host of rank 0, says which ranks its host has and where its agent will be, and is told the same of all others.
//!
//! Each side shows by an HMAC over the other's random bytes that it has the cluster's key. A line of JSON each way, behind its HMAC.
use crate::cli::failure::HostFailed;
use anyhow::{Context, Result, bail, ensure};
use hectare_session::ClusterKey;
use hectare_wire::JobHost;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// The first word of the meeting place's first line, and the version of what is said.
const GREETING: &str = "hectare-meeting 1";
/// The longest line: 256 hosts with long names.
const LONGEST: u64 = 128 << 10;
/// How long one line may take.
const LINE_WITHIN: Duration = Duration::from_secs(5);
/// Between two attempts to reach the meeting place.
const AGAIN: Duration = Duration::from_millis(100);

/// A host's description of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Guest {
    pub(super) job: String,
    pub(super) size: u32,
    pub(super) first: u32,
    pub(super) ranks: u32,
    pub(super) name: String,
    /// Where its agent will be.
    pub(super) address: SocketAddr,
    /// And at a port of DPDK, if it has one.
    pub(super) dpdk: Option<Ipv4Addr>,
    /// Random bytes, which the answer has to be about.
    pub(super) nonce: [u8; 32],
}

/// The agreement that all hosts receive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Agreed {
    pub(super) id: [u8; 16],
    pub(super) hosts: Vec<JobHost>,
    /// Why there is no job.
    pub(super) refused: Option<String>,
}

pub(super) fn random<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| anyhow::anyhow!("the system provides no random numbers"))?;
    Ok(bytes)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The input of an HMAC: the side that speaks, the nonce that it answers, and the text.
fn said(side: &str, nonce: &[u8; 32], text: &str) -> Vec<u8> {
    [side.as_bytes(), b"\0", nonce, text.as_bytes()].concat()
}

fn send(
    to: &mut TcpStream,
    key: &hmac::Key,
    side: &str,
    nonce: &[u8; 32],
    value: &impl Serialize,
) -> Result<()> {
    let text = serde_json::to_string(value)?;
    let tag = hmac::sign(key, &said(side, nonce, &text));
    Ok(to.write_all(format!("{} {text}\n", hex(tag.as_ref())).as_bytes())?)
}

fn line(from: &mut impl BufRead) -> Result<String> {
    let mut line = String::new();
    let read = from.take(LONGEST).read_line(&mut line)?;
    ensure!(read > 0 && line.ends_with('\n'), "the connection ended in the middle");
    Ok(line.trim_end().to_owned())
}

fn receive<T: DeserializeOwned>(
    from: &mut impl BufRead,
    key: &hmac::Key,
    side: &str,
    nonce: &[u8; 32],
) -> Result<T> {
    let line = line(from)?;
    let (tag, text) = line.split_once(' ').context("it speaks another protocol")?;
    let bytes: Option<Vec<u8>> = (0..tag.len() / 2)
        .map(|at| tag.get(2 * at..2 * at + 2).and_then(|two| u8::from_str_radix(two, 16).ok()))
        .collect();
    let verified = hmac::verify(key, &said(side, nonce, text), &bytes.unwrap_or_default());
    ensure!(verified.is_ok(), "it has another cluster key: `hectare key check` shows each host's");
    Ok(serde_json::from_str(text)?)
}

fn hmac_key(key: &ClusterKey) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &key.meeting_key())
}

/// Goes to the meeting place as a host whose agent will be at the address that `reserve` gives, by the address of this host on the
/// way there.
pub(super) fn go(
    place: (&str, SocketAddr),
    key: &ClusterKey,
    deadline: Instant,
    guest: impl FnOnce(IpAddr) -> Result<Guest>,
) -> Result<Agreed> {
    let (name, address) = place;
    let failed = |what: String| HostFailed::new(format!("{name} ({address})"), what);
    let key = hmac_key(key);
    let mut stream = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match TcpStream::connect_timeout(&address, left.max(Duration::from_millis(1))) {
            Ok(stream) => break stream,
            Err(error) if left.is_zero() => {
                return Err(failed(format!("the process of rank 0 does not answer there: {error}")).into());
            }
            Err(_) => std::thread::sleep(AGAIN),
        }
    };
    let own = stream.local_addr().context("getsockname")?.ip();
    let talk = || -> Result<Agreed> {
        stream.set_read_timeout(Some(LINE_WITHIN))?;
        let mut from = BufReader::new(stream.try_clone()?);
        let greeting = line(&mut from)?;
        let nonce = greeting.strip_prefix(GREETING).map(str::trim).and_then(from_hex);
        let nonce = nonce.with_context(|| format!("it speaks another protocol: {greeting:.60}"))?;
        let guest = guest(own)?;
        send(&mut stream, &key, "guest", &nonce, &guest)?;
        // The others may be late.
        let left = deadline.saturating_duration_since(Instant::now()) + LINE_WITHIN;
        stream.set_read_timeout(Some(left))?;
        receive(&mut from, &key, "host", &guest.nonce)
    };
    let agreed = talk().map_err(|error| failed(crate::cli::output::one_line(&error)))?;
    match agreed.refused {
        Some(what) => bail!(failed(what)),
        None => Ok(agreed),
    }
}

fn from_hex(text: &str) -> Option<[u8; 32]> {
    let bytes: Option<Vec<u8>> =
        (0..32).map(|at| u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()).collect();
    bytes?.try_into().ok().filter(|_| text.len() == 64)
}

/// A guest at the door.
struct Visitor {
    stream: TcpStream,
    said: Result<Guest>,
}

/// Is the meeting place: waits for the hosts of all other ranks, and tells all who is there. `own` gives what this host says of
/// itself, by its address on the way to the others.
pub(super) fn hold(
    listener: TcpListener,
    key: &ClusterKey,
    deadline: Instant,
    own_ranks: u32,
    size: u32,
    own: impl FnOnce(IpAddr) -> Result<Guest>,
) -> Result<Agreed> {
    let key = hmac_key(key);
    let (came, visitors) = channel::<Visitor>();
    let door = listener.local_addr().context("getsockname")?;
    let of_door = key.clone();
    // It ends with the process.
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (came, key) = (came.clone(), of_door.clone());
            std::thread::spawn(move || {
                let said = receive_guest(&stream, &key);
                let _ = came.send(Visitor { stream, said });
            });
        }
    });
    let mut guests: Vec<(Guest, TcpStream)> = Vec::new();
    let mut trouble = None;
    while trouble.is_none() && own_ranks + guests.iter().map(|(guest, _)| guest.ranks).sum::<u32>() < size {
        let left = deadline.saturating_duration_since(Instant::now());
        match visitors.recv_timeout(left) {
            Ok(Visitor { stream, said: Ok(guest) }) => guests.push((guest, stream)),
            Ok(Visitor { stream, said: Err(error) }) => {
                let from = stream.peer_addr().map_or("?".into(), |from| from.ip().to_string());
                trouble = Some(HostFailed::new(from, crate::cli::output::one_line(&error)));
                guests.push((nobody(), stream));
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let here: Vec<String> = guests.iter().map(|(guest, _)| guest.name.clone()).collect();
                let what = format!(
                    "of {size} ranks, only those of {} host{} came to the meeting place (port {}) in time{}",
                    here.len() + 1,
                    if here.is_empty() { "" } else { "s" },
                    door.port(),
                    if here.is_empty() { String::new() } else { format!(": this one, {}", here.join(", ")) }
                );
                trouble = Some(HostFailed::new("of rank 0".into(), what));
            }
        }
    }
    let address = guests.first().and_then(|(_, stream)| stream.local_addr().ok()).map(|address| address.ip());
    let agreed = match trouble {
        Some(trouble) => Err(trouble.into()),
        None => own(address.context("a program of one host")?).and_then(|own| agree(own, &guests)),
    };
    let told = match &agreed {
        Ok(agreed) => agreed.clone(),
        Err(error) => {
            Agreed { id: [0; 16], hosts: Vec::new(), refused: Some(crate::cli::output::one_line(error)) }
        }
    };
    for (guest, mut stream) in guests {
        // One that is gone has failed on its own.
        let _ = send(&mut stream, &key, "host", &guest.nonce, &told);
    }
    agreed
}

fn nobody() -> Guest {
    let address = SocketAddr::from(([0, 0, 0, 0], 0));
    let (job, name, nonce) = (String::new(), String::new(), [0; 32]);
    Guest { job, size: 0, first: 0, ranks: 0, name, address, dpdk: None, nonce }
}

fn receive_guest(stream: &TcpStream, key: &hmac::Key) -> Result<Guest> {
    let nonce = random::<32>()?;
    let mut to = stream;
    stream.set_read_timeout(Some(LINE_WITHIN))?;
    to.write_all(format!("{GREETING} {}\n", hex(&nonce)).as_bytes())?;
    receive(&mut BufReader::new(stream), key, "guest", &nonce)
}

/// The hosts in the order of their ranks, if all is as it must be.
fn agree(own: Guest, guests: &[(Guest, TcpStream)]) -> Result<Agreed> {
    let mut all: Vec<&Guest> = guests.iter().map(|(guest, _)| guest).chain([&own]).collect();
    all.sort_by_key(|guest| guest.first);
    let mut next = 0;
    for (at, guest) in all.iter().enumerate() {
        let failed = |what: String| HostFailed::new(format!("{} ({})", guest.name, guest.address.ip()), what);
        if (&guest.job, guest.size) != (&own.job, own.size) {
            let what = format!(
                "it is of job {:?} of {} ranks, and this one of job {:?} of {}",
                guest.job, guest.size, own.job, own.size
            );
            bail!(failed(what));
        }
        if guest.first != next {
            bail!(failed(format!(
                "its first rank is {}, not {next}: the launcher must give each host ranks that follow each other (srun \
                 --distribution=block, mpirun --map-by slot)",
                guest.first
            )));
        }
        next = guest.first.saturating_add(guest.ranks);
        if let Some(other) = all[..at].iter().find(|other| other.address.ip() == guest.address.ip()) {
            bail!(failed(format!("it has the address of {}: they are one host", other.name)));
        }
    }
    let hosts = all.into_iter().map(|guest| JobHost {
        name: guest.name.clone(),
        address: guest.address,
        ranks: guest.ranks,
        dpdk: guest.dpdk,
    });
    Ok(Agreed { id: random()?, hosts: hosts.collect(), refused: None })
}
