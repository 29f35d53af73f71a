//! Faults 58, 59 and 63 behind the seal: a host of a job that has the key, and sends what no agent would.
//!
//! It is a host of a job of its own beside the load, together with a true one, whose worker writes and reads an area. That job may
//! end; its worker sees nothing that it has not written, its agent does not die, and nothing else on the host is touched.
use super::Stage;
use super::cluster::Cluster;
use crate::host::{Log, within};
use crate::promises::{Promise, Violation};
use anyhow::{Context, Result, ensure};
use hectare_session::{Batch, Config, Endpoint, HostId, Time};
use hectare_testing::Random;
use std::io::{BufRead, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Who is silent for so long has failed, in that job.
const SILENCE: Duration = Duration::from_secs(6);
/// Packets that it remembers of those that came.
const REMEMBERED: usize = 50;
/// Bytes of the frame by which a host says who it is.
const HELLO: usize = 37;
const ALL: u64 = u64::MAX;

/// The kinds of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    /// Bytes of no meaning, and packets that came, with other bytes in them.
    Fuzzed,
    /// Frames as they should be, with offsets, lengths and counts that cannot be.
    Hostile,
    /// Messages about the other host's own areas, and lines for them.
    Foreign,
}

/// 58: frames of no meaning.
pub(crate) fn fuzzed(stage: &mut Stage) -> Result<()> {
    betray(stage, Means::Fuzzed)
}

/// 59: frames with hostile numbers.
pub(crate) fn hostile(stage: &mut Stage) -> Result<()> {
    betray(stage, Means::Hostile)
}

/// 63: areas that are another's.
pub(crate) fn foreign(stage: &mut Stage) -> Result<()> {
    betray(stage, Means::Foreign)
}

/// The worker of the true host.
struct Kept {
    child: Child,
    rounds: Arc<AtomicU64>,
    log: Log,
}

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Kept {
    fn start(cluster: &Cluster, host: usize, job: &str) -> Result<Kept> {
        let mut child = cluster.role(host, &["keep", job])?.stdin(Stdio::null()).spawn()?;
        let log = Log::of(child.stderr.take().context("standard error")?);
        let (rounds, stdout) = (Arc::new(AtomicU64::new(0)), child.stdout.take().context("standard output")?);
        let copy = rounds.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(std::result::Result::ok) {
                copy.store(line.parse().unwrap_or(0), Ordering::Relaxed);
            }
        });
        Ok(Kept { child, rounds, log })
    }

    /// It goes on, or has heard that its job has ended; nothing else.
    fn judge(&mut self, limit: Duration) -> Result<()> {
        let before = self.rounds.load(Ordering::Relaxed);
        let mut ended = false;
        let waited = within(limit, "the worker beside a hostile host", || {
            ended = matches!(self.child.try_wait(), Ok(Some(_)));
            ended || self.rounds.load(Ordering::Relaxed) > before
        });
        let said = self.log.text();
        ensure!(waited.is_ok(), Violation::new(Promise::D, format!("the worker stands still: {said}")));
        let is_well = !said.contains("torn") && !said.contains("panicked");
        ensure!(is_well, Violation::new(Promise::A, format!("beside a hostile host: {said}")));
        // The message may come a moment after the end.
        let is_named = || self.log.text().contains("has failed");
        let named = !ended || within(limit, "the worker's last words", is_named).is_ok();
        ensure!(named, Violation::new(Promise::D, format!("the worker ended: {said}")));
        Ok(())
    }
}

/// The hostile host: its session, and packets that came.
struct Traitor {
    socket: UdpSocket,
    endpoint: Endpoint,
    since: Instant,
    came: Vec<Vec<u8>>,
    hello: Vec<u8>,
    sent: u64,
}

impl Traitor {
    fn now(&self) -> Time {
        Time::from_nanos(self.since.elapsed().as_nanos() as u64)
    }

    /// Takes what came, and says what sessions have to say.
    fn turn(&mut self, random: &mut Random) {
        let mut bytes = [0; 2048];
        while let Ok((length, from)) = self.socket.recv_from(&mut bytes) {
            let now = self.now();
            if let Some(received) = self.endpoint.receive(now, from, false, &mut bytes[..length]) {
                // Who repeats another's hello says that it is that one, and is refused.
                let greets = received.payload.first() == Some(&1);
                let payload =
                    received.payload.get(if greets { HELLO } else { 0 }..).unwrap_or_default().to_vec();
                match self.came.len() < REMEMBERED {
                    true => self.came.push(payload),
                    false => self.came[random.below(REMEMBERED)] = payload,
                }
            }
        }
        self.endpoint.handle_timeout(self.now());
        while self.endpoint.poll_event().is_some() {}
        loop {
            let (now, mut buffer) = (self.now(), [0; 4096]);
            let mut batch = Batch::new(&mut buffer, 1);
            self.endpoint.transmit(now, &mut batch);
            let Some(to) = batch.destination() else { return };
            // A packet that the system does not take is lost.
            let _ = self.socket.send_to(batch.bytes(), to);
        }
    }

