//! Observers that hold every copy of an area, on its owner's host or on another, delay barriers at most as long as they hold them all.
use crate::common::cluster::{join, run_on_each};
use crate::common::{WATCHDOG, role_here};
use hectare_dsm::{AreaSpec, Error, Job, Owned, Pinned, Worker};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const ROLE: &str = "OBSERVERS_ROLE";
const LEN: usize = 5000;
const BARRIERS: u64 = 400;
const READERS: usize = 3;
const HOLD: Duration = Duration::from_millis(5);
/// The most versions that one observer holds, and how often it looks for another.
const MOST: usize = 8;
const LOOKS: usize = 60;

/// Holds the newest version for a while, until `stop`.
fn read(job: &Job, stop: &AtomicBool) {
    let observer = job.observer().unwrap();
    let area = job.attach_within::<u64>("a", WATCHDOG).unwrap();
    while !stop.load(SeqCst) {
        let pinned = observer.read(&area).unwrap();
        std::thread::sleep(HOLD);
        assert!(pinned.iter().all(|value| *value == pinned[0]));
    }
}

/// Holds all versions that come within a while, drops them, and begins again, until `stop`.
fn hold_all(job: &Job, stop: &AtomicBool) {
    let observer = job.observer().unwrap();
    let area = job.attach_within::<u64>("a", WATCHDOG).unwrap();
    while !stop.load(SeqCst) {
        let mut pins: Vec<Pinned<'_, u64>> = Vec::new();
        for _ in 0..LOOKS {
            let pinned = observer.read(&area).unwrap();
            if pins.iter().all(|other| other.version() != pinned.version()) && pins.len() < MOST {
                pins.push(pinned);
            }
            std::thread::sleep(Duration::from_micros(300));
        }
    }
}

/// The owner writes before each barrier, while observers of host `of` read: they delay the barrier, and who has passed it sees what was
/// written.
fn work(job: &Job, worker: &mut Worker, owned: &mut Option<Owned<u64>>, of: u32) -> Result<(), Error> {
    let area = worker.attach_within::<u64>("a", WATCHDOG)?;
    worker.barrier()?;
    let (me, stop) = (worker.rank(), AtomicBool::new(false));
    let last = area.read(worker)?[0];
    std::thread::scope(|scope| {
        if me == of {
            (0..READERS).for_each(|_| drop(scope.spawn(|| read(job, &stop))));
            scope.spawn(|| hold_all(job, &stop));
        }
        let all = (last + 1..=last + BARRIERS).try_for_each(|value| {
            if let Some(owned) = owned.as_mut() {
                owned.write(worker)?.fill(value);
            }
            worker.barrier()?;
            let seen = area.read(worker)?[0];
            assert_eq!(seen, value, "what was written before the barrier");
            worker.barrier()
        });
        stop.store(true, SeqCst);
        all
    })?;
    worker.barrier()
}

#[test]
fn role() {
    if std::env::var(ROLE).is_err() {
        return;
    }
    let (job, mut worker) = join(2);
    let spec = AreaSpec::new("a").copies(2);
    let mut owned = (worker.rank() == 0).then(|| worker.create::<u64>(spec, LEN).unwrap());
    for of in [1, 0] {
        work(&job, &mut worker, &mut owned, of).unwrap();
    }
    println!("all barriers passed");
}

#[test]
fn barriers_go_on_while_observers_of_either_host_hold_all_copies() {
    run_on_each(2, &role_here(), ROLE, "all barriers passed");
}
