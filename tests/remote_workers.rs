//! Workers of other hosts, of whom the agent tells: they are counted and waited for at clocks, and no round waits for them.
use crate::common::*;
use hectare::agent::{Agent, Arrival, Event, Refusal, RemoteWorker, Source};
use hectare::{AreaSpec, ElementType, Error, Job, Version, Worker, WorkerState};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(30);

/// Host 1 of three: ranks 2 and 3 are here.
fn job() -> Job {
    Job::builder().reserve(1 << 28).round_timeout(LONG).hosts(&[2, 2, 1], 1).embedded().unwrap()
}

fn clocks(agent: &mut Agent) -> Option<(u64, u64)> {
    let mut events = Vec::new();
    agent.look(&mut events);
    events.into_iter().rev().find_map(|event| match event {
        Event::Clock { local, lowest } => Some((local, lowest)),
        _ => None,
    })
}

#[test]
fn workers_of_other_hosts_are_counted_and_their_ranks_kept() {
    let job = job();
    assert_eq!((job.host(), job.hosts()), (1, vec![0..2, 2..4, 4..5]));
    let agent = job.agent().unwrap();
    let mut worker = job.worker().unwrap();
    assert_eq!(worker.rank(), 2);
    assert!(matches!(job.worker_at(4), Err(Error::WorkerElsewhere { rank: 4, host }) if host == "2"));
    agent.name_host(2, "c (10.0.0.3:7400)").unwrap();
    let elsewhere = job.worker_at(4).unwrap_err();
    assert!(elsewhere.to_string().contains("host c (10.0.0.3:7400)"), "{elsewhere}");
    assert!(matches!(agent.name_host(3, "d"), Err(Error::InvalidConfig { .. })));
    // More than the hosts have in all.
    assert!(matches!(job.worker_at(5), Err(Error::NoSuchRank { rank: 5, max: 5, .. })));
    let awaited = worker.wait_for_workers(6, Duration::MAX);
    assert!(matches!(awaited, Err(Error::NoSuchRank { rank: 5, max: 5, .. })));
    let other = job.worker_at(3).unwrap();
    assert!(matches!(job.worker(), Err(Error::TooManyWorkers { free: 0, max: 2, .. })));
    // Those elsewhere are not there before they are said to be.
    let waited = worker.wait_for_workers(3, SHORT);
    assert!(waited.unwrap_err().to_string().contains("2 are there"));
    for rank in [0, 4] {
        agent.set_worker(rank, RemoteWorker::There).unwrap();
    }
    worker.wait_for_workers(4, Duration::ZERO).unwrap();
    agent.set_clock(2, 7).unwrap();
    let listed: Vec<_> =
        job.workers().unwrap().iter().map(|worker| (worker.rank, worker.state, worker.clock)).collect();
    let expected = [
        (0, WorkerState::Remote, 0),
        (2, WorkerState::Live, 0),
        (3, WorkerState::Live, 0),
        (4, WorkerState::Remote, 7),
    ];
    assert_eq!(listed, expected);
    let monitor = job.monitor().unwrap();
    let seen = monitor.snapshot(0).unwrap().workers;
    let seen: Vec<_> = seen.iter().map(|worker| (worker.rank, worker.state, worker.clock)).collect();
    assert_eq!(seen, expected);
    // No round waits for them, and nothing is given to those that are not there.
    let owned = worker.create::<u64>(AreaSpec::new("a"), 1).unwrap();
    let refused = owned.give(&worker, 1).unwrap_err();
    assert!(matches!(refused.error, Error::NoSuchWorker { rank: 1 }), "{}", refused.error);
    drop(other);
    assert_eq!(worker.sync().unwrap().abandoned, 0);
    agent.set_worker(4, RemoteWorker::Dead).unwrap();
    agent.set_worker(0, RemoteWorker::Absent).unwrap();
    let state = job.workers().unwrap().iter().map(|worker| (worker.rank, worker.state)).collect::<Vec<_>>();
    assert_eq!(state, [(2, WorkerState::Live), (4, WorkerState::Dead)]);
}

