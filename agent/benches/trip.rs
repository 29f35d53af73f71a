//! The cost of each step of a version of 64 bytes from one host to another, without system calls: two hosts in
//! one thread, which hand each other datagrams in memory.
//!
//! `cargo bench -p hectare-agent --bench trip`
use hectare_agent::{Reach, Relay, SegmentMemory, Setup};
use hectare_dsm::{AreaSpec, Job, Worker};
use hectare_net::HostId;
use hectare_session::{self as session, Batch, ClusterKey, Config, Suite, Time};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

const WARM: usize = 2_000;
const TURNS: usize = 20_000;
/// Rounds of each suite, in turn.
const ROUNDS: usize = 5;

/// The steps of a trip, in order.
const STEPS: [&str; 10] = [
    "the writer's round",
    "its agent looks",
    "and transmits",
    "the other agent receives",
    "looks",
    "and transmits",
    "the reader's round",
    "its agent looks",
    "and transmits",
    "the writer's agent receives",
];

struct Host {
    // Before the job's memory goes.
    relay: Relay,
    worker: Worker,
    job: Job,
}

fn address(host: usize) -> SocketAddr {
    format!("10.0.0.{}:7000", host + 1).parse().expect("an address")
}

impl Host {
    fn new(host: usize, suite: Suite) -> Host {
        let job = Job::builder().hosts(&[1, 1], host).min_copies(3).generations(5, 1).reserve(1 << 28);
        let job = job.embedded().expect("a job");
        let key = ClusterKey::new("lab", [7; 32]).expect("a key");
        let mut config = Config::new(session::HostId(host as u16), 1, [1; 16], key, [host as u8 + 1; 32]);
        config.suite = suite;
        let reaches = (0..2).map(|host| Reach::by_udp(address(host), "it is")).collect();
        let setup = Setup {
            session: config,
            seed: [host as u8; 32],
            reaches,
            segment: host as u64 + 1,
            silence: Duration::from_secs(30),
        };
        let memory =
            SegmentMemory::with_ranks(job.agent().expect("an agent"), HostId(host as u16), job.hosts());
        let worker = job.worker().expect("a worker");
        Host { relay: Relay::new(setup, memory, Time::ZERO), worker, job }
    }
}

struct World {
    hosts: Vec<Host>,
    since: Instant,
    buffer: Vec<u8>,
    /// Datagrams on their way, by whom they are for.
    wire: [Vec<Vec<u8>>; 2],
    datagrams: usize,
}

impl World {
    fn new(suite: Suite) -> World {
        let hosts = (0..2).map(|host| Host::new(host, suite)).collect();
        let buffer = vec![0; 65_507];
        World { hosts, since: Instant::now(), buffer, wire: [Vec::new(), Vec::new()], datagrams: 0 }
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.since.elapsed().as_nanos() as u64)
    }

    fn receive(&mut self, host: usize) {
        for mut datagram in std::mem::take(&mut self.wire[host]) {
            let now = self.now();
            self.hosts[host].relay.receive(now, address(1 - host), false, &mut datagram);
        }
    }

    fn work(&mut self, host: usize) {
        let now = self.now();
        self.hosts[host].relay.work(now);
    }

    fn transmit(&mut self, host: usize) {
        loop {
            let now = self.now();
            let mut batch = Batch::new(&mut self.buffer, 64);
            self.hosts[host].relay.transmit(now, &mut batch);
            if batch.is_empty() {
                return;
            }
            let each = batch.bytes().chunks(batch.segment_size()).map(<[u8]>::to_vec);
            let before = self.wire[1 - host].len();
            self.wire[1 - host].extend(each);
            self.datagrams += self.wire[1 - host].len() - before;
        }
    }

    fn settle(&mut self) {
        for host in 0..2 {
            self.receive(host);
            self.work(host);
            self.transmit(host);
            self.hosts[host].worker.service().expect("a service");
        }
    }
}

/// The nanoseconds of each step, and datagrams, on average.
fn measure(suite: Suite) -> ([f64; STEPS.len()], f64) {
    let mut world = World::new(suite);
    let mut mine = world.hosts[0].worker.create::<u64>(AreaSpec::new("line"), 8).expect("an area");
    let job = world.hosts[1].job.clone();
    let asks =
        std::thread::spawn(move || job.attach_within::<u64>("line", Duration::from_secs(60)).map(drop));
    while !asks.is_finished() {
        world.settle();
    }
    asks.join().expect("it ends").expect("the area");
    let theirs = world.hosts[1].worker.attach::<u64>("line").expect("the area");
    let mut took = [0_u128; STEPS.len()];
    let mut sent = 0;
    for turn in 0..(WARM + TURNS) as u64 {
        mine.write(&world.hosts[0].worker).expect("a view").fill(turn + 1);
        let before = world.datagrams;
        let steps: [&dyn Fn(&mut World); STEPS.len()] = [
            &|world| {
                world.hosts[0].worker.sync().expect("a round");
            },
            &|world| world.work(0),
            &|world| world.transmit(0),
            &|world| world.receive(1),
            &|world| world.work(1),
            &|world| world.transmit(1),
            &|world| {
                world.hosts[1].worker.sync().expect("a round");
            },
            &|world| world.work(1),
            &|world| world.transmit(1),
            &|world| world.receive(0),
        ];
        for (step, total) in steps.into_iter().zip(&mut took) {
            let since = Instant::now();
            step(&mut world);
            if turn >= WARM as u64 {
                *total += since.elapsed().as_nanos();
            }
        }
        assert_eq!(theirs.read(&world.hosts[1].worker).expect("a view")[0], turn + 1);
        if turn >= WARM as u64 {
            sent += world.datagrams - before;
        }
        world.settle();
    }
    (took.map(|total| total as f64 / TURNS as f64), sent as f64 / TURNS as f64)
}

fn main() {
    println!("{}", hectare_testing::processor());
    for (suite, name) in [(Suite::Aes128Gcm, "AES-128-GCM"), (Suite::Checksum, "no cipher")] {
        let rounds: Vec<_> = (0..ROUNDS).map(|_| measure(suite)).collect();
        println!("\n{name:<30} {:>8} {:>8}", "ns", "best");
        let mut sum = (0.0, 0.0);
        for (index, step) in STEPS.iter().enumerate() {
            let mut times: Vec<f64> = rounds.iter().map(|(times, _)| times[index]).collect();
            times.sort_by(f64::total_cmp);
            println!("{step:<30} {:>8.0} {:>8.0}", times[ROUNDS / 2], times[0]);
            sum = (sum.0 + times[ROUNDS / 2], sum.1 + times[0]);
        }
        println!("{:<30} {:>8.0} {:>8.0}", "all", sum.0, sum.1);
        println!("{:<30} {:>8.2}", "datagrams", rounds[0].1);
    }
}
