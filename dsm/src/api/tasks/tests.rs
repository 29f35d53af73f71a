//! Runs of tasks by threads: who waits, what each may touch, and what is refused.
use crate::tasks::{Access, Patches, Region, Span, Task, TaskGraph, TaskRun};
use crate::{AreaSpec, Error, Job, Worker};
use std::sync::Arc;

pub(super) fn line(elements: std::ops::Range<usize>) -> Region {
    Region::of([elements])
}

pub(super) fn access(reads: Vec<Region>, writes: Vec<Region>) -> Vec<Access> {
    vec![Access { array: 0, reads, writes }]
}

/// Runs all tasks of a worker.
pub(super) fn run_all(
    worker: &mut Worker,
    run: &mut TaskRun,
    mut act: impl FnMut(&crate::tasks::RunningTask<'_>),
) {
    while run.done() < run.len() {
        run.wait::<Error>(worker, |_| Ok(())).unwrap();
        let task = run.next(worker).unwrap();
        act(&task);
        task.end();
    }
}

/// Row `i` of a grid is made of row `i - 1`, block by block; rows go to workers in turn.
fn pipeline(rows: usize, blocks: usize, width: usize, workers: usize) -> TaskGraph {
    let columns = blocks * width;
    let mut tasks = vec![Vec::new(); workers];
    for row in 0..rows {
        for block in 0..blocks {
            let range = block * width..(block + 1) * width;
            let own = Region::of([row..row + 1, range.clone()]);
            let above = Region::of([row.saturating_sub(1)..row, range.start..(range.end + 1).min(columns)]);
            // One block ahead in the row above, which has an element of it in its next block.
            let ahead = (block + 2).min(blocks);
            let before =
                (row > 0).then(|| (((row - 1) % workers) as u32, (row - 1) / workers * blocks + ahead));
            tasks[row % workers].push(Task {
                accesses: access(if row > 0 { vec![above] } else { vec![] }, vec![own]),
                after: before.into_iter().collect(),
            });
        }
    }
    TaskGraph::new(vec![vec![rows, columns]], tasks).unwrap()
}

/// Each of two workers writes half of an array, the first when the second has.
fn one_after_the_other() -> Arc<TaskGraph> {
    let write = |elements, after| Task { accesses: access(vec![], vec![line(elements)]), after };
    let tasks = vec![vec![write(0..4, vec![(1, 1)])], vec![write(4..8, vec![])]];
    Arc::new(TaskGraph::new(vec![vec![8]], tasks).unwrap())
}

#[test]
fn tasks_of_three_workers_see_what_those_before_them_wrote() {
    let (rows, blocks, width) = (40, 6, 5);
    let columns = blocks * width;
    let job = Job::embedded().unwrap();
    let graph = Arc::new(pipeline(rows, blocks, width, 3));
    let work = |worker: &mut Worker| {
        let opened = (worker.rank() == 0).then(|| {
            let spec = AreaSpec::new("grid").copies(0);
            worker.create::<u64>(spec, rows * columns).unwrap().open_to_tasks(worker).unwrap()
        });
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("grid").unwrap();
        let mut run = TaskRun::begin(worker, graph.clone(), &[area.in_place()]).unwrap();
        let (rank, mut number) = (worker.rank() as usize, 0);
        run_all(worker, &mut run, |task| {
            let (row, block) = (rank + number / blocks * 3, number % blocks);
            number += 1;
            let mut grid: Patches<'_, u64, 2> = task.patches(&area, 0).unwrap();
            for column in block * width..(block + 1) * width {
                let above = |column: usize| match row {
                    0 => 1,
                    _ => *grid.get([row - 1, column.min(columns - 1)]).unwrap(),
                };
                let sum = above(column).wrapping_mul(3).wrapping_add(above(column + 1));
                *grid.get_mut([row, column]).unwrap() = sum;
            }
            assert!(grid.get_mut([row, (block + 1) * width]).is_err());
            assert!(row == 0 || grid.get_mut([row - 1, block * width]).is_err());
            assert!(grid.get([row + 1, block * width]).is_none());
        });
        drop(run);
        worker.barrier().unwrap();
        let grid = opened.map(|opened| {
            let owned = opened.close(worker).unwrap().finish(worker).unwrap();
            owned.read(worker).unwrap().to_vec()
        });
        worker.barrier().unwrap();
        grid
    };
    let grids: Vec<_> = std::thread::scope(|scope| {
        let join = || {
            let mut worker = job.worker().unwrap();
            worker.wait_for_workers(3, std::time::Duration::from_secs(60)).unwrap();
            work(&mut worker)
        };
        let threads: Vec<_> = (0..3).map(|_| scope.spawn(join)).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    let mut expected = vec![0u64; rows * columns];
    for row in 0..rows {
        for column in 0..columns {
            let above = |column: usize| match row {
                0 => 1,
                _ => expected[(row - 1) * columns + column.min(columns - 1)],
            };
            expected[row * columns + column] = above(column).wrapping_mul(3).wrapping_add(above(column + 1));
        }
    }
    assert_eq!(grids, [expected]);
}

/// A graph of one worker with one task that writes elements `start..8` of eight.
pub(super) fn alone(start: usize) -> Arc<TaskGraph> {
    let tasks = vec![vec![Task { accesses: access(vec![], vec![line(start..8)]), after: vec![] }]];
    Arc::new(TaskGraph::new(vec![vec![8]], tasks).unwrap())
}

#[test]
fn an_area_that_is_open_to_tasks_is_open_to_nothing_else() {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let owned = worker.create::<u32>(AreaSpec::new("a").copies(0), 8).unwrap();
    let area = owned.area();
    // Not before it is opened, nor when it is open to all.
    let begin =
        |worker: &Worker, graph: &Arc<TaskGraph>| TaskRun::begin(worker, graph.clone(), &[area.in_place()]);
    let graph = alone(3);
    assert!(matches!(begin(&worker, &graph), Err(Error::NotOpen { .. })));
    let opened = owned.open(&worker).unwrap();
    assert!(matches!(begin(&worker, &graph), Err(Error::NotOpen { .. })));
    let owned = opened.close(&mut worker).unwrap().finish(&mut worker).unwrap();
    let opened = owned.open_to_tasks(&worker).unwrap();
    assert!(area.cells(&worker).is_err());
    assert!(area.read_lent(&worker).is_err());
    assert!(worker.claim::<u32>("a").is_err());
    let mut run = begin(&worker, &graph).unwrap();
    run.check_begun(&worker).unwrap();
    let start = run.as_ptr(&area, 0).unwrap();
    assert!(matches!(run.as_ptr(&area, 1), Err(Error::Tasks { .. })));
    let task = run.next(&worker).unwrap();
    let mut elements: Patches<'_, u32, 1> = task.patches(&area, 0).unwrap();
    assert_eq!(elements.slice(3..8).map(<[u32]>::as_ptr), Some(start.wrapping_add(3).cast_const()));
    elements.slice_mut(3..8).unwrap().fill(5);
    assert!(elements.slice(2..4).is_none());
    assert!(elements.slice(4..9).is_none());
    assert_eq!(elements.slice(8..8), Some(&[][..]));
    // The same elements twice would be two ways to write one.
    assert!(matches!(task.patches::<u32, 1>(&area, 0), Err(Error::Tasks { .. })));
    assert!(matches!(task.patches::<u32, 1>(&area, 1), Err(Error::Tasks { .. })));
    drop(elements);
    task.end();
    assert!(!run.is_ready(&worker).unwrap());
    assert!(matches!(run.next(&worker), Err(Error::Tasks { .. })));
    drop(run);
    // One run for each time that it is opened, of these tasks or of others.
    for graph in [&graph, &alone(2)] {
        let again = begin(&worker, graph).unwrap_err().to_string();
        assert!(again.contains("opened again"), "{again}");
    }
    let owned = opened.close(&mut worker).unwrap().finish(&mut worker).unwrap();
    assert_eq!(owned.read(&worker).unwrap(), [0, 0, 0, 5, 5, 5, 5, 5]);
    let opened = owned.open_to_tasks(&worker).unwrap();
    drop(begin(&worker, &graph).unwrap());
    // An owner that drops it leaves it to be claimed.
    drop(opened);
    assert!(worker.claim::<u32>("a").is_ok());
}

#[test]
fn a_task_begins_when_all_have_begun_and_ends_for_others_who_leave() {
    let job = Job::embedded().unwrap();
    let graph = one_after_the_other();
    let mut worker = job.worker().unwrap();
    let opened =
        worker.create::<u8>(AreaSpec::new("a").copies(0), 8).unwrap().open_to_tasks(&worker).unwrap();
    let area = opened.area();
    let run = TaskRun::begin(&worker, graph.clone(), &[area.in_place()]).unwrap();
    assert!(!run.is_ready(&worker).unwrap());
    assert!(matches!(run.check_begun(&worker), Err(Error::NoSuchWorker { rank: 1 })));
    let (began, begun) = std::sync::mpsc::channel();
    let (leave, left) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let (job, graph) = (&job, &graph);
        scope.spawn(move || {
            let mut other = job.worker().unwrap();
            let area = other.attach::<u8>("a").unwrap();
            let run = TaskRun::begin(&other, graph.clone(), &[area.in_place()]).unwrap();
            assert!(run.is_ready(&other).unwrap());
            began.send(()).unwrap();
            while left.try_recv().is_err() {
                other.service().unwrap();
            }
            drop(run);
            began.send(()).unwrap();
            while left.try_recv().is_err() {
                other.service().unwrap();
            }
        });
        begun.recv().unwrap();
        assert!(!run.is_ready(&worker).unwrap());
        leave.send(()).unwrap();
        begun.recv().unwrap();
        let error = run.is_ready(&worker).unwrap_err().to_string();
        assert!(error.contains("worker 1") && error.contains("has left"), "{error}");
        leave.send(()).unwrap();
        while job.workers().unwrap().len() > 1 {
            worker.service().unwrap();
        }
    });
}

#[test]
fn what_does_not_fit_the_graph_is_refused() {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let short =
        worker.create::<u8>(AreaSpec::new("short").copies(0), 7).unwrap().open_to_tasks(&worker).unwrap();
    let text =
        |areas: &[crate::tasks::InPlace]| TaskRun::begin(&worker, alone(0), areas).unwrap_err().to_string();
    assert!(text(&[short.area().in_place()]).contains("\"short\" has 7 elements"));
    assert!(text(&[]).contains("1 arrays, and were given 0 areas"));
    let two = Arc::new(TaskGraph::new(vec![vec![2], vec![2]], vec![vec![]]).unwrap());
    let area = short.area().in_place();
    let twice = TaskRun::begin(&worker, two, &[area.clone(), area]).unwrap_err().to_string();
    assert!(twice.contains("stands for two arrays"), "{twice}");
}

#[test]
fn boxes_with_strides_have_just_their_elements() {
    let mut elements: Vec<u32> = (0..60).collect();
    let region =
        |step| Region { spans: vec![Span { start: 1, end: 6, step: 2 }, Span { start: 2, end: 10, step }] };
    for step in [1, 2, 3, 4] {
        let (read, write) = (region(1), region(step));
        // SAFETY: the elements are borrowed here alone.
        let patch =
            unsafe { super::patch::Patch::new(elements.as_mut_ptr(), &[6, 10], Some(&read), Some(&write)) };
        let mut patches: Patches<'_, u32, 2> = Patches::new(&[6, 10], vec![patch]);
        for i in 0..8 {
            for j in 0..12 {
                let has = |region: &Region| region.spans[0].contains(i) && region.spans[1].contains(j);
                assert_eq!(patches.get([i, j]).copied(), has(&read).then_some((10 * i + j) as u32));
                assert_eq!(patches.get_mut([i, j]).is_ok(), has(&write), "{i} {j} {step}");
            }
        }
        assert!(patches.row([1, 0]).is_none());
    }
}

#[test]
fn rows_are_found_in_several_parts() {
    let (mut a, mut b) = ([1, 2, 3, 4], [5, 6]);
    let mut parts = Patches::of_parts(&[9, 2], vec![([4..6, 0..2], &mut a[..]), ([7..8, 0..2], &mut b[..])]);
    assert_eq!(parts.row([7, 0]), Some(&[5, 6][..]));
    assert_eq!(parts.row([6, 1]), None);
    let (x, y) = parts.rows_mut([7, 0], [5, 1]).unwrap();
    x.swap_with_slice(y);
    assert!(parts.rows_mut([4, 0], [4, 1]).is_err());
    *parts.get_mut([4, 1]).unwrap() = 9;
    assert_eq!(parts.boxes().len(), 2);
    drop(parts);
    assert_eq!((a, b), ([1, 9, 5, 6], [3, 4]));
}

#[test]
fn rows_are_of_arrays_with_several_dimensions() {
    let mut elements = [1, 2, 3, 4];
    let range = 4..8;
    let mut part = Patches::of_parts(&[9], vec![([range], &mut elements[..])]);
    assert!(part.row([0]).is_none() && part.row([4]).is_none());
    assert!(part.row_mut([0]).is_err() && part.row_mut([4]).is_err());
    assert_eq!(part.slice(5..7), Some(&[2, 3][..]));
    let mut none: Patches<'_, u32, 1> = Patches::of_parts(&[8], Vec::new());
    assert_eq!(none.slice(0..0), Some(&[][..]));
    assert!(none.slice_mut(0..0).is_ok_and(|slice| slice.is_empty()));
    assert!(none.slice(3..3).is_none());
}

#[test]
fn a_worker_without_tasks_has_done_all_of_them() {
    let job = Job::embedded().unwrap();
    let write = |elements| Task { accesses: access(vec![], vec![line(elements)]), after: vec![] };
    let graph =
        Arc::new(TaskGraph::new(vec![vec![8]], vec![vec![write(0..4), write(4..8)], vec![]]).unwrap());
    let mut worker = job.worker().unwrap();
    let opened =
        worker.create::<u8>(AreaSpec::new("a").copies(0), 8).unwrap().open_to_tasks(&worker).unwrap();
    std::thread::scope(|scope| {
        let (job, graph) = (&job, &graph);
        let other = scope.spawn(move || {
            let mut other = job.worker().unwrap();
            let area = other.attach::<u8>("a").unwrap();
            // It begins and is gone, as far as the run is concerned, before worker 0 looks.
            drop(TaskRun::begin(&other, graph.clone(), &[area.in_place()]).unwrap());
        });
        while !other.is_finished() {
            worker.service().unwrap();
        }
    });
    let mut run = TaskRun::begin(&worker, graph, &[opened.area().in_place()]).unwrap();
    for _ in 0..2 {
        run.next(&worker).unwrap().end();
    }
    assert_eq!(run.done(), 2);
}

/// Two areas, each open to the tasks of one run. Of the first run, worker 0 has two tasks, and worker 1 one that comes after the
/// second of them.
#[test]
fn a_worker_is_in_one_run_at_a_time() {
    let job = Job::embedded().unwrap();
    let write = |elements, after| Task { accesses: access(vec![], vec![line(elements)]), after };
    let first = vec![vec![write(0..4, vec![]), write(4..8, vec![])], vec![write(0..8, vec![(0, 2)])]];
    let first = Arc::new(TaskGraph::new(vec![vec![8]], first).unwrap());
    let second = vec![vec![write(0..4, vec![]); 3]];
    let second = Arc::new(TaskGraph::new(vec![vec![8]], second).unwrap());
    let mut worker = job.worker().unwrap();
    let open = |worker: &mut Worker, name: &str| {
        worker.create::<u8>(AreaSpec::new(name).copies(0), 8).unwrap().open_to_tasks(worker).unwrap()
    };
    let (a, b) = (open(&mut worker, "a"), open(&mut worker, "b"));
    let (begin, begun) = std::sync::mpsc::channel();
    let (tell, told) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let (job, graph) = (&job, &first);
        scope.spawn(move || {
            let mut other = job.worker().unwrap();
            let area = other.attach::<u8>("a").unwrap();
            let run = TaskRun::begin(&other, graph.clone(), &[area.in_place()]).unwrap();
            begin.send(()).unwrap();
            while told.try_recv().is_err() {
                other.service().unwrap();
            }
            // Worker 0 has done three tasks of another run, and one of this.
            assert!(matches!(run.is_ready(&other), Err(Error::TaskLeft { rank: 0 })));
            begin.send(()).unwrap();
        });
        begun.recv().unwrap();
        let (a, b) = (a.area(), b.area());
        let mut older = TaskRun::begin(&worker, first.clone(), &[a.in_place()]).unwrap();
        older.next(&worker).unwrap().end();
        let mut newer = TaskRun::begin(&worker, second.clone(), &[b.in_place()]).unwrap();
        assert!(matches!(older.next(&worker), Err(Error::Tasks { .. })));
        drop(older);
        // Nor are tasks done by a worker of another job.
        let elsewhere = Job::embedded().unwrap();
        assert!(matches!(newer.is_ready(&elsewhere.worker().unwrap()), Err(Error::Tasks { .. })));
        for _ in 0..3 {
            newer.next(&worker).unwrap().end();
        }
        tell.send(()).unwrap();
        begun.recv().unwrap();
        while job.workers().unwrap().len() > 1 {
            worker.service().unwrap();
        }
    });
}

