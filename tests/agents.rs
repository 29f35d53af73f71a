//! The agent of a job: it hears of everything, holds versions still without keeping anybody waiting, and may die at any step.
use crate::common::*;
use hectare::agent::{Agent, Event};
use hectare::{AreaSpec, Error, Job, Owned, StallPolicy, Version, Worker};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

fn look(agent: &mut Agent) -> Vec<Event> {
    let mut events = Vec::new();
    agent.look(&mut events);
    events
}

fn counter(counter: u64) -> Version {
    Version { term: 1, counter }
}

/// The number in the bytes of an area of equal numbers.
fn value(bytes: &[u8]) -> u64 {
    let values: Vec<u64> =
        bytes.chunks(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().unwrap())).collect();
    uniform(&values)
}

fn publish(owned: &mut Owned<u64>, worker: &mut Worker, value: u64) {
    fill(owned, worker, value);
    assert_eq!(worker.sync().unwrap().postponed, 0);
}

#[test]
fn an_agent_hears_what_changes() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut early = worker.create::<u64>(AreaSpec::new("early").copies(2), 10).unwrap();
    publish(&mut early, &mut worker, 1);
    let mut agent = job.agent().unwrap();
    assert!(matches!(job.agent(), Err(Error::AgentTaken { pid }) if pid == std::process::id()));
    let area = agent.find("early").unwrap();
    let there = [Event::Created { area }, Event::Published { area, version: counter(1), label: 1 }];
    assert_eq!(look(&mut agent), there);
    assert_eq!(look(&mut agent), []);
    // Whatever happened since the last look is one event.
    publish(&mut early, &mut worker, 2);
    publish(&mut early, &mut worker, 3);
    assert_eq!(look(&mut agent), [Event::Published { area, version: counter(3), label: 1 }]);
    // An area without copies is there, and is not published; a clock is heard of after what it covers.
    let bare = worker.create::<f32>(AreaSpec::new("bare").copies(0).row(4), 16).unwrap();
    let other = agent.find("bare").unwrap();
    fill(&mut early, &worker, 4);
    worker.barrier().unwrap();
    let heard = look(&mut agent);
    let published = Event::Published { area, version: counter(4), label: 1 };
    assert_eq!(heard, [published, Event::Created { area: other }, Event::Clock { local: 1, lowest: 1 }]);
    // Also without a publication.
    worker.barrier().unwrap();
    assert_eq!(look(&mut agent), [Event::Clock { local: 2, lowest: 2 }]);
    let about = agent.describe(other).unwrap();
    assert_eq!((about.name.as_str(), about.len, about.row, about.copies), ("bare", 16, 4, 0));
    assert_eq!(about.element, hectare::ElementType::of::<f32>());
    // A later area of the same slot is another.
    bare.delete(&mut worker).unwrap();
    worker.sync().unwrap();
    let _next = worker.create::<u64>("next", 1).unwrap();
    let next = agent.find("next").unwrap();
    let created = [
        Event::Created { area: next },
        Event::Published { area: next, version: Version::default(), label: 0 },
    ];
    assert_eq!(look(&mut agent), [&[Event::Deleted { area: other }][..], &created].concat());
    assert_eq!((agent.describe(other), agent.describe(next).unwrap().len), (None, 1));
    // The next agent begins with everything.
    drop(agent);
    let heard = look(&mut job.agent().unwrap());
    let all = [
        Event::Created { area },
        Event::Published { area, version: counter(4), label: 1 },
        created[0].clone(),
        created[1].clone(),
        Event::Clock { local: 2, lowest: 2 },
    ];
    assert_eq!(heard, all);
}

/// Whoever hears of an area has heard of the end of the one that had its name, wherever they stand in memory.
#[test]
fn an_agent_hears_of_an_end_before_what_has_the_name_now() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let first = worker.create::<u64>("first", 8).unwrap();
    let again = worker.create::<u64>("again", 8).unwrap();
    let mut agent = job.agent().unwrap();
    let old = agent.find("again").unwrap();
    first.delete(&mut worker).unwrap();
    for _ in 0..3 {
        worker.sync().unwrap();
    }
    look(&mut agent);
    // In the slot of the first, before its own.
    again.delete(&mut worker).unwrap();
    let latest = worker.create::<u64>("again", 8).unwrap();
    let new = agent.find("again").unwrap();
    assert!(new < old, "{new:?} takes the place of the first, before {old:?}");
    let heard = look(&mut agent);
    assert_eq!(heard[..2], [Event::Deleted { area: old }, Event::Created { area: new }], "{heard:?}");
    // An area that is created and deleted between two looks is not reported.
    latest.delete(&mut worker).unwrap();
    worker.create::<u64>("short", 8).unwrap().delete(&mut worker).unwrap();
    let heard = look(&mut agent);
    assert_eq!(heard.iter().filter(|event| matches!(event, Event::Created { .. })).count(), 0, "{heard:?}");
}

