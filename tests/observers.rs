//! Observers: whole versions, barriers that keep their promise, limits, and pins that are forgotten with their process.
use crate::common::*;
use hectare::{AreaSpec, Error, Job};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

#[test]
fn observers_see_whole_versions_and_workers_those_of_the_barrier() {
    for copies in [1, 2, 3] {
        let job = patient_job();
        let _watch = watch(&job);
        let (stop, crew) = (AtomicBool::new(false), Crew::new());
        let observe = || {
            let observer = job.observer().unwrap();
            let area = job.attach_within::<u64>("w", LONG).unwrap();
            let mut last = Default::default();
            while !stop.load(SeqCst) {
                let pinned = observer.read(&area).unwrap();
                let value = uniform(&pinned);
                assert!(pinned.version() >= last && pinned.version().counter == value);
                last = pinned.version();
                std::thread::yield_now();
                assert_eq!(uniform(&pinned), value);
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| crew.part(observe));
            }
            let all = job.run(2, |worker| {
                crew.part(|| {
                    let spec = AreaSpec::new("w").copies(copies);
                    let mut owned = (worker.rank() == 0).then(|| worker.create::<u64>(spec, 3001).unwrap());
                    worker.barrier().unwrap();
                    let seen = worker.attach::<u64>("w").unwrap();
                    for next in 1..=1500 {
                        if let Some(owned) = &mut owned {
                            fill(owned, worker, next);
                        }
                        worker.barrier().unwrap();
                        assert_eq!(
                            uniform(seen.read(worker).unwrap()),
                            next,
                            "what was written before the barrier"
                        );
                        worker.barrier().unwrap();
                    }
                })
            });
            all.unwrap();
            stop.store(true, SeqCst);
        });
        assert_eq!(job.stats().unwrap().abandoned, 0);
    }
}

#[test]
fn pins_and_observer_slots_have_limits() {
    let job = Job::builder().reserve(1 << 24).max_observers(2).pins_per_observer(2).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("w").copies(2), 10).unwrap();
    let area = owned.area();
    let first = job.observer().unwrap();
    let second = job.observer().unwrap();
    assert!(matches!(job.observer(), Err(Error::TooManyObservers { max: 2 })));
    let one = first.read(&area).unwrap();
    fill(&mut owned, &worker, 1);
    worker.sync().unwrap();
    let two = first.read(&area).unwrap();
    assert!(matches!(first.read(&area), Err(Error::TooManyPins { max: 2 })));
    fill(&mut owned, &worker, 2);
    assert_eq!(worker.sync().unwrap().postponed, 1, "both copies are pinned");
    assert_eq!((uniform(&one), uniform(&two)), (0, 1));
    drop(one);
    assert_eq!(worker.sync().unwrap().postponed, 0);
    assert_eq!(uniform(&first.read(&area).unwrap()), 2);
    drop((two, second));
    assert!(job.observer().is_ok());
    let other = patient_job();
    assert!(matches!(other.observer().unwrap().read(&area), Err(Error::OtherJob { .. })));
}

/// An observer in another process that is killed with a pin held: the pin is forgotten.
#[test]
fn the_pin_of_a_killed_process_is_forgotten() {
    if let Some((_, job)) = role() {
        let observer = job.observer().unwrap();
        let (pin, signal) = (job.attach::<u64>("w").unwrap(), job.attach::<u64>("signal").unwrap());
        let _pinned = (observer.read(&pin).unwrap(), observer.read(&signal).unwrap());
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    let job = patient_job();
    let _watch = watch(&job);
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>("w", 10).unwrap();
    let mut signal = worker.create::<u64>("signal", 1).unwrap();
    let mut child = spawn("the_pin_of_a_killed_process_is_forgotten", "observer", &job);
    // The child pins `w` first: once `signal` cannot be published, both are pinned.
    until("the child's pins", || {
        fill(&mut signal, &worker, 1);
        worker.sync().unwrap().postponed == 1
    });
    fill(&mut owned, &worker, 5);
    assert_eq!(worker.sync().unwrap().postponed, 2);
    assert_eq!(uniform(owned.area().read(&worker).unwrap()), 0);
    child.kill();
    assert_eq!(worker.sync().unwrap().postponed, 0);
    assert_eq!(uniform(owned.area().read(&worker).unwrap()), 5);
}
