//! Barriers across hosts: two jobs stand for two hosts, and a network between their agents that delays what it likes. What workers
//! read after a barrier is what the others wrote before it, and nothing that was written after it.
use crate::common::*;
use hectare::agent::{Agent, Arrival, Event, Held, RemoteWorker, Source};
use hectare::{AreaId, AreaSpec, ElementType, Error, Job, Owned, Version, Worker};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const SOURCE: Source = Source { term: 1, sender: 7 };
const BARRIERS: u64 = 120;
const LEN: usize = 300;

fn job(here: usize, ranks: u32) -> Job {
    Job::builder().reserve(1 << 28).round_timeout(LONG).hosts(&[ranks, ranks], here).embedded().unwrap()
}

fn look(agent: &mut Agent) -> Vec<Event> {
    let mut events = Vec::new();
    agent.look(&mut events);
    events
}

/// One way between the hosts.
#[derive(Default)]
struct Way {
    here: Vec<AreaId>,
    there: Vec<AreaId>,
    /// The last state that was sent, and its versions; the one before is visible there.
    sent: (u64, Vec<Version>),
    visible: u64,
    /// Clocks that were heard of.
    heard: VecDeque<u64>,
    /// Clocks, and the states that they cover. Not a later one in place of an earlier: it may cover what is published there only
    /// after the earlier counts.
    clocks: VecDeque<(u64, u64)>,
    /// The last of them.
    told: u64,
    random: u64,
}

impl Way {
    fn chance(&mut self, percent: u64) -> bool {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % 100 < percent
    }

    fn carry(&mut self, host: usize, from: &mut Agent, to: &mut Agent) {
        for event in look(from) {
            match event {
                Event::Created { area } if !from.describe(area).unwrap().remote => {
                    let about = from.describe(area).unwrap();
                    let spec = AreaSpec::new(&about.name).copies(3).group(about.group.unwrap());
                    self.here.push(area);
                    self.there.push(to.create(&spec, about.element, about.len).unwrap());
                }
                Event::Clock { local, .. } => self.heard.push_back(local),
                _ => {}
            }
        }
        if self.here.len() < 2 {
            return;
        }
        if let Some(&local) = self.heard.front() {
            // None if rounds are too fast for one look.
            let states = from.states(&self.here).unwrap();
            if let Some(newest) = states.last() {
                self.heard.pop_front();
                // Several clocks may have passed since the last look.
                let each = self.told.saturating_add(1)..=local.min(newest.label);
                for clock in each.chain((local > newest.label).then_some(local)) {
                    let covered = states.iter().filter(|state| state.label <= clock);
                    let covered = covered.map(|state| state.sequence).max().unwrap_or(0);
                    self.clocks.push_back((clock, covered));
                }
                self.told = self.told.max(local);
            }
        }
        let newest: Vec<_> = self.there.iter().map(|area| to.newest(*area)).collect();
        if newest.iter().zip(&self.sent.1).all(|(newest, sent)| *newest == Some(*sent)) {
            self.visible = self.sent.0;
        }
        if self.chance(60) {
            self.send(from, to);
        }
        if let Some(&(clock, covered)) = self.clocks.front()
            && self.visible >= covered
            && self.chance(30)
        {
            to.set_clock(host, clock).unwrap();
            self.clocks.pop_front();
        }
    }

    /// Sends the oldest state that is not there, also before it may be published there.
    fn send(&mut self, from: &Agent, to: &Agent) {
        let states = from.states(&self.here).unwrap();
        let Some(next) = states.iter().find(|state| state.sequence > self.sent.0) else { return };
        let Some(mut receiving) = to.receive(&self.there, SOURCE).unwrap() else { return };
        // Labels sent before are visible by now, perhaps only since the last look.
        self.visible = self.sent.0;
        let Ok(Some(held)) = from.hold_label(&self.here, next.label) else { return };
        let mut arrivals = Vec::new();
        for (held, area) in held.iter().zip(&self.there) {
            let base = to.newest(*area);
            if base >= Some(held.version()) {
                continue;
            }
            for run in held.changed_since(base).runs() {
                let end = (run.end as usize * 64).min(held.bytes().len());
                receiving.write(*area, run.start, &held.bytes()[run.start as usize * 64..end]).unwrap();
            }
            let (version, clock, age) = (held.version(), held.clock(), held.age());
            arrivals.push(Arrival { area: *area, version, clock, label: next.label, age });
        }
        let sequence = held.iter().map(Held::sequence).max().unwrap();
        if !arrivals.is_empty() {
            receiving.commit(&arrivals, true).unwrap();
        }
        self.sent = (sequence, held.iter().map(Held::version).collect());
    }
}

