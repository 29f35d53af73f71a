//! The meeting place: the process of rank 0.
use super::elsewhere::{Greeted, is_held};
use super::line::{NotHeard, hex, receive, send};
use super::{Agreed, GREETING, Guest, LINE_WITHIN, Made, Refused, hmac_key, random};
use crate::cli::failure::HostFailed;
use crate::cli::output::one_line;
use anyhow::{Context, Result, bail};
use hectare_session::ClusterKey;
use hectare_wire::JobHost;
use ring::hmac;
use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The most visitors that are heard at a time: more than a job has hosts.
const MOST_VISITORS: usize = 1024;
/// The pause after a visitor for whom there is no room, or no descriptor.
const PAUSE: Duration = Duration::from_millis(20);
/// The most strangers that are remembered.
const MOST_STRANGERS: usize = 8;

/// A guest who has come, and what its connection needs.
struct Present {
    guest: Guest,
    stream: TcpStream,
    from: BufReader<TcpStream>,
    /// The random bytes that its lines answer.
    nonce: [u8; 32],
}

/// Somebody at the door.
struct Visitor {
    stream: TcpStream,
    nonce: [u8; 32],
    said: Result<(Guest, BufReader<TcpStream>), NotHeard>,
}

/// The end of a wait for the next host.
enum Event {
    Came(Box<Visitor>),
    /// Another process holds the meeting place.
    HeldElsewhere,
}

/// The connections of all hosts that have heard the agreement.
pub(in super::super) struct Attended {
    key: hmac::Key,
    guests: Vec<Present>,
    deadline: Instant,
}

