//! Stragglers: old versions stay readable, bit for bit, and nobody is blocked.
use crate::common::*;
use hectare::{Area, AreaSpec, Job, StallPolicy, Worker};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

fn impatient_job() -> Job {
    Job::builder().reserve(1 << 28).round_timeout(Duration::from_millis(10)).embedded().unwrap()
}

/// Writes at random places and remembers what every version was.
fn churn(worker: &mut Worker, owned: &mut hectare::Owned<u64>, random: &mut Random) -> Vec<u64> {
    for _ in 0..1 + random.below(20) {
        let (at, value) = (random.below(owned.len()), random.next());
        owned.write(worker).unwrap().set(at, value);
    }
    if random.below(10) == 0 {
        let start = random.below(owned.len() / 2);
        let end = start + owned.len() / 2;
        owned.write(worker).unwrap().range_mut(start..end).fill(random.next());
    }
    owned.read(worker).unwrap().to_vec()
}

#[test]
fn a_held_back_worker_keeps_its_version() {
    for copies in [2, 3] {
        let job = impatient_job();
        let _watch = watch(&job);
        let (held, free) = (AtomicBool::new(false), AtomicBool::new(false));
        run(&job, 2, |worker| {
            if worker.rank() == 0 {
                let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(copies), 20_011).unwrap();
                worker.barrier().unwrap();
                let mut random = Random(3);
                churn(worker, &mut owned, &mut random);
                worker.barrier().unwrap();
                until("the other holds a view", || held.load(SeqCst));
                for _ in 0..100 {
                    let model = churn(worker, &mut owned, &mut random);
                    let synced = worker.sync().unwrap();
                    assert_eq!(synced.postponed, 0);
                    assert_eq!(owned.area().read(worker).unwrap(), model);
                }
                free.store(true, SeqCst);
                churn(worker, &mut owned, &mut random);
                worker.barrier().unwrap();
                worker.barrier().unwrap();
                assert_eq!(worker.job().stats().unwrap().postponed, 0);
            } else {
                worker.barrier().unwrap();
                worker.barrier().unwrap();
                let area = worker.attach::<u64>("w").unwrap();
                let view = area.read(worker).unwrap();
                let before = (view.to_vec(), area.version(worker).unwrap());
                held.store(true, SeqCst);
                while !free.load(SeqCst) {
                    assert_eq!((area.read(worker).unwrap(), view), (&before.0[..], &before.0[..]));
                    assert_eq!(area.version(worker).unwrap(), before.1);
                    std::thread::yield_now();
                }
                assert!(area.newest_version().unwrap() > before.1);
                worker.barrier().unwrap();
                assert_eq!(area.version(worker).unwrap(), area.newest_version().unwrap());
                worker.barrier().unwrap();
            }
        })
        .unwrap();
    }
}

#[test]
fn with_one_copy_publication_is_put_off_and_counted() {
    let job = impatient_job();
    let _watch = watch(&job);
    let (held, free) = (AtomicBool::new(false), AtomicBool::new(false));
    run(&job, 2, |worker| {
        if worker.rank() == 0 {
            let mut owned = worker.create::<u64>("w", 100).unwrap();
            fill(&mut owned, worker, 1);
            worker.barrier().unwrap();
            until("the other holds a view", || held.load(SeqCst));
            for turn in 2..20 {
                fill(&mut owned, worker, turn);
                assert_eq!(worker.sync().unwrap().postponed, 1);
                assert_eq!(uniform(owned.area().read(worker).unwrap()), 1);
            }
            assert!(owned.area().postponed() >= 18 && worker.job().stats().unwrap().postponed >= 18);
            free.store(true, SeqCst);
            worker.barrier().unwrap();
            assert_eq!(uniform(owned.area().read(worker).unwrap()), 19);
        } else {
            worker.barrier().unwrap();
            let area = worker.attach::<u64>("w").unwrap();
            let view = area.read(worker).unwrap();
            held.store(true, SeqCst);
            until("release", || free.load(SeqCst));
            assert_eq!(uniform(view), 1);
            worker.barrier().unwrap();
            assert_eq!(uniform(area.read(worker).unwrap()), 19, "published after all");
        }
    })
    .unwrap();
}

