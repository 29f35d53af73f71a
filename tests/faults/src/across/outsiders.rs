//! Faults 57, 58, 60, 61 and 62: those who are no host of the job, and send to its agents and daemons what they like.
use super::Stage;
use super::steps::{followed, kill_agent};
use crate::promises::{Promise, Violation};
use crate::system;
use anyhow::{Context, Result, ensure};
use hectare_session::{Batch, ClusterKey, Config, Endpoint, HostId, Time, VERSION};
use hectare_testing::Random;
use hectare_wire::Socket;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

/// Counts of an agent that rise when what is not of the job is thrown away.
const REFUSED: [(&str, &str); 7] = [
    ("bad_datagrams", "malformed"),
    ("bad_datagrams", "unknown_session"),
    ("bad_datagrams", "forged"),
    ("bad_datagrams", "replayed"),
    ("bad_datagrams", "too_old"),
    ("refused_callers", "version"),
    ("refused_callers", "key"),
];

/// A socket on one host that speaks to the agent of another.
struct Stranger {
    socket: UdpSocket,
    from: usize,
    to: usize,
    sent: usize,
    answered: usize,
}

impl Stranger {
    fn new(stage: &mut Stage) -> Result<Stranger> {
        let to = stage.any_host();
        let from = (to + 1) % stage.cluster.count();
        let own = stage.cluster.network.address(from);
        let socket = stage.cluster.network.run_on(from, || UdpSocket::bind((own, 0)))??;
        socket.connect(stage.cluster.agent_address(to))?;
        socket.set_nonblocking(true)?;
        Ok(Stranger { socket, from, to, sent: 0, answered: 0 })
    }

    fn send(&mut self, bytes: &[u8]) {
        // A packet that finds the queue full, or nobody there, does not matter.
        if self.socket.send(bytes).is_ok() {
            self.sent += bytes.len();
        }
    }

    /// The answers that have come.
    fn answers(&mut self) -> Vec<Vec<u8>> {
        let (mut all, mut bytes) = (Vec::new(), [0; 4096]);
        while let Ok(length) = self.socket.recv(&mut bytes) {
            self.answered += length;
            all.push(bytes[..length].to_vec());
        }
        all
    }

    fn answer(&mut self) -> Result<Vec<u8>> {
        let since = Instant::now();
        loop {
            if let Some(answer) = self.answers().pop() {
                return Ok(answer);
            }
            ensure!(since.elapsed() < Duration::from_secs(10), "host {} does not answer a greeting", self.to);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The agent has not sent more than it got.
    fn was_not_amplified(&mut self) -> Result<()> {
        self.answers();
        let what = format!("{} bytes were answered by {}", self.sent, self.answered);
        ensure!(self.answered <= self.sent, Violation::new(Promise::E, what));
        Ok(())
    }
}

/// Does something to the agent of a host; it has to be counted there.
fn counted(stage: &mut Stage, host: usize, act: impl FnOnce(&mut Stage) -> Result<()>) -> Result<()> {
    let count = |stage: &Stage| -> Result<u64> {
        REFUSED.iter().map(|(family, cause)| stage.cluster.counted(host, family, cause)).sum()
    };
    let before = count(stage)?;
    act(stage)?;
    let rises = || count(stage).is_ok_and(|now| now > before);
    crate::host::within(Duration::from_secs(5), "a counter", rises).map(drop).map_err(|_| {
        Violation::new(Promise::G, format!("host {host} has counted nothing of what it threw away")).into()
    })
}

/// The first message of somebody who has this key.
fn hello(stage: &mut Stage, stranger: &Stranger, key: ClusterKey) -> Vec<u8> {
    let (from, to) = (HostId(stranger.from as u16), HostId(stranger.to as u16));
    let mut seed = [0; 32];
    seed.fill_with(|| stage.random.next() as u8);
    let mut endpoint = Endpoint::new(Config::new(from, u64::MAX, stage.cluster.job_id(), key, seed), seed);
    endpoint.connect(Time::ZERO, to, stage.cluster.agent_address(stranger.to));
    endpoint.handle_timeout(Time::ZERO);
    let mut buffer = vec![0; 4096];
    let mut batch = Batch::new(&mut buffer, 1);
    endpoint.transmit(Time::ZERO, &mut batch);
    batch.bytes().to_vec()
}

/// Bytes of no meaning, of which some begin as those do that have one.
fn nonsense(random: &mut Random, greeting: &[u8]) -> Vec<u8> {
    let length = random.below(1400);
    let mut bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
    match random.below(4) {
        0 => {}
        // A packet of some session.
        1 if length > 1 => {
            bytes[0] = 0x40 + random.below(4) as u8;
            bytes[1] &= 3;
        }
        // A greeting that is cut off.
        2 => bytes = greeting[..random.below(greeting.len())].to_vec(),
        // One of which bytes are others.
        _ => {
            bytes = greeting.to_vec();
            bytes[0] = 1 + random.below(5) as u8;
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len());
                bytes[at] = random.next() as u8;
            }
        }
    }
    bytes
}

