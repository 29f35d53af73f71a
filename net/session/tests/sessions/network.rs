//! The network, and programs on it that send packets until they arrive.
use crate::tcp::{SEGMENT, Tcp};
use hectare_session::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// A path to a host, and its faults.
#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) delay: Duration,
    /// Up to so much more, for each datagram another.
    pub(crate) jitter: Duration,
    /// Bytes per second, and bytes that wait before more are lost.
    pub(crate) rate: f64,
    pub(crate) queue: u64,
    /// Of 1: how many are lost, come twice, come changed.
    pub(crate) loss: f64,
    pub(crate) doubled: f64,
    pub(crate) changed: f64,
    /// Larger datagrams vanish.
    pub(crate) carries: usize,
    /// Marks instead of losses when half of the queue is full.
    pub(crate) marks: bool,
}

impl Default for Path {
    fn default() -> Path {
        Path {
            delay: Duration::from_micros(500),
            jitter: Duration::ZERO,
            rate: 1.25e8,
            queue: 125_000,
            loss: 0.0,
            doubled: 0.0,
            changed: 0.0,
            carries: 65_535,
            marks: false,
        }
    }
}

/// A host: its endpoint, and what its node did and saw.
pub(crate) struct Host {
    pub(crate) endpoint: Endpoint,
    pub(crate) address: SocketAddr,
    /// Where it is reached, too.
    pub(crate) also_at: Option<SocketAddr>,
    pub(crate) path: Path,
    /// When the last byte of what waits has gone.
    busy_until: Time,
    pub(crate) events: Vec<(Time, Event)>,
    /// Payloads that came, by peer: how often each.
    pub(crate) got: BTreeMap<(HostId, u64), u32>,
    pub(crate) got_bytes: u64,
    /// Packets that still have to go, by peer.
    pub(crate) to_send: BTreeMap<HostId, VecDeque<u64>>,
    /// Packets that were given and have no fate yet.
    pub(crate) open: BTreeSet<(HostId, u64)>,
    /// Packets have all bytes that fit, or so many.
    pub(crate) size: Option<usize>,
    next_id: u64,
    pub(crate) down: bool,
}

/// A datagram on its way: when it arrives, its order, from, to, whether it is marked, its bytes.
type Flying = Reverse<(Time, u64, usize, usize, bool, Vec<u8>)>;

/// The content of a packet; its bytes follow from its id.
fn body(id: u64, size: usize) -> &'static [u8] {
    static BYTES: [u8; 10_000] = {
        let mut bytes = [0; 10_000];
        let mut at = 0;
        while at < bytes.len() {
            bytes[at] = (at % 251) as u8;
            at += 1;
        }
        bytes
    };
    &BYTES[id as usize % 251..][..size]
}

pub(crate) struct Network {
    pub(crate) now: Time,
    pub(crate) hosts: Vec<Host>,
    /// Flows that share the queues in front of hosts.
    pub(crate) flows: Vec<Tcp>,
    flying: BinaryHeap<Flying>,
    sequence: u64,
    random: u64,
    /// Every datagram that was sent, if somebody listens: from, to, bytes.
    pub(crate) overheard: Option<Vec<(usize, usize, Vec<u8>)>>,
    /// Directions that carry nothing.
    pub(crate) cut: BTreeSet<(usize, usize)>,
    buffer: Vec<u8>,
    pub(crate) datagrams: u64,
}

pub(crate) fn key() -> ClusterKey {
    ClusterKey::new("lab", [7; 32]).unwrap()
}

pub(crate) fn config(host: u16) -> Config {
    Config::new(HostId(host), 1, [1; 16], key(), [host as u8 + 1; 32])
}

impl Network {
    pub(crate) fn new(seed: u64) -> Network {
        Network {
            now: Time::ZERO,
            hosts: Vec::new(),
            flows: Vec::new(),
            flying: BinaryHeap::new(),
            sequence: 0,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            overheard: None,
            cut: BTreeSet::new(),
            buffer: vec![0; 65_536],
            datagrams: 0,
        }
    }

    /// Two hosts with the same settings, of which the first calls the second.
    pub(crate) fn pair(seed: u64, path: &Path, set: impl Fn(&mut Config)) -> Network {
        let mut network = Network::new(seed);
        for host in 0..2 {
            let mut config = config(host);
            set(&mut config);
            network.add(config, path.clone());
        }
        network.connect(0, 1);
        network
    }

    pub(crate) fn add(&mut self, config: Config, path: Path) -> usize {
        let index = self.hosts.len();
        let address = SocketAddr::from(([10, 0, 0, index as u8], 7000));
        let endpoint = Endpoint::new(config, self.seed());
        self.hosts.push(Host {
            endpoint,
            address,
            also_at: None,
            path,
            busy_until: Time::ZERO,
            events: Vec::new(),
            got: BTreeMap::new(),
            got_bytes: 0,
            to_send: BTreeMap::new(),
            open: BTreeSet::new(),
            size: None,
            next_id: 0,
            down: false,
        });
        index
    }