    fn send(&mut self, payload: &[u8], greets: bool) {
        let Some(most) = self.endpoint.max_payload(HostId(0)) else { return };
        let (now, mut buffer) = (self.now(), [0; 4096]);
        let mut batch = Batch::new(&mut buffer, 1);
        let hello: &[u8] = if greets { &self.hello } else { &[] };
        let room = most.saturating_sub(hello.len()).min(payload.len());
        let parts: [&[u8]; 2] = [hello, &payload[..room]];
        self.sent += 1;
        if self.endpoint.send(now, HostId(0), self.sent, &parts, &mut batch).is_ok()
            && let Some(to) = batch.destination()
        {
            let _ = self.socket.send_to(batch.bytes(), to);
        }
    }
}

/// Little-endian numbers, one after the other.
fn put(bytes: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
}

/// A number that matters: small, or at an end of what there is.
fn number(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => 0,
        1 => ALL,
        2 => ALL - random.below(100) as u64,
        3 => 1 << random.below(64),
        4 => random.next(),
        _ => random.below(20) as u64,
    }
}

/// A group of one of the two hosts.
fn group(random: &mut Random) -> u64 {
    (random.below(3) as u64) << 48 | random.below(4) as u64
}

/// A frame as NET.md has it, of which numbers are hostile.
fn frame(random: &mut Random, of_other: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let group = if of_other { random.below(8) as u64 } else { group(random) };
    match random.below(4) {
        // A cut.
        0 => {
            let (cut, members) = (random.below(4) as u64 + 1, 1 + random.below(32));
            bytes.push(5);
            let [base, round, label, age, total] = std::array::from_fn(|_| number(random));
            put(&mut bytes, &[cut, group, base, round, label, age, total]);
            bytes.push(members as u8);
            (0..members).for_each(|_| put(&mut bytes, &[random.below(3) as u64, number(random)]));
        }
        // Lines.
        1 => {
            bytes.push(6);
            put(&mut bytes, &[random.below(4) as u64 + 1]);
            bytes.extend((number(random) as u16).to_le_bytes());
            put(&mut bytes, &[number(random)]);
            let runs = random.below(4) as u16;
            let length = random.below(300) as u16;
            bytes.extend(runs.to_le_bytes());
            bytes.extend(length.to_le_bytes());
            for _ in 0..runs {
                bytes.extend((number(random) as u32).to_le_bytes());
                bytes.extend((number(random) as u16).to_le_bytes());
            }
            bytes.extend((0..length).map(|_| random.next() as u8));
        }
        // A member of a group, or its name.
        2 => {
            let register = [3, 4][random.below(2)];
            bytes.push(4);
            put(&mut bytes, &[random.next() >> 8]);
            bytes.push(register);
            put(&mut bytes, &[group]);
            bytes.extend((random.below(4) as u16).to_le_bytes());
            bytes.push(1);
            let name: &[u8] = if random.below(2) == 0 { b"kept" } else { b"other" };
            bytes.push(name.len() as u8);
            bytes.extend(name);
            bytes.push(0);
            for word in [random.below(12) as u32, 8, 8] {
                bytes.extend(word.to_le_bytes());
            }
            put(&mut bytes, &[[800_000, number(random) % (1 << 38)][random.below(2)]]);
            bytes.extend(1_u32.to_le_bytes());
            if register == 4 {
                bytes.push(random.below(2) as u8);
            }
        }
        // A subscription to something, or a clock.
        _ => {
            bytes.push(4);
            put(&mut bytes, &[random.next() >> 8]);
            if random.below(2) == 0 {
                bytes.push(1);
                put(&mut bytes, &[number(random), number(random)]);
                bytes.extend((number(random) as u32).to_le_bytes());
                bytes.push(1);
                put(&mut bytes, &[group, number(random)]);
            } else {
                bytes.push(2);
                put(&mut bytes, &[group]);
                bytes.push(random.below(4) as u8);
                let [cut, state, round, interval] = std::array::from_fn(|_| number(random));
                put(&mut bytes, &[cut, state, round, interval]);
                bytes.extend((number(random) as u32).to_le_bytes());
                bytes.push(0);
            }
        }
    }
    bytes
}