/// Whether a host lives is told apart from who of its workers does, which its launcher says there.
#[test]
fn a_worker_of_another_host_has_failed_until_its_rank_is_taken_again() {
    let job = job();
    let agent = job.agent().unwrap();
    let mut worker = job.worker().unwrap();
    let state = |job: &Job| {
        let all = job.workers().unwrap();
        all.iter().find(|worker| worker.rank == 1).map(|worker| worker.state)
    };
    for rank in [0, 1, 4] {
        agent.set_worker(rank, RemoteWorker::There).unwrap();
    }
    assert_eq!(state(&job), Some(WorkerState::Remote));
    worker.wait_for_workers(4, SHORT).unwrap();
    assert!(matches!(job.note_failure(1), Err(Error::WorkerElsewhere { rank: 1, .. })));
    agent.set_failed(1, true).unwrap();
    // Also when its host is reached anew.
    agent.set_worker(1, RemoteWorker::There).unwrap();
    assert_eq!(state(&job), Some(WorkerState::Dead));
    let seen = job.monitor().unwrap().snapshot(0).unwrap().workers;
    assert_eq!(seen.iter().find(|worker| worker.rank == 1).unwrap().state, WorkerState::Dead);
    let waited = worker.wait_for_workers(4, LONG);
    assert!(matches!(waited, Err(Error::WorkerFailed { rank: 1 })), "{waited:?}");
    let owned = worker.create::<u64>(AreaSpec::new("a"), 1).unwrap();
    assert!(matches!(owned.give(&worker, 1).unwrap_err().error, Error::NoSuchWorker { rank: 1 }));
    agent.set_failed(1, false).unwrap();
    assert_eq!(state(&job), Some(WorkerState::Remote));
    assert!(matches!(agent.set_failed(2, true), Err(Error::NoSuchWorker { rank: 2 })), "it is here");
}

/// The workers that the agent is told of: the first of 64, which have failed, and which have left.
fn told(agent: &mut Agent) -> Vec<(u32, u64, u64)> {
    let mut events = Vec::new();
    agent.look(&mut events);
    let workers = events.into_iter().filter_map(|event| match event {
        Event::Workers { first, failed, left } => Some((first, failed, left)),
        _ => None,
    });
    workers.collect()
}

/// Workers of this host that leave are told of, and that a rank is taken again; not in a job that has ended.
#[test]
fn the_agent_tells_who_of_this_host_has_left() {
    let job = Job::builder().reserve(1 << 28).hosts(&[2, 3], 1).embedded().unwrap();
    let mut agent = job.agent().unwrap();
    assert_eq!(told(&mut agent), []);
    let (one, other) = (job.worker_at(2).unwrap(), job.worker_at(4).unwrap());
    assert!(agent.bell(false).wait(Duration::ZERO));
    assert_eq!(told(&mut agent), [], "who comes for the first time is no news");
    drop(other);
    assert!(agent.bell(false).wait(Duration::ZERO));
    assert_eq!(told(&mut agent), [(2, 0, 0b100)]);
    assert_eq!(told(&mut agent), []);
    let other = job.worker_at(4).unwrap();
    assert!(agent.bell(false).wait(Duration::ZERO));
    assert_eq!(told(&mut agent), [(2, 0, 0)]);
    drop(other);
    // The next one does not know what this one has told.
    drop(agent);
    let mut agent = job.agent().unwrap();
    assert_eq!(told(&mut agent), [(2, 0, 0b100)]);
    agent.end_job("a", "silent").unwrap();
    drop(one);
    assert_eq!(told(&mut agent), []);
}

/// Nothing is given to a worker of another host that has left, until somebody has its rank.
#[test]
fn who_has_left_is_given_nothing() {
    let job = job();
    let agent = job.agent().unwrap();
    let mut worker = job.worker().unwrap();
    agent.set_worker(4, RemoteWorker::There).unwrap();
    agent.set_worker(4, RemoteWorker::Left).unwrap();
    let owned = worker.create::<u64>(AreaSpec::new("a"), 1).unwrap();
    let refused = owned.give(&worker, 4).unwrap_err();
    assert!(matches!(refused.error, Error::NoSuchWorker { rank: 4 }));
    // It counts on for those who wait for workers, as it has been there.
    worker.wait_for_workers(2, Duration::ZERO).unwrap();
    assert_eq!(job.workers().unwrap().last().unwrap().state, WorkerState::Remote);
    agent.set_worker(4, RemoteWorker::There).unwrap();
    refused.owned.give(&worker, 4).unwrap();
    let claimed = worker.claim::<u64>("a").unwrap_err();
    assert!(matches!(&claimed, Error::OwnerElsewhere { host, .. } if host == "2"), "{claimed}");
}