/// One that dies says nothing: its part in the run is never dropped.
#[test]
fn a_worker_that_dies_is_noticed_by_those_who_wait() {
    let job = Job::embedded().unwrap();
    let graph = one_after_the_other();
    let mut worker = job.worker().unwrap();
    let opened =
        worker.create::<u8>(AreaSpec::new("a").copies(0), 8).unwrap().open_to_tasks(&worker).unwrap();
    let area = opened.area();
    let (begin, begun) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    std::thread::scope(|scope| {
        let (job, graph) = (&job, &graph);
        scope.spawn(move || {
            let mut other = job.worker().unwrap();
            begin.send(()).unwrap();
            let area = other.attach::<u8>("a").unwrap();
            std::mem::forget(TaskRun::begin(&other, graph.clone(), &[area.in_place()]).unwrap());
            begin.send(()).unwrap();
            while ended.try_recv().is_err() {
                other.service().unwrap();
            }
        });
        begun.recv().unwrap();
        let mut run = TaskRun::begin(&worker, graph.clone(), &[area.in_place()]).unwrap();
        begun.recv().unwrap();
        run.check_begun(&worker).unwrap();
        end.send(()).unwrap();
        assert!(matches!(run.wait_for_living(&mut worker), Err(Error::TaskLeft { rank: 1 })));
    });
}