#[test]
fn a_name_that_is_waited_for_is_wanted() {
    let job = patient_job();
    let _watch = watch(&job);
    let mut agent = job.agent().unwrap();
    let crew = Crew::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            crew.part(|| {
                let mut worker = job.worker().unwrap();
                worker.attach_within::<u64>("by/worker", LONG).unwrap();
            })
        });
        scope.spawn(|| crew.part(|| drop(job.attach_within::<u64>("by/thread", LONG).unwrap())));
        let (mut wanted, mut events) = (Vec::new(), Vec::new());
        // Each is asked for again and again, for the sake of an agent that comes later.
        while ["by/worker", "by/thread"]
            .iter()
            .any(|name| wanted.iter().filter(|other| other == name).count() < 2)
        {
            agent.wait(LONG);
            agent.look(&mut events);
            wanted.extend(events.drain(..).filter_map(|event| match event {
                Event::Wanted { name } => Some(name),
                _ => None,
            }));
        }
        let mut worker = job.worker().unwrap();
        let owned = ["by/worker", "by/thread"].map(|name| worker.create::<u64>(name, 1).unwrap());
        drop(owned);
    });
}

#[test]
fn held_versions_stay_still_and_nobody_waits() {
    for (copies, policy, most) in [
        (2, StallPolicy::Wait, 1),
        (3, StallPolicy::Wait, 2),
        (3, StallPolicy::Pin { after: LONG }, 1),
        (4, StallPolicy::Pin { after: LONG }, 2),
    ] {
        let job =
            Job::builder().reserve(1 << 28).stall_policy(policy).round_timeout(LONG).embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(copies), 5_000).unwrap();
        let agent = job.agent().unwrap();
        let area = agent.find("w").unwrap();
        let mut held = Vec::new();
        for turn in 1..=most as u64 {
            publish(&mut owned, &mut worker, turn);
            held.extend(agent.hold(&[area]).unwrap());
        }
        for turn in most as u64 + 1..20 {
            publish(&mut owned, &mut worker, turn);
            let refused = agent.hold(&[area]).unwrap_err();
            assert!(matches!(refused, Error::NoSpareCopy { pinned, .. } if pinned == most), "{refused}");
            for (held, turn) in held.iter().zip(1..) {
                assert_eq!((value(held.bytes()), held.version()), (turn, counter(turn)));
            }
        }
        // The same version twice costs no copy, and stays as long as one of the two does.
        held.clear();
        let first = agent.hold(&[area]).unwrap();
        let second = agent.hold(&[area]).unwrap();
        drop(first);
        for turn in 20..30 {
            publish(&mut owned, &mut worker, turn);
            assert_eq!(value(second[0].bytes()), 19);
        }
    }
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let _areas =
        [worker.create::<u64>("one", 1).unwrap(), worker.create(AreaSpec::new("none").copies(0), 1).unwrap()];
    let agent = job.agent().unwrap();
    let hold = |name| agent.hold(&[agent.find(name).unwrap()]);
    assert!(matches!(hold("one"), Err(Error::NoSpareCopy { copies: 1, pinned: 0, .. })));
    assert!(matches!(hold("none"), Err(Error::NoReaderCopy { .. })));
}