/// 58, 61: datagrams of no meaning.
pub(crate) fn garbage(stage: &mut Stage) -> Result<()> {
    let mut stranger = Stranger::new(stage)?;
    let key = stage.cluster.key()?;
    let greeting = hello(stage, &stranger, key);
    counted(stage, stranger.to, |stage| {
        for turn in 0..stage.times(500, 5000) {
            let bytes = nonsense(&mut stage.random, &greeting);
            stranger.send(&bytes);
            if turn % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    })?;
    stranger.was_not_amplified()
}

/// 60: somebody with another key is refused, and told why.
pub(crate) fn wrong_key(stage: &mut Stage) -> Result<()> {
    let mut stranger = Stranger::new(stage)?;
    let greeting = hello(stage, &stranger, ClusterKey::new("faults", [7; 32])?);
    counted(stage, stranger.to, |_| {
        stranger.send(&greeting);
        let answer = stranger.answer()?;
        // A refusal, for the key.
        ensure!(
            answer.len() == 20 && answer[0] == 5 && answer[6] == 3,
            "an answer to a wrong key: {answer:?}"
        );
        Ok(())
    })?;
    stranger.was_not_amplified()
}

/// 62: another version of the protocol is refused, with both numbers.
pub(crate) fn versions(stage: &mut Stage) -> Result<()> {
    let mut stranger = Stranger::new(stage)?;
    let key = stage.cluster.key()?;
    let greeting = hello(stage, &stranger, key);
    counted(stage, stranger.to, |_| {
        for version in [VERSION - 1, VERSION + 1, u16::MAX] {
            let mut other = greeting.clone();
            other[4..6].copy_from_slice(&version.to_le_bytes());
            stranger.send(&other);
            let answer = stranger.answer()?;
            let own = answer.get(4..6).is_some_and(|own| own == VERSION.to_le_bytes());
            ensure!(answer.len() == 20 && answer[0] == 5 && answer[6] == 1 && own, "{version}: {answer:?}");
            ensure!(answer[8..16] == greeting[8..16], "the token of another greeting: {answer:?}");
        }
        Ok(())
    })?;
    stranger.was_not_amplified()
}

/// 60, 61: a flood of good greetings, whose sender never shows that it gets the answers.
pub(crate) fn flood(stage: &mut Stage) -> Result<()> {
    let mut stranger = Stranger::new(stage)?;
    let key = stage.cluster.key()?;
    let greetings: Vec<Vec<u8>> = (0..8).map(|_| hello(stage, &stranger, key.clone())).collect();
    let since = Instant::now();
    while since.elapsed() < Duration::from_millis(stage.times(200, 1000) as u64) {
        greetings.iter().for_each(|greeting| stranger.send(greeting));
        stranger.answers();
        std::thread::sleep(Duration::from_micros(100));
    }
    ensure!(stranger.answered > 0, "nobody answers a greeting");
    stage.goes_on()?;
    stranger.was_not_amplified()
}

/// The sum of 16-bit words of an IPv4 header is left as it was; that of UDP may be left out.
fn without_checksum(frame: &mut [u8]) {
    let udp = 14 + usize::from(frame[14] & 15) * 4;
    frame[udp + 6..udp + 8].fill(0);
}

/// Whole frames that went to the agent of a host.
fn overhear(stage: &mut Stage, host: usize, most: usize) -> Result<(File, Vec<Vec<u8>>)> {
    let (port, to) = (stage.cluster.network.port(host), stage.cluster.agent_address(host));
    let mut socket = File::from(stage.cluster.network.run_on_switch(|| system::frames_of(&port))??);
    let std::net::IpAddr::V4(address) = to.ip() else { anyhow::bail!("{to}") };
    let (since, mut frames, mut bytes) = (Instant::now(), Vec::new(), vec![0; 1 << 16]);
    while frames.len() < most {
        ensure!(since.elapsed() < stage.timeout(), "nothing goes to host {host}");
        let length = match socket.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            read => read.context("what goes to a host")?,
        };
        let frame = &bytes[..length];
        // Ethernet, IPv4 and UDP, to that address and port.
        let is_to_it = length > 42
            && frame[23] == 17
            && frame[30..34] == address.octets()
            && frame[14 + usize::from(frame[14] & 15) * 4..][2..4] == to.port().to_be_bytes();
        if is_to_it {
            frames.push(frame.to_vec());
        }
    }
    frames.iter_mut().for_each(|frame| without_checksum(frame));
    Ok((socket, frames))
}