/// Takes visitors one after the other, and hears each in a thread of its own. It ends with the process.
fn open_door(listener: TcpListener, key: hmac::Key, greeted: Greeted, events: Sender<Event>) {
    let here = Arc::new(AtomicUsize::new(0));
    loop {
        // One that was gone at once is no failure; without descriptors, the next one has to wait.
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(PAUSE);
            continue;
        };
        // Only a count: nothing else is handed over by it.
        while here.load(Ordering::Relaxed) >= MOST_VISITORS {
            std::thread::sleep(PAUSE);
        }
        here.fetch_add(1, Ordering::Relaxed);
        let (events, key, here, greeted) = (events.clone(), key.clone(), here.clone(), greeted.clone());
        std::thread::spawn(move || {
            if let Ok(nonce) = random::<32>() {
                greeted.insert(nonce);
                let said = receive_guest(&stream, &key, &nonce);
                let _ = events.send(Event::Came(Box::new(Visitor { stream, nonce, said })));
            }
            here.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

fn receive_guest(
    mut stream: &TcpStream,
    key: &hmac::Key,
    nonce: &[u8; 32],
) -> Result<(Guest, BufReader<TcpStream>), NotHeard> {
    stream.set_read_timeout(Some(LINE_WITHIN))?;
    stream.write_all(format!("{GREETING} {}\n", hex(nonce)).as_bytes())?;
    let mut from = BufReader::new(stream.try_clone()?);
    let guest = receive(&mut from, key, "guest", nonce)?;
    Ok((guest, from))
}

/// Is the meeting place: waits for the hosts of all other ranks, and tells all who is there. `own` gives what this host says of
/// itself, by its address on the way to the others; `hint` is said when somebody is missing.
///
/// Others than hosts of the job may find the port: they are sent away, and named only if somebody is missing in the end.
///
/// `elsewhere` is the meeting place, if this host does not have its address. `None` if another process holds it: that one is to be
/// gone to, and tells all that there are two of rank 0.
pub(in super::super) fn hold(
    listener: TcpListener,
    elsewhere: Option<SocketAddr>,
    key: &ClusterKey,
    deadline: Instant,
    (own_ranks, size): (u32, u32),
    hint: &str,
    own: impl FnOnce(IpAddr) -> Result<Guest>,
) -> Result<Option<(Agreed, Attended)>> {
    let key = hmac_key(key);
    let (events, happened) = channel::<Event>();
    let port = listener.local_addr().context("getsockname")?.port();
    let (of_door, greeted, of_visitors) = (key.clone(), Greeted::default(), events.clone());
    if let Some(place) = elsewhere {
        let greeted = greeted.clone();
        std::thread::spawn(move || {
            if is_held(place, &greeted, deadline) {
                let _ = events.send(Event::HeldElsewhere);
            }
        });
    }
    std::thread::spawn(move || open_door(listener, of_door, greeted, of_visitors));
    let mut guests: Vec<Present> = Vec::new();
    let mut strangers = BTreeMap::new();
    let is_complete = |guests: &[Present]| {
        guests.iter().map(|it| u64::from(it.guest.ranks)).sum::<u64>() + u64::from(own_ranks)
            >= u64::from(size)
    };
    let mut trouble = None;
    while trouble.is_none() && !is_complete(&guests) {
        let left = deadline.saturating_duration_since(Instant::now());
        let Visitor { stream, nonce, said } = match happened.recv_timeout(left) {
            Ok(Event::Came(visitor)) => *visitor,
            Ok(Event::HeldElsewhere) => {
                let what = "another process of rank 0 is at the meeting place";
                guests.iter_mut().for_each(|it| tell(&mut it.stream, &key, &it.guest.nonce, &refusal(what)));
                return Ok(None);
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let what = missing(size, port, &guests, &strangers) + hint;
                trouble = Some(HostFailed::new("of rank 0".into(), what));
                continue;
            }
        };
        let ip = stream.peer_addr().ok().map(|from| from.ip());
        match said {
            Ok((guest, from)) => guests.push(Present { guest, stream, from, nonce }),
            Err(error) if error.may_be_anybody() => {
                if let NotHeard::Key = error {
                    // A host of the job would hear at once why it cannot come.
                    turn_away(stream, &key, ip, &error);
                }
                if strangers.len() < MOST_STRANGERS
                    && let Some(ip) = ip
                {
                    strangers.insert(ip, error.to_string());
                }
            }
            Err(error) => {
                trouble = Some(turn_away(stream, &key, ip, &error));
            }
        }
    }
    let address = guests.first().and_then(|it| it.stream.local_addr().ok()).map(|address| address.ip());
    let agreed = match trouble {
        Some(trouble) => Err(trouble.into()),
        None => own(address.context("a program of one host")?).and_then(|own| agree(own, &guests)),
    };
    let told = agreed.as_ref().map_or_else(|error| refusal(&one_line(error)), Agreed::clone);
    for it in &mut guests {
        tell(&mut it.stream, &key, &it.guest.nonce, &told);
    }
    Ok(Some((agreed?, Attended { key, guests, deadline })))
}

/// Tells a guest the agreement. One that is gone has failed on its own.
fn tell(stream: &mut TcpStream, key: &hmac::Key, nonce: &[u8; 32], agreed: &Agreed) {
    let _ = send(stream, key, "host", nonce, agreed);
}

/// Tells somebody why it cannot come; that it failed. With another key it cannot read an HMAC of ours either, and hears by that
/// that its key is another one.
fn turn_away(mut stream: TcpStream, key: &hmac::Key, ip: Option<IpAddr>, why: &NotHeard) -> HostFailed {
    let failed = HostFailed::new(ip.map_or("?".into(), |ip| ip.to_string()), why.to_string());
    tell(&mut stream, key, &[0; 32], &refusal(&failed.to_string()));
    failed
}

fn refusal(what: &str) -> Agreed {
    Agreed { id: [0; 16], hosts: Vec::new(), refused: Some(what.to_owned()) }
}

/// Who did not come in time, and who came in their place.
fn missing(size: u32, port: u16, guests: &[Present], strangers: &BTreeMap<IpAddr, String>) -> String {
    let here: Vec<&str> = guests.iter().map(|it| &*it.guest.name).collect();
    let strangers: String =
        strangers.iter().map(|(ip, what)| format!("; from {ip} somebody came, but: {what}")).collect();
    format!(
        "of {size} ranks, only those of {} host{} came to the meeting place (port {port}) in time{}{strangers}",
        here.len() + 1,
        if here.is_empty() { "" } else { "s" },
        if here.is_empty() { String::new() } else { format!(": this one, {}", here.join(", ")) }
    )
}

/// The hosts in the order of their ranks, if all is as it must be.
fn agree(own: Guest, guests: &[Present]) -> Result<Agreed> {
    let mut all: Vec<&Guest> = guests.iter().map(|it| &it.guest).chain([&own]).collect();
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
        if let Some(other) = at.checked_sub(1).map(|at| all[at]).filter(|other| other.first == guest.first) {
            bail!(failed(format!(
                "it has rank {}, and so has {} ({}): the launcher must give each process a rank of its own",
                guest.first,
                other.name,
                other.address.ip()
            )));
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

impl Attended {
    /// Waits until all hosts have made their parts of the job, and tells them so.
    ///
    /// # Errors
    /// That this host could not, or that another one could not.
    pub(in super::super) fn conclude(mut self, own: &str, made: Result<()>) -> Result<()> {
        let mut all = Made::of(own, &made);
        for Present { guest, stream, from, nonce } in &mut self.guests {
            if all.refused.is_some() {
                break;
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            let heard = match stream.set_read_timeout(Some(left + LINE_WITHIN)) {
                Ok(()) => receive(from, &self.key, "guest made", nonce),
                Err(error) => Err(error.into()),
            };
            all = heard.unwrap_or_else(|error| {
                let host = format!("{} ({})", guest.name, guest.address.ip());
                let what = format!("it does not say that it has made its part of the job: {error}");
                Made { refused: Some(Refused { host, what }) }
            });
        }
        for it in &mut self.guests {
            // One that is gone has failed on its own.
            let _ = send(&mut it.stream, &self.key, "host made", &it.guest.nonce, &all);
        }
        made?;
        all.check()
    }
}
