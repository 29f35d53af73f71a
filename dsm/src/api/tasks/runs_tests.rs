//! Runs over an area that stays open: which handles read between them, and which ends and workers count.
use super::tests::{access, alone, line, run_all, written_by_the_other};
use crate::tasks::{Task, TaskGraph, TaskRun};
use crate::{AreaSpec, Error, Job, Opened, Worker};
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_handle_of_another_job_reads_nothing() {
    let (job, other) = (Job::embedded().unwrap(), Job::embedded().unwrap());
    let mut worker = job.worker().unwrap();
    let owned = worker.create::<u8>(AreaSpec::new("a").copies(0), 8).unwrap();
    let (area, _opened) = (owned.area(), owned.open_to_tasks(&worker).unwrap());
    let mut runs = area.runs();
    let mut run = TaskRun::begin_next(&mut worker, alone(0), &mut [&mut runs]).unwrap();
    run_all(&mut worker, &mut run, |_| {});
    let mut stranger = other.worker().unwrap();
    let wide = stranger.create::<u64>(AreaSpec::new("a").copies(0), 8).unwrap().area();
    assert_eq!(wide.core.id, area.core.id);
    assert!(matches!(wide.read_between_runs(&worker, &runs), Err(Error::OtherJob { .. })));
    // Nor one of another area.
    let second = worker.create::<u8>(AreaSpec::new("b").copies(0), 8).unwrap().area();
    assert!(matches!(second.read_between_runs(&worker, &runs), Err(Error::Tasks { .. })));
    assert_eq!(area.read_between_runs(&worker, &runs).unwrap().len(), 8);
}

fn open(worker: &mut Worker, name: &str) -> Opened<u64> {
    let owned = worker.create::<u64>(AreaSpec::new(name).copies(0), 512).unwrap();
    owned.open_to_tasks(worker).unwrap()
}

/// The two areas have one slot and one epoch.
#[test]
fn the_end_of_a_run_over_a_deleted_area_does_not_count_in_the_next_of_its_slot() {
    let job = Job::embedded().unwrap();
    let work = |worker: &mut Worker| {
        worker.wait_for_workers(2, Duration::from_secs(60)).unwrap();
        let me = worker.rank();
        let opened = (me == 0).then(|| open(worker, "old"));
        worker.barrier().unwrap();
        let old = worker.attach::<u64>("old").unwrap();
        let half = |k: usize| {
            let writes = vec![line(256 * k..256 * (k + 1))];
            vec![Task { accesses: access(vec![], writes), after: vec![] }]
        };
        let both = Arc::new(TaskGraph::new(vec![vec![512]], vec![half(0), half(1)]).unwrap());
        let mut runs = old.runs();
        let mut late = TaskRun::begin_next(worker, both, &mut [&mut runs]).unwrap();
        worker.barrier().unwrap();
        opened.into_iter().for_each(|opened| opened.delete(worker).unwrap());
        (0..3).for_each(|_| worker.barrier().unwrap());
        let _opened = (me == 0).then(|| open(worker, "new"));
        worker.barrier().unwrap();
        let new = worker.attach::<u64>("new").unwrap();
        assert_eq!(new.core.id.index, old.core.id.index);
        if me == 1 {
            late.next(worker).unwrap().end();
        }
        worker.barrier().unwrap();
        let mut runs = new.runs();
        let _run = TaskRun::begin_next(worker, written_by_the_other(1), &mut [&mut runs]).unwrap();
        worker.barrier().unwrap();
        // Worker 0 has not done its task.
        assert!(new.read_between_runs(worker, &runs).is_err());
        worker.barrier().unwrap();
    };
    std::thread::scope(|scope| {
        let (job, work) = (&job, &work);
        for _ in 0..2 {
            scope.spawn(move || work(&mut job.worker().unwrap()));
        }
    });
}

#[test]
fn a_run_of_fewer_workers_is_not_the_next_one() {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let owned = worker.create::<u8>(AreaSpec::new("a").copies(0), 8).unwrap();
    let (area, _opened) = (owned.area(), owned.open_to_tasks(&worker).unwrap());
    let others = Task { accesses: access(vec![], vec![line(0..8)]), after: vec![] };
    let two = Arc::new(TaskGraph::new(vec![vec![8]], vec![vec![], vec![others]]).unwrap());
    let mut runs = area.runs();
    // This worker has ended its part: one of two.
    drop(TaskRun::begin_next(&mut worker, two, &mut [&mut runs]).unwrap());
    let refused = TaskRun::begin_next(&mut worker, alone(0), &mut [&mut runs]).map(drop);
    assert!(matches!(refused, Err(Error::Tasks { .. })), "{refused:?}");
}