#[test]
fn two_stragglers_at_different_versions() {
    let job = impatient_job();
    let _watch = watch(&job);
    let holding = AtomicU64::new(0);
    let free = AtomicBool::new(false);
    run(&job, 3, |worker| {
        let me = worker.rank();
        if me == 0 {
            let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(3), 5000).unwrap();
            fill(&mut owned, worker, 1);
            worker.barrier().unwrap();
            until("the first stops", || holding.load(SeqCst) == 1);
            fill(&mut owned, worker, 2);
            worker.sync().unwrap();
            until("the second stops", || holding.load(SeqCst) == 2);
            for turn in 3..60 {
                fill(&mut owned, worker, turn);
                assert_eq!(worker.sync().unwrap().postponed, 0);
                assert_eq!(uniform(owned.area().read(worker).unwrap()), turn);
            }
            free.store(true, SeqCst);
            worker.barrier().unwrap();
        } else {
            worker.barrier().unwrap();
            let area = worker.attach::<u64>("w").unwrap();
            if me == 2 {
                until("the first stops", || holding.load(SeqCst) == 1);
                let two = |worker: &Worker| uniform(area.read(worker).unwrap()) == 2;
                serve_until(worker, "the second version", two);
            }
            let view = area.read(worker).unwrap();
            holding.fetch_add(1, SeqCst);
            until("release", || {
                assert_eq!(uniform(view), u64::from(me));
                free.load(SeqCst)
            });
            worker.barrier().unwrap();
            assert_eq!(uniform(area.read(worker).unwrap()), 59);
        }
    })
    .unwrap();
}

/// Stragglers that come and go while rounds run back to back: whatever moment they come back at, they see
/// whole versions that do not change under them.
#[test]
fn stragglers_that_come_back_at_any_moment() {
    let job = Job::builder().reserve(1 << 28).round_timeout(Duration::from_micros(200)).embedded().unwrap();
    let _watch = watch(&job);
    let stop = AtomicBool::new(false);
    run(&job, 3, |worker| {
        if worker.rank() == 0 {
            let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(3), 4000).unwrap();
            worker.barrier().unwrap();
            for turn in 1..1000 {
                fill(&mut owned, worker, turn);
                worker.sync().unwrap();
            }
            stop.store(true, SeqCst);
            return;
        }
        worker.barrier().unwrap();
        let area: Area<u64> = worker.attach("w").unwrap();
        let mut random = Random(worker.rank().into());
        let mut last = 0;
        while !stop.load(SeqCst) {
            let view = area.read(worker).unwrap();
            let seen = uniform(view);
            assert!(seen >= last, "{seen} after {last}");
            last = seen;
            std::thread::sleep(Duration::from_micros(random.below(700) as u64));
            assert_eq!(uniform(view), seen, "a view does not change");
            worker.service().unwrap();
        }
    })
    .unwrap();
}

/// The content of an area at its creation is a version like any other.
#[test]
fn the_first_version_is_held_too() {
    for copies in [3, 5] {
        // With this policy, no round writes the newest copy, so that all the others have their turn.
        let policy = StallPolicy::Pin { after: LONG };
        let timeout = Duration::from_millis(10);
        let job =
            Job::builder().reserve(1 << 28).round_timeout(timeout).stall_policy(policy).embedded().unwrap();
        let _watch = watch(&job);
        let (held, free) = (AtomicBool::new(false), AtomicBool::new(false));
        run(&job, 2, |worker| {
            let spec = AreaSpec::new("w").copies(copies);
            let mut mine = (worker.rank() == 0).then(|| worker.create::<u64>(spec, 1000).unwrap());
            worker.barrier().unwrap();
            if let Some(owned) = &mut mine {
                until("the other holds a view", || held.load(SeqCst));
                for turn in 1..10 {
                    fill(owned, worker, turn);
                    assert_eq!(worker.sync().unwrap().postponed, 0);
                }
                free.store(true, SeqCst);
            } else {
                let area = worker.attach::<u64>("w").unwrap();
                let view = area.read(worker).unwrap();
                held.store(true, SeqCst);
                until("release", || free.load(SeqCst));
                assert_eq!((uniform(view), uniform(area.read(worker).unwrap())), (0, 0));
                assert_eq!(area.version(worker).unwrap().counter, 0);
            }
            worker.barrier().unwrap();
        })
        .unwrap();
    }
}