    /// The host's agent starts anew.
    pub(crate) fn restart(&mut self, host: usize, config: Config) {
        let seed = self.seed();
        self.hosts[host].endpoint = Endpoint::new(config, seed);
        self.hosts[host].open.clear();
    }

    pub(crate) fn seed(&mut self) -> [u8; 32] {
        std::array::from_fn(|_| self.draw() as u8)
    }

    pub(crate) fn draw(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11
    }

    fn chance(&mut self, of: f64) -> bool {
        (self.draw() as f64) < of * (1_u64 << 53) as f64
    }

    pub(crate) fn connect(&mut self, from: usize, to: usize) {
        let (now, address) = (self.now, self.hosts[to].address);
        self.hosts[from].endpoint.connect(now, HostId(to as u16), address);
    }

    /// `count` more packets go from one host to another.
    pub(crate) fn queue(&mut self, from: usize, to: usize, count: u64) {
        let host = &mut self.hosts[from];
        let ids = host.next_id..host.next_id + count;
        host.next_id += count;
        host.to_send.entry(HostId(to as u16)).or_default().extend(ids);
    }

    /// Puts a datagram on its way.
    pub(crate) fn launch(&mut self, from: usize, to: usize, bytes: Vec<u8>) {
        self.datagrams += 1;
        if let Some(overheard) = &mut self.overheard {
            overheard.push((from, to, bytes.clone()));
        }
        let path = self.hosts[to].path.clone();
        if self.cut.contains(&(from, to)) || bytes.len() > path.carries || self.chance(path.loss) {
            return;
        }
        let Some((gone, marked)) = self.hosts[to].enqueue(self.now, bytes.len()) else { return };
        let copies = 1 + u32::from(self.chance(path.doubled));
        for _ in 0..copies {
            let jitter = path.jitter.as_nanos() as u64;
            let jitter = Duration::from_nanos(if jitter == 0 { 0 } else { self.draw() % jitter });
            let mut bytes = bytes.clone();
            if self.chance(path.changed) {
                let bit = self.draw() as usize % (bytes.len() * 8);
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            self.sequence += 1;
            self.flying.push(Reverse((gone + path.delay + jitter, self.sequence, from, to, marked, bytes)));
        }
    }

    fn index_of(&self, address: SocketAddr) -> Option<usize> {
        self.hosts.iter().position(|host| host.address == address || host.also_at == Some(address))
    }

    /// Lets a host do all it wants to do now.
    pub(crate) fn serve(&mut self, index: usize) {
        let now = self.now;
        if self.hosts[index].down {
            return;
        }
        self.hosts[index].endpoint.handle_timeout(now);
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            self.hosts[index].take_events(now);
            let mut batch = Batch::new(&mut buffer, 64);
            self.hosts[index].fill(now, &mut batch);
            self.hosts[index].endpoint.transmit(now, &mut batch);
            let Some(to) = batch.destination() else { break };
            let to = self.index_of(to);
            let datagrams: Vec<Vec<u8>> =
                batch.bytes().chunks(batch.segment_size()).map(<[u8]>::to_vec).collect();
            assert_eq!(datagrams.len(), batch.packets());
            for datagram in datagrams {
                if let Some(to) = to {
                    self.launch(index, to, datagram);
                }
            }
        }
        self.buffer = buffer;
    }

    /// Lets the flows do what they have to do now.
    fn serve_flows(&mut self) {
        for flow in &mut self.flows {
            for _ in 0..flow.serve(self.now) {
                let host = &mut self.hosts[flow.to];
                // The acknowledgement takes as long as a packet of a session takes back.
                let acked_at = host.enqueue(self.now, SEGMENT).map(|(gone, _)| gone + host.path.delay * 2);
                flow.on_sent(self.now, acked_at);
            }
        }
    }

    fn next(&self) -> Option<Time> {
        let timeouts =
            self.hosts.iter().filter(|host| !host.down).filter_map(|host| host.endpoint.next_timeout());
        let flows = self.flows.iter().map(Tcp::next_time);
        timeouts.chain(flows).chain(self.flying.peek().map(|Reverse(flying)| flying.0)).min()
    }

