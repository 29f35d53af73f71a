//! Areas without reader copies take no part in rounds.
use hectare::prelude::*;

#[test]
fn an_area_without_reader_copies_is_not_put_off_for_ever() -> Result<()> {
    let job = Job::embedded()?;
    let mut worker = job.worker()?;
    let mut local = worker.create::<u64>(AreaSpec::new("local").copies(0), 100)?;
    let mut public = worker.create::<u64>("public", 100)?;
    for turn in 1..4 {
        local.write(&worker)?.fill(turn);
        public.write(&worker)?.fill(turn);
        assert_eq!(worker.sync()?.postponed, 0);
        assert_eq!(public.area().read(&worker)?[99], turn);
    }
    worker.barrier()?;
    assert_eq!((local.area().postponed(), job.stats()?.postponed), (0, 0));
    assert_eq!(local.read(&worker)?[99], 3);
    Ok(())
}

/// By one who has it and by one who has attached to it, after a write: a round that looked at it would find no copy to publish into.
#[test]
fn an_area_without_reader_copies_cannot_be_asked_for() -> Result<()> {
    let job = Job::embedded()?;
    let mut worker = job.worker()?;
    let mut local = worker.create::<u64>(AreaSpec::new("local").copies(0), 100)?;
    let attached = worker.attach::<u64>("local")?;
    for turn in 1..4 {
        local.write(&worker)?.fill(turn);
        let refused = worker.sync_area(&attached).expect_err("nothing can be published");
        assert!(matches!(refused, Error::NoReaderCopy { .. }), "{refused}");
        local.area().request_sync();
        attached.request_sync();
        worker.service()?;
        worker.barrier()?;
        assert_eq!((worker.sync()?.postponed, local.read(&worker)?[99]), (0, turn));
    }
    Ok(())
}
