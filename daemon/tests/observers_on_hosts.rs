//! Observers on a host that hold every copy of an area of another host delay its barriers only as long as they hold them all.
use crate::common::cluster::{join, run_on_each};
use crate::common::{WATCHDOG, role_here};
use hectare_dsm::{AreaSpec, Error, Job, Pinned, Worker};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const ROLE: &str = "OBSERVERS_ROLE";
const LEN: usize = 5000;
const BARRIERS: u64 = 400;
const READERS: usize = 3;
const HOLD: Duration = Duration::from_millis(5);

/// Holds each version for a while, until `stop`.
fn read(job: &Job, stop: &AtomicBool) {
    let observer = job.observer().unwrap();
    let area = job.attach_within::<u64>("a", WATCHDOG).unwrap();
    while !stop.load(SeqCst) {
        let pinned = observer.read(&area).unwrap();
        std::thread::sleep(HOLD);
        assert!(pinned.iter().all(|value| *value == pinned[0]));
    }
}

/// Holds all versions that come within a while.
fn hold_all(job: &Job) {
    let observer = job.observer().unwrap();
    let area = job.attach_within::<u64>("a", WATCHDOG).unwrap();
    let mut pins: Vec<Pinned<'_, u64>> = Vec::new();
    for _ in 0..50 {
        let pinned = observer.read(&area).unwrap();
        if pins.iter().all(|other| other.version() != pinned.version()) && pins.len() < 4 {
            pins.push(pinned);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The owner writes before each barrier, and all others see that after it, whatever the observers hold.
fn work(job: &Job, worker: &mut Worker) -> Result<(), Error> {
    let is_owner = worker.rank() == 0;
    let mut owned = is_owner.then(|| worker.create::<u64>(AreaSpec::new("a").copies(2), LEN)).transpose()?;
    worker.barrier()?;
    let area = worker.attach_within::<u64>("a", WATCHDOG)?;
    worker.barrier()?;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        if !is_owner {
            (0..READERS).for_each(|_| drop(scope.spawn(|| read(job, &stop))));
            scope.spawn(|| hold_all(job));
        }
        let all = (1..=BARRIERS).try_for_each(|value| {
            if let Some(owned) = &mut owned {
                owned.write(worker)?.fill(value);
            }
            worker.barrier()?;
            if !is_owner {
                assert_eq!(area.read(worker)?[0], value);
            }
            worker.barrier()
        });
        stop.store(true, SeqCst);
        all
    })
}

#[test]
fn role() {
    if std::env::var(ROLE).is_ok() {
        let (job, mut worker) = join(2);
        work(&job, &mut worker).unwrap();
        println!("all barriers passed");
    }
}

#[test]
fn barriers_go_on_while_observers_read_what_is_another_hosts() {
    run_on_each(2, &role_here(), ROLE, "all barriers passed");
}
