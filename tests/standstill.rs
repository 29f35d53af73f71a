//! Processes that stand still at every step of a round, under each stall policy, and go on later.
#![cfg(feature = "fault-points")]
use crate::common::*;
use hectare::{AreaSpec, Job, StallPolicy, Stats, Version, Worker, WorkerState, fault};
use std::time::Duration;

const LEN: usize = 200_000;
/// Areas of a group, with `beat`: small ones, which their owner copies, and a large one, which all copy.
const GROUP: [(&str, usize); 3] = [("group/small", 100), ("group/large", LEN), ("group/last", 5000)];

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

fn grouped(name: &str) -> AreaSpec {
    AreaSpec::new(name).copies(3).group("group")
}

/// Checks that an area's content is whole, belongs to its version, and never goes back.
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
    let timeout = Duration::from_millis(5);
    let job = Job::builder().reserve(1 << 28).round_timeout(timeout).stall_policy(policy).embedded().unwrap();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut beat = worker.create::<u64>(grouped("beat"), LEN).unwrap();
    let mut child = spawn(name, &points.to_string(), &job);
    let mut group = GROUP.map(|(name, len)| worker.create::<u64>(grouped(name), len).unwrap());
    let own = worker.attach_within::<u64>("own", LONG).unwrap();
    let area = beat.area();
    let mut last = [Version::default(); 2];
    let mut turn = 0;
    let mut step = |worker: &mut Worker| {
        let next = area.newest_version().unwrap().counter + 1;
        turn += 1;
        for owned in group.iter_mut().chain([&mut beat]) {
            fill(owned, worker, if owned.name() == "beat" { next } else { turn });
        }
        worker.sync().unwrap();
        let seen = look(worker, &area, &mut last[0]);
        look(worker, &own, &mut last[1]);
        let state = group.each_ref().map(|owned| uniform(owned.area().read(worker).unwrap()));
        let versions = group.each_ref().map(|owned| owned.area().version(worker).unwrap().counter);
        assert_eq!((state, versions), ([state[0]; 3], [seen; 3]), "half a group, in turn {turn}");
        assert!(state[0] == turn || seen < next, "published is what was written last");
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
    while worker.sync().unwrap().postponed > 0 {}
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
        passed += stats.replaced_actors;
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

/// At whatever step a publication stands still, a reader that was left behind reads the version that it read before.
#[test]
fn a_reader_keeps_its_version_at_every_step_of_a_publication() {
    const NAME: &str = "a_reader_keeps_its_version_at_every_step_of_a_publication";
    // With this policy all copies are written in turn, so that each held an older version before.
    const COPIES: u32 = 4;
    if let Some((role, job)) = role() {
        let mut worker = job.worker().unwrap();
        worker.leave_clocks();
        let mut own = worker.create::<u64>(AreaSpec::new("own").copies(COPIES), 5000).unwrap();
        for turn in 1.. {
            fill(&mut own, &worker, turn);
            while worker.sync().unwrap().postponed > 0 {}
            if turn == 2 * u64::from(COPIES) {
                worker.attach_within::<u64>("go", LONG).unwrap();
                fault::stop_after(role.parse().unwrap());
            }
        }
    }
    let mut seen = 0;
    for points in 0..40 {
        let job = Job::builder()
            .reserve(1 << 28)
            .round_timeout(Duration::from_millis(5))
            .stall_policy(StallPolicy::Pin { after: LONG })
            .embedded()
            .unwrap();
        let _watch = watch(&job);
        let mut worker = job.worker().unwrap();
        let child = spawn(NAME, &points.to_string(), &job);
        let own = worker.attach_within::<u64>("own", LONG).unwrap();
        let ready = |worker: &Worker| own.version(worker).unwrap().counter == 2 * u64::from(COPIES);
        serve_until(&mut worker, "the last version that all come for", ready);
        let (version, before) = (own.version(&worker).unwrap(), own.read(&worker).unwrap());
        let value = uniform(before);
        // Creating it may come to a synchronization point, so another worker does.
        std::thread::scope(|scope| {
            scope.spawn(|| drop(job.worker().unwrap().create::<u64>("go", 1).unwrap()));
            until("the standstill", || child.has_stopped());
        });
        let now = own.read(&worker).unwrap();
        assert_eq!((own.version(&worker).unwrap(), uniform(now)), (version, value), "point {points}");
        assert_eq!((before.as_ptr(), uniform(before)), (now.as_ptr(), value), "point {points}");
        seen += u64::from(own.newest_version().unwrap() > version);
    }
    assert!(seen > 0, "nothing was published without the reader");
}
