//! A graph of two tasks over one area of worker 0's: that of worker 1 adds one to the elements after that of worker 0 has.
use hectare_dsm::tasks::{Access, Region, RunningTask, Task, TaskGraph, TaskRun};
use hectare_dsm::{Area, AreaSpec, Opened, Worker};
use std::sync::Arc;

const LEN: usize = 4;

pub(super) fn graph() -> Arc<TaskGraph> {
    let elements = 0..LEN;
    let task = |after| {
        let writes = vec![Region::of([elements.clone()])];
        Task { accesses: vec![Access { array: 0, reads: vec![], writes }], after }
    };
    let tasks = vec![vec![task(vec![])], vec![task(vec![(0, 1)])]];
    Arc::new(TaskGraph::new(vec![vec![LEN]], tasks).unwrap())
}

/// Begins a run of it; the area, as worker 0 has opened it, too.
pub(super) fn begin(
    worker: &mut Worker,
    graph: &Arc<TaskGraph>,
) -> (Option<Opened<u64>>, Area<u64>, TaskRun) {
    let mut opened = None;
    if worker.rank() == 0 {
        let owned = worker.create::<u64>(AreaSpec::new("elements").on_demand(), LEN).unwrap();
        opened = Some(owned.open_to_tasks_published(worker).unwrap());
    }
    worker.barrier().unwrap();
    let area = worker.attach::<u64>("elements").unwrap();
    let run = TaskRun::begin_on_hosts(worker, graph.clone(), &[area.in_place()]).unwrap();
    (opened, area, run)
}

/// Runs a task of it.
pub(super) fn add(task: RunningTask<'_>, area: &Area<u64>) {
    let mut elements = task.patches::<u64, 1>(area, 0).unwrap();
    elements.slice_mut(0..LEN).unwrap().iter_mut().for_each(|element| *element += 1);
    drop(elements);
    task.end();
}

/// Ends the run, in which both tasks were run.
pub(super) fn end(worker: &mut Worker, run: TaskRun, opened: Option<Opened<u64>>) {
    let ended = run.end(worker).unwrap();
    worker.barrier().unwrap();
    ended.check_done().unwrap();
    if let Some(opened) = opened {
        let owned = opened.close(worker).unwrap().finish(worker).unwrap();
        assert_eq!(owned.read(worker).unwrap(), [2; LEN]);
    }
    worker.barrier().unwrap();
}