/// A task of worker `1 - reader` that writes all elements; the other has none.
pub(super) fn written_by_the_other(reader: usize) -> Arc<TaskGraph> {
    let mut tasks = vec![vec![], vec![]];
    tasks[1 - reader].push(Task { accesses: access(vec![], vec![line(0..512)]), after: vec![] });
    Arc::new(TaskGraph::new(vec![vec![512]], tasks).unwrap())
}

/// An observer has all reader copies of an area for a while: what was written is published when it lets go of one, and not before.
#[test]
fn an_area_is_opened_when_what_was_written_is_published() {
    let job = Job::builder().hosts(&[1, 1], 0).reserve(1 << 26).embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u64>(AreaSpec::new("rows").copies(2).on_demand(), 100).unwrap();
    let (ask, asked) = std::sync::mpsc::channel::<()>();
    let (has_pinned, pinned) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let job = &job;
        scope.spawn(move || {
            let observer = job.observer().unwrap();
            let area = job.attach_within::<u64>("rows", std::time::Duration::from_secs(20)).unwrap();
            let mut pins = Vec::new();
            while asked.recv().is_ok() {
                pins.push(observer.read(&area).unwrap());
                has_pinned.send(()).unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(200));
        });
        loop {
            ask.send(()).unwrap();
            pinned.recv().unwrap();
            owned.write(&worker).unwrap().fill(7);
            if worker.sync().unwrap().postponed > 0 {
                break;
            }
        }
        drop(ask);
        let refused = owned.open_to_tasks(&worker).unwrap_err();
        assert!(matches!(refused.error, Error::InvalidArea { .. }), "{refused:?}");
        let opened = refused.owned.open_to_tasks_published(&mut worker).unwrap();
        assert_eq!(opened.area().read(&worker).unwrap(), [7; 100]);
    });
}

