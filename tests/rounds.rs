//! Rounds: barriers, forced syncs, intervals, groups, and workers that come, go, panic and stay away.
use crate::common::*;
use hectare::{AreaSpec, Error, Job, Worker, WorkerState};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

#[test]
fn everybody_sees_everybody_at_every_barrier() {
    for workers in [1usize, 2, 3, 8, 16] {
        let job = patient_job();
        let _watch = watch(&job);
        let rounds = if workers > 4 { 60 } else { 300 };
        run(&job, workers, |worker| {
            let me = worker.rank() as u64;
            let mut mine = worker.create::<u64>(format!("part/{me}"), 100).unwrap();
            worker.barrier().unwrap();
            let others: Vec<_> =
                (0..workers).map(|rank| worker.attach::<u64>(&format!("part/{rank}")).unwrap()).collect();
            let mut last = vec![0; workers];
            for round in 1..=rounds {
                // Mixes what all had in the round before.
                let sum: u64 = last.iter().sum();
                fill(&mut mine, worker, round * 1000 + me + sum % 7);
                worker.barrier().unwrap();
                for (rank, other) in others.iter().enumerate() {
                    last[rank] = uniform(other.read(worker).unwrap());
                    assert_eq!(last[rank], round * 1000 + rank as u64 + sum % 7, "worker {rank} in {round}");
                }
            }
        })
        .unwrap();
        let stats = job.stats().unwrap();
        assert_eq!((stats.abandoned, stats.postponed, stats.deaths), (0, 0, 0));
    }
}

#[test]
fn sync_publishes_what_the_caller_owns_and_sync_area_what_another_does() {
    let job = patient_job();
    let _watch = watch(&job);
    run(&job, 2, |worker| {
        let me = worker.rank();
        let mut owned: Vec<_> =
            (0..2).map(|index| worker.create::<u64>(format!("{me}/{index}"), 10).unwrap()).collect();
        worker.barrier().unwrap();
        let theirs = worker.attach::<u64>(&format!("{}/0", 1 - me)).unwrap();
        for turn in 1..100 {
            fill(&mut owned[0], worker, turn);
            worker.barrier().unwrap();
            fill(&mut owned[1], worker, turn);
            if me == 0 {
                let synced = worker.sync().unwrap();
                assert_eq!((synced.abandoned, synced.postponed), (0, 0));
                assert_eq!(uniform(owned[1].area().read(worker).unwrap()), turn);
                fill(&mut owned[0], worker, turn + 1000);
                worker.sync_area(&theirs).unwrap();
                assert_eq!(uniform(theirs.read(worker).unwrap()), turn + 500);
            } else {
                fill(&mut owned[0], worker, turn + 500);
                serve_until(worker, "my area asked for", |worker| {
                    uniform(owned[0].area().read(worker).unwrap()) == turn + 500
                });
                assert_eq!(uniform(theirs.read(worker).unwrap()), turn, "only what was asked for");
            }
            worker.barrier().unwrap();
        }
    })
    .unwrap();
}

#[test]
fn each_area_at_its_own_interval() {
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let ms = Duration::from_millis;
    let mut fast = worker.create::<u64>(AreaSpec::new("fast").interval(ms(2)), 10).unwrap();
    let mut slow = worker.create::<u64>(AreaSpec::new("slow").interval(ms(40)), 10).unwrap();
    let mut quiet = worker.create::<u64>("quiet", 10).unwrap();
    let mut turn = 0;
    let since = std::time::Instant::now();
    let versions = |area: hectare::Area<u64>| area.newest_version().unwrap().counter;
    // Who loses its core at every turn may find both due each time, for a while.
    while versions(slow.area()) < 4 || versions(fast.area()) <= versions(slow.area()) {
        turn += 1;
        fill(&mut fast, &worker, turn);
        fill(&mut slow, &worker, turn);
        fill(&mut quiet, &worker, turn);
        worker.service().unwrap();
    }
    let elapsed = since.elapsed();
    // Not more often than its interval allows; how much less often depends on the machine.
    assert!(u128::from(versions(fast.area())) <= elapsed.as_millis() / 2 + 1);
    assert!(u128::from(versions(slow.area())) <= elapsed.as_millis() / 40 + 1);
    assert_eq!(versions(quiet.area()), 0, "no interval, not asked for");
    fill(&mut fast, &worker, turn + 1);
    let count = versions(fast.area());
    fill(&mut fast, &worker, 0);
    worker.sync().unwrap();
    assert_eq!(versions(quiet.area()), 1);
    assert_eq!(versions(fast.area()), count + 1);
    for _ in 0..3 {
        std::thread::sleep(ms(3));
        worker.service().unwrap();
    }
    assert!(versions(fast.area()) <= count + 1, "nothing was written");
}

