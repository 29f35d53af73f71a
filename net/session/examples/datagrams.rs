//! Changed datagrams without end, for a host in a session and for one in a handshake: a fuzzer that needs no nightly
//! toolchain and no guide. Equal seeds give equal runs.
//!
//! There is no cipher, so that all that is parsed is reached. Datagrams of the two hosts are recorded; fields of a recorded
//! one are changed (with the numbers around which something happens), it is cut, lengthened, or joined with another. A panic
//! ends the run, and so does memory that grows.
//!
//! `cargo run --release -p hectare-session --example datagrams -- COUNT [SEED]`
use hectare_session::{Batch, ClusterKey, Config, Endpoint, Event, HostId, Suite, Time};
use std::net::SocketAddr;

/// Recorded datagrams, of which the newest replace the oldest.
const RECORDS: usize = 64;
/// The two hosts exchange packets after this many inputs ..
const EXCHANGE: u64 = 16;
/// .. and begin again after at most this many.
const RENEW: u64 = 20_000;
/// More memory than this is out of proportion.
const MEMORY: u64 = 64 << 20;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 8
    }

    fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end.max(1)
    }
}

struct Pair {
    hosts: [Endpoint; 2],
    addresses: [SocketAddr; 2],
    now: Time,
    packets: u64,
    connected: bool,
    ended: bool,
}

impl Pair {
    fn new(random: &mut Random) -> Pair {
        let key = ClusterKey::new("lab", [7; 32]).expect("a good key");
        let addresses = [1, 2].map(|host| SocketAddr::from(([10, 0, 0, host], 7000)));
        let hosts = [0_u16, 1].map(|host| {
            let config = Config::new(HostId(host), 1, [1; 16], key.clone(), [host as u8 + 1; 32]);
            let seed = std::array::from_fn(|_| random.next() as u8);
            Endpoint::new(Config { suite: Suite::Bare, ..config }, seed)
        });
        let mut pair = Pair { hosts, addresses, now: Time::ZERO, packets: 0, connected: false, ended: false };
        pair.hosts[0].connect(Time::ZERO, HostId(1), addresses[1]);
        pair
    }

    /// Sends and records the datagrams of both hosts.
    fn exchange(&mut self, records: &mut Vec<Vec<u8>>, random: &mut Random) {
        for from in 0..2 {
            self.now = Time::from_nanos(self.now.as_nanos() + random.next() % 300_000);
            self.hosts[from].handle_timeout(self.now);
            let mut buffer = [0; 8000];
            let mut batch = Batch::new(&mut buffer, 8);
            for _ in 0..random.below(3) {
                self.packets += 1;
                let payload = &[0x5a; 300][..random.below(300)];
                // There may be no session, or no room.
                let _ = self.hosts[from].send(
                    self.now,
                    HostId(1 - from as u16),
                    self.packets,
                    &[payload],
                    &mut batch,
                );
            }
            self.hosts[from].transmit(self.now, &mut batch);
            if batch.is_empty() {
                continue;
            }
            for datagram in batch.bytes().to_vec().chunks_mut(batch.segment_size()) {
                match records.len() {
                    RECORDS.. => records[random.below(RECORDS)] = datagram.to_vec(),
                    _ => records.push(datagram.to_vec()),
                }
                // One in eight is lost.
                if random.below(8) > 0 {
                    self.hosts[1 - from].receive(self.now, self.addresses[from], false, datagram);
                }
            }
        }
        self.look();
    }

    fn look(&mut self) {
        for host in &mut self.hosts {
            while let Some(event) = host.poll_event() {
                match event {
                    Event::Connected { .. } => self.connected = true,
                    Event::Disconnected { .. } => self.ended = true,
                    _ => {}
                }
            }
        }
    }
}

/// Changes bytes as a row of fields.
fn change(bytes: &mut Vec<u8>, records: &[Vec<u8>], random: &mut Random) {
    for _ in 0..=random.below(3) {
        // The headers are where most is decided, and the end, where an acknowledgement may stand.
        let at = match random.below(4) {
            0 | 1 => random.below(bytes.len().min(64)),
            2 => bytes.len().saturating_sub(1 + random.below(40)),
            _ => random.below(bytes.len()),
        };
        let width = [1, 2, 4, 8][random.below(4)].min(bytes.len().saturating_sub(at));
        match random.below(10) {
            0 => bytes.truncate(at),
            1 => bytes.resize(bytes.len() + random.below(200), random.next() as u8),
            2 if !records.is_empty() => {
                let other = &records[random.below(records.len())];
                bytes.truncate(at);
                bytes.extend_from_slice(other.get(at..).unwrap_or_default());
            }
            3..=5 => {
                // A little more or less than it was.
                let mut number = [0; 8];
                number[..width].copy_from_slice(&bytes[at..at + width]);
                let by = [1, 2, 63, 64, 65, 1 << 15, 1 << 23, 1 << 32][random.below(8)];
                let number = u64::from_le_bytes(number);
                let number =
                    if random.below(2) == 0 { number.wrapping_add(by) } else { number.wrapping_sub(by) };
                bytes[at..at + width].copy_from_slice(&number.to_le_bytes()[..width]);
            }
            6 => bytes[at..at + width].fill(0),
            7 => bytes[at..at + width].fill(0xff),
            _ => bytes[at..at + width].copy_from_slice(&random.next().to_le_bytes()[..width]),
        }
    }
}

/// Bytes of this process in memory.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).map_or(0, |pages: u64| pages * 4096)
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let count: u64 = arguments.next().map_or(1_000_000, |count| count.parse().expect("a number"));
    let seed: u64 = arguments.next().map_or(1, |seed| seed.parse().expect("a number"));
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut pairs, mut payloads, mut largest) = (0_u64, 0_u64, 0);
    let (mut pair, mut records, mut since) = (Pair::new(&mut random), Vec::new(), 0);
    for input in 0..count {
        if input % (1 << 20) == 0 {
            largest = largest.max(memory());
            assert!(largest < MEMORY, "{largest} bytes of memory after {input} inputs");
            println!(
                "{input} inputs, {pairs} pairs of hosts, {payloads} payloads, {largest} bytes of memory"
            );
        }
        since += 1;
        // Every eighth pair gets inputs before it has a session.
        let early = pairs % 8 == 0 && since < 200;
        if since % EXCHANGE == 0 || (!pair.connected && !early) {
            pair.exchange(&mut records, &mut random);
        }
        if pair.ended || since > RENEW || (!pair.connected && since > 400) {
            pairs += 1;
            (pair, since) = (Pair::new(&mut random), 0);
            records.clear();
        }
        let mut bytes = match records.len() {
            0 => vec![random.next() as u8; 40],
            _ => records[random.below(records.len())].clone(),
        };
        // A number that was seen already ends the reading early.
        if bytes[0] & 0xf0 == 0x40 && bytes.len() >= 16 && random.below(2) == 0 {
            let ahead = 1 + random.next() % 300;
            let number = u64::from_le_bytes(bytes[8..16].try_into().expect("8 bytes"));
            bytes[8..16].copy_from_slice(&(number.wrapping_add(ahead)).to_le_bytes());
        }
        if random.below(8) > 0 {
            change(&mut bytes, &records, &mut random);
        }
        let to = random.below(2);
        let from = pair.addresses[1 - to];
        payloads +=
            u64::from(pair.hosts[to].receive(pair.now, from, random.below(8) == 0, &mut bytes).is_some());
        pair.look();
    }
    println!("{count} inputs, {pairs} pairs of hosts, {payloads} payloads, {largest} bytes of memory");
}
