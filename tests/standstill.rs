//! Processes that stand still at every step of a round, under each stall policy, and go on later.
#![cfg(feature = "fault-points")]
use hectare::{AreaSpec, Job, StallPolicy, Stats, Version, Worker, WorkerState, fault};
use std::time::Duration;
mod common;
use common::*;

const LEN: usize = 200_000;

/// Writes `own` and reads `beat` in every round, and stops at the n-th fault point.
fn companion(job: &Job, points: u32) {
    let mut worker = job.worker().unwrap();
    worker.leave_clocks();
    let beat = worker.attach::<u64>("beat").unwrap();
    let mut own = worker.create::<u64>(AreaSpec::new("own").copies(3), LEN).unwrap();
    let mut last = Version::default();
    worker.sync().unwrap();
    fault::stop_after(points);
    while look(&worker, &beat, &mut last) != u64::MAX {
        let next = own.area().newest_version().unwrap().counter + 1;
        fill(&mut own, &worker, next);
        worker.sync().unwrap();
    }
}

/// What an area shows: whole, as numbered, never going back.
fn look(worker: &Worker, area: &hectare::Area<u64>, last: &mut Version) -> u64 {
    let version = area.version(worker).unwrap();
    let seen = uniform(area.read(worker).unwrap());
    assert!(version >= *last, "{version} after {last}");
    assert!(seen == version.counter || seen == u64::MAX, "{seen} at {version}");
    *last = version;
    seen
}

/// Rounds with a companion that stands still at fault point `points` for as long as `stopped`.
fn stand_still(name: &str, policy: StallPolicy, points: u32, stopped: Duration) -> Stats {
    let patience = Duration::from_millis(5);
    let job = Job::builder().reserve(1 << 28).patience(patience).stall_policy(policy).embedded().unwrap();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut beat = worker.create::<u64>(AreaSpec::new("beat").copies(3), LEN).unwrap();
    let mut child = spawn(name, &points.to_string(), &job);
    let own = worker.attach_within::<u64>("own", LONG).unwrap();
    let area = beat.area();
    let mut last = [Version::default(); 2];
    let mut step = |worker: &mut Worker| {
        let next = area.newest_version().unwrap().counter + 1;
        fill(&mut beat, worker, next);
        worker.sync().unwrap();
        look(worker, &area, &mut last[0]);
        look(worker, &own, &mut last[1]);
    };
    std::thread::scope(|scope| {
        let child = &child;
        let resume = scope.spawn(move || {
            until("the standstill", || child.has_stopped());
            std::thread::sleep(stopped);
            child.signal(libc::SIGCONT);
        });
        while !resume.is_finished() {
            step(&mut worker);
        }
    });
    for _ in 0..5 {
        step(&mut worker);
    }
    serve_until(&mut worker, "its return", |_| {
        child.has_ended() || job.workers().unwrap().iter().all(|info| info.state == WorkerState::Live)
    });
    fill(&mut beat, &worker, u64::MAX);
    while worker.sync().unwrap().put_off > 0 {}
    if job.stats().unwrap().kills == 0 {
        // It may have to be asked for as long as it stands between rounds.
        serve_until(&mut worker, "its end", |_| child.has_ended());
        assert!(child.wait() || job.stats().unwrap().kills > 0);
    }
    let claimed = worker.claim::<u64>("own").unwrap();
    assert_eq!(uniform(claimed.owned.read(&worker).unwrap()), claimed.loss.last_version.unwrap().counter);
    job.stats().unwrap()
}

#[test]
fn rounds_wait_by_default() {
    if let Some((role, job)) = role() {
        return companion(&job, role.parse().unwrap());
    }
    for points in (0..45).step_by(4) {
        let stopped = Duration::from_millis(40);
        let stats = stand_still("rounds_wait_by_default", StallPolicy::Wait, points, stopped);
        assert_eq!((stats.kills, stats.pinned_copies, stats.deaths), (0, 0, 0), "point {points}");
    }
}

#[test]
fn copies_are_pinned_and_actors_passed_over() {
    if let Some((role, job)) = role() {
        return companion(&job, role.parse().unwrap());
    }
    let (mut pinned, mut passed) = (0, 0);
    // Where the companion gets a chunk to copy or runs the round, and whether somebody else waits for it, is up to
    // chance.
    for points in (0..45).chain((0..45).cycle().take(1000)) {
        if pinned > 0 && passed > 0 && points == 0 {
            break;
        }
        let policy = StallPolicy::Pin { after: Duration::from_millis(4) };
        let stats = stand_still(
            "copies_are_pinned_and_actors_passed_over",
            policy,
            points,
            Duration::from_millis(40),
        );
        assert_eq!((stats.kills, stats.deaths), (0, 0), "point {points}");
        pinned += stats.pinned_copies;
        passed += stats.passed_over;
    }
    assert!(pinned > 0 && passed > 0, "{pinned} copies pinned, {passed} actors passed over");
}

#[test]
fn the_stalled_are_killed() {
    const NAME: &str = "the_stalled_are_killed";
    match role() {
        None => return as_host(NAME),
        Some((role, job)) if role != HOST => return companion(&job, role.parse().unwrap()),
        Some(_) => {}
    }
    let mut kills = 0;
    for points in (1..45).step_by(7) {
        let policy = StallPolicy::Kill { after: Duration::from_millis(400) };
        let stats = stand_still(NAME, policy, points, Duration::from_millis(1000));
        assert_eq!((stats.pinned_copies, stats.deaths), (0, stats.kills), "point {points}");
        kills += stats.kills;
    }
    assert!(kills > 0);
}