/// Failures that the launcher reports of this host's workers go to the other hosts, and so does a rank that is taken again.
#[test]
fn the_agent_tells_who_of_this_host_has_failed() {
    let job = Job::builder().reserve(1 << 28).hosts(&[2, 70], 1).embedded().unwrap();
    let mut agent = job.agent().unwrap();
    assert_eq!(told(&mut agent), []);
    let worker = job.worker_at(70).unwrap();
    assert!(agent.bell(false).wait(Duration::ZERO));
    assert_eq!(told(&mut agent), []);
    assert!(!job.note_failure(70).unwrap());
    assert!(!agent.bell(false).wait(Duration::ZERO), "a worker that lives is not told of");
    assert!(job.note_failure(3).unwrap());
    assert!(agent.bell(false).wait(Duration::ZERO));
    assert!(job.note_failure(71).unwrap());
    assert_eq!(told(&mut agent), [(2, 0b10, 0), (66, 1 << 5, 0)]);
    assert_eq!(told(&mut agent), []);
    let again = job.worker_at(71).unwrap();
    assert!(agent.bell(false).wait(Duration::ZERO));
    assert_eq!(told(&mut agent), [(66, 0, 0)]);
    job.expect(3).unwrap();
    // Who comes after an agent does not know what that one has told.
    drop(agent);
    let mut agent = job.agent().unwrap();
    assert_eq!(told(&mut agent), [(2, 0, 0), (66, 0, 0)]);
    drop((worker, again));
}

/// Nobody gives what a worker owns that has failed: other hosts are told, and that somebody has claimed it.
#[test]
fn the_agent_tells_of_areas_whose_owner_has_failed() {
    const NAME: &str = "the_agent_tells_of_areas_whose_owner_has_failed";
    if let Some((_, job)) = role() {
        let mut worker = job.worker_at(2).unwrap();
        let _owned = worker.create::<u64>(AreaSpec::new("a"), 9).unwrap();
        loop {
            worker.sync().unwrap();
        }
    }
    let job = job();
    let _watch = watch(&job);
    let mut agent = job.agent().unwrap();
    let mut worker = job.worker_at(3).unwrap();
    let _mine = worker.create::<u64>(AreaSpec::new("b"), 9).unwrap();
    let mut child = spawn(NAME, "owner", &job);
    serve_until(&mut worker, "its area", |_| agent.find("a").is_some());
    let area = agent.find("a").unwrap();
    let ownerless = |agent: &mut Agent| {
        let mut events = Vec::new();
        agent.look(&mut events);
        events.retain(|event| matches!(event, Event::Ownerless { .. }));
        events
    };
    assert_eq!(ownerless(&mut agent), []);
    child.kill();
    until("its death", || child.has_ended());
    assert_eq!(ownerless(&mut agent), [], "nobody has said so");
    assert!(job.note_failure(2).unwrap());
    assert_eq!(ownerless(&mut agent), [Event::Ownerless { area, is: true }]);
    assert_eq!(ownerless(&mut agent), []);
    let _claimed = worker.claim::<u64>("a").unwrap();
    assert_eq!(ownerless(&mut agent), [Event::Ownerless { area, is: false }]);
}

