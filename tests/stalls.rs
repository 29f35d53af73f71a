//! Processes that are stopped (SIGSTOP) and go on (SIGCONT), under each stall policy.
use crate::common::*;
use hectare::{AreaSpec, Job, StallPolicy, Stats, Version, Worker, WorkerState};
use std::time::Duration;

const SHORT: Duration = Duration::from_millis(30);

/// Takes part in rounds and checks what it sees, until it is told to stop.
fn companion(job: &Job) {
    let mut worker = job.worker().unwrap();
    worker.leave_clocks();
    let beat = worker.attach::<u64>("beat").unwrap();
    let mut own = worker.create::<u64>(AreaSpec::new("own").copies(3), 1000).unwrap();
    let mut last = Version::default();
    loop {
        let version = beat.version(&worker).unwrap();
        let view = beat.read(&worker).unwrap();
        let seen = uniform(view);
        assert!(version >= last);
        if seen == u64::MAX {
            return;
        }
        assert_eq!(seen, version.counter);
        last = version;
        fill(&mut own, &worker, seen);
        worker.service().unwrap();
    }
}

/// Beats while a companion is stopped at any moment, round after round; returns how often it was.
fn beat(name: &str, policy: StallPolicy, copies: u32, stops: u64, stopped: Duration) -> Job {
    let job = Job::builder()
        .reserve(1 << 28)
        .round_timeout(Duration::from_millis(5))
        .stall_policy(policy)
        .embedded()
        .unwrap();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    // Large enough that the companion gets chunks to copy.
    let mut beat = worker.create::<u64>(AreaSpec::new("beat").copies(copies), 400_000).unwrap();
    let mut child = spawn(name, "companion", &job);
    worker.wait_for_workers(2, LONG).unwrap();
    let mut turn = 0;
    let mut step = |worker: &mut Worker| {
        // A put-off publication leaves the version where it was.
        turn = beat.area().newest_version().unwrap().counter + 1;
        fill(&mut beat, worker, turn);
        worker.sync().unwrap();
        let version = beat.area().version(worker).unwrap();
        assert_eq!(uniform(beat.area().read(worker).unwrap()), version.counter);
    };
    for stop in 0..stops {
        for _ in 0..stop % 5 + 1 {
            step(&mut worker);
        }
        child.signal(libc::SIGSTOP);
        let resume = std::thread::spawn({
            let pid = child.pid();
            move || {
                std::thread::sleep(stopped);
                // SAFETY: a plain system call; the child is not waited for before this thread is joined.
                unsafe { libc::kill(pid, libc::SIGCONT) };
            }
        });
        for _ in 0..8 {
            step(&mut worker);
        }
        resume.join().unwrap();
        serve_until(&mut worker, "its return", |worker| {
            let job = worker.job();
            let workers = job.workers().unwrap();
            workers.len() < 2 || workers[1].state != WorkerState::Straggler
        });
        // Not whether it has ended: that may take a moment longer.
        if job.stats().unwrap().kills > 0 {
            break;
        }
    }
    if job.stats().unwrap().kills == 0 {
        fill(&mut beat, &worker, u64::MAX);
        while worker.sync().unwrap().postponed > 0 {}
    }
    assert!(child.wait() || job.stats().unwrap().kills > 0);
    drop((beat, worker));
    job
}

#[test]
fn rounds_wait_by_default() {
    if let Some((_, job)) = role() {
        return companion(&job);
    }
    let stats = beat("rounds_wait_by_default", StallPolicy::Wait, 2, 25, SHORT).stats().unwrap();
    assert_eq!((stats.kills, stats.pinned_copies, stats.deaths), (0, 0, 0));
    assert!(stats.late > 0);
}

/// Elements of an area that takes long to copy; those that are `APART` are written and looked at.
const LARGE: usize = 4 << 20;
const APART: usize = 5000;

/// Copies what others publish, until it is told to stop.
fn copier(job: &Job) {
    let mut worker = job.worker().unwrap();
    worker.leave_clocks();
    let _own = worker.create::<u64>("own", 10).unwrap();
    let area = worker.attach::<u64>("large").unwrap();
    while look(area.read(&worker).unwrap()) != u64::MAX {
        worker.service().unwrap();
    }
}

