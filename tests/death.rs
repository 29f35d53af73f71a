//! Processes that are killed at every step of every protocol: the survivors go on, what they see is whole,
//! and what the dead owned can be claimed at its last published version.
#![cfg(feature = "fault-points")]
use crate::common::*;
use hectare::{AreaSpec, Error, Job, Owned, Version, Worker, fault};
use std::time::Duration;

/// Lengths and reader copies of the areas that the victims write.
const SHAPES: [(usize, u32); 3] = [(9, 1), (5_001, 2), (16_000, 3)];

fn value(version: Version) -> u64 {
    version.counter
}

/// Writes areas so that a version's number is its content, and lets the n-th fault point kill it.
fn victim(job: &Job, points: u32) -> ! {
    let mut worker = job.worker().unwrap();
    let mut owned: Vec<Owned<u64>> = SHAPES
        .iter()
        .enumerate()
        .map(|(index, (len, copies))| {
            let spec = AreaSpec::new(format!("victim/{index}")).copies(*copies).group("victim");
            worker.create(spec, *len).unwrap()
        })
        .collect();
    let beat = worker.attach::<u64>("beat").unwrap();
    worker.wait_for_workers(3, LONG).unwrap();
    for area in &mut owned {
        fill(area, &worker, 1);
    }
    worker.sync().unwrap();
    fault::die_after(points);
    for turn in 0.. {
        for area in &mut owned {
            let next = value(area.area().newest_version().unwrap()) + 1;
            fill(area, &worker, next);
        }
        uniform(beat.read(&worker).unwrap());
        match turn % 3 {
            0 => worker.sync().map(drop).unwrap(),
            1 => worker.service().unwrap(),
            _ => {
                let scratch = worker.create::<u64>("victim/scratch", 1000).unwrap();
                scratch.delete(&mut worker).unwrap();
            }
        }
    }
    unreachable!()
}

/// Another process that reads what the victim writes, until it is told to stop.
fn witness(job: &Job) {
    let mut worker = job.worker().unwrap();
    worker.leave_clocks();
    let beat = worker.attach::<u64>("beat").unwrap();
    let mut last = [Version::default(); SHAPES.len()];
    while uniform(beat.read(&worker).unwrap()) != u64::MAX {
        match look(&worker, &mut last) {
            // The test deletes the victim's areas at the end, one after the other.
            Ok(()) | Err(Error::Deleted { .. }) => {}
            Err(error) => panic!("{error}"),
        }
        worker.service().unwrap();
        std::thread::yield_now();
    }
}

/// Checks whatever the victim has published: whole, as numbered, one state of the group, never going back.
fn look(worker: &Worker, last: &mut [Version]) -> Result<(), Error> {
    let mut seen = Vec::new();
    for (index, last) in last.iter_mut().enumerate() {
        let Ok(area) = worker.attach_here::<u64>(&format!("victim/{index}")) else { return Ok(()) };
        let version = area.version(worker)?;
        assert!(version >= *last, "version {version} after {last}");
        *last = version;
        assert_eq!(uniform(area.read(worker)?), value(version), "area {index} at {version}");
        seen.push(value(version));
    }
    assert!(seen.iter().all(|value| *value == seen[0]), "a group of different versions: {seen:?}");
    Ok(())
}