#[test]
fn an_area_goes_to_another_host_and_comes_back() {
    let job = job();
    let mut agent = job.agent().unwrap();
    let mut worker = job.worker().unwrap();
    agent.set_worker(4, RemoteWorker::There).unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("a"), 9).unwrap();
    let area = agent.find("a").unwrap();
    owned.write(&worker).unwrap().fill(1);
    let reader = owned.area();
    owned.give(&worker, 4).unwrap();
    let mut events = Vec::new();
    agent.look(&mut events);
    let given = events.iter().find_map(|event| match event {
        Event::Given { area: given, to: 4, epoch } if *given == area => Some(*epoch),
        _ => None,
    });
    let epoch = given.expect("it was given");
    // Its writes are published first, by a round in which nobody takes part for it.
    let before = agent.newest(area).unwrap();
    assert!(!agent.leave(area, 4, epoch, before).unwrap());
    worker.service().unwrap();
    let newest = agent.newest(area).unwrap();
    assert!(newest > before && reader.read(&worker).unwrap() == [1; 9]);
    assert!(!agent.leave(area, 4, epoch, before).unwrap());
    assert!(
        !agent.leave(area, 0, epoch, newest).unwrap() && !agent.leave(area, 4, epoch + 1, newest).unwrap()
    );
    assert!(agent.leave(area, 4, epoch, newest).unwrap());
    let about = agent.describe(area).unwrap();
    assert_eq!((about.remote, about.owner, about.left_to, about.epoch), (true, Some(2), Some(4), epoch));
    agent.refer(area, 0, epoch);
    let about = agent.describe(area).unwrap();
    assert_eq!(
        (about.owner, about.left_to),
        (Some(2), Some(4)),
        "no later epoch, and not the host that it was left to"
    );
    agent.refer(area, 2, epoch);
    let about = agent.describe(area).unwrap();
    assert_eq!((about.owner, about.left_to, about.epoch), (Some(2), None, epoch), "it has come there");
    agent.refer(area, 0, epoch + 1);
    assert_eq!(agent.describe(area).unwrap().owner, Some(0));
    // The owner there goes on, and gives it back; lines of a cut that was never complete are taken back.
    let source = Source { term: newest.term, sender: 9 };
    let next = Version { counter: newest.counter + 1, ..newest };
    let mut receiving = agent.receive(&[area], source).unwrap().unwrap();
    receiving.write(area, 0, &[7; 64]).unwrap();
    let arrival = Arrival { area, version: next, clock: 0, label: 0, age: Duration::ZERO };
    receiving.commit(&[arrival], true).unwrap();
    assert!(!agent.take_over(area, worker.rank(), epoch + 2).unwrap(), "it is not published");
    worker.service().unwrap();
    let mut receiving = agent.receive(&[area], source).unwrap().unwrap();
    receiving.write(area, 0, &[8; 64]).unwrap();
    assert!(!agent.take_over(area, worker.rank(), epoch + 2).unwrap(), "it is received into");
    drop(receiving);
    assert!(!agent.take_over(area, 3, epoch + 2).unwrap(), "that worker has not come");
    assert!(matches!(agent.take_over(area, 4, epoch + 2), Err(Error::NoSuchWorker { rank: 4 })));
    assert!(reader.try_take(&worker).unwrap().is_none());
    assert!(agent.take_over(area, worker.rank(), epoch + 2).unwrap());
    assert!(matches!(agent.take_over(area, worker.rank(), epoch + 3), Err(Error::OwnerHere { .. })));
    let mut owned = reader.take(&mut worker).unwrap();
    let seven = u64::from_le_bytes([7; 8]);
    assert_eq!(owned.epoch(), epoch + 2);
    assert_eq!(owned.read(&worker).unwrap(), [seven, seven, seven, seven, seven, seven, seven, seven, 1]);
    owned.write(&worker).unwrap().fill(2);
    worker.sync().unwrap();
    assert_eq!(reader.version(&worker).unwrap(), Version { counter: next.counter + 1, ..next });
    assert_eq!(reader.read(&worker).unwrap(), [2; 9]);
}

#[test]
fn a_barrier_waits_for_other_hosts_without_rounds() {
    let job = job();
    let mut agent = job.agent().unwrap();
    let _watch = watch(&job);
    std::thread::scope(|scope| {
        let barrier = |count: u64| {
            let mut worker = job.worker().unwrap();
            worker.wait_for_workers(2, LONG).unwrap();
            (0..count).for_each(|_| worker.barrier().unwrap());
            worker.clock()
        };
        let workers = [0, 1].map(|_| scope.spawn(move || barrier(3)));
        agent.set_clock(2, u64::MAX).unwrap();
        let mut heard = (0, 0);
        for clock in 1..=3 {
            until("the workers of this host", || {
                agent.wait(SHORT);
                heard = clocks(&mut agent).unwrap_or(heard);
                heard.0 >= clock
            });
            assert_eq!(heard, (clock, clock - 1));
            let before = job.stats().unwrap().rounds;
            std::thread::sleep(SHORT);
            assert_eq!(job.stats().unwrap().rounds, before, "rounds while others are waited for");
            agent.set_clock(0, clock).unwrap();
        }
        assert!(workers.into_iter().all(|worker| worker.join().unwrap() == 3));
    });
    // Nobody is left here: the others need not wait.
    until("the last clock", || clocks(&mut agent) == Some((u64::MAX, 3)));
}

