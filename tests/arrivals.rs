//! Versions from other hosts: two jobs stand for two hosts, and an agent of each carries versions between them by what is
//! public. What workers read is whole, in order, one state of a group, and complete in the end.
use crate::common::*;
use hectare::agent::{Agent, Arrival, Event, Published, Receiving, Source};
use hectare::{AreaId, AreaSpec, ElementType, Error, Job, Owned, Version, Worker};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

pub(crate) const SOURCE: Source = Source { term: 1, sender: 7 };

fn version(counter: u64) -> Version {
    Version { term: 1, counter }
}

pub(crate) fn look(agent: &mut Agent) -> Vec<Event> {
    let mut events = Vec::new();
    agent.look(&mut events);
    events
}

pub(crate) fn arrival(area: AreaId, counter: u64) -> Arrival {
    Arrival { area, version: version(counter), clock: counter, label: 0, age: Duration::ZERO }
}

/// A path from one host to the other.
struct Bridge {
    from: Agent,
    to: Agent,
    /// The areas there, by those here.
    areas: BTreeMap<AreaId, AreaId>,
}

impl Bridge {
    fn new(from: &Job, to: &Job) -> Bridge {
        let (from, to) = (from.agent().unwrap(), to.agent().unwrap());
        Bridge { from, to, areas: BTreeMap::new() }
    }

    /// Carries what is new, as far as it is taken there.
    fn carry(&mut self) {
        for event in look(&mut self.from) {
            if let Event::Created { area } = event {
                let about = self.from.describe(area).unwrap();
                let mut spec = AreaSpec::new(&about.name).copies(2).row(about.row);
                spec = about.group.into_iter().fold(spec, AreaSpec::group);
                self.areas.insert(area, self.to.create(&spec, about.element, about.len).unwrap());
            }
        }
        look(&mut self.to);
        // An arrival before all have been made is a state of a smaller group.
        if self.areas.len() < SHAPES.len() {
            return;
        }
        let mut sets = BTreeMap::<String, Vec<AreaId>>::new();
        for area in self.areas.keys() {
            let about = self.from.describe(*area).unwrap();
            sets.entry(about.group.unwrap_or(about.name)).or_default().push(*area);
        }
        for areas in sets.values() {
            let there: Vec<AreaId> = areas.iter().map(|area| self.areas[area]).collect();
            if let Some(receiving) = self.to.receive(&there, SOURCE).unwrap() {
                self.send(areas, receiving);
            }
        }
    }

    fn send(&self, areas: &[AreaId], mut receiving: Receiving) {
        // Rounds may follow each other too fast for one state of several areas.
        let Ok(held) = self.from.hold(areas) else { return };
        let mut arrivals = Vec::new();
        for held in &held {
            let area = self.areas[&held.area()];
            let base = self.to.newest(area);
            if base >= Some(held.version()) {
                continue;
            }
            for run in held.changed_since(base).runs() {
                let bytes = held.bytes();
                let end = (run.end as usize * 64).min(bytes.len());
                receiving.write(area, run.start, &bytes[run.start as usize * 64..end]).unwrap();
            }
            let (version, clock, age) = (held.version(), held.clock(), held.age());
            arrivals.push(Arrival { area, version, clock, label: 0, age });
        }
        if !arrivals.is_empty() {
            receiving.commit(&arrivals, true).unwrap();
        }
    }
}

const SHAPES: [(&str, usize, bool); 4] =
    [("a", 9, true), ("b", 5_001, true), ("c", 40_000, false), ("d", 3, false)];
const LAST: u64 = 400;

/// Publishes each area as often as the others, so that a version's number is its content.
fn own(job: &Job, is_read: &AtomicBool) {
    let mut worker = job.worker().unwrap();
    let mut areas: Vec<Owned<u64>> = Vec::new();
    for (name, len, grouped) in SHAPES {
        let spec = AreaSpec::new(name).copies(3);
        areas.push(worker.create(if grouped { spec.group("g") } else { spec }, len).unwrap());
    }
    for turn in 1..=LAST {
        areas.iter_mut().for_each(|area| fill(area, &worker, turn));
        worker.sync().unwrap();
        std::thread::sleep(Duration::from_micros(turn % 3 * 200));
    }
    until("the readers", || is_read.load(SeqCst));
}