#[test]
fn killed_at_any_step() {
    const NAME: &str = "killed_at_any_step";
    if let Some((role, job)) = role() {
        match role.strip_prefix("victim ") {
            Some(points) => victim(&job, points.parse().unwrap()),
            None => return witness(&job),
        }
    }
    let points = (0..40).chain((40..400).step_by(30));
    for points in points {
        let job = Job::builder()
            .reserve(1 << 28)
            .round_timeout(Duration::from_millis(200))
            .max_workers(3)
            .embedded()
            .unwrap();
        let _watch = watch(&job);
        let mut worker = job.worker().unwrap();
        let mut beat = worker.create::<u64>(AreaSpec::new("beat").copies(2), 4000).unwrap();
        let mut witness = spawn(NAME, "witness", &job);
        let mut victim = spawn(NAME, &format!("victim {points}"), &job);
        let mut last = [Version::default(); SHAPES.len()];
        let mut turn = 0;
        while !victim.has_ended() {
            turn += 1;
            fill(&mut beat, &worker, turn);
            worker.sync().unwrap();
            look(&worker, &mut last).unwrap();
        }
        // The survivors' rounds go on.
        for _ in 0..5 {
            turn += 1;
            fill(&mut beat, &worker, turn);
            worker.barrier().unwrap();
            assert_eq!(uniform(beat.area().read(&worker).unwrap()), turn);
            look(&worker, &mut last).unwrap();
        }
        assert_eq!(job.stats().unwrap().deaths, 1, "point {points}");
        // Whatever step it died in, an observer is not kept waiting.
        let observer = job.observer().unwrap();
        for (index, last) in last.iter().enumerate() {
            let area = worker.attach::<u64>(&format!("victim/{index}")).unwrap();
            let pinned = observer.read(&area).unwrap_or_else(|error| panic!("point {points}: {error}"));
            assert_eq!((pinned.version(), uniform(&pinned)), (*last, value(*last)));
        }
        drop(observer);
        // The group is published again when all of its members have an owner who comes.
        let mut claimed: Vec<_> =
            (0..SHAPES.len()).map(|index| worker.claim(&format!("victim/{index}")).unwrap()).collect();
        for (claimed, last) in claimed.iter_mut().zip(&last) {
            assert_eq!(claimed.loss.last_version, Some(*last), "point {points}");
            let owned = &mut claimed.owned;
            assert_eq!(uniform(owned.read(&worker).unwrap()), value(*last), "restored, point {points}");
            fill(owned, &worker, value(*last) + 1);
        }
        // An area of one copy waits for a witness that is late.
        while worker.sync().unwrap().postponed > 0 {}
        for (claimed, last) in claimed.into_iter().zip(&last) {
            let owned = claimed.owned;
            let version = owned.area().version(&worker).unwrap();
            assert_eq!(version, Version { term: 2, counter: last.counter + 1 });
            assert_eq!(uniform(owned.area().read(&worker).unwrap()), value(version));
            owned.delete(&mut worker).unwrap();
        }
        // Its slot is free again, and so is the memory of what it was creating or deleting.
        std::thread::scope(|scope| scope.spawn(|| job.worker().map(drop)).join().unwrap()).unwrap();
        if job.areas().unwrap().iter().any(|info| info.name == "victim/scratch") {
            job.delete("victim/scratch").unwrap();
        }
        fill(&mut beat, &worker, u64::MAX);
        worker.sync().unwrap();
        witness.finish();
        drop(beat);
        job.delete("beat").unwrap();
        for _ in 0..3 {
            worker.sync().unwrap();
        }
        let whole = Job::builder().reserve(1 << 28).max_workers(3).embedded().unwrap();
        assert_eq!(job.free_bytes().unwrap(), whole.free_bytes().unwrap(), "point {points}");
        assert_eq!(job.workers().unwrap().len(), 1);
    }
}