/// Two owners of one group: it is published when both have come, and not by halves before.
#[test]
fn groups_are_one_consistent_state() {
    let job = Job::builder().reserve(1 << 28).round_timeout(Duration::from_millis(5)).embedded().unwrap();
    let _watch = watch(&job);
    let (written, free) = (AtomicU64::new(0), AtomicU64::new(0));
    let owners = [0, 0, 1];
    run(&job, 3, |worker| {
        let me = worker.rank();
        let mut mine: Vec<_> = (0..3)
            .filter(|part| owners[*part] == me)
            .map(|part| AreaSpec::new(format!("part/{part}")).group("state").copies(3))
            .map(|spec| worker.create::<u64>(spec, 50).unwrap())
            .collect();
        worker.barrier().unwrap();
        let parts: Vec<_> =
            (0..3).map(|part| worker.attach::<u64>(&format!("part/{part}")).unwrap()).collect();
        let look = |worker: &Worker| {
            let seen: Vec<u64> = parts.iter().map(|part| uniform(part.read(worker).unwrap())).collect();
            assert!(seen.iter().all(|value| *value == seen[0]), "half a state: {seen:?}");
            seen[0]
        };
        for turn in 1..40 {
            for owned in &mut mine {
                fill(owned, worker, turn);
            }
            match me {
                0 => {
                    until("the other's write", || written.load(SeqCst) == turn);
                    for _ in 0..4 {
                        let synced = worker.sync().unwrap();
                        assert_eq!((synced.postponed, look(worker)), (2, turn - 1));
                    }
                    free.store(turn, SeqCst);
                }
                1 => {
                    // Has written, and does not come.
                    written.store(turn, SeqCst);
                    until("release", || free.load(SeqCst) == turn);
                }
                _ => {
                    serve_until(worker, "release", |worker| look(worker) == turn || free.load(SeqCst) == turn)
                }
            }
            worker.barrier().unwrap();
            assert_eq!(look(worker), turn);
            worker.barrier().unwrap();
        }
    })
    .unwrap();
}

#[test]
fn workers_join_and_leave_during_rounds() {
    let job = Job::builder().reserve(1 << 28).max_workers(8).round_timeout(LONG).embedded().unwrap();
    let _watch = watch(&job);
    let stop = AtomicBool::new(false);
    let (seated, crew) = (std::sync::Barrier::new(2), Crew::new());
    let own = || {
        let mut worker = job.worker_at(0).unwrap();
        seated.wait();
        let mut owned = worker.create::<u64>(AreaSpec::new("beat").copies(2), 2000).unwrap();
        let mut beat = 0;
        while !stop.load(SeqCst) {
            beat += 1;
            fill(&mut owned, &worker, beat);
            worker.sync().unwrap();
            assert_eq!(uniform(owned.area().read(&worker).unwrap()), beat);
        }
        assert!(beat > 0);
    };
    let visit = || {
        for _ in 0..60 {
            let mut worker = job.worker().unwrap();
            let area = worker.attach_within::<u64>("beat", LONG).unwrap();
            let mut last = uniform(area.read(&worker).unwrap());
            for _ in 0..5 {
                worker.service().unwrap();
                let seen = uniform(area.read(&worker).unwrap());
                assert!(seen >= last);
                last = seen;
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| crew.part(own));
        // Rank 0 is the owner's before any guest could take it.
        seated.wait();
        let guests: Vec<_> = (0..3).map(|_| scope.spawn(|| crew.part(visit))).collect();
        guests.into_iter().for_each(|guest| guest.join().unwrap());
        stop.store(true, SeqCst);
    });
    assert!(job.workers().unwrap().is_empty());
    let stats = job.stats().unwrap();
    assert_eq!((stats.deaths, stats.abandoned), (0, 0));
}

