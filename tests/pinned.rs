//! A publication that is postponed because every copy is pinned follows soon after a pin is dropped, though whoever drops it tells nobody.
use crate::common::*;
use hectare::agent::{Agent, Arrival, Source};
use hectare::{Area, AreaId, AreaSpec, ElementType, Job, Observer, Owned, Pinned, Version, Worker};
use std::time::{Duration, Instant};

const LEN: usize = 3001;
/// The longest time between two rounds that try again, and how many there are before it is reached.
const SELDOM: Duration = Duration::from_millis(16);
const OFTEN: u64 = 4;

/// Pins every version that there is until no copy is left to publish into.
fn pin_all<'o>(
    observer: &'o Observer,
    area: &'o Area<u64>,
    mut publish: impl FnMut() -> bool,
) -> Vec<Pinned<'o, u64>> {
    let mut pins = Vec::new();
    loop {
        pins.push(observer.read(area).unwrap());
        if !publish() {
            return pins;
        }
    }
}

fn publish(owned: &mut Owned<u64>, worker: &mut Worker) -> bool {
    let next = owned.area().newest_version().unwrap().counter + 1;
    fill(owned, worker, next);
    worker.sync().unwrap().postponed == 0
}

#[test]
fn what_an_owner_has_published_once_comes_when_pins_are_dropped() {
    let job = patient_job();
    let _watch = watch(&job);
    let (mut worker, observer) = (job.worker().unwrap(), job.observer().unwrap());
    let mut owned = worker.create::<u64>(AreaSpec::new("a").copies(2), LEN).unwrap();
    let area = owned.area();
    let pins = pin_all(&observer, &area, || publish(&mut owned, &mut worker));
    let wanted = area.newest_version().unwrap().counter + 1;
    drop(pins);
    serve_until(&mut worker, "the publication", |_| area.newest_version().unwrap().counter == wanted);
    assert_eq!(uniform(area.read(&worker).unwrap()), wanted);
}

/// The one that was asked for is clean, and another of its group is not.
#[test]
fn a_group_comes_when_the_pins_of_one_of_its_areas_are_dropped() {
    let job = patient_job();
    let _watch = watch(&job);
    let (mut worker, observer) = (job.worker().unwrap(), job.observer().unwrap());
    let spec = |name| AreaSpec::new(name).copies(2).group("g");
    let clean = worker.create::<u64>(spec("clean"), LEN).unwrap();
    let mut owned = worker.create::<u64>(spec("dirty"), LEN).unwrap();
    let area = owned.area();
    let mut next = 0;
    let pins = pin_all(&observer, &area, || {
        next += 1;
        fill(&mut owned, &worker, next);
        clean.area().request_sync();
        let round = job.stats().unwrap().rounds;
        serve_until(&mut worker, "a round", |_| job.stats().unwrap().rounds > round);
        area.newest_version().unwrap().counter == next
    });
    drop(pins);
    serve_until(&mut worker, "the publication", |_| area.newest_version().unwrap().counter == next);
}

/// A barrier promises that all see what was written before: it waits while every copy is pinned, and no longer.
#[test]
fn a_barrier_waits_for_the_pins_of_an_own_area() {
    for copies in [1, 2] {
        let job = patient_job();
        let _watch = watch(&job);
        let observer = job.observer().unwrap();
        let mut owner = job.worker().unwrap();
        let mut owned = owner.create::<u64>(AreaSpec::new("a").copies(copies), LEN).unwrap();
        let area = owned.area();
        let pins = pin_all(&observer, &area, || publish(&mut owned, &mut owner));
        // An error names the area and the process. The thread of the observer is another one than the worker's.
        let next = area.newest_version().unwrap().counter + 1;
        let (to, from) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let second = job.clone();
            let looks = scope.spawn(move || {
                let mut worker = second.worker().unwrap();
                to.send(()).unwrap();
                let error = worker.barrier_within(Duration::from_millis(300)).unwrap_err().to_string();
                let process = format!("process {}", std::process::id());
                assert!(error.contains("\"a\"") && error.contains(&process), "{error}");
                to.send(()).unwrap();
                worker.wait_clocks(0).unwrap();
                let area = worker.attach::<u64>("a").unwrap();
                uniform(area.read(&worker).unwrap())
            });
            from.recv().unwrap();
            owner.tick().unwrap();
            // Serves rounds until the other one has waited in vain.
            serve_until(&mut owner, "the other worker", |_| from.try_recv().is_ok());
            assert_eq!(area.newest_version().unwrap().counter + 1, next, "every copy is pinned");
            drop(pins);
            owner.wait_clocks(0).unwrap();
            assert_eq!(looks.join().unwrap(), next);
        });
    }
}