#[test]
fn an_area_that_stays_open_is_read_between_runs_by_all() {
    let job = Job::embedded().unwrap();
    let work = |worker: &mut Worker| {
        worker.wait_for_workers(2, std::time::Duration::from_secs(60)).unwrap();
        let _opened = (worker.rank() == 0).then(|| {
            let owned = worker.create::<u64>(AreaSpec::new("a").copies(0), 512).unwrap();
            owned.open_to_tasks(worker).unwrap()
        });
        worker.barrier().unwrap();
        let area = worker.attach::<u64>("a").unwrap();
        let mut runs = area.runs();
        assert!(area.read_between_runs(worker, &runs).unwrap_err().to_string().contains("begun none"));
        for number in 0..2000u64 {
            let graph = written_by_the_other(number as usize % 2);
            let mut run = loop {
                match TaskRun::begin_next(worker, graph.clone(), &mut [&mut runs]) {
                    Ok(run) => break run,
                    // The other has not ended the last one.
                    Err(_) => worker.service().unwrap(),
                };
            };
            if run.is_empty() && number % 3 == 0 {
                let early = area.read_between_runs(worker, &runs);
                assert!(early.is_err() || early.unwrap() == [number; 512]);
            }
            run_all(worker, &mut run, |task| {
                let mut all = task.patches::<u64, 1>(&area, 0).unwrap();
                all.slice_mut(0..512).unwrap().fill(number);
            });
            let read = loop {
                match area.read_between_runs(worker, &runs) {
                    Ok(read) => break read,
                    Err(_) => std::thread::yield_now(),
                }
            };
            for _ in 0..1 + number % 4 {
                assert_eq!(read, [number; 512]);
            }
        }
        worker.barrier().unwrap();
    };
    std::thread::scope(|scope| {
        let (job, work) = (&job, &work);
        (0..2).for_each(|_| {
            scope.spawn(move || work(&mut job.worker().unwrap()));
        });
    });
}