#[test]
fn a_worker_that_waits_in_vain_says_for_whom() {
    let job = job();
    let agent = job.agent().unwrap();
    let mut worker = job.worker().unwrap();
    agent.set_clock(2, 5).unwrap();
    let text = worker.barrier_within(SHORT).unwrap_err().to_string();
    assert!(text.ends_with("workers 0 to 1 of host 0 are at 0"), "{text}");
    (0..2).for_each(|rank| agent.set_worker(rank, RemoteWorker::Dead).unwrap());
    agent.set_clock(0, u64::MAX).unwrap();
    worker.wait_clocks_within(0, Duration::ZERO).unwrap_err();
    worker.wait_clocks(0).unwrap();
    assert!(matches!(agent.set_clock(1, 1), Err(Error::InvalidConfig { .. })));
}

/// Of workers that are still to come, other hosts are told what they will have.
#[test]
fn a_host_is_in_the_clocks_until_all_of_its_workers_have_come() {
    let job = job();
    let mut agent = job.agent().unwrap();
    let mut first = job.worker().unwrap();
    first.leave_clocks();
    first.sync().unwrap();
    assert_eq!(clocks(&mut agent), None);
    let mut second = job.worker().unwrap();
    second.leave_clocks();
    drop(second);
    first.sync().unwrap();
    assert_eq!(clocks(&mut agent), Some((u64::MAX, 0)));
}

/// The end of the job ends every kind of wait.
#[test]
fn the_end_of_a_job_ends_all_waits() {
    type Wait = fn(&Job) -> Error;
    let waits: [(&str, Wait); 6] = [
        ("barrier", |job| job.worker().unwrap().barrier().unwrap_err()),
        ("attach", |job| job.worker().unwrap().attach_within::<u64>("b", LONG).unwrap_err()),
        ("attach outside", |job| job.attach_within::<u64>("b", LONG).unwrap_err()),
        ("workers", |job| job.worker().unwrap().wait_for_workers(5, LONG).unwrap_err()),
        ("clock of", |job| {
            let mut worker = job.worker().unwrap();
            let area = worker.attach::<u64>("a").unwrap();
            worker.tick().unwrap();
            worker.wait_clock_of(&area, 0, LONG).unwrap_err()
        }),
        ("take", |job| {
            let mut worker = job.worker().unwrap();
            let mut owner = job.worker().unwrap();
            let _owned = owner.create::<u64>("mine", 1).unwrap();
            let area = worker.attach::<u64>("mine").unwrap();
            area.take(&mut worker).unwrap_err()
        }),
    ];
    for (what, wait) in waits {
        let job = job();
        let agent = job.agent().unwrap();
        agent.create(&AreaSpec::new("a"), ElementType::of::<u64>(), 1).unwrap();
        let (heard, text) = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(&job));
            std::thread::sleep(SHORT);
            agent.end_job("c (10.0.0.3:7117)", "silent for 30 s").unwrap();
            agent.end_job("d", "later").unwrap();
            let error = waiting.join().unwrap();
            (matches!(error, Error::PeerFailed { .. }), error.to_string())
        });
        assert!(
            heard && text.contains("host c (10.0.0.3:7117) has failed: silent for 30 s"),
            "{what}: {text}"
        );
        assert!(matches!(job.worker().unwrap().sync(), Err(Error::PeerFailed { .. })), "{what}: also later");
    }
}

