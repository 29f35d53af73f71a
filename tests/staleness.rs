//! Versions, ages, waits, notification and clocks.
use crate::common::*;
use hectare::{Area, AreaSpec, Error, Job, Version};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

#[test]
fn versions_timestamps_and_ages() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(2), 10).unwrap();
    let area = owned.area();
    let mut last = (area.version(&worker).unwrap(), area.timestamp_ns(&worker).unwrap());
    assert_eq!(last, (Version::default(), 0), "as it was created");
    for turn in 1..50 {
        fill(&mut owned, &worker, turn);
        assert_eq!(area.version(&worker).unwrap(), last.0, "not published yet");
        worker.sync().unwrap();
        let now = (area.version(&worker).unwrap(), area.timestamp_ns(&worker).unwrap());
        assert_eq!(now.0, Version { term: 1, counter: turn });
        assert!(now.1 >= last.1);
        assert_eq!(area.newest_version(), Some(now.0));
        last = now;
    }
    let old = area.age(&worker).unwrap();
    assert!(area.age(&worker).unwrap() >= old, "it ages");
    std::thread::sleep(Duration::from_millis(20));
    assert!(area.age(&worker).unwrap() >= Duration::from_millis(20));
    worker.wait_fresher_than(&area, Duration::from_millis(10), LONG).unwrap();
    assert_eq!(area.version(&worker).unwrap(), last.0, "unchanged, but known to be fresh");
    let zero = worker.wait_fresher_than(&area, Duration::ZERO, Duration::from_millis(5));
    assert!(matches!(zero, Err(Error::TimedOut { .. })));
}

#[test]
fn waiting_for_a_version() {
    let job = patient_job();
    let _watch = watch(&job);
    run(&job, 2, |worker| {
        let mut owned = (worker.rank() == 0).then(|| worker.create::<u64>("w", 10).unwrap());
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("w").unwrap();
        for turn in 1..200 {
            if let Some(owned) = &mut owned {
                fill(owned, worker, turn);
                worker.sync().unwrap();
            } else {
                let wanted = Version { term: 1, counter: turn };
                assert!(worker.wait_for(&area, wanted, LONG).unwrap() >= wanted);
                assert!(uniform(area.read(worker).unwrap()) >= turn);
            }
        }
        worker.barrier().unwrap();
        let never = Version { term: 2, counter: 0 };
        let error = worker.wait_for(&area, never, Duration::from_millis(3)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("version 2.0 of area \"w\"") && text.contains("owned by worker 0"), "{text}");
        worker.barrier().unwrap();
    })
    .unwrap();
}

fn readable(notification: &hectare::Notification, timeout_ms: i32) -> bool {
    let mut poll = libc::pollfd { fd: notification.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
    // SAFETY: one valid descriptor.
    unsafe { libc::poll(&mut poll, 1, timeout_ms) == 1 }
}

#[test]
fn notification_by_descriptor() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>("w", 10).unwrap();
    let mut other = worker.create::<u64>("x", 10).unwrap();
    let notification = owned.area().notify().unwrap();
    assert!(!readable(&notification, 0) && notification.clear().unwrap() == 0);
    for turn in 1..30 {
        fill(&mut owned, &worker, turn);
        worker.sync().unwrap();
        assert!(readable(&notification, 20_000), "turn {turn}");
        assert!(notification.clear().unwrap() >= 1);
        assert!(!readable(&notification, 0));
    }
    fill(&mut other, &worker, 1);
    worker.sync().unwrap();
    assert!(!readable(&notification, 30), "another area's version");
    drop(notification);
    let again = owned.area().notify().unwrap();
    fill(&mut owned, &worker, 99);
    worker.sync().unwrap();
    assert!(readable(&again, 20_000), "a later subscription works too");
}

