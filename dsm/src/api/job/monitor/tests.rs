use super::*;
use crate::{AreaSpec, Job};
use std::os::fd::AsRawFd;

fn monitor(job: &Job) -> Monitor {
    job.monitor().unwrap()
}

fn scribble(job: &Job, bytes: &[u8], at: u64) {
    let length = bytes.len();
    // SAFETY: `bytes` is readable for its length. The job has no views, and nobody uses it any more.
    let put = unsafe {
        libc::pwrite(job.descriptor().as_raw_fd(), bytes.as_ptr().cast(), length, at as libc::off_t)
    };
    assert_eq!(put, length as isize);
}

#[test]
fn it_sees_what_the_job_says_of_itself() {
    // Nobody is late, however long a busy machine holds a worker up.
    let job = Job::builder().round_timeout(Duration::from_secs(120)).embedded().unwrap();
    let before = monitor(&job).snapshot(9).unwrap();
    assert_eq!((before.workers.len(), before.areas.len(), before.waits), (0, 0, false));
    let both = std::sync::Barrier::new(2);
    job.run(2, |worker| {
        let mut area = worker.create::<f32>(format!("part/{}", worker.rank()), 5000).unwrap();
        for turn in 0..3 {
            area.write(worker).unwrap().fill(turn as f32);
            worker.barrier().unwrap();
        }
        area.write(worker).unwrap().set(0, 9.0);
        both.wait();
        let snapshot = monitor(&job).snapshot(9).unwrap();
        both.wait();
        check(&snapshot, worker.rank());
        assert_eq!(monitor(&job).snapshot(0).unwrap().areas_omitted, 2);
    })
    .unwrap();
    let snapshot = monitor(&job).snapshot(9).unwrap();
    assert_eq!(snapshot.stats, job.stats().unwrap());
    assert_eq!(snapshot.stats.published, 6);
    assert!(snapshot.stats.copied_bytes >= 6 * 20_000, "{snapshot:?}");
    assert_eq!(snapshot.areas.iter().map(|area| area.owner).collect::<Vec<_>>(), [None, None]);
}

/// Checks a snapshot while both workers are there and both areas have something to publish.
fn check(snapshot: &Snapshot, rank: Rank) {
    assert_eq!(snapshot.workers.len(), 2);
    let me = &snapshot.workers[rank as usize];
    assert_eq!((me.rank, me.pid, me.state), (rank, std::process::id(), WorkerState::Live));
    assert!(me.rounds >= 3 && me.late == 0, "{me:?}");
    let name = format!("part/{rank}");
    let area = snapshot.areas.iter().find(|area| area.name == name).unwrap();
    assert_eq!((area.owner, area.len, area.bytes, area.dirty), (Some(rank), 5000, 20_000, true));
    assert_eq!(area.version.unwrap().counter, 3);
    assert!(area.element.starts_with("f32") && area.age.unwrap() < Duration::from_secs(600), "{area:?}");
}

#[test]
fn a_late_worker_is_named() {
    let job = Job::builder().round_timeout(Duration::from_millis(5)).embedded().unwrap();
    let (mut one, hold) = (job.worker().unwrap(), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let _two = job.worker().unwrap();
            hold.wait();
            hold.wait();
        });
        hold.wait();
        let mut area = one.create::<u8>(AreaSpec::new("a"), 10).unwrap();
        area.write(&one).unwrap().set(0, 1);
        assert_eq!(one.sync().unwrap().abandoned, 1);
        let snapshot = monitor(&job).snapshot(9).unwrap();
        assert_eq!((snapshot.workers[1].state, snapshot.workers[1].late), (WorkerState::Straggler, 1));
        assert_eq!((snapshot.workers[0].abandoned, snapshot.stats.late, snapshot.stats.abandoned), (1, 1, 1));
        hold.wait();
    });
    assert_eq!(job.stats().unwrap().late, 1, "the counter stays when the worker has left");
}

#[test]
fn refusals_are_counted() {
    let job = Job::builder().max_workers(1).max_areas(1).max_observers(1).pins_per_observer(1);
    let job = job.reserve(1 << 20).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let owned = worker.create::<u8>("a", 10).unwrap();
    let area = owned.area();
    assert!(std::thread::scope(|scope| scope.spawn(|| job.worker().map(drop)).join().unwrap()).is_err());
    assert!(worker.create::<u8>("b", 1).is_err() && worker.create::<u8>("c", 8 << 20).is_err());
    assert!(worker.claim::<u8>("a").is_err());
    let observer = job.observer().unwrap();
    assert!(std::thread::scope(|scope| scope.spawn(|| job.observer().map(drop)).join().unwrap()).is_err());
    let pin = observer.read(&area).unwrap();
    assert!(observer.read(&area).is_err());
    drop(pin);
    let stats = job.stats().unwrap();
    let refused = [
        stats.refused_workers,
        stats.refused_areas,
        stats.refused_claims,
        stats.refused_handovers,
        stats.refused_observers,
        stats.refused_pins,
    ];
    assert_eq!(refused, [1, 2, 1, 0, 1, 1]);
}

#[test]
fn rubbish_makes_the_numbers_wrong_and_nothing_else() {
    let job = Job::builder().reserve(1 << 20).max_workers(4).max_areas(64).embedded().unwrap();
    let monitor = monitor(&job);
    let end = monitor.tables.map.heap;
    let mut state = 1u64;
    for _ in 0..20 {
        let bytes: Vec<u8> = (0..end)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 56) as u8
            })
            .collect();
        scribble(&job, &bytes, 0);
        let snapshot = monitor.snapshot(1000).unwrap();
        assert!(snapshot.workers.len() <= 4 && snapshot.areas.len() <= 64);
    }
    // Nobody makes room for what it says, either: where the tables are was asked once.
    scribble(&job, &vec![0xff; end as usize], 0);
    let snapshot = monitor.snapshot(1000).unwrap();
    assert!(snapshot.workers.len() <= 4 && snapshot.areas.len() + snapshot.areas_omitted <= 64);
    scribble(&job, &vec![0; end as usize], 0);
    assert!(monitor.snapshot(1000).unwrap().workers.is_empty());
    std::mem::forget(job);
}

/// The ids of a worker in another PID namespace mean nothing in this one's `/proc`.
#[test]
fn a_worker_of_another_pid_namespace_is_not_taken_for_dead() {
    let job = Job::embedded().unwrap();
    let worker = job.worker().unwrap();
    let record = &job.shared.segment.workers()[worker.rank() as usize];
    let state = || monitor(&job).snapshot(0).unwrap().workers[0].state;
    assert_eq!(state(), WorkerState::Live);
    // No process has this id.
    let pid = record.pid.swap(u32::MAX >> 1, Ordering::Relaxed);
    assert_eq!(state(), WorkerState::Dead);
    let own = record.namespace.swap(1, Ordering::Relaxed);
    assert_eq!(state(), WorkerState::Live);
    record.namespace.store(own, Ordering::Relaxed);
    record.pid.store(pid, Ordering::Relaxed);
    assert!(own != 0 && state() == WorkerState::Live);
}