/// 60: everything that went to an agent goes there again: at once, and when another one is in its place.
pub(crate) fn replay(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    let most = stage.times(100, 1000);
    let (mut socket, frames) = overhear(stage, host, most)?;
    let again = |socket: &mut File| -> Result<()> {
        for frame in &frames {
            socket.write_all(frame).context("a frame again")?;
        }
        Ok(())
    };
    counted(stage, host, |_| again(&mut socket))?;
    stage.goes_on()?;
    let pid = kill_agent(stage, host)?;
    followed(stage, host, pid)?;
    stage.goes_on()?;
    counted(stage, host, |_| again(&mut socket))
}

/// 57: garbage and half-open connections at the sockets of a host's daemon and its agent.
pub(crate) fn control(stage: &mut Stage) -> Result<()> {
    let host = stage.any_host();
    let dir = stage.cluster.run_dir(host);
    let mut places = vec![dir.socket()];
    for entry in std::fs::read_dir(dir.path().join("agents"))?.flatten() {
        places.push(entry.path());
    }
    ensure!(places.len() > 1, "the agent of host {host} has no socket");
    let mut idle = Vec::new();
    for turn in 0..stage.times(100, 1000) {
        let place = &places[turn % places.len()];
        // Those who are too many are sent away.
        let Ok(Some(socket)) = Socket::connect_within(place, Some(Duration::from_secs(1))) else { continue };
        let length = 1 + stage.random.below(if turn % 50 == 3 { 70_000 } else { 60 });
        let bytes: Vec<u8> = (0..length).map(|_| stage.random.next() as u8).collect();
        match turn / places.len() % 3 {
            0 => idle.push(socket),
            1 => drop(socket),
            _ => drop(socket.send(&bytes, None)),
        }
    }
    stage.goes_on()?;
    drop(idle);
    let answers = || stage.cluster.jobs(host).is_ok_and(|jobs| jobs.len() == 1);
    crate::host::within(stage.timeout(), "the daemon", answers)
        .map_err(|_| Violation::new(Promise::E, format!("the daemon of host {host} does not answer")))?;
    let stands = || stage.cluster.standings(host).is_ok_and(|all| !all.is_empty());
    crate::host::within(stage.timeout(), "the agent", stands)
        .map_err(|_| Violation::new(Promise::E, format!("the agent of host {host} does not answer")))?;
    Ok(())
}
