//! Waits that keep their limits while another process stands still or dies in the middle of creating an area, or holds
//! a round open; and what such a process leaves behind.
#![cfg(feature = "fault-points")]
use crate::common::*;
use hectare::{AreaSpec, Error, Job, fault};
use std::time::{Duration, Instant};

const LEN: usize = 100_000;
const SHORT: Duration = Duration::from_millis(20);

fn job() -> Job {
    Job::builder().reserve(1 << 28).max_workers(4).round_timeout(Duration::from_millis(5)).embedded().unwrap()
}

/// Creates `big` on the way to fault point `points`, fills it, and serves until it is told to end.
fn creator(job: &Job, arm: fn(u32), points: u32) {
    let mut worker = job.worker().unwrap();
    worker.leave_clocks();
    arm(points);
    let mut big = worker.create::<u64>(AreaSpec::new("big").copies(2), LEN).unwrap();
    fill(&mut big, &worker, 7);
    worker.sync().unwrap();
    serve_until(&mut worker, "the end", |worker| worker.attach_here::<u8>("end").is_ok());
    assert_eq!(uniform(big.read(&worker).unwrap()), 7);
}

#[test]
fn nobody_waits_for_one_who_stands_still_while_it_creates() {
    const NAME: &str = "nobody_waits_for_one_who_stands_still_while_it_creates";
    if let Some((role, job)) = role() {
        return creator(&job, fault::stop_after, role.parse().unwrap());
    }
    let (mut refused, mut held, mut created) = (0, 0, 0);
    // Taking a slot, telling the agent, before and after its memory, and with the area live: later ones are those of a round.
    for points in 0..5 {
        let job = job();
        let _watch = watch(&job);
        let mut worker = job.worker().unwrap();
        let mut other = worker.create::<u64>("other", 10).unwrap();
        fill(&mut other, &worker, 3);
        worker.sync().unwrap();
        let child = spawn(NAME, &points.to_string(), &job);
        until("the standstill", || child.has_stopped());
        let process = format!("process {}", child.pid());

        // Whoever looks an area up does not meet the one who stands still.
        worker.attach_within::<u64>("other", SHORT).unwrap();
        job.attach_within::<u64>("other", SHORT).unwrap();
        let never = worker.attach_within::<u64>("never", SHORT).unwrap_err();
        assert!(matches!(never, Error::TimedOut { .. }), "point {points}: {never}");
        assert_eq!(job.observer().unwrap().read_bytes("other", None).unwrap().len, 10);
        assert!(job.areas().unwrap().iter().any(|info| info.name == "other"));
        assert!(matches!(worker.claim::<u64>("other"), Err(Error::OwnerAlive { .. })));
        match worker.attach_within::<u64>("big", SHORT) {
            Ok(big) => assert_eq!(big.len(), LEN),
            Err(Error::TimedOut { missing, .. }) => {
                assert!(missing.contains(&process), "point {points}: {missing}");
            }
            Err(error) => panic!("point {points}: {error}"),
        }
        // Who creates another gets it, or hears who holds the directory.
        match worker.create::<u64>("mine", 100) {
            Ok(mut mine) => {
                created += 1;
                fill(&mut mine, &worker, 5);
                match worker.create::<u64>("big", 10) {
                    Err(Error::NameTaken { holder, .. }) if holder.contains(&process) => refused += 1,
                    Err(Error::NameTaken { .. }) => assert!(worker.attach::<u64>("big").is_ok()),
                    other => panic!("point {points}: {other:?}"),
                }
                other.delete(&mut worker).unwrap();
                assert_eq!(uniform(mine.read(&worker).unwrap()), 5);
                job.free_bytes().unwrap();
            }
            Err(Error::TimedOut { missing, .. }) => {
                assert!(missing.contains(&process) && missing.contains("stopped"), "{missing}");
                held += 1;
            }
            Err(error) => panic!("point {points}: {error}"),
        }
        child.signal(libc::SIGCONT);
        let big = worker.attach_within::<u64>("big", LONG).unwrap();
        serve_until(&mut worker, "its values", |worker| uniform(big.read(worker).unwrap()) == 7);
        let _end = worker.create::<u8>("end", 1).unwrap();
        let mut child = child;
        serve_until(&mut worker, "its end", |_| child.has_ended());
        child.finish();
    }
    assert!(held > 0 && created > 1 && refused > 0, "{held} held, {created} created, {refused} refused");
}

#[test]
fn a_creator_that_dies_leaves_nothing() {
    const NAME: &str = "a_creator_that_dies_leaves_nothing";
    if let Some((role, job)) = role() {
        return creator(&job, fault::die_after, role.parse().unwrap());
    }
    for points in 0..5 {
        let job = job();
        let _watch = watch(&job);
        let mut worker = job.worker().unwrap();
        let (free, resident) = (job.free_bytes().unwrap(), job.resident_bytes().unwrap());
        let mut child = spawn(NAME, &points.to_string(), &job);
        serve_until(&mut worker, "its death", |_| child.has_ended());
        // Nobody creates anything: the rounds of the others find it.
        if worker.attach::<u64>("big").is_ok() {
            job.delete("big").unwrap();
        }
        for _ in 0..3 {
            worker.sync().unwrap();
        }
        let extra = job.resident_bytes().unwrap().saturating_sub(resident);
        assert!(extra < 256 << 10, "point {points}: {extra} bytes stayed");
        assert_eq!(job.free_bytes().unwrap(), free, "point {points}");
        let mut big = worker.create::<u64>("big", LEN).unwrap();
        assert_eq!(uniform(big.read(&worker).unwrap()), 0);
        fill(&mut big, &worker, 1);
    }
}