/// Whoever attaches asks the hosts, and believes the second answer: the first may be older than its question.
#[test]
fn a_name_that_no_host_has_is_an_error() {
    let job = job();
    let mut agent = job.agent().unwrap();
    let (joined, ready) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| {
            let mut worker = job.worker().unwrap();
            joined.send(()).unwrap();
            let missing = worker.attach::<u8>("nowhere").unwrap_err();
            assert!(matches!(missing, Error::NoSuchArea { ref name } if name == "nowhere"), "{missing}");
        });
        ready.recv().unwrap();
        let mut answers = 0;
        while !asks.is_finished() {
            agent.wait(SHORT);
            let mut events = Vec::new();
            agent.look(&mut events);
            for event in events {
                let Event::Wanted { name } = event else { continue };
                // Those of others are no answer.
                (0..20).for_each(|other| agent.refuse(&format!("other/{other}"), &Refusal::Unknown));
                agent.refuse(&name, &Refusal::Unknown);
                answers += 1;
            }
        }
        assert!(answers >= 2, "{answers} answers");
    });
}

#[test]
fn who_comes_after_all_of_a_host_have_left_is_told() {
    let job = job();
    let mut agent = job.agent().unwrap();
    let workers = [2, 3].map(|rank| job.worker_at(rank).unwrap());
    // One of two may come and go.
    let [first, second] = workers;
    drop(first);
    assert!(clocks(&mut agent).is_none_or(|(local, _)| local != u64::MAX));
    let first = job.worker_at(2).unwrap();
    drop((first, second));
    // Nobody was told yet.
    let again = job.worker_at(3).unwrap();
    assert!(clocks(&mut agent).is_none_or(|(local, _)| local != u64::MAX));
    drop(again);
    assert_eq!(clocks(&mut agent).unwrap().0, u64::MAX);
    for _ in 0..2 {
        let error = job.worker().unwrap_err();
        assert!(matches!(error, Error::HostLeft { .. }), "{error}");
        assert!(error.to_string().contains("all workers of this host have left"), "{error}");
    }
    // Nor does another agent forget it, and nothing is left taken.
    drop(agent);
    let mut agent = job.agent().unwrap();
    assert!(matches!(job.worker_at(2), Err(Error::HostLeft { .. })));
    assert_eq!(clocks(&mut agent).unwrap().0, u64::MAX);
    assert_eq!(job.workers().unwrap().len(), 0);
}

#[test]
fn who_goes_back_to_clocks_that_all_of_a_host_have_left_is_told() {
    let job = job();
    let mut agent = job.agent().unwrap();
    let stage = AtomicU32::new(0);
    let reach = |worker: &mut Worker, next: u32| {
        stage.fetch_add(1, SeqCst);
        serve_until(worker, "the other", |_| stage.load(SeqCst) >= 2 * next);
    };
    let is_refused = |worker: &mut Worker| {
        let error = worker.rejoin_clocks().unwrap_err();
        assert!(matches!(error, Error::HostLeft { .. }), "{error}");
        assert!(error.to_string().contains("or its clocks"), "{error}");
        assert_eq!(worker.clock(), u64::MAX, "it is outside");
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut second = job.worker_at(3).unwrap();
            reach(&mut second, 1);
            reach(&mut second, 2);
            second.leave_clocks();
            reach(&mut second, 3);
            reach(&mut second, 4);
            is_refused(&mut second);
            reach(&mut second, 5);
        });
        let mut first = job.worker_at(2).unwrap();
        reach(&mut first, 1);
        // One of two may leave and come back.
        first.leave_clocks();
        first.sync().unwrap();
        first.rejoin_clocks().unwrap();
        assert_eq!(first.clock(), 0);
        reach(&mut first, 2);
        reach(&mut first, 3);
        first.leave_clocks();
        first.sync().unwrap();
        assert_eq!(clocks(&mut agent).unwrap().0, u64::MAX);
        is_refused(&mut first);
        reach(&mut first, 4);
        reach(&mut first, 5);
        serve_until(&mut first, "the other's end", |_| job.workers().unwrap().len() == 1);
        // Nor can another come in its place.
        let error = job.worker_at(3).unwrap_err();
        assert!(matches!(error, Error::HostLeft { .. }), "{error}");
        assert_eq!(job.workers().unwrap().len(), 1, "the place is free again");
    });
    assert_eq!(clocks(&mut agent), None, "the others know");
}