#[test]
fn the_lines_since_a_version() {
    let job = Job::builder().reserve(1 << 28).generations(5, 1).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    // 64 lines, and half a one.
    let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(2), 516).unwrap();
    let agent = job.agent().unwrap();
    let area = agent.find("w").unwrap();
    let runs = |base| {
        agent.hold(&[area]).unwrap()[0]
            .changed_since(base)
            .runs()
            .map(|run| (run.start, run.end))
            .collect::<Vec<_>>()
    };
    for index in [3, 80, 515] {
        owned.write(&worker).unwrap().set(index, 1);
        worker.sync().unwrap();
    }
    assert_eq!(runs(Some(counter(2))), [(64, 65)]);
    assert_eq!(runs(Some(counter(1))), [(10, 11), (64, 65)]);
    assert_eq!(runs(Some(counter(3))), []);
    // No base, and a version of another term.
    assert_eq!((runs(None), runs(Some(Version { term: 0, counter: 2 }))), (vec![(0, 65)], vec![(0, 65)]));
    // An older version that is held knows its own lines, and maybe those of later ones.
    let held = agent.hold(&[area]).unwrap();
    owned.write(&worker).unwrap().set(0, 1);
    worker.sync().unwrap();
    let lines = held[0].changed_since(Some(counter(2)));
    assert!(lines.runs().any(|run| run == (64..65)) && held[0].bytes()[..8] == [0; 8]);
}

/// The lines that are sent to other hosts: each version's own lines, though the log of many publications is one.
#[test]
fn a_sealed_version_is_an_exact_base() {
    let job = Job::builder().reserve(1 << 28).generations(3, 1000).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(3), 1 << 16).unwrap();
    let agent = job.agent().unwrap();
    let area = agent.find("w").unwrap();
    let mut base = None;
    for turn in 0..50u64 {
        owned.write(&worker).unwrap().set(turn as usize * 80, 1);
        worker.sync().unwrap();
        let held = &agent.hold(&[area]).unwrap()[0];
        held.seal();
        let runs: Vec<_> = held.changed_since(base).runs().collect();
        base = Some(held.version());
        // The first one was asked for too late to be a generation of its own.
        if turn > 1 {
            assert_eq!(runs, vec![turn * 10..turn * 10 + 1], "turn {turn}");
        }
    }
}

#[test]
fn a_deleted_area_stays_as_long_as_it_is_held() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let free = job.free_bytes().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(2), 1 << 20).unwrap();
    publish(&mut owned, &mut worker, 7);
    let agent = job.agent().unwrap();
    let area = agent.find("w").unwrap();
    let held = agent.hold(&[area]).unwrap();
    owned.delete(&mut worker).unwrap();
    for _ in 0..3 {
        worker.sync().unwrap();
        assert!(job.free_bytes().unwrap() < free);
        assert_eq!(value(held[0].bytes()), 7);
    }
    assert!(matches!(agent.hold(&[area]), Err(Error::Deleted { .. })));
    assert!(job.free_bytes().unwrap() < free);
    drop(held);
    assert_eq!(job.free_bytes().unwrap(), free);
}

#[test]
fn a_group_is_held_as_one_state() {
    let job = patient_job();
    let _watch = watch(&job);
    let (stop, crew) = (AtomicBool::new(false), Crew::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            crew.part(|| {
                let mut worker = job.worker().unwrap();
                let spec = |name: &str| AreaSpec::new(name).copies(2).group("g");
                let mut areas = [("a", 9), ("b", 3_000)]
                    .map(|(name, len)| worker.create::<u64>(spec(name), len).unwrap());
                for turn in 1.. {
                    areas.iter_mut().for_each(|area| fill(area, &worker, turn));
                    worker.sync().unwrap();
                    if stop.load(SeqCst) {
                        break;
                    }
                }
            })
        });
        crew.part(|| {
            until("the areas", || job.attach::<u64>("b").is_ok());
            let agent = job.agent().unwrap();
            let areas = ["a", "b"].map(|name| agent.find(name).unwrap());
            let mut last = 0;
            for _ in 0..3_000 {
                match agent.hold(&areas) {
                    Ok(held) => {
                        let values: Vec<u64> = held.iter().map(|held| value(held.bytes())).collect();
                        assert!(values[0] == values[1] && values[0] >= last, "{values:?} after {last}");
                        last = values[0];
                    }
                    Err(error) => assert!(matches!(error, Error::TimedOut { .. }), "{error}"),
                }
            }
            stop.store(true, SeqCst);
            assert!(last > 0, "never held");
        });
    });
}

/// An agent at work until the n-th fault point kills it.
#[cfg(feature = "fault-points")]
fn victim(job: &Job, points: u32) -> ! {
    let mut agent = job.agent().unwrap();
    hectare::fault::die_after(points);
    let mut events = Vec::new();
    loop {
        agent.wait(Duration::from_millis(1));
        agent.look(&mut events);
        let areas: Vec<_> = ["w", "v"].iter().filter_map(|name| agent.find(name)).collect();
        if let Ok(held) = agent.hold(&areas) {
            held.iter().for_each(|held| assert_ne!(value(held.bytes()), u64::MAX));
        }
        events.clear();
    }
}