#[test]
fn a_run_goes_on_after_the_last_one_of_the_same_worker_only() {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let opened =
        worker.create::<u8>(AreaSpec::new("a").copies(0), 8).unwrap().open_to_tasks(&worker).unwrap();
    let (area, mut runs, mut others) = (opened.area(), opened.area().runs(), opened.area().runs());
    let task = || Task { accesses: access(vec![], vec![line(0..8)]), after: vec![] };
    let alone = Arc::new(TaskGraph::new(vec![vec![8]], vec![vec![task()]]).unwrap());
    let two = Arc::new(TaskGraph::new(vec![vec![8]], vec![vec![task()], vec![]]).unwrap());
    let next = |worker: &mut Worker, graph: &Arc<TaskGraph>, runs: &mut crate::tasks::Runs| {
        TaskRun::begin_next(worker, graph.clone(), &mut [runs])
    };
    let mut run = next(&mut worker, &alone, &mut runs).unwrap();
    // Not ended, and so neither read nor followed by another.
    assert!(area.read_between_runs(&worker, &runs).unwrap_err().to_string().contains("not ended"));
    assert!(next(&mut worker, &alone, &mut others).is_err());
    run_all(&mut worker, &mut run, |_| {});
    assert!(area.read_between_runs(&worker, &runs).is_ok());
    // Who has not begun the last one, or would change how many are in it.
    assert!(next(&mut worker, &alone, &mut others).is_err());
    assert!(TaskRun::begin(&worker, alone.clone(), &[area.in_place()]).is_err());
    assert!(area.read_between_runs(&worker, &others).is_err());
    assert!(next(&mut worker, &two, &mut runs).is_err());
    // Left before its end.
    let opened =
        opened.close(&mut worker).unwrap().finish(&mut worker).unwrap().open_to_tasks(&worker).unwrap();
    assert!(matches!(area.read_between_runs(&worker, &runs), Err(Error::NotOpen { .. })));
    drop(next(&mut worker, &alone, &mut runs).unwrap());
    assert!(area.read_between_runs(&worker, &runs).is_err());
    assert!(next(&mut worker, &alone, &mut runs).is_err());
    // Opened anew, it begins anew; who lets go of it leaves what the tasks wrote.
    let opened =
        opened.close(&mut worker).unwrap().finish(&mut worker).unwrap().open_to_tasks(&worker).unwrap();
    let mut run = next(&mut worker, &alone, &mut runs).unwrap();
    run_all(&mut worker, &mut run, |task| {
        task.patches::<u8, 1>(&area, 0).unwrap().slice_mut(0..8).unwrap().fill(3);
    });
    drop(opened);
    assert_eq!(area.read_between_runs(&worker, &runs).unwrap(), [3; 8]);
    let owned = worker.claim::<u8>("a").unwrap();
    assert!(area.read_between_runs(&worker, &runs).is_err());
    drop(owned);
}
