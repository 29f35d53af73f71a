//! Hosts in one process, and a network between them that loses datagrams.
use hectare_agent::{Failure, Placer, Reach, Relay, SegmentMemory, Setup};
use hectare_dsm::{Area, Error, Job, JobBuilder, Owned, Worker};
use hectare_net::HostId;
use hectare_session::{self as session, Batch, ClusterKey, Config, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

pub(crate) const MS: u64 = 1_000_000;
/// Between two looks at everything.
const STEP: u64 = MS / 5;
/// More than anything here takes.
const END: u64 = 120_000 * MS;
/// For workers to come.
const ALL_THERE: Duration = Duration::from_secs(120);

/// The element at `at` of version `version`.
pub(crate) fn filled(at: usize, version: u64) -> u64 {
    // Many lines stay as they are from one version to the next.
    if version == 0 { 0 } else { version / (1 + at as u64 / 64 % 7) * 1_000_003 + at as u64 }
}

/// A host: a job's part, a worker, and the agent.
pub(crate) struct Host {
    // Before the job's memory goes.
    pub(crate) relay: Option<Relay>,
    pub(crate) worker: Worker,
    pub(crate) job: Job,
    boot: u64,
    wanted: Vec<String>,
    /// The error by which its worker learned of the job's end.
    pub(crate) ended: Option<String>,
    /// The errors about areas that its worker got.
    pub(crate) complaints: Vec<Error>,
}

impl Host {
    /// Writes what version `version` is.
    pub(crate) fn fill(&self, owned: &mut Owned<u64>, version: u64) {
        let mut guard = owned.write(&self.worker).unwrap();
        for at in 0..guard.len() {
            let value = filled(at, version);
            if guard[at] != value {
                guard.set(at, value);
            }
        }
        // Something changes in every version.
        let value = guard[0];
        guard.set(0, value);
    }

    pub(crate) fn write(&mut self, owned: &mut Owned<u64>, version: u64) {
        self.fill(owned, version);
        assert_eq!(self.worker.sync().unwrap().postponed, 0);
    }

    /// Waits for a name, for a moment.
    pub(crate) fn want(&mut self, name: &str) {
        if !self.wanted.iter().any(|other| other == name) {
            self.wanted.push(name.into());
        }
    }

    /// Its worker leaves the job, and nobody joins any more. One of another job, which is nobody's, goes on in its place.
    #[allow(dead_code, reason = "not all tests have hosts without workers")]
    pub(crate) fn desert(&mut self) {
        self.worker = Job::embedded().unwrap().worker().unwrap();
    }

    pub(crate) fn failure(&self) -> Option<&Failure> {
        self.relay.as_ref()?.failure()
    }

    pub(crate) fn counters(&self) -> hectare_net::Counters {
        self.relay.as_ref().unwrap().counters().0
    }
}

/// Opens what places lines, of each host; then time is real, from the instant on.
type RealPlacer = (fn(usize) -> Placer, Instant);

/// All hosts and the time.
pub(crate) struct World {
    pub(crate) hosts: Vec<Host>,
    /// Of 1000 datagrams.
    pub(crate) loss: u64,
    /// Nothing of this host arrives.
    pub(crate) mute: Option<usize>,
    pub(crate) now: u64,
    state: u64,
    /// When each arrives: from whom, to whom, what.
    wire: BTreeMap<(u64, u64), (usize, usize, Vec<u8>)>,
    sent: u64,
    placer: Option<RealPlacer>,
}

fn address(host: usize) -> SocketAddr {
    format!("10.0.0.{}:7000", host + 1).parse().unwrap()
}

impl World {
    pub(crate) fn new(hosts: usize, seed: u64) -> World {
        World::with_room(&vec![1 << 28; hosts], seed)
    }

    /// Hosts that place lines by a device each, and real time. Agents are started anew with it.
    #[allow(dead_code, reason = "not all tests have devices")]
    pub(crate) fn with_placers(hosts: usize, seed: u64, placer: fn(usize) -> Placer) -> World {
        let mut world = World::new(hosts, seed);
        world.placer = Some((placer, Instant::now()));
        (0..hosts).for_each(|host| world.restart(host));
        world
    }

    /// Hosts with so many bytes for areas.
    pub(crate) fn with_room(bytes: &[u64], seed: u64) -> World {
        World::of(bytes, seed, |builder, _| builder)
    }

    /// Hosts of one job with a worker each, which give areas to each other.
    pub(crate) fn with_ranks(hosts: usize, seed: u64) -> World {
        World::of(&vec![1 << 28; hosts], seed, |builder, here| builder.hosts(&vec![1; hosts], here))
    }

    /// Hosts of one job with so many ranks each, whose workers the test starts itself.
    #[allow(dead_code, reason = "not all tests have such workers")]
    pub(crate) fn with_ranks_of(ranks: &[u32], seed: u64) -> World {
        let other = |_: &Job| Job::embedded().unwrap().worker().unwrap();
        World::of_jobs(&vec![1 << 28; ranks.len()], seed, |builder, here| builder.hosts(ranks, here), other)
    }

    /// Hosts whose jobs are built as `of_host` says of each.
    fn of(bytes: &[u64], seed: u64, of_host: impl Fn(JobBuilder, usize) -> JobBuilder) -> World {
        World::of_jobs(bytes, seed, of_host, |job| job.worker().unwrap())
    }

    fn of_jobs(
        bytes: &[u64],
        seed: u64,
        of_host: impl Fn(JobBuilder, usize) -> JobBuilder,
        worker: impl Fn(&Job) -> Worker,
    ) -> World {
        let host = |(here, bytes): (usize, &u64)| {
            let builder = Job::builder().reserve(*bytes).min_copies(3).generations(5, 1);
            let job = of_host(builder, here).embedded().unwrap();
            Host {
                relay: None,
                worker: worker(&job),
                job,
                boot: 0,
                wanted: Vec::new(),
                ended: None,
                complaints: Vec::new(),
            }
        };
        let hosts: Vec<Host> = bytes.iter().enumerate().map(host).collect();
        let mut world = World {
            hosts,
            loss: 0,
            mute: None,
            now: 0,
            state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            wire: BTreeMap::new(),
            sent: 0,
            placer: None,
        };
        (0..world.hosts.len()).for_each(|host| world.restart(host));
        world
    }

    /// A number below `below` (xorshift64*).
    pub(crate) fn random(&mut self, below: u64) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % below
    }

    pub(crate) fn restart(&mut self, host: usize) {
        self.start_with(host, "lab", [7; 32]);
    }

    /// Ends a host's agent and starts another, with this key.
    pub(crate) fn start_with(&mut self, host: usize, cluster: &str, secret: [u8; 32]) {
        let key = ClusterKey::new(cluster, secret).unwrap();
        let reaches = (0..self.hosts.len()).map(|host| Reach::by_udp(address(host), "it is")).collect();
        let mut seed = [0; 32];
        seed.fill_with(|| self.random(256) as u8);
        let it = &mut self.hosts[host];
        it.relay = None;
        it.boot += 1;
        let mut config =
            Config::new(session::HostId(host as u16), it.boot, [1; 16], key, [host as u8 + 1; 32]);
        config.connect_timeout = Duration::from_millis(500);
        config.idle_timeout = Duration::from_millis(1000);
        config.keep_alive = Duration::from_millis(200);
        let setup = Setup {
            session: config,
            seed,
            reaches,
            segment: host as u64 + 1,
            silence: Duration::from_secs(3),
        };
        let placer = self.placer.map_or_else(Placer::default, |(placer, _)| placer(host));
        let ranks = it.job.hosts();
        let memory = SegmentMemory::with_ranks(it.job.agent().unwrap(), HostId(host as u16), ranks);
        let memory = memory.with_placer(placer);
        it.relay = Some(Relay::new(setup, memory, Time::from_nanos(self.now)));
    }

    /// One step of everything.
    pub(crate) fn turn(&mut self) {
        self.now = match self.placer {
            None => self.now + STEP,
            Some((_, since)) => (since.elapsed().as_nanos() as u64).max(self.now + 1),
        };
        let now = Time::from_nanos(self.now);
        while let Some(entry) = self.wire.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (from, to, mut bytes) = entry.remove();
            if let Some(relay) = &mut self.hosts[to].relay {
                relay.receive(now, address(from), false, &mut bytes);
            }
        }
        for host in 0..self.hosts.len() {
            let it = &mut self.hosts[host];
            match it.worker.service() {
                Ok(_) => {}
                Err(error @ Error::PeerFailed { .. }) => it.ended = Some(error.to_string()),
                Err(
                    error @ (Error::NameClash { .. }
                    | Error::GroupClash { .. }
                    | Error::TypeClash { .. }
                    | Error::NotShared { .. }),
                ) => it.complaints.push(error),
                Err(error) => panic!("{error}"),
            }
            // Whoever waits for a name asks for it, and gives up at once.
            for name in std::mem::take(&mut it.wanted) {
                let _ = it.worker.attach_within::<u64>(&name, Duration::ZERO);
            }
            if let Some(relay) = &mut it.relay {
                relay.work(now);
            }
            self.transmit(host, now);
        }
    }

    fn transmit(&mut self, host: usize, now: Time) {
        let mut buffer = vec![0; 65_507];
        loop {
            let Some(relay) = &mut self.hosts[host].relay else { return };
            let mut batch = Batch::new(&mut buffer, 64);
            relay.transmit(now, &mut batch);
            if batch.is_empty() {
                return;
            }
            let to = batch.destination().unwrap();
            let to = (0..self.hosts.len()).find(|host| address(*host) == to).unwrap();
            let datagrams: Vec<Vec<u8>> =
                batch.bytes().chunks(batch.segment_size()).map(<[u8]>::to_vec).collect();
            for datagram in datagrams {
                self.sent += 1;
                let (lost, late) = (self.random(1000) < self.loss, self.random(MS));
                if !lost && self.mute != Some(host) {
                    self.wire.insert((self.now + MS / 4 + late, self.sent), (host, to, datagram));
                }
            }
        }
    }

    pub(crate) fn run(&mut self, length: u64) {
        let end = self.now + length;
        while self.now < end {
            self.turn();
        }
    }

    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, holds: impl Fn(&World) -> bool) {
        let end = self.now + END;
        while !holds(self) {
            assert!(
                self.now < end,
                "waited in vain for {what}: {:#?}",
                self.hosts.iter().map(|host| &host.relay).collect::<Vec<_>>()
            );
            self.turn();
        }
    }

    /// The result of waiting on a host for an area until there is one.
    pub(crate) fn ask(&mut self, host: usize, name: &str, limit: Duration) -> Result<usize, Error> {
        let (job, name) = (self.hosts[host].job.clone(), name.to_owned());
        let asks = std::thread::spawn(move || job.attach_within::<u64>(&name, limit).map(|area| area.len()));
        while !asks.is_finished() {
            self.turn();
        }
        asks.join().unwrap()
    }

    /// Waits until a host finds an area.
    #[track_caller]
    pub(crate) fn find_on(&mut self, host: usize, name: &str) {
        let end = self.now + END;
        while self.hosts[host].worker.attach_here::<u64>(name).is_err() {
            assert!(self.now < end, "{name} never comes to host {host}");
            self.hosts[host].want(name);
            self.turn();
        }
    }

    /// Waits until a host's worker has an area that it was given.
    #[track_caller]
    pub(crate) fn take(&mut self, host: usize, area: &Area<u64>) -> Owned<u64> {
        let end = self.now + END;
        loop {
            if let Some(owned) = area.try_take(&self.hosts[host].worker).unwrap() {
                return owned;
            }
            assert!(self.now < end, "{} never comes to host {host}", area.name());
            self.turn();
        }
    }
}

/// Runs `act` on all workers, each in a thread, and the network meanwhile.
#[allow(dead_code, reason = "not all tests have workers that are threads")]
pub(crate) fn on_all<R: Send>(
    world: &mut World,
    ranks: &[u32],
    act: impl Fn(&mut Worker) -> R + Sync,
) -> Vec<R> {
    let workers = ranks.iter().sum::<u32>() as usize;
    let jobs: Vec<Job> = world.hosts.iter().map(|host| host.job.clone()).collect();
    std::thread::scope(|scope| {
        let act = &act;
        let threads: Vec<_> = jobs
            .iter()
            .zip(ranks)
            .flat_map(|(job, ranks)| (0..*ranks).map(move |_| job))
            .map(|job| {
                scope.spawn(move || {
                    let mut worker = job.worker().unwrap();
                    worker.wait_for_workers(workers, ALL_THERE).unwrap();
                    act(&mut worker)
                })
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            world.turn();
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
