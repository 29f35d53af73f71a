//! Handles of areas that are gone, whose slot is another area's by now.
use crate::common::*;
use hectare::{AreaSpec, Error};

#[test]
fn a_reused_slot_is_another_area() {
    let job = patient_job();
    let mut worker = job.worker().unwrap();
    let gone = worker.create::<u64>("first", 10).unwrap();
    let area = gone.area();
    gone.delete(&mut worker).unwrap();
    let mut next = None;
    for turn in 0..4 {
        worker.sync().unwrap();
        let mut fresh = worker.create::<u64>(AreaSpec::new(format!("{turn}")).copies(5), 1000).unwrap();
        fill(&mut fresh, &worker, 1);
        next = Some(fresh);
    }
    // Its newest copy is not the first one: an observer holds that.
    let mut fresh = next.unwrap();
    let observer = job.observer().unwrap();
    let fresh_area = fresh.area();
    let pinned = observer.read(&fresh_area).unwrap();
    fill(&mut fresh, &worker, 2);
    worker.sync().unwrap();
    for other in job.areas().unwrap() {
        let other = worker.attach::<u64>(&other.name).unwrap();
        let _pin = observer.read(&other).unwrap();
        worker.sync().unwrap();
    }
    drop(pinned);
    assert_eq!((area.newest_version(), area.postponed()), (None, 0));
    assert!(matches!(area.read(&worker), Err(Error::Deleted { .. })));
    assert!(matches!(observer.read(&area), Err(Error::Deleted { .. })));
    let before = fresh_area.newest_version();
    area.seal();
    area.request_sync();
    for _ in 0..3 {
        fill(&mut fresh, &worker, 3);
        worker.service().unwrap();
    }
    assert_eq!(fresh_area.newest_version(), before, "nothing was asked of the new area");
}