/// Who pins all copies itself, and waits in a barrier, would wait for ever.
#[test]
fn a_barrier_does_not_wait_for_pins_of_its_own_thread() {
    let job = patient_job();
    let _watch = watch(&job);
    let (mut worker, observer) = (job.worker().unwrap(), job.observer().unwrap());
    let mut owned = worker.create::<u64>("a", LEN).unwrap();
    let area = owned.area();
    worker.barrier().unwrap();
    let pin = observer.read(&area).unwrap();
    fill(&mut owned, &worker, 1);
    let error = worker.barrier().unwrap_err().to_string();
    assert!(error.contains("this thread holds a version") && error.contains("\"a\""), "{error}");
    drop(pin);
    worker.wait_clocks(0).unwrap();
    assert_eq!(uniform(area.read(&worker).unwrap()), 1);
}

/// A host with an area of another one, and what its agent does.
struct Host {
    job: Job,
    agent: Agent,
    id: AreaId,
    arrived: u64,
}

impl Host {
    fn new() -> Host {
        let job = Job::builder().reserve(1 << 28).round_timeout(LONG).hosts(&[1, 1], 1).embedded().unwrap();
        let agent = job.agent().unwrap();
        let id = agent.create(&AreaSpec::new("a").copies(2), ElementType::of::<u64>(), LEN).unwrap();
        Host { job, agent, id, arrived: 0 }
    }

    /// Hands the next version over.
    fn deliver(&mut self) {
        let mut receiving = None;
        until("an area to be received into", || {
            self.agent.look(&mut Vec::new());
            receiving = self.agent.receive(&[self.id], Source { term: 1, sender: 7 }).unwrap();
            receiving.is_some()
        });
        let (mut receiving, value) = (receiving.unwrap(), self.arrived + 1);
        receiving.write(self.id, 0, &value.to_ne_bytes().repeat(LEN)).unwrap();
        let version = Version { term: 1, counter: value };
        let arrival = Arrival { area: self.id, version, clock: 0, label: 0, age: Duration::ZERO };
        receiving.commit(&[arrival], true).unwrap();
        self.arrived = value;
    }

    fn is_published(&self) -> bool {
        self.agent.newest(self.id).is_some_and(|newest| newest.counter == self.arrived)
    }

    fn rounds(&self) -> u64 {
        self.job.stats().unwrap().rounds
    }
}

/// All workers of a host wait in a barrier for the clock of another host, which covers what has arrived from there: pins hold the
/// barrier up only as long as every copy is pinned, and few rounds are run meanwhile, and none afterwards.
#[test]
fn a_barrier_goes_on_when_the_pins_of_what_has_arrived_are_dropped() {
    let mut host = Host::new();
    let _watch = watch(&host.job);
    let observer = host.job.observer().unwrap();
    let mut worker = host.job.worker().unwrap();
    let area = worker.attach::<u64>("a").unwrap();
    let pins = pin_all(&observer, &area, || {
        host.deliver();
        worker.sync().unwrap();
        host.is_published()
    });
    drop(worker);
    let job = host.job.clone();
    let waits = std::thread::spawn(move || {
        let mut worker = job.worker().unwrap();
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("a").unwrap();
        uniform(area.read(&worker).unwrap())
    });
    let postponed = || host.job.stats().unwrap().postponed_pinned;
    let first = postponed();
    until("rounds that try again", || postponed() > first + 2 * OFTEN);
    let (since, rounds) = (Instant::now(), host.rounds());
    std::thread::sleep(Duration::from_millis(200));
    let run = host.rounds() - rounds;
    let most = since.elapsed().as_nanos() / SELDOM.as_nanos() + 1;
    assert!(u128::from(run) <= most, "{run} rounds, and not {most}");
    drop(pins);
    until("the publication", || host.is_published());
    until("the last round to end", || {
        let rounds = host.rounds();
        std::thread::sleep(2 * SELDOM);
        host.rounds() == rounds
    });
    let rounds = host.rounds();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(host.rounds(), rounds, "nothing is postponed");
    host.agent.set_clock(0, 1).unwrap();
    assert_eq!(waits.join().unwrap(), host.arrived);
}