#[cfg(feature = "fault-points")]
#[test]
fn an_agent_is_killed_at_any_step() {
    const NAME: &str = "an_agent_is_killed_at_any_step";
    if let Some((points, job)) = role() {
        victim(&job, points.parse().unwrap());
    }
    for points in 0..24 {
        let job = patient_job();
        let _watch = watch(&job);
        let mut worker = job.worker().unwrap();
        let free = job.free_bytes().unwrap();
        let spec = |name| AreaSpec::new(name).copies(2).group("g");
        let mut areas = ["w", "v"].map(|name| worker.create::<u64>(spec(name), 20_000).unwrap());
        let mut victim = spawn(NAME, &points.to_string(), &job);
        let mut turn = 0;
        let mut round = |worker: &mut Worker| {
            turn += 1;
            areas.iter_mut().for_each(|area| fill(area, worker, turn));
            assert_eq!(worker.sync().unwrap().postponed, 0, "never postponed for an agent");
            turn
        };
        while !victim.has_ended() {
            round(&mut worker);
        }
        assert!(!victim.wait(), "killed");
        let turn = round(&mut worker);
        // The next one goes on, and holds as many copies as there are.
        let mut agent = job.agent().unwrap();
        let ids = ["w", "v"].map(|name| agent.find(name).unwrap());
        let events = look(&mut agent);
        for area in ids {
            assert!(
                events.contains(&Event::Published { area, version: counter(turn), label: 1 }),
                "{events:?}"
            );
        }
        let held = agent.hold(&ids).unwrap();
        assert!(held.iter().all(|held| value(held.bytes()) == turn));
        round(&mut worker);
        drop((held, agent));
        areas.into_iter().for_each(|area| area.delete(&mut worker).unwrap());
        for _ in 0..2 {
            worker.sync().unwrap();
        }
        assert_eq!(job.free_bytes().unwrap(), free, "what a dead agent used is freed, point {points}");
    }
}

/// The only worker of a host dies at any step of a round. Nobody comes after it: the agent says that it is out of the clocks all the
/// same, after what the round published, as one state of the group.
#[cfg(feature = "fault-points")]
#[test]
fn the_last_worker_of_a_host_is_killed_at_any_step() {
    const NAME: &str = "the_last_worker_of_a_host_is_killed_at_any_step";
    const NAMES: [&str; 2] = ["w", "v"];
    if let Some((points, job)) = role() {
        let mut worker = job.worker().unwrap();
        let spec = |name| AreaSpec::new(name).copies(2).group("g");
        let mut areas = NAMES.map(|name| worker.create::<u64>(spec(name), 20_000).unwrap());
        hectare::fault::die_after(points.parse().unwrap());
        for turn in 1.. {
            areas.iter_mut().for_each(|area| fill(area, &worker, turn));
            worker.tick().unwrap();
            worker.sync().unwrap();
        }
        unreachable!()
    }
    let mut inside = 0;
    for points in 1..40 {
        let job = Job::builder().hosts(&[1, 1], 0).reserve(1 << 26).embedded().unwrap();
        let _watch = watch(&job);
        let mut agent = job.agent().unwrap();
        // The other host is at every clock before this one.
        agent.set_clock(1, u64::MAX).unwrap();
        let mut child = spawn(NAME, &points.to_string(), &job);
        let mut events = Vec::new();
        until("its death", || child.has_ended());
        inside += u32::from(agent.is_in_round());
        let out = |event: &Event| matches!(event, Event::Clock { local: u64::MAX, .. });
        until("the end of its clock", || {
            agent.look(&mut events);
            events.iter().any(out)
        });
        assert!(events.last().is_some_and(out), "{events:?}");
        let areas: Vec<_> = NAMES.iter().filter_map(|name| agent.find(name)).collect();
        let versions: Vec<u64> = areas
            .iter()
            .flat_map(|area| {
                let of_it = |event: &Event| match event {
                    Event::Published { area: it, version, .. } if it == area => Some(version.counter),
                    _ => None,
                };
                events.iter().rev().find_map(of_it)
            })
            .collect();
        assert!(versions.len() == 2 && versions[0] == versions[1], "point {points}: {versions:?}");
        let held = agent.hold(&areas).unwrap();
        assert!(held.iter().all(|held| value(held.bytes()) == versions[0]), "point {points}");
        assert_eq!(job.workers().unwrap().iter().filter(|worker| worker.rank == 0).count(), 0);
    }
    assert!(inside > 5, "killed in {inside} rounds only");
}