fn read(worker: &mut Worker) {
    let areas = SHAPES.map(|(name, ..)| worker.attach_within::<u64>(name, LONG).unwrap());
    let mut last = [Version::default(); SHAPES.len()];
    while last.iter().any(|last| last.counter < LAST) {
        for (area, last) in areas.iter().zip(&mut last) {
            let seen = area.version(worker).unwrap();
            assert!(seen >= *last, "{seen} after {last}");
            *last = seen;
            assert_eq!(uniform(area.read(worker).unwrap()), seen.counter);
            assert_eq!(area.clock(worker).unwrap(), 0);
        }
        assert_eq!(last[0], last[1], "one state of a group");
        worker.service().unwrap();
        std::thread::yield_now();
    }
}

#[test]
fn versions_travel_between_hosts() {
    let hosts = [patient_job(), patient_job()];
    let _watch = watch(&hosts[1]);
    let (stop, crew) = (AtomicBool::new(false), Crew::new());
    std::thread::scope(|scope| {
        scope.spawn(|| crew.part(|| own(&hosts[0], &stop)));
        let readers = [0, 1].map(|rank| {
            let (job, crew) = (&hosts[1], &crew);
            scope.spawn(move || crew.part(|| read(&mut job.worker_at(rank).unwrap())))
        });
        let bridge = scope.spawn(|| {
            crew.part(|| {
                let mut bridge = Bridge::new(&hosts[0], &hosts[1]);
                while !stop.load(SeqCst) {
                    bridge.carry();
                    bridge.to.wait(Duration::from_millis(1));
                }
            });
        });
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        stop.store(true, SeqCst);
        bridge.join().unwrap();
    });
    let infos = hosts[1].areas().unwrap();
    assert!(infos.iter().all(|info| info.remote && info.owner.is_none()), "{infos:?}");
}

/// A host with one worker, and areas of equal numbers whose owner is elsewhere.
struct Host {
    job: Job,
    agent: Agent,
    worker: Worker,
}

impl Host {
    fn new() -> Host {
        let job = patient_job();
        let (agent, worker) = (job.agent().unwrap(), job.worker().unwrap());
        Host { job, agent, worker }
    }

    fn create(&self, spec: AreaSpec) -> AreaId {
        self.agent.create(&spec, ElementType::of::<u64>(), 100).unwrap()
    }

    fn receive(&self, areas: &[AreaId]) -> Option<Receiving> {
        self.agent.receive(areas, SOURCE).unwrap()
    }

    /// Writes the whole area.
    fn write(receiving: &mut Receiving, area: AreaId, value: u64) {
        let bytes: Vec<u8> = std::iter::repeat_n(value.to_ne_bytes(), 100).flatten().collect();
        receiving.write(area, 0, &bytes).unwrap();
    }

    fn deliver(&self, area: AreaId, counter: u64, now: bool) {
        let mut receiving = self.receive(&[area]).unwrap();
        Host::write(&mut receiving, area, counter);
        receiving.commit(&[arrival(area, counter)], now).unwrap();
    }

    fn seen(&self, name: &str) -> (u64, Version) {
        let area = self.worker.attach_here::<u64>(name).unwrap();
        (uniform(area.read(&self.worker).unwrap()), area.version(&self.worker).unwrap())
    }
}

#[test]
fn an_arrival_is_published_by_a_round_and_waits_for_it() {
    let mut host = Host::new();
    let area = host.create(AreaSpec::new("w"));
    host.deliver(area, 1, true);
    // Whatever is handed over stays as it is.
    assert!(host.receive(&[area]).is_none());
    assert_eq!(host.seen("w"), (0, version(0).min(Version::default())));
    host.worker.service().unwrap();
    assert_eq!(host.seen("w"), (1, version(1)));
    let events = look(&mut host.agent);
    assert_eq!(events, [Event::Created { area }, Event::Published { area, version: version(1), label: 0 }]);
    // Without haste, and without an interval: in the next round that there is.
    host.deliver(area, 5, false);
    host.worker.service().unwrap();
    assert_eq!(host.seen("w").0, 1);
    host.worker.sync().unwrap();
    assert_eq!(host.seen("w"), (5, version(5)));
    // With one: when it falls due. No round publishes it twice.
    let timed = host.create(AreaSpec::new("timed").interval(Duration::from_millis(1)));
    host.deliver(timed, 3, false);
    serve_until(&mut host.worker, "the interval", |worker| {
        worker.attach_here::<u64>("timed").unwrap().newest_version() == Some(version(3))
    });
    let published = host.job.stats().unwrap().published;
    for _ in 0..3 {
        std::thread::sleep(Duration::from_millis(2));
        host.worker.sync().unwrap();
    }
    assert_eq!(host.job.stats().unwrap().published, published);
    // Asking for what has not arrived keeps nobody busy.
    let forced = host.agent.force(area).unwrap();
    let agent = &host.agent;
    serve_until(&mut host.worker, "the answer", |_| agent.published(&forced).is_some());
    assert_eq!(host.agent.published(&forced), Some(Published::PutOff));
}