/// All participants of a round die in its middle; whoever comes next finds a consistent state.
#[test]
fn a_round_whose_participants_all_die() {
    const NAME: &str = "a_round_whose_participants_all_die";
    if let Some((role, job)) = role() {
        victim(&job, role.parse().unwrap());
    }
    for points in (0..30).step_by(3).chain((30..200).step_by(20)) {
        let job = Job::builder().reserve(1 << 28).max_workers(3).embedded().unwrap();
        let _watch = watch(&job);
        {
            let mut worker = job.worker().unwrap();
            let _beat = worker.create::<u64>(AreaSpec::new("beat").copies(2), 10).unwrap();
            let mut child = spawn(NAME, &points.to_string(), &job);
            let area = worker.attach_within::<u64>("victim/2", LONG).unwrap();
            // Makes up the numbers for the victim's start, and leaves it alone in the job.
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    let mut third = job.worker().unwrap();
                    serve_until(&mut third, "the first version", |_| {
                        area.newest_version().unwrap().counter > 0
                    });
                });
                serve_until(&mut worker, "the first version", |_| area.newest_version().unwrap().counter > 0);
            });
            drop(worker);
            until("its death", || child.has_ended());
        }
        let mut worker = job.worker().unwrap();
        let mut last = [Version::default(); SHAPES.len()];
        look(&worker, &mut last).unwrap();
        assert!(last[0].counter > 0);
        for (index, last) in last.iter().enumerate() {
            let claimed = worker.claim::<u64>(&format!("victim/{index}")).unwrap();
            assert_eq!(claimed.loss.last_version, Some(*last));
            assert_eq!(uniform(claimed.owned.read(&worker).unwrap()), value(*last));
            claimed.owned.delete(&mut worker).unwrap();
        }
        let error = worker.claim::<u64>("beat");
        assert!(matches!(error, Ok(_) | Err(Error::NoSuchArea { .. })), "{error:?}");
        assert_eq!(job.workers().unwrap().len(), 1);
    }
}

/// An owner dies, and others hear of it, at any step of the planning of its areas: of a group, all are published or
/// none.
#[test]
fn an_owner_dies_while_its_group_is_planned() {
    const NAME: &str = "an_owner_dies_while_its_group_is_planned";
    const NAMES: [&str; 3] = ["group/a", "group/b", "group/c"];
    if let Some((role, job)) = role() {
        let mut worker = job.worker().unwrap();
        worker.leave_clocks();
        let Some(points) = role.strip_prefix("planner ") else {
            let mut owned = NAMES
                .map(|name| worker.create::<u64>(AreaSpec::new(name).copies(2).group("group"), 100).unwrap());
            worker.attach_within::<u64>("ready", LONG).unwrap();
            for value in 1.. {
                owned.iter_mut().for_each(|owned| fill(owned, &worker, value));
                worker.sync().unwrap();
            }
            unreachable!()
        };
        worker.wait_for_workers(2, LONG).unwrap();
        let _ready = worker.create::<u64>("ready", 1).unwrap();
        // The owner asks for the rounds, and comes first.
        fault::stop_after(points.parse().unwrap());
        loop {
            worker.service().unwrap();
        }
    }
    let (mut before, mut meanwhile) = (0, 0);
    for points in 0..12 {
        let job = Job::builder().reserve(1 << 26).round_timeout(LONG).embedded().unwrap();
        let _watch = watch(&job);
        let mut owner = spawn(NAME, "owner", &job);
        let area = job.attach_within::<u64>(NAMES[2], LONG).unwrap();
        let mut planner = spawn(NAME, &format!("planner {points}"), &job);
        until("the standstill", || planner.has_stopped());
        let old = area.newest_version().unwrap().counter;
        owner.kill();
        std::thread::scope(|scope| {
            // Whoever joins asks the kernel about everybody, and waits for the round to be past.
            let guest = scope.spawn(|| job.worker().map(drop));
            until("the news of its death", || job.stats().unwrap().deaths == 1);
            planner.signal(libc::SIGCONT);
            guest.join().unwrap().unwrap();
        });
        let seen = NAMES.map(|name| job.attach::<u64>(name).unwrap().newest_version().unwrap().counter);
        assert_eq!(seen, [seen[0]; 3], "point {points}");
        *(if seen[0] == old { &mut before } else { &mut meanwhile }) += 1;
        planner.kill();
    }
    assert!(before > 0 && meanwhile > 0, "{before} died before they were planned, {meanwhile} meanwhile");
}