/// One process fills an area, a second dies with the directory: who repairs it leaves the first what it has.
#[test]
fn repair_leaves_a_living_creator_its_memory() {
    const NAME: &str = "repair_leaves_a_living_creator_its_memory";
    match role() {
        Some((role, job)) if role == "stops" => return creator(&job, fault::stop_after, 2),
        Some((_, job)) => {
            let mut worker = job.worker().unwrap();
            fault::die_after(0);
            worker.create::<u64>("doomed", LEN).unwrap();
            unreachable!("it was to die with the directory");
        }
        None => {}
    }
    let job = job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let free = job.free_bytes().unwrap();
    let mut stopped = spawn(NAME, "stops", &job);
    until("the standstill", || stopped.has_stopped());
    let mut dying = spawn(NAME, "dies", &job);
    serve_until(&mut worker, "its death", |_| dying.has_ended());
    let mut mine: Vec<_> = (0..8)
        .map(|number| {
            let mut area = worker.create::<u64>(format!("mine/{number}"), LEN).unwrap();
            fill(&mut area, &worker, 100 + number);
            area
        })
        .collect();
    assert!(matches!(worker.attach::<u64>("doomed"), Err(Error::NoSuchArea { .. })));
    stopped.signal(libc::SIGCONT);
    let big = worker.attach_within::<u64>("big", LONG).unwrap();
    serve_until(&mut worker, "its values", |worker| uniform(big.read(worker).unwrap()) == 7);
    for (number, area) in mine.iter().enumerate() {
        assert_eq!(uniform(area.read(&worker).unwrap()), 100 + number as u64);
    }
    let end = worker.create::<u8>("end", 1).unwrap();
    serve_until(&mut worker, "its end", |_| stopped.has_ended());
    stopped.finish();
    for area in mine.drain(..) {
        area.delete(&mut worker).unwrap();
    }
    end.delete(&mut worker).unwrap();
    job.delete("big").unwrap();
    for _ in 0..3 {
        worker.sync().unwrap();
    }
    assert_eq!(job.free_bytes().unwrap(), free);
}

/// A round is held open by a process that stands still, for as long as the job's round timeout: two minutes. Those who wait
/// with a limit of their own do not stay that long.
#[test]
fn waits_with_a_limit_do_not_share_the_patience_of_rounds() {
    const NAME: &str = "waits_with_a_limit_do_not_share_the_patience_of_rounds";
    if let Some((_, job)) = role() {
        let mut worker = job.worker().unwrap();
        let _there = worker.create::<u8>("there", 1).unwrap();
        // SAFETY: a plain system call.
        unsafe { libc::raise(libc::SIGSTOP) };
        return;
    }
    let kept = LONG / 2;
    for what in ["take", "recall", "give"] {
        let job = Job::builder().reserve(1 << 26).round_timeout(LONG).embedded().unwrap();
        let _watch = watch(&job);
        let mut worker = job.worker().unwrap();
        let held = worker.create::<u64>(AreaSpec::new("held").copies(1), 10).unwrap();
        let mut child = spawn(NAME, what, &job);
        worker.attach_within::<u8>("there", LONG).unwrap();
        until("the standstill", || child.has_stopped());
        let since = Instant::now();
        std::thread::scope(|scope| {
            let opener = (what == "take").then(|| {
                scope.spawn(|| {
                    let mut other = job.worker().unwrap();
                    other.sync().unwrap();
                })
            });
            match what {
                "take" => {
                    until("an open round", || job.stats().unwrap().abandoned > 0 || is_open(&job));
                    let other = worker.attach_within::<u8>("there", LONG).unwrap();
                    let late = other.take_within(&mut worker, SHORT);
                    assert!(matches!(late, Err(Error::TimedOut { .. })), "{late:?}");
                }
                "recall" => {
                    let lent = held.lend(&worker).unwrap();
                    let late = lent.recall(&mut worker).unwrap().finish(&mut worker);
                    assert!(matches!(late, Err(Error::TimedOut { .. })), "{late:?}");
                }
                _ => {
                    // The one copy is pinned by the worker that stands still.
                    let mut held = held;
                    fill(&mut held, &worker, 1);
                    let late = held.give_published(&mut worker, 1).unwrap_err();
                    assert!(matches!(late.error, Error::TimedOut { .. }), "{late:?}");
                }
            }
            assert!(since.elapsed() < kept, "{what} took {:?}", since.elapsed());
            assert!(child.has_stopped());
            if let Some(opener) = opener {
                serve_until(&mut worker, "the other's round", |_| opener.is_finished());
            }
        });
        child.kill();
    }
}

fn is_open(job: &Job) -> bool {
    // SAFETY: it is only read.
    let memory = unsafe { job.descriptor() }.try_clone_to_owned().unwrap();
    let monitor = hectare::Monitor::open(memory).unwrap();
    monitor.snapshot(0).unwrap().waits
}