#[test]
fn a_panic_is_an_error_with_the_rank_and_the_others_go_on() {
    let job = patient_job();
    let _watch = watch(&job);
    let after = AtomicU64::new(0);
    let error = job
        .run(3, |worker| {
            let mut mine = worker.create::<u64>(format!("{}", worker.rank()), 10).unwrap();
            worker.barrier().unwrap();
            assert!(worker.rank() != 1, "worker one has had enough");
            for turn in 0..20 {
                fill(&mut mine, worker, turn);
                worker.barrier().unwrap();
            }
            after.fetch_add(1, SeqCst);
        })
        .unwrap_err();
    assert!(
        matches!(&error, Error::Panicked { panics }
        if matches!(&panics[..], [(1, text)] if text.contains("had enough"))),
        "{error}"
    );
    assert_eq!(after.load(SeqCst), 2);
    let mut worker = job.worker().unwrap();
    assert_eq!(worker.claim::<u64>("1").unwrap().owned.len(), 10);
}

#[test]
fn a_worker_that_stays_away_is_named_and_not_waited_for_twice() {
    let job = Job::builder().reserve(1 << 28).round_timeout(Duration::from_millis(30)).embedded().unwrap();
    let _watch = watch(&job);
    let (gone, away, back) = (AtomicBool::new(false), AtomicBool::new(true), AtomicBool::new(false));
    run(&job, 2, |worker| {
        let mut mine =
            worker.create::<u64>(AreaSpec::new(format!("{}", worker.rank())).copies(2), 10).unwrap();
        worker.barrier().unwrap();
        if worker.rank() == 1 {
            gone.store(true, SeqCst);
            until("the others are done without me", || !away.load(SeqCst));
            worker.service().unwrap();
            back.store(true, SeqCst);
            serve_until(worker, "the end", |_| !back.load(SeqCst));
            return;
        }
        serve_until(worker, "the other's absence", |_| gone.load(SeqCst));
        // On a busy machine one may have been late before.
        let before = worker.job().stats().unwrap();
        fill(&mut mine, worker, 1);
        let first = worker.sync().unwrap();
        assert_eq!(first.abandoned, 1);
        for turn in 2..30 {
            fill(&mut mine, worker, turn);
            let synced = worker.sync().unwrap();
            assert_eq!((synced.abandoned, synced.postponed), (0, 0), "waited for once");
        }
        let job = worker.job();
        let stats = job.stats().unwrap();
        assert_eq!((stats.abandoned - before.abandoned, stats.late - before.late), (1, 1));
        let states: Vec<_> = job.workers().unwrap().iter().map(|info| (info.rank, info.state)).collect();
        assert_eq!(states, [(0, WorkerState::Live), (1, WorkerState::Straggler)]);
        let timed_out = worker.barrier_within(Duration::from_millis(20)).unwrap_err();
        assert!(
            matches!(&timed_out, Error::TimedOut { missing, .. } if missing.contains("worker 1")),
            "{timed_out}"
        );
        away.store(false, SeqCst);
        until("its return", || back.load(SeqCst));
        assert_eq!(job.workers().unwrap()[1].state, WorkerState::Live);
        let late = job.stats().unwrap().late;
        fill(&mut mine, worker, 77);
        worker.sync().unwrap();
        let round = job.workers().unwrap()[0].last_round;
        assert!(
            job.workers().unwrap()[1].last_round >= round || job.stats().unwrap().late > late,
            "waited for"
        );
        back.store(false, SeqCst);
    })
    .unwrap();
}