#[test]
fn a_cut_that_is_given_up_needs_no_repair() {
    let mut host = Host::new();
    let area = host.create(AreaSpec::new("w"));
    // Of the same source, the next one goes on.
    let mut receiving = host.receive(&[area]).unwrap();
    receiving.write(area, 0, &[1; 64]).unwrap();
    assert!(host.receive(&[area]).is_none(), "it is being received into");
    drop(receiving);
    let mut receiving = host.receive(&[area]).unwrap();
    receiving.write(area, 2, &[1; 64]).unwrap();
    receiving.commit(&[arrival(area, 2)], true).unwrap();
    host.worker.service().unwrap();
    let seen = |host: &Host| {
        let area = host.worker.attach_here::<u8>("w").err();
        assert!(matches!(area, Some(Error::WrongType { .. })));
        let area = host.worker.attach_here::<u64>("w").unwrap();
        let data = area.read(&host.worker).unwrap();
        [0, 8, 16, 24].map(|first| data[first] as u8)
    };
    assert_eq!(seen(&host), [1, 0, 1, 0]);
    // Of another, it begins with what is published.
    let mut receiving = host.receive(&[area]).unwrap();
    receiving.write(area, 1, &[9; 64]).unwrap();
    drop(receiving);
    for (source, counter) in [(Source { term: 2, sender: 7 }, 1), (Source { term: 2, sender: 8 }, 2)] {
        let mut receiving = host.agent.receive(&[area], source).unwrap().unwrap();
        receiving.write(area, 3, &[counter as u8; 64]).unwrap();
        let arrival = Arrival { version: Version { term: 2, counter }, ..arrival(area, 0) };
        receiving.commit(&[arrival], true).unwrap();
        host.worker.service().unwrap();
        assert_eq!(seen(&host), [1, 0, 1, counter as u8]);
        let handle = host.worker.attach_here::<u64>("w").unwrap();
        let changed = |since| handle.changed_since(&host.worker, since).unwrap()[0].end;
        assert_eq!((changed(version(2)), changed(Version::default())), (100, 8));
        let mut receiving = host.agent.receive(&[area], source).unwrap().unwrap();
        receiving.write(area, 1, &[9; 64]).unwrap();
    }
}

