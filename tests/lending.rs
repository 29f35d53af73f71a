//! Lent areas: read in place by everybody, written again only when nobody can hold a view.
use crate::common::{self, spawn, until, watch};
use hectare::{AreaSpec, Error, Job};
use std::sync::atomic::{AtomicU32, Ordering};

#[test]
fn everybody_reads_what_the_owner_wrote_and_never_while_it_writes() {
    let job = Job::embedded().unwrap();
    let _watch = watch(&job);
    job.run(3, |worker| {
        let name = |rank| format!("part/{rank}");
        let rank = worker.rank();
        let mut owned = Some(worker.create::<u64>(AreaSpec::new(name(rank)).copies(0), 1000).unwrap());
        worker.barrier().unwrap();
        let areas: Vec<_> = (0..3).map(|rank| worker.attach::<u64>(&name(rank)).unwrap()).collect();
        for pass in 0..200u64 {
            let mut mine = owned.take().unwrap();
            for value in mine.write(worker).unwrap().range_mut(0..1000) {
                *value = pass << 8 | u64::from(rank);
            }
            let lent = mine.lend(worker).unwrap();
            worker.barrier().unwrap();
            for (other, area) in areas.iter().enumerate() {
                let seen = area.read_lent(worker).unwrap();
                assert!(seen.iter().all(|value| *value == pass << 8 | other as u64));
            }
            // All have read: those who come later would find the area recalled.
            worker.barrier().unwrap();
            let recalled = lent.recall(worker).unwrap();
            assert!(matches!(areas[rank as usize].read_lent(worker), Err(Error::NotLent { .. })));
            if pass % 2 == 0 {
                worker.barrier().unwrap();
            }
            owned = Some(recalled.finish(worker).unwrap());
        }
    })
    .unwrap();
}

#[test]
fn an_owner_that_recalls_waits_for_a_reader_with_a_view() {
    let job = Job::builder().round_timeout(std::time::Duration::from_millis(2)).embedded().unwrap();
    let _watch = watch(&job);
    let step = AtomicU32::new(0);
    job.run(2, |worker| {
        if worker.rank() == 0 {
            let owned = worker.create::<u32>(AreaSpec::new("lent").copies(0), 4).unwrap();
            let lent = owned.lend(worker).unwrap();
            step.store(1, Ordering::SeqCst);
            until("the reader", || step.load(Ordering::SeqCst) == 2);
            let mut owned = lent.recall(worker).unwrap().finish(worker).unwrap();
            assert_eq!(step.load(Ordering::SeqCst), 3, "the owner did not wait for the view");
            owned.write(worker).unwrap().set(0, 9);
        } else {
            until("the loan", || step.load(Ordering::SeqCst) == 1);
            let area = worker.attach::<u32>("lent").unwrap();
            let view = area.read_lent(worker).unwrap();
            step.store(2, Ordering::SeqCst);
            std::thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(view, [0; 4]);
            step.store(3, Ordering::SeqCst);
            until("the recall", || {
                worker.service().unwrap();
                area.read_lent(worker).is_err()
            });
        }
    })
    .unwrap();
}

#[test]
fn what_a_dead_owner_lent_stays_readable_and_can_be_claimed() {
    const NAME: &str = "what_a_dead_owner_lent_stays_readable_and_can_be_claimed";
    if let Some((_, job)) = common::role() {
        let mut worker = job.worker().unwrap();
        let mut owned = worker.create::<u32>(AreaSpec::new("left").copies(0), 4).unwrap();
        owned.write(&worker).unwrap().set(2, 7);
        let _lent = owned.lend(&worker).unwrap();
        worker.create::<u32>("ready", 1).unwrap();
        loop {
            worker.service().unwrap();
        }
    }
    let job = Job::embedded().unwrap();
    let _watch = watch(&job);
    let mut child = spawn(NAME, "owner", &job);
    let mut worker = job.worker().unwrap();
    worker.attach_within::<u32>("ready", common::LONG).unwrap();
    let area = worker.attach::<u32>("left").unwrap();
    assert!(matches!(worker.claim::<u32>("left"), Err(Error::OwnerAlive { .. })));
    child.kill();
    worker.sync().unwrap();
    assert_eq!(area.read_lent(&worker).unwrap(), [0, 0, 7, 0]);
    let claimed = worker.claim::<u32>("left").unwrap();
    assert_eq!(claimed.owned.read(&worker).unwrap(), [0, 0, 7, 0]);
    assert!(area.read_lent(&worker).is_err());
}

#[test]
fn a_lent_area_is_neither_written_nor_given() {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let owned = worker.create::<u32>("lent", 4).unwrap();
    let area = owned.area();
    assert!(matches!(area.read_lent(&worker), Err(Error::NotLent { .. })));
    let lent = owned.lend(&worker).unwrap();
    assert!(matches!(area.try_take(&worker), Ok(None)));
    assert!(matches!(worker.claim::<u32>("lent"), Err(Error::OwnerAlive { .. })));
    drop(lent);
    assert_eq!(area.read_lent(&worker).unwrap(), [0; 4]);
    let owned = worker.claim::<u32>("lent").unwrap().owned;
    owned.delete(&mut worker).unwrap();
    assert!(matches!(area.read_lent(&worker), Err(Error::Deleted { .. })));
}
