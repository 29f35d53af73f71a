//! Joining, leaving and the return of dead workers' slots, with processes that die or stand still in the middle.
#![cfg(feature = "fault-points")]
use crate::common::*;
use hectare::{AreaSpec, Error, Job, WorkerState, fault};
use std::time::Duration;

fn small_job(workers: u32) -> Job {
    let timeout = Duration::from_millis(2);
    Job::builder().reserve(1 << 26).round_timeout(timeout).max_workers(workers).embedded().unwrap()
}

/// Joins from a thread of its own and leaves again.
fn join_and_leave(job: &Job) -> Result<u32, Error> {
    std::thread::scope(|scope| scope.spawn(|| job.worker().map(|worker| worker.rank())).join().unwrap())
}

/// All who were in a round die in its middle, and so does the process that joins next and begins to finish it.
/// A straggler that comes back does not have to wait for another to join.
#[test]
fn a_reaper_that_is_killed() {
    const NAME: &str = "a_reaper_that_is_killed";
    if let Some((role, job)) = role() {
        let (who, points) = role.split_once(' ').unwrap();
        let points = points.parse().unwrap();
        if who == "reaper" {
            fault::die_after(points);
            job.worker().unwrap();
            return;
        }
        let mut worker = job.worker().unwrap();
        let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(2), 5000).unwrap();
        fill(&mut owned, &worker, 1);
        worker.sync().unwrap();
        fault::die_after(points);
        for turn in 2.. {
            fill(&mut owned, &worker, turn);
            worker.sync().unwrap();
        }
    }
    let mut killed = 0;
    for victim in (2..24).step_by(6) {
        for reaper in 0..14 {
            let job = small_job(3);
            let _watch = watch(&job);
            let mut worker = job.worker().unwrap();
            // The victim's rounds go on without this worker.
            assert!(!spawn(NAME, &format!("victim {victim}"), &job).wait());
            killed += u32::from(!spawn(NAME, &format!("reaper {reaper}"), &job).wait());
            worker.sync().unwrap();
            let claimed = worker.claim::<u64>("w").unwrap();
            let last = claimed.loss.last_version.unwrap().counter;
            let mut owned = claimed.owned;
            assert_eq!(uniform(owned.read(&worker).unwrap()), last);
            fill(&mut owned, &worker, last + 1);
            worker.barrier().unwrap();
            assert_eq!(uniform(owned.area().read(&worker).unwrap()), last + 1);
            // Every slot but this worker's is free again.
            assert_eq!(join_and_leave(&job).unwrap(), 1);
            assert_eq!(job.workers().unwrap().len(), 1);
        }
    }
    assert!(killed > 10, "{killed}");
}

/// A process that stands still at any step of joining keeps nobody else from joining, leaving, and publishing.
#[test]
fn others_join_past_one_that_stands_still() {
    const NAME: &str = "others_join_past_one_that_stands_still";
    if let Some((role, job)) = role() {
        fault::stop_after(role.parse().unwrap());
        job.worker().unwrap();
        return;
    }
    let mut joining = 0;
    for points in 0..16 {
        let job = small_job(4);
        let _watch = watch(&job);
        let mut worker = job.worker().unwrap();
        let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(2), 100).unwrap();
        let mut child = spawn(NAME, &points.to_string(), &job);
        serve_until(&mut worker, "the standstill", |_| child.has_stopped());
        let changing = |state| matches!(state, WorkerState::Changing);
        joining += u32::from(job.workers().unwrap().iter().any(|info| changing(info.state)));
        for turn in 1..4 {
            fill(&mut owned, &worker, turn);
            worker.sync().unwrap();
            assert_eq!(uniform(owned.area().read(&worker).unwrap()), turn);
            std::thread::scope(|scope| {
                let two: Vec<_> = (0..2).map(|_| scope.spawn(|| job.worker().map(drop))).collect();
                serve_until(&mut worker, "the others", |_| two.iter().all(|one| one.is_finished()));
                two.into_iter().for_each(|one| one.join().unwrap().unwrap());
            });
        }
        child.signal(libc::SIGCONT);
        serve_until(&mut worker, "its end", |_| child.has_ended());
        child.finish();
        assert_eq!(job.workers().unwrap().len(), 1, "point {points}");
    }
    assert!(joining > 0);
}

/// One that needs the slot of a dead worker is told who keeps it from being freed.
#[test]
fn a_reaper_that_stands_still_is_named() {
    const NAME: &str = "a_reaper_that_stands_still_is_named";
    if let Some((role, job)) = role() {
        if role == "reaper" {
            // The first step: just after it has become the one to free slots.
            fault::stop_after(0);
        }
        std::mem::forget(job.worker().unwrap());
        // The worker is dead with its process.
        std::process::exit(0);
    }
    let job = small_job(2);
    let _watch = watch(&job);
    let worker = job.worker().unwrap();
    spawn(NAME, "victim", &job).finish();
    let reaper = spawn(NAME, "reaper", &job);
    until("the standstill", || reaper.has_stopped());
    match join_and_leave(&job) {
        Err(error @ Error::TimedOut { .. }) => {
            assert!(error.to_string().contains(&format!("process {}", reaper.pid())), "{error}");
        }
        other => panic!("{other:?}"),
    }
    // Who needs no slot of the dead is not kept waiting.
    let taken = std::thread::scope(|scope| scope.spawn(|| job.worker_at(0).map(drop)).join().unwrap());
    assert!(matches!(taken, Err(Error::RankTaken { rank: 0, .. })), "{taken:?}");
    drop(reaper);
    assert_eq!(join_and_leave(&job).unwrap(), 1);
    drop(worker);
}

/// Killed at every step of joining and leaving: the slot is given to the next.
#[test]
fn killed_while_joining_or_leaving() {
    const NAME: &str = "killed_while_joining_or_leaving";
    if let Some((role, job)) = role() {
        fault::die_after(role.parse().unwrap());
        drop(job.worker().unwrap());
        return;
    }
    let mut killed = 0;
    let job = small_job(2);
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    for points in 0..30 {
        let mut child = spawn(NAME, &points.to_string(), &job);
        serve_until(&mut worker, "its end", |_| child.has_ended());
        killed += u32::from(!child.wait());
        assert_eq!(join_and_leave(&job).unwrap(), 1, "point {points}");
        assert_eq!(job.workers().unwrap().len(), 1, "point {points}");
        worker.barrier().unwrap();
    }
    assert!(killed > 10, "{killed}");
}