/// The only worker of a host dies while it creates an area. Nobody else gives the area up: the agent does, and says that the host is out
/// of the clocks.
#[cfg(feature = "fault-points")]
#[test]
fn the_last_worker_of_a_host_is_killed_while_it_creates_an_area() {
    const NAME: &str = "the_last_worker_of_a_host_is_killed_while_it_creates_an_area";
    if let Some((points, job)) = role() {
        let mut worker = job.worker().unwrap();
        hectare::fault::die_after(points.parse().unwrap());
        worker.create::<u64>(AreaSpec::new("big").copies(2), 100_000).unwrap();
        unreachable!("it was to die before");
    }
    let mut half_made = 0;
    // Before it has a slot, and before and after it has told the agent: later the area is live.
    for points in 0..3 {
        let job = Job::builder().hosts(&[1, 1], 0).reserve(1 << 26).embedded().unwrap();
        let _watch = watch(&job);
        let mut agent = job.agent().unwrap();
        let mut child = spawn(NAME, &points.to_string(), &job);
        until("its death", || child.has_ended());
        let mut events = look(&mut agent);
        let out = |event: &Event| matches!(event, Event::Clock { local: u64::MAX, .. });
        half_made += u32::from(!events.iter().any(out));
        until("the end of its clock", || {
            agent.look(&mut events);
            events.iter().any(out)
        });
        assert_eq!(agent.find("big"), None, "point {points}");
    }
    assert!(half_made > 0, "no area was half made");
}

#[test]
fn notes_outlive_their_agent_and_hidden_areas_are_found_when_they_are_shown() {
    let job = Job::builder().reserve(1 << 28).min_copies(3).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let owned = worker.create::<u64>("own", 9).unwrap();
    let agent = job.agent().unwrap();
    let own = agent.find("own").unwrap();
    assert_eq!((agent.note(own), agent.describe(own).unwrap().copies), (Some([0; 3]), 3));
    agent.set_note(own, [1, 2, 3]);
    let element = hectare::ElementType::of::<u64>();
    let theirs = agent.create_hidden(&AreaSpec::new("theirs"), element, 9, 1, [4, 5, 6]).unwrap();
    let drawn = agent.draw();
    drop(agent);
    let agent = job.agent().unwrap();
    assert_eq!((agent.note(own), agent.note(theirs)), (Some([1, 2, 3]), Some([4, 5, 6])));
    assert!(agent.draw() > drawn);
    // It has its name, and nobody finds it.
    let taken = worker.create::<u64>("theirs", 9).unwrap_err();
    assert!(matches!(taken, Error::NameTaken { .. }), "{taken}");
    assert!(agent.is_hidden(theirs) && !agent.is_hidden(own));
    assert!(matches!(worker.attach::<u64>("theirs"), Err(Error::NoSuchArea { .. })));
    assert!(matches!(job.observer().unwrap().read_bytes("theirs", None), Err(Error::NoSuchArea { .. })));
    agent.show(theirs);
    assert_eq!(worker.attach::<u64>("theirs").unwrap().len(), 9);
    // A later area of the slot has no note of it.
    agent.set_note(own, [7; 3]);
    owned.delete(&mut worker).unwrap();
    worker.sync().unwrap();
    let _next = worker.create::<u64>("next", 9).unwrap();
    assert_eq!((agent.note(own), agent.note(agent.find("next").unwrap())), (None, Some([0; 3])));
}

#[test]
fn another_thread_hears_the_bell() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(2), 10).unwrap();
    let mut agent = job.agent().unwrap();
    look(&mut agent);
    let bell = agent.bell(false);
    assert!(!bell.wait(Duration::from_millis(1)), "nothing happened");
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| bell.wait(LONG));
        publish(&mut owned, &mut worker, 1);
        assert!(sleeper.join().unwrap());
    });
    // It rang before: nobody sleeps. After the next look it has not.
    assert!(bell.wait(LONG) && agent.bell(false).wait(LONG));
    look(&mut agent);
    assert!(!agent.bell(false).wait(Duration::from_millis(1)));
}
