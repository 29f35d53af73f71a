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