    /// Runs until `until` says so, or for `longest`. True if `until` said so.
    pub(crate) fn run(&mut self, longest: Duration, until: impl Fn(&Network) -> bool) -> bool {
        let end = self.now + longest;
        for index in 0..self.hosts.len() {
            self.serve(index);
        }
        while !until(self) {
            let Some(next) = self.next().filter(|next| *next <= end) else {
                self.now = end;
                return until(self);
            };
            self.now = self.now.max(next);
            self.serve_flows();
            let mut touched = BTreeSet::new();
            while self.flying.peek().is_some_and(|Reverse(flying)| flying.0 <= self.now) {
                let Some(Reverse((_, _, from, to, marked, mut bytes))) = self.flying.pop() else { break };
                let from = self.hosts[from].address;
                self.hosts[to].take(self.now, from, marked, &mut bytes);
                touched.insert(to);
            }
            for index in 0..self.hosts.len() {
                let due = self.hosts[index].endpoint.next_timeout().is_some_and(|at| at <= self.now);
                if due || touched.contains(&index) {
                    self.serve(index);
                }
            }
        }
        true
    }

    /// Whether all that was queued has arrived, and all packets have their fates.
    pub(crate) fn is_done(&self) -> bool {
        self.hosts.iter().all(|host| host.open.is_empty() && host.to_send.values().all(VecDeque::is_empty))
    }

    pub(crate) fn is_connected(&self, a: usize, b: usize) -> bool {
        let sees = |a: usize, b: usize| self.hosts[a].endpoint.status(HostId(b as u16)).is_some();
        sees(a, b) && sees(b, a)
    }

    pub(crate) fn status(&self, from: usize, to: usize) -> LinkStatus {
        self.hosts[from].endpoint.status(HostId(to as u16)).expect("connected")
    }
}

impl Host {
    /// Puts bytes into the queue in front of the host: when the last of them has gone, and whether they are marked; none if
    /// the queue is full.
    fn enqueue(&mut self, now: Time, bytes: usize) -> Option<(Time, bool)> {
        let Path { rate, queue, marks, .. } = self.path;
        let start = self.busy_until.max(now);
        let waiting = start.since(now).as_secs_f64() * rate;
        if waiting + bytes as f64 > queue as f64 {
            return None;
        }
        self.busy_until = start + Duration::from_secs_f64(bytes as f64 / rate);
        Some((self.busy_until, marks && waiting > queue as f64 / 2.0))
    }

    pub(crate) fn take(&mut self, now: Time, from: SocketAddr, marked: bool, bytes: &mut [u8]) {
        if self.down {
            return;
        }
        if let Some(Received { peer, payload }) = self.endpoint.receive(now, from, marked, bytes) {
            let (id, rest) = payload.split_first_chunk::<8>().expect("an id in front");
            let id = u64::from_le_bytes(*id);
            assert!(rest == body(id, rest.len()), "other bytes");
            *self.got.entry((peer, id)).or_default() += 1;
            self.got_bytes += payload.len() as u64;
        }
    }

    fn take_events(&mut self, now: Time) {
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Acked { peer, id } => assert!(self.open.remove(&(peer, id)), "a second fate of {id}"),
                Event::Lost { peer, id } => {
                    assert!(self.open.remove(&(peer, id)), "a second fate of {id}");
                    self.to_send.entry(peer).or_default().push_front(id);
                }
                event => self.events.push((now, event)),
            }
        }
    }

    /// Sends what may be sent.
    fn fill(&mut self, now: Time, batch: &mut Batch<'_>) {
        for (peer, ids) in &mut self.to_send {
            while let Some(&id) = ids.front() {
                let Some(max) = self.endpoint.max_payload(*peer) else { break };
                let size = self.size.unwrap_or(max).min(max) - 8;
                let (one, two) = body(id, size).split_at(size / 3);
                match self.endpoint.send(now, *peer, id, &[&id.to_le_bytes(), one, two], batch) {
                    Ok(()) => assert!(self.open.insert((*peer, id))),
                    Err(SendError::TooLarge { max }) => panic!("{size} bytes are more than {max}"),
                    Err(_) => break,
                }
                ids.pop_front();
            }
        }
    }

    pub(crate) fn disconnects(&self) -> Vec<Reason> {
        let reason = |(_, event): &(Time, Event)| match event {
            Event::Disconnected { reason, .. } => Some(*reason),
            _ => None,
        };
        self.events.iter().filter_map(reason).collect()
    }

    pub(crate) fn boots(&self) -> Vec<u64> {
        let boot = |(_, event): &(Time, Event)| match event {
            Event::Connected { boot, .. } => Some(*boot),
            _ => None,
        };
        self.events.iter().filter_map(boot).collect()
    }

    pub(crate) fn refusals(&self) -> Vec<Refusal> {
        let why = |(_, event): &(Time, Event)| match event {
            Event::Refused { why, .. } => Some(*why),
            _ => None,
        };
        self.events.iter().filter_map(why).collect()
    }
}
