//! Ownership: handed over, refused, claimed, and named where it was lost.
use crate::common::*;
use hectare::{AreaSpec, Error, Owned, Tracking, Version, Worker};
use std::time::Duration;

#[test]
fn a_ring_of_four() {
    let job = patient_job();
    let _watch = watch(&job);
    let turns = 2000u64;
    run(&job, 4, |worker| {
        let (me, next) = (worker.rank(), (worker.rank() + 1) % 4);
        let create = |worker: &mut Worker, index: u32| {
            worker.create::<u64>(AreaSpec::new(format!("{index}")).copies(index), 100).unwrap()
        };
        let mut held = Some(create(worker, me));
        worker.barrier().unwrap();
        let areas: Vec<_> = (0..4).map(|index| worker.attach::<u64>(&format!("{index}")).unwrap()).collect();
        for turn in 0..turns {
            let index = (me as usize + 4 - turn as usize % 4) % 4;
            let mut owned = held.take().unwrap_or_else(|| areas[index].take(worker).unwrap());
            assert_eq!((owned.name(), owned.epoch()), (areas[index].name(), turn + 1));
            assert_eq!(uniform(owned.read(worker).unwrap()), turn, "everybody before wrote once");
            fill(&mut owned, worker, turn + 1);
            if turn % 64 == 63 {
                worker.sync().unwrap();
            }
            if turn + 1 < turns {
                owned.give(worker, next).unwrap();
            } else {
                held = Some(owned);
            }
        }
        worker.barrier().unwrap();
        for area in areas.iter().filter(|area| area.name() != "0") {
            assert_eq!(uniform(area.read(worker).unwrap()), turns);
        }
        worker.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn refused_gifts_come_back() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>("w", 10).unwrap();
    for to in [1, 255, 256, u32::MAX] {
        let refused = owned.give(&worker, to).unwrap_err();
        assert!(matches!(refused.error, Error::NoSuchWorker { rank } if rank == to), "{refused}");
        owned = refused.owned;
        fill(&mut owned, &worker, u64::from(to));
    }
    let refused = owned.give_published(&mut worker, 9).unwrap_err();
    owned = refused.owned;
    let area = owned.area();
    assert_eq!(uniform(area.read(&worker).unwrap()), 0, "refused before it was published");
    worker.sync().unwrap();
    assert_eq!(uniform(area.read(&worker).unwrap()), u64::from(u32::MAX));
    assert!(area.try_take(&worker).unwrap().is_none());
    // To oneself is a round trip.
    owned.give(&worker, 0).unwrap();
    let owned = area.try_take(&worker).unwrap().unwrap();
    assert_eq!(owned.epoch(), 3 - 1);
    let late = area.take_within(&mut worker, Duration::from_millis(3));
    assert!(matches!(late, Err(Error::AlreadyOwner { .. })), "{late:?}");
}

#[test]
fn stale_owners_are_refused() {
    let job = patient_job();
    let mut stale: Owned<u64> = {
        let mut worker = job.worker().unwrap();
        worker.create("w", 10).unwrap()
    };
    // Its worker has left: somebody else at the same rank is not the owner, before and after a claim.
    let mut worker = job.worker().unwrap();
    assert_eq!(worker.rank(), 0);
    assert!(matches!(stale.write(&worker), Err(Error::NotOwner { .. })));
    let claimed = worker.claim::<u64>("w").unwrap();
    let mut owned = claimed.owned;
    assert!(matches!(stale.write(&worker), Err(Error::NotOwner { .. })));
    assert!(matches!(stale.read(&worker), Err(Error::NotOwner { .. })));
    assert!(matches!(stale.log(&worker, 0..1), Err(Error::NotOwner { .. })));
    assert!(matches!(stale.as_mut_ptr(&worker), Err(Error::NotOwner { .. })));
    let mut stale = stale.give(&worker, 0).unwrap_err().owned;
    assert!(stale.write(&worker).is_err());
    drop(stale);
    fill(&mut owned, &worker, 3);
    worker.sync().unwrap();
    assert_eq!(uniform(owned.area().read(&worker).unwrap()), 3, "dropping the stale handle changed nothing");
    assert!(matches!(worker.claim::<u64>("w"), Err(Error::OwnerAlive { owner: 0, .. })));
}

#[test]
fn a_claim_restores_and_names_the_losers() {
    let job = patient_job();
    let _watch = watch(&job);
    run(&job, 3, |worker| {
        let me = worker.rank();
        let spec = AreaSpec::new("w").copies(2);
        let mut mine = (me == 0).then(|| worker.create::<u64>(spec, 5000).unwrap());
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("w").unwrap();
        if let Some(mut owned) = mine.take() {
            fill(&mut owned, worker, 7);
            worker.sync().unwrap();
            owned.write(worker).unwrap().set(10, 8); // handed over unpublished
            owned.give(worker, 1).unwrap();
        } else if me == 1 {
            let mut owned = area.take(worker).unwrap();
            assert!(matches!(worker.claim::<u64>("w"), Err(Error::OwnerAlive { owner: 1, .. })));
            owned.write(worker).unwrap().set(4000, 9);
            drop(owned);
        } else {
            serve_until(worker, "the drop", |worker| worker.job().areas().unwrap()[0].owner.is_none());
            let claimed = worker.claim::<u64>("w").unwrap();
            assert_eq!(claimed.loss.last_version, area.newest_version());
            let mut losers = claimed.loss.lost_writers;
            losers.sort_unstable();
            assert_eq!(losers, [0, 1]);
            let mut owned = claimed.owned;
            assert_eq!((owned.epoch(), uniform(owned.read(worker).unwrap())), (3, 7));
            owned.write(worker).unwrap().set(0, 1);
            worker.sync().unwrap();
            assert_eq!(area.version(worker).unwrap(), Version { term: 2, counter: 2 });
            drop(owned);
            let again = worker.claim::<u64>("w").unwrap();
            assert!(again.loss.lost_writers.is_empty(), "all was published");
            assert_eq!(again.owned.read(worker).unwrap()[..3], [1, 7, 7]);
        }
        worker.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn unlogged_writes_are_named_as_lost_too() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").tracking(Tracking::Automatic), 5000).unwrap();
    let pointer = owned.as_mut_ptr(&worker).unwrap();
    // SAFETY: inside the area, which this worker owns; no view or guard of it lives.
    unsafe { pointer.add(3000).write(1) };
    drop(owned);
    let claimed = worker.claim::<u64>("w").unwrap();
    assert_eq!(claimed.loss.lost_writers, [0]);
    assert_eq!(uniform(claimed.owned.read(&worker).unwrap()), 0);
}

/// The owner is killed before it has told anybody what it wrote: a claim compares.
#[test]
fn what_a_killed_owner_wrote_unseen_is_named_as_lost() {
    const NAME: &str = "what_a_killed_owner_wrote_unseen_is_named_as_lost";
    let areas = [
        ("automatic", Tracking::Automatic, true),
        ("raw", Tracking::Logged, true),
        ("whole", Tracking::Whole, true),
        ("untouched", Tracking::Automatic, false),
    ];
    if let Some((_, job)) = role() {
        let mut worker = job.worker().unwrap();
        let mut pointers = Vec::new();
        for (name, tracking, _) in areas {
            let spec = AreaSpec::new(name).copies(2).tracking(tracking);
            let mut owned = worker.create::<u64>(spec, 5000).unwrap();
            pointers.push(owned.as_mut_ptr(&worker).unwrap());
            fill(&mut owned, &worker, 7);
            std::mem::forget(owned);
        }
        worker.sync().unwrap();
        for (pointer, _) in pointers.iter().zip(areas).filter(|(_, (_, _, written))| *written) {
            // SAFETY: inside the area, which this worker owns; no view or guard of it lives.
            unsafe { pointer.add(3000).write(1) };
        }
        std::mem::forget(worker.create::<u64>("ready", 1).unwrap());
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    let job = patient_job();
    let _watch = watch(&job);
    let mut owner = spawn(NAME, "owner", &job);
    job.attach_within::<u64>("ready", LONG).unwrap();
    owner.kill();
    let mut worker = job.worker().unwrap();
    for (name, _, written) in areas {
        let claimed = worker.claim::<u64>(name).unwrap();
        let lost: &[u32] = if written { &[0] } else { &[] };
        assert_eq!(claimed.loss.lost_writers, lost, "{name}");
        assert_eq!(claimed.loss.last_version, Some(Version { term: 1, counter: 1 }));
        assert_eq!(uniform(claimed.owned.read(&worker).unwrap()), 7, "{name}");
    }
}

#[test]
fn published_gifts_lose_nothing() {
    let job = patient_job();
    let _watch = watch(&job);
    run(&job, 2, |worker| {
        let mut mine = (worker.rank() == 0).then(|| worker.create::<u64>("w", 50).unwrap());
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("w").unwrap();
        if let Some(mut owned) = mine.take() {
            fill(&mut owned, worker, 4);
            owned.give_published(worker, 1).unwrap();
        } else {
            drop(area.take(worker).unwrap());
            let claimed = worker.claim::<u64>("w").unwrap();
            assert!(claimed.loss.lost_writers.is_empty());
            assert_eq!(uniform(claimed.owned.read(worker).unwrap()), 4);
        }
        worker.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn nobody_waits_for_an_owner_who_is_gone() {
    let job = patient_job();
    let _watch = watch(&job);
    run(&job, 2, |worker| {
        let mine = (worker.rank() == 0).then(|| worker.create::<u64>("w", 50).unwrap());
        let own = (worker.rank() == 0).then(|| worker.create::<u64>("x", 50).unwrap());
        worker.barrier().unwrap();
        if let Some(owned) = mine {
            drop(owned);
            std::mem::forget(own); // its owner leaves with the thread
            return;
        }
        for name in ["w", "x"] {
            let area = worker.attach::<u64>(name).unwrap();
            assert!(matches!(area.take(worker), Err(Error::OwnerGone { rank: 1, .. })));
            let claimed = worker.claim::<u64>(name).unwrap();
            assert_eq!(claimed.owned.epoch(), 2);
            // Nobody else gives the worker an area that is its own.
            let late = area.take_within(worker, Duration::from_millis(2));
            assert!(matches!(late, Err(Error::AlreadyOwner { .. })), "{late:?}");
        }
    })
    .unwrap();
}

#[test]
fn a_limit_holds_while_the_owner_waits_in_a_barrier() {
    let job = patient_job();
    let _watch = watch(&job);
    run(&job, 2, |worker| {
        let mine = (worker.rank() == 0).then(|| worker.create::<u64>("kept", 10).unwrap());
        worker.barrier().unwrap();
        if worker.rank() == 1 {
            // The owner's barrier asks for one round after the other meanwhile.
            let area = worker.attach::<u64>("kept").unwrap();
            for _ in 0..3 {
                let late = area.take_within(worker, Duration::from_millis(30));
                assert!(matches!(late, Err(Error::TimedOut { .. })), "{late:?}");
            }
        }
        worker.barrier().unwrap();
        drop(mine);
    })
    .unwrap();
}

#[test]
fn unwinding_makes_claimable() {
    let job = patient_job();
    let _watch = watch(&job);
    let error = job.run(1, |worker| {
        let mut owned = worker.create::<u64>("w", 10).unwrap();
        fill(&mut owned, worker, 1);
        worker.sync().unwrap();
        let mut guard = owned.write(worker).unwrap();
        guard.set(0, 2);
        panic!("with a guard open");
    });
    assert!(matches!(error, Err::<Vec<()>, _>(Error::Panicked { .. })));
    let mut worker = job.worker().unwrap();
    let claimed = worker.claim::<u64>("w").unwrap();
    assert_eq!(claimed.loss.lost_writers, [0]);
    assert_eq!(uniform(claimed.owned.read(&worker).unwrap()), 1);
}