/// A worker of a host: what it writes before barrier n is n.
fn work(job: &Job, host: usize, is_owner: bool) {
    let mut worker = job.worker().unwrap();
    worker.wait_for_workers(4, LONG).unwrap();
    let names = |host: usize| ["a", "b"].map(|name| format!("{host}/{name}"));
    let spec = |name: &String| AreaSpec::new(name).copies(3).group(format!("g{host}"));
    let mut owned: Vec<Owned<u64>> = match is_owner {
        true => names(host).iter().map(|name| worker.create(spec(name), LEN).unwrap()).collect(),
        false => Vec::new(),
    };
    let others = names(1 - host).map(|name| worker.attach_within::<u64>(&name, LONG).unwrap());
    let read = |worker: &Worker| others.each_ref().map(|area| uniform(area.read(worker).unwrap()));
    for clock in 1..=BARRIERS {
        owned.iter_mut().for_each(|owned| fill(owned, &worker, clock));
        if clock % 3 == 0 {
            // Published before the barrier.
            worker.sync().unwrap();
            let [a, b] = read(&worker);
            assert!(a == b && (clock - 1..=clock).contains(&a), "{a} and {b} before barrier {clock}");
        }
        worker.barrier().unwrap();
        assert_eq!(read(&worker), [clock; 2], "after barrier {clock}");
    }
}

#[test]
fn a_barrier_holds_across_hosts() {
    let jobs = [0, 1].map(|here| job(here, 2));
    let _watches = jobs.each_ref().map(watch);
    let (left, crew) = (AtomicUsize::new(4), Crew::new());
    std::thread::scope(|scope| {
        for (host, job) in jobs.iter().enumerate() {
            for is_owner in [true, false] {
                let (left, crew) = (&left, &crew);
                scope.spawn(move || {
                    crew.part(|| work(job, host, is_owner));
                    left.fetch_sub(1, SeqCst);
                });
            }
        }
        let [mut a, mut b] = jobs.each_ref().map(|job| job.agent().unwrap());
        for rank in 0..2 {
            a.set_worker(2 + rank, RemoteWorker::There).unwrap();
            b.set_worker(rank, RemoteWorker::There).unwrap();
        }
        let mut ways = [Way { random: 1, ..Way::default() }, Way { random: 2, ..Way::default() }];
        while left.load(SeqCst) != 0 {
            ways[0].carry(0, &mut a, &mut b);
            ways[1].carry(1, &mut b, &mut a);
            std::thread::sleep(Duration::from_micros(30));
        }
    });
}

fn receive(agent: &mut Agent, area: AreaId, value: u64, label: u64) {
    let mut receiving = None;
    until("an area to be received into", || {
        look(agent);
        receiving = agent.receive(&[area], SOURCE).unwrap();
        receiving.is_some()
    });
    let mut receiving = receiving.unwrap();
    receiving.write(area, 0, &value.to_ne_bytes()).unwrap();
    let version = Version { term: 1, counter: value };
    receiving.commit(&[Arrival { area, version, clock: 0, label, age: Duration::ZERO }], true).unwrap();
}