/// The value that all of the elements which are written have.
fn look(view: &[u64]) -> u64 {
    assert!(view.iter().step_by(APART).all(|value| *value == view[0]), "mixed");
    view[0]
}

/// Stops a process while it copies, for as long as `stopped`, again and again until `happened`.
fn stop_a_copier(name: &str, policy: StallPolicy, stopped: Duration, happened: fn(&Stats) -> bool) -> Job {
    let job = Job::builder().reserve(1 << 28).round_timeout(LONG).stall_policy(policy).embedded().unwrap();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut large = worker.create::<u64>(AreaSpec::new("large").copies(3), LARGE).unwrap();
    let area = large.area();
    let mut child = spawn(name, "copier", &job);
    worker.wait_for_workers(2, LONG).unwrap();
    // It may be stopped in its first round, which may be one that it serves while it creates this.
    worker.attach_within::<u64>("own", LONG).unwrap();
    let mut publish = |worker: &mut Worker, value: u64| {
        let mut guard = large.write(worker).unwrap();
        (0..LARGE).step_by(APART).for_each(|at| guard.set(at, value));
        large.log(worker, 0..LARGE).unwrap();
        worker.sync().unwrap()
    };
    let stats = || job.stats().unwrap();
    for value in 1.. {
        assert!(value < 500, "stopped in vain: {:?}", stats());
        let before = stats().chunks;
        std::thread::scope(|scope| {
            let sniper = scope.spawn(|| {
                // A chunk is done, and others are being copied.
                while stats().chunks == before {
                    std::hint::spin_loop();
                }
                child.signal(libc::SIGSTOP);
                std::thread::sleep(stopped);
                child.signal(libc::SIGCONT);
            });
            let synced = publish(&mut worker, value);
            let seen = look(area.read(&worker).unwrap());
            assert_eq!(seen == value, synced.postponed == 0, "{seen} in turn {value}");
            sniper.join().unwrap();
        });
        if happened(&stats()) {
            println!("stopped {value} times");
            break;
        }
    }
    // Areas that were postponed come when the companion has moved on.
    while publish(&mut worker, u64::MAX).postponed > 0 {}
    assert_eq!(look(area.read(&worker).unwrap()), u64::MAX);
    if stats().kills == 0 {
        serve_until(&mut worker, "its end", |_| child.has_ended());
        child.finish();
    }
    drop((large, worker));
    job
}

#[test]
fn a_copy_is_pinned() {
    const NAME: &str = "a_copy_is_pinned";
    match role() {
        Some((role, job)) if role == "copier" => return copier(&job),
        Some((_, job)) => return companion(&job),
        None => {}
    }
    let policy = StallPolicy::Pin { after: Duration::from_millis(3) };
    let stats = beat(NAME, policy, 3, 25, SHORT).stats().unwrap();
    assert_eq!((stats.kills, stats.deaths), (0, 0));
    let stats = stop_a_copier(NAME, policy, SHORT, |stats| stats.pinned_copies > 0).stats().unwrap();
    assert_eq!((stats.kills, stats.deaths), (0, 0));
}

#[test]
fn a_stalled_process_is_killed() {
    const NAME: &str = "a_stalled_process_is_killed";
    match role() {
        None => return as_host(NAME),
        Some((role, job)) if role == "copier" => return copier(&job),
        Some((role, job)) if role != HOST => return companion(&job),
        Some(_) => {}
    }
    let policy = StallPolicy::Kill { after: Duration::from_millis(400) };
    let stopped = Duration::from_millis(1000);
    let stats = beat(NAME, policy, 2, 3, stopped).stats().unwrap();
    assert_eq!((stats.pinned_copies, stats.deaths), (0, stats.kills));
    let job = stop_a_copier(NAME, policy, stopped, |stats| stats.kills > 0);
    let stats = job.stats().unwrap();
    assert_eq!((stats.kills, stats.pinned_copies, stats.deaths), (1, 0, 1));
    let mut worker = job.worker().unwrap();
    worker.claim::<u64>("own").unwrap();
}