#[test]
fn what_is_wrong_is_refused() {
    let mut host = Host::new();
    let mut local = host.worker.create::<u64>("local", 1).unwrap();
    fill(&mut local, &host.worker, 1);
    let here = host.agent.find("local").unwrap();
    assert!(matches!(host.agent.receive(&[here], SOURCE), Err(Error::OwnerHere { .. })));
    let element = ElementType::of::<u64>();
    let create = |spec: AreaSpec| host.agent.create(&spec, element, 100);
    assert!(matches!(create("local".into()), Err(Error::NameTaken { .. })));
    assert!(matches!(create(AreaSpec::new("none").copies(0)), Err(Error::InvalidArea { .. })));
    let [a, b, c] = [("a", "g"), ("b", "g"), ("c", "h")]
        .map(|(name, group)| create(AreaSpec::new(name).group(group)).unwrap());
    assert!(matches!(host.agent.receive(&[a, c], SOURCE), Err(Error::InvalidArea { .. })));
    assert!(matches!(host.worker.create::<u64>("a", 1), Err(Error::NameTaken { .. })));
    // Nothing stays behind of what was refused.
    let mut receiving = host.receive(&[a, b]).unwrap();
    for (first, len) in [(13, 1), (12, 64), (0, 63), (u64::MAX, 64), (0, 801)] {
        let refused = receiving.write(a, first, &vec![1; len]);
        assert!(matches!(refused, Err(Error::OutOfRange { .. })), "{len} bytes at line {first}");
    }
    receiving.write(a, 12, &[0; 32]).unwrap();
    receiving.commit(&[arrival(a, 2), arrival(b, 2)], true).unwrap();
    host.worker.service().unwrap();
    for stale in
        [arrival(a, 2), arrival(a, 1), Arrival { version: Version { term: 2, counter: 3 }, ..arrival(a, 0) }]
    {
        let refused = host.receive(&[a]).unwrap().commit(&[stale], true);
        assert!(matches!(refused, Err(Error::StaleArrival { .. })), "{stale:?}");
    }
    let claimed = host.worker.claim::<u64>("a").map(|_| ());
    assert!(matches!(claimed, Err(Error::OwnerElsewhere { .. })), "{claimed:?}");
    let deleted = host.job.delete("a");
    assert!(matches!(deleted, Err(Error::OwnerElsewhere { .. })), "{deleted:?}");
    let handle = host.worker.attach_here::<u64>("a").unwrap();
    // Nobody has given it.
    let taken = handle.take_within(&mut host.worker, Duration::from_millis(10)).map(|_| ());
    assert!(matches!(taken, Err(Error::TimedOut { .. })), "{taken:?}");
    assert!(handle.try_take(&host.worker).unwrap().is_none());
    // It is deleted while it is received into: its memory stays until it is let go.
    let free = host.job.free_bytes().unwrap();
    let mut receiving = host.receive(&[c]).unwrap();
    host.agent.delete(c).unwrap();
    for _ in 0..3 {
        host.worker.sync().unwrap();
    }
    Host::write(&mut receiving, c, 1);
    assert_eq!(host.job.free_bytes().unwrap(), free);
    receiving.commit(&[arrival(c, 1)], true).unwrap();
    host.worker.sync().unwrap();
    assert!(host.job.free_bytes().unwrap() > free);
    assert!(matches!(host.agent.receive(&[c], SOURCE), Err(Error::Deleted { .. })));
    assert!(matches!(host.agent.delete(c), Err(Error::Deleted { .. })));
}

#[test]
fn what_arrives_knows_its_age() {
    let mut host = Host::new();
    let area = host.create(AreaSpec::new("w"));
    let old = Duration::from_secs(100);
    let mut receiving = host.receive(&[area]).unwrap();
    Host::write(&mut receiving, area, 1);
    receiving.commit(&[Arrival { age: old, clock: 17, ..arrival(area, 1) }], true).unwrap();
    host.worker.service().unwrap();
    let handle = host.worker.attach_here::<u64>("w").unwrap();
    assert_eq!(handle.clock(&host.worker).unwrap(), 17);
    assert!(handle.age(&host.worker).unwrap() >= old);
    // Rounds that find nothing know nothing new; the owner's host does.
    host.agent.force(area).unwrap();
    host.worker.sync().unwrap();
    assert!(handle.age(&host.worker).unwrap() >= old);
    host.agent.confirm(area, version(2), Duration::ZERO);
    assert!(handle.age(&host.worker).unwrap() >= old);
    host.agent.confirm(area, version(1), Duration::ZERO);
    assert!(handle.age(&host.worker).unwrap() < old);
}

#[test]
fn a_group_arrives_as_one() {
    let mut host = Host::new();
    let areas = ["a", "b", "c"].map(|name| host.create(AreaSpec::new(name).copies(2).group("g")));
    let observer = host.job.observer().unwrap();
    // One of them pinned in both copies puts all off; one of which nothing arrived puts nothing off.
    let handle = host.worker.attach_here::<u64>("b").unwrap();
    let first = observer.read(&handle).unwrap();
    let deliver = |host: &Host, counter| {
        let mut receiving = host.receive(&areas[..2]).unwrap();
        areas[..2].iter().for_each(|area| Host::write(&mut receiving, *area, counter));
        receiving.commit(&[arrival(areas[0], counter), arrival(areas[1], counter)], true).unwrap();
    };
    deliver(&host, 1);
    host.worker.service().unwrap();
    assert_eq!((host.seen("a").0, host.seen("b").0, host.seen("c").0), (1, 1, 0));
    let second = observer.read(&handle).unwrap();
    deliver(&host, 2);
    host.worker.sync().unwrap();
    assert_eq!((host.seen("a").0, host.seen("b").0), (1, 1), "b has no copy left");
    drop((first, second));
    host.worker.sync().unwrap();
    assert_eq!((host.seen("a").0, host.seen("b").0), (2, 2));
}