/// The bound of stale-synchronous work: every worker writes its clock and publishes it by ticking; whoever
/// returns from the wait sees nobody more than s clocks behind.
#[test]
fn nobody_is_more_than_s_clocks_behind() {
    for staleness in [0u64, 1, 3] {
        let job = Job::builder().reserve(1 << 28).round_timeout(Duration::from_millis(1)).embedded().unwrap();
        let _watch = watch(&job);
        let ahead = AtomicU64::new(0);
        run(&job, 4, |worker| {
            let me = worker.rank();
            let spec = AreaSpec::new(format!("{me}")).copies(5);
            let mut mine = worker.create::<u64>(spec, 8).unwrap();
            worker.barrier().unwrap();
            let all: Vec<Area<u64>> = (0..4).map(|rank| worker.attach(&format!("{rank}")).unwrap()).collect();
            let mut random = Random(me.into());
            let start = worker.clock();
            assert_eq!(start, 1);
            for step in 1..=150 {
                fill(&mut mine, worker, step);
                if random.below(30) == 0 {
                    std::thread::sleep(Duration::from_millis(3)); // becomes a straggler
                }
                let clock = worker.tick().unwrap();
                assert_eq!(clock, start + step);
                if random.below(4) == 0 {
                    std::thread::sleep(Duration::from_micros(1500)); // ticked, and not published yet
                }
                if random.below(3) == 0 {
                    worker.sync().unwrap();
                }
                worker.wait_clocks(staleness).unwrap();
                for (rank, area) in all.iter().enumerate() {
                    let seen = uniform(area.read(worker).unwrap());
                    assert!(
                        seen + staleness >= step,
                        "worker {rank} at {seen}, {me} at {step}, s {staleness}"
                    );
                    if seen > step {
                        ahead.fetch_add(1, SeqCst);
                    }
                }
            }
            worker.leave_clocks();
            worker.wait_clocks(0).unwrap();
        })
        .unwrap();
    }
}

#[test]
fn workers_outside_of_the_clocks_are_not_waited_for() {
    let job = patient_job();
    let _watch = watch(&job);
    let done = AtomicBool::new(false);
    run(&job, 2, |worker| {
        if worker.rank() == 1 {
            worker.leave_clocks();
            serve_until(worker, "the other", |_| done.load(SeqCst));
            worker.rejoin_clocks().unwrap();
            assert!(worker.clock() >= 1);
            worker.barrier().unwrap();
            return;
        }
        // The other's leave counts from its next round on.
        for _ in 0..100 {
            worker.tick().unwrap();
            worker.wait_clocks_within(0, LONG).unwrap();
        }
        assert!(worker.clock() >= 100);
        done.store(true, SeqCst);
        worker.barrier().unwrap();
    })
    .unwrap();
}

#[test]
fn the_clock_of_one_area() {
    let job = patient_job();
    let _watch = watch(&job);
    let done = AtomicBool::new(false);
    run(&job, 2, |worker| {
        let me = worker.rank();
        let mut mine = worker.create::<u64>(AreaSpec::new(format!("{me}")).copies(2), 10).unwrap();
        worker.barrier().unwrap();
        let theirs = worker.attach::<u64>(&format!("{}", 1 - me)).unwrap();
        for step in 1..100 {
            fill(&mut mine, worker, step);
            worker.tick().unwrap();
            worker.wait_clock_of(&theirs, 2, LONG).unwrap();
            let seen = uniform(theirs.read(worker).unwrap());
            assert!(seen + 2 >= step, "{seen} at step {step}");
        }
        worker.barrier().unwrap();
        if me == 0 {
            for _ in 0..5 {
                worker.tick().unwrap();
            }
            let late = worker.wait_clock_of(&theirs, 0, Duration::from_millis(5)).unwrap_err();
            assert!(late.to_string().contains("owned by worker 1"), "{late}");
            let late = worker.wait_clocks_within(0, Duration::from_millis(5)).unwrap_err();
            assert!(late.to_string().contains("worker 1 (process"), "{late}");
            worker.leave_clocks();
            done.store(true, SeqCst);
        }
        serve_until(worker, "the other", |_| done.load(SeqCst));
    })
    .unwrap();
}