#[test]
fn an_arrival_waits_for_the_clock_of_its_label() {
    let job = job(1, 1);
    let mut worker = job.worker().unwrap();
    let mut agent = job.agent().unwrap();
    let id = agent.create(&AreaSpec::new("a").copies(2), ElementType::of::<u64>(), 1).unwrap();
    let area = worker.attach::<u64>("a").unwrap();
    receive(&mut agent, id, 1, 1);
    worker.sync().unwrap();
    assert_eq!(area.read(&worker).unwrap()[0], 1);
    receive(&mut agent, id, 2, 2);
    for _ in 0..3 {
        worker.sync().unwrap();
        assert_eq!(area.read(&worker).unwrap()[0], 1, "written after clock 1, which is not reached");
    }
    // Another agent finds it.
    drop(agent);
    let mut agent = job.agent().unwrap();
    agent.set_clock(0, 1).unwrap();
    worker.barrier().unwrap();
    assert_eq!(area.read(&worker).unwrap()[0], 1, "after barrier 1");
    // The agent asks for the round that publishes it.
    look(&mut agent);
    let version = Version { term: 1, counter: 2 };
    worker.wait_for(&area, version, LONG).unwrap();
    assert_eq!(area.read(&worker).unwrap()[0], 2);
}

fn publish(owned: &mut Owned<u64>, worker: &mut Worker, value: u64) {
    fill(owned, worker, value);
    assert_eq!(worker.sync().unwrap().postponed, 0);
}

fn kept(agent: &Agent, area: AreaId, label: u64) -> Option<u64> {
    let held = agent.hold_label(&[area], label).unwrap()?;
    assert_eq!(held[0].label(), label);
    Some(u64::from_ne_bytes(held[0].bytes()[..8].try_into().unwrap()))
}

#[test]
fn the_last_state_of_the_label_before_is_kept() {
    let job = job(0, 1);
    let (mut worker, agent) = (job.worker().unwrap(), job.agent().unwrap());
    let mut owned = worker.create::<u64>(AreaSpec::new("a").copies(2), 8).unwrap();
    let area = agent.find("a").unwrap();
    let mut value = 0;
    for label in 1..=5u64 {
        let last = value;
        for _ in 0..4 {
            value += 1;
            publish(&mut owned, &mut worker, value);
            assert_eq!((kept(&agent, area, label), kept(&agent, area, label - 1)), (Some(value), Some(last)));
            assert_eq!(kept(&agent, area, label + 1), None);
            if label > 1 {
                assert_eq!(kept(&agent, area, label - 2), None);
            }
        }
        agent.set_clock(1, label).unwrap();
        worker.barrier().unwrap();
    }
    // It is no reason to put a publication off.
    let held = agent.hold(&[area]).unwrap();
    publish(&mut owned, &mut worker, value + 1);
    assert_eq!((kept(&agent, area, 5), held[0].label()), (Some(value), 5));
    publish(&mut owned, &mut worker, value + 2);
    assert!(matches!(agent.hold(&[area]), Err(Error::NoSpareCopy { .. })));
    drop(held);
    // Where both copies are read, the one that is kept is written.
    let held = agent.hold(&[area]).unwrap();
    publish(&mut owned, &mut worker, value + 3);
    assert_eq!((kept(&agent, area, 5), held[0].label()), (None, 6));
}

#[test]
fn pins_of_a_dead_agent_hold_until_the_next_is_ready() {
    const NAME: &str = "pins_of_a_dead_agent_hold_until_the_next_is_ready";
    if let Some((_, job)) = role() {
        let agent = job.agent().unwrap();
        let held = agent.hold(&[agent.find("a").unwrap()]).unwrap();
        assert_eq!(held[0].version().counter, 1);
        std::process::exit(0);
    }
    let job = job(0, 1);
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("a").copies(3), 8).unwrap();
    publish(&mut owned, &mut worker, 1);
    assert!(spawn(NAME, "agent", &job).wait());
    (2..9).for_each(|value| publish(&mut owned, &mut worker, value));
    let agent = job.agent().unwrap();
    let area = agent.find("a").unwrap();
    let held = agent.hold(&[area]).unwrap();
    publish(&mut owned, &mut worker, 9);
    let pinned = |agent: &Agent| match agent.hold(&[area]) {
        Err(Error::NoSpareCopy { pinned, .. }) => Some(pinned),
        _ => None,
    };
    assert_eq!(pinned(&agent), Some(1), "and one that the dead agent holds");
    agent.ready();
    assert_eq!((pinned(&agent), held[0].version().counter), (None, 8));
}