fn packet(traitor: &Traitor, random: &mut Random, means: Means) -> Vec<u8> {
    let copy = |random: &mut Random| traitor.came.get(random.below(REMEMBERED)).cloned().unwrap_or_default();
    match means {
        Means::Fuzzed if random.below(2) == 0 => {
            let length = random.below(1000);
            let mut bytes: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
            if let Some(first) = bytes.first_mut() {
                // Not that it refuses the other host, which may end a job.
                *first = [2, 4, 5, 6, 7, 255][random.below(6)];
            }
            bytes
        }
        Means::Fuzzed => {
            let mut bytes = copy(random);
            for _ in 0..1 + random.below(4) {
                let at = random.below(bytes.len().max(1));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.next() as u8;
                }
            }
            bytes
        }
        Means::Foreign if random.below(2) == 0 => copy(random),
        _ => {
            let of_other = means == Means::Foreign;
            (0..1 + random.below(3)).flat_map(|_| frame(random, of_other)).collect()
        }
    }
}

/// The first frame of a host that is a host.
fn hello(job: [u8; 16]) -> Vec<u8> {
    let mut bytes = vec![1, 2, 0];
    bytes.extend(job);
    put(&mut bytes, &[77, 1]);
    bytes.extend(1_u16.to_le_bytes());
    bytes
}

fn betray(stage: &mut Stage, means: Means) -> Result<()> {
    let host = stage.any_host();
    let from = (host + 1) % stage.cluster.count();
    let mut id = [0; 16];
    id.fill_with(|| stage.random.next() as u8);
    let port = 30_000 + stage.random.below(10_000) as u16;
    let place = |host| SocketAddr::from((stage.cluster.network.address(host), port));
    let (own, theirs) = (place(from), place(host));
    let socket = stage.cluster.network.run_on(from, || UdpSocket::bind(own))??;
    socket.set_nonblocking(true)?;
    let job = stage.cluster.make_job_with(host, own, theirs, id, SILENCE)?;
    let mut kept = Kept::start(&stage.cluster, host, &job)?;
    let mut seed = [0; 32];
    seed.fill_with(|| stage.random.next() as u8);
    let mut endpoint = Endpoint::new(Config::new(HostId(1), 1, id, stage.cluster.key()?, seed), seed);
    endpoint.connect(Time::ZERO, HostId(0), theirs);
    let (since, hello) = (Instant::now(), hello(id));
    let mut traitor = Traitor { socket, endpoint, since, came: Vec::new(), hello, sent: 0 };
    let lasts = Duration::from_millis(stage.times(500, 2500) as u64);
    let mut began = None;
    while began.is_none_or(|began: Instant| began.elapsed() < lasts) {
        traitor.turn(&mut stage.random);
        if !traitor.came.is_empty() && kept.rounds.load(Ordering::Relaxed) > 1 {
            began.get_or_insert_with(Instant::now);
            for _ in 0..20 {
                let bytes = packet(&traitor, &mut stage.random, means);
                let greets = stage.random.below(4) != 0;
                traitor.send(&bytes, greets);
            }
        }
        ensure!(since.elapsed() < stage.timeout() * 2, "the hostile host {from} gets no session with {host}");
        std::thread::sleep(Duration::from_millis(1));
    }
    let counted = stage.cluster.counted(host, "bad_packets", "malformed")?
        + stage.cluster.counted(host, "bad_packets", "violation")?;
    // An agent whose job has ended is gone with its counts.
    let ends = |line: &str| line.contains("the job ends") && line.contains(&own.to_string());
    let named = stage.cluster.said(host).lines().any(ends);
    kept.judge(stage.timeout())?;
    let restarted = |line: &str| line.contains(&job) && line.contains("is started again");
    if let Some(line) = stage.cluster.said(host).lines().find(|line| restarted(line)) {
        let what = format!("frames of another host ended the agent of host {host}: {line}");
        return Err(Violation::new(Promise::E, what).into());
    }
    let what = || format!("host {host} has counted nothing of what a hostile host sent");
    ensure!(counted > 0 || named, Violation::new(Promise::G, what()));
    drop(kept);
    // It leaves as a true host does; else it would be waited for.
    let mut left = vec![4];
    put(&mut left, &[ALL]);
    left.push(12);
    let Stage { cluster, random, .. } = &mut *stage;
    let gone = || {
        traitor.turn(random);
        traitor.send(&left, true);
        cluster.jobs(host).is_ok_and(|jobs| jobs.len() == 1)
            && cluster.agents(host).is_ok_and(|agents| agents.len() == 1)
    };
    let timeout = SILENCE * 2;
    within(timeout, "the end of a job", gone).map(drop).map_err(|_| {
        Violation::new(
            Promise::E,
            format!("{job} does not end on host {host}: {:?}", stage.cluster.jobs(host)),
        )
        .into()
    })
}
