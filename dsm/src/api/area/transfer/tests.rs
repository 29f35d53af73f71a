//! Who may have an area, and what a claim finds lost.
use super::ownership;
use crate::{AreaSpec, Error, Job, Version};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Whoever waits for an area looks at its holder, who gives the area and leaves: not gone without having given.
#[test]
fn a_giver_that_has_left_is_not_gone_without_giving() {
    let job = Job::builder().reserve(1 << 24).embedded().unwrap();
    let worker = job.worker().unwrap();
    let mut giver = job.worker().unwrap();
    let [given, kept] = ["given", "kept"].map(|name| giver.create::<u64>(name, 10).unwrap());
    let [area, other] = [given.area(), kept.area()];
    let [seen, seen_other] = [&area, &other].map(|area| ownership::load(&area.core.slot().own.ownership));
    area.check_giver(&worker, seen).unwrap();
    given.give(&giver, worker.rank()).unwrap();
    std::mem::forget(kept);
    drop(giver);
    area.check_giver(&worker, seen).unwrap();
    assert!(area.try_take(&worker).unwrap().is_some());
    let left = ownership::load(&other.core.slot().own.ownership);
    assert!(left != seen_other);
    let gone = other.check_giver(&worker, left);
    assert!(matches!(gone, Err(Error::OwnerGone { rank: 0, .. })), "{gone:?}");
}

/// Nobody else can give what one owns: who wants to take it does not wait.
#[test]
fn who_takes_an_area_of_its_own_does_not_wait() {
    let job = Job::builder().reserve(1 << 24).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let owned = worker.create::<u64>("own", 10).unwrap();
    let area = owned.area();
    assert!(area.try_take(&worker).unwrap().is_none());
    let found = area.take(&mut worker).map(drop);
    assert!(matches!(found, Err(Error::AlreadyOwner { rank: 0, .. })), "{found:?}");
    let _lent = owned.lend(&worker).unwrap();
    let found = area.take_within(&mut worker, Duration::from_secs(60)).map(drop);
    assert!(matches!(found, Err(Error::AlreadyOwner { rank: 0, .. })), "{found:?}");
    // An area that a worker gave to itself can be taken.
    let given = worker.create::<u64>("given", 10).unwrap();
    let area = given.area();
    given.give(&worker, 0).unwrap();
    assert!(!area.is_owned_by(&worker));
    let _taken = area.try_take(&worker).unwrap().unwrap();
    assert!(area.is_owned_by(&worker));
    let found = area.take(&mut worker).map(drop);
    assert!(matches!(found, Err(Error::AlreadyOwner { rank: 0, .. })), "{found:?}");
}

/// Those who wrote before the last publication have lost nothing.
#[test]
fn publication_forgets_who_had_written() {
    let job = Job::builder().reserve(1 << 24).embedded().unwrap();
    job.run(2, |worker| {
        let mut mine = (worker.rank() == 0).then(|| worker.create::<u64>("w", 1000).unwrap());
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("w").unwrap();
        if let Some(mut owned) = mine.take() {
            owned.write(worker).unwrap().set(1, 1);
            owned.give(worker, 1).unwrap();
            worker.barrier().unwrap();
            worker.barrier().unwrap();
            let claimed = worker.claim::<u64>("w").unwrap();
            assert_eq!(claimed.loss.lost_writers, [1]);
            assert_eq!(claimed.owned.read(worker).unwrap()[..3], [0, 1, 0]);
        } else {
            let mut owned = area.take(worker).unwrap();
            worker.barrier().unwrap();
            owned.write(worker).unwrap().set(2, 2);
            drop(owned);
            worker.barrier().unwrap();
        }
        worker.barrier().unwrap();
    })
    .unwrap();
}

/// A claim of an area that its last owner had lent waits until nobody can hold a view of it; and what that owner had
/// not published is lost, also if rounds go on meanwhile.
#[test]
fn a_claim_waits_for_the_readers_of_a_lent_area() {
    let job = Job::builder().reserve(1 << 24).round_timeout(Duration::from_millis(2)).embedded().unwrap();
    let step = AtomicU32::new(0);
    let until = |wanted: u32| {
        while step.load(Ordering::SeqCst) < wanted {
            std::thread::yield_now();
        }
    };
    job.run(3, |worker| {
        let spec = AreaSpec::new("w").copies(2);
        let mut mine = (worker.rank() == 0).then(|| worker.create::<u64>(spec, 1000).unwrap());
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("w").unwrap();
        match worker.rank() {
            0 => {
                let mut owned = mine.take().unwrap();
                owned.write(worker).unwrap().fill(5);
                let lent = owned.lend(worker).unwrap();
                step.store(1, Ordering::SeqCst);
                until(2);
                drop(lent);
                step.store(3, Ordering::SeqCst);
            }
            1 => {
                until(1);
                let view = area.read_lent(worker).unwrap();
                step.store(2, Ordering::SeqCst);
                let seized = |owner| owner == ownership::OwnershipWord::held(2, 2);
                while !seized(ownership::load(&area.core.slot().own.ownership)) {
                    std::thread::yield_now();
                }
                // Time enough for a claimer that does not wait.
                std::thread::sleep(Duration::from_millis(50));
                assert_eq!(view, [5; 1000]);
                step.store(4, Ordering::SeqCst);
            }
            _ => {
                until(3);
                area.core.force();
                let claimed = worker.claim::<u64>("w").unwrap();
                assert_eq!(step.load(Ordering::SeqCst), 4, "the claimer did not wait for the view");
                assert_eq!(claimed.loss.last_version, Some(Version::default()));
                assert_eq!(claimed.loss.lost_writers, [0]);
                assert_eq!(claimed.owned.read(worker).unwrap(), [0; 1000]);
            }
        }
        worker.barrier().unwrap();
    })
    .unwrap();
}
