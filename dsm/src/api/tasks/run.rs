//! A run of a task graph: who waits for whom, and what each task may touch.
use super::between_hosts::{self, Between, Described};
use super::ended::EndedRun;
use super::part::{InPlace, Order, Part, PastIn};
use super::patch::Patch;
use super::patches::Patches;
use super::runs::Runs;
use crate::api::area::handle::Area;
use crate::api::worker::Worker;
use crate::error::{Error, Rank, Result};
use crate::protocol::tasks::{Access, TaskGraph};
use crate::segment::element::Element;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// One worker's part in running a [`TaskGraph`] over areas that are open to tasks
/// ([`Owned::open_to_tasks`](crate::Owned::open_to_tasks)).
///
/// ```
/// use hectare_dsm::tasks::{Access, Region, Task, TaskGraph, TaskRun};
/// use hectare_dsm::{AreaSpec, Job};
/// use std::sync::Arc;
///
/// let job = Job::embedded()?;
/// let mut worker = job.worker()?;
/// let owned = worker.create::<f32>(AreaSpec::new("grid").copies(0), 6)?;
/// let (area, opened) = (owned.area(), owned.open_to_tasks(&worker)?);
/// // A task of the only worker: it may write the second row of two, of three elements each.
/// let access = Access { array: 0, reads: vec![], writes: vec![Region::of([1..2, 0..3])] };
/// let tasks = vec![vec![Task { accesses: vec![access], after: vec![] }]];
/// let graph = Arc::new(TaskGraph::new(vec![vec![2, 3]], tasks)?);
/// let mut run = TaskRun::begin(&worker, graph, &[area.in_place()])?;
/// while run.is_ready(&worker)? {
///     let task = run.next(&worker)?;
///     let mut rows = task.patches::<f32, 2>(&area, 0)?;
///     rows.row_mut([1, 0]).unwrap().fill(2.0);
///     assert!(rows.get_mut([0, 0]).is_err());
///     drop(rows);
///     task.end();
/// }
/// drop(run);
/// let grid = opened.close(&mut worker)?.finish(&mut worker)?;
/// assert_eq!(grid.read(&worker)?, [0.0, 0.0, 0.0, 2.0, 2.0, 2.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TaskRun {
    graph: Arc<TaskGraph>,
    part: Part,
    /// In a job on several hosts.
    between: Option<RefCell<Between>>,
    /// There, whether the last task has ended, and others are still to be told.
    is_untold: Cell<bool>,
}

impl TaskRun {
    /// The same as [`TaskRun::begin`] in a job on one host or on several, where all workers of the job meet in it once
    /// ([`Worker::barrier`]), when owners have opened their areas; who cannot begin calls
    /// [`RowRun::decline`](super::rows::RowRun::decline) instead. On several hosts, areas are sent on demand
    /// ([`AreaSpec::on_demand`](crate::AreaSpec::on_demand)). Each host gets a copy of them while the run lasts, and elements that a task of
    /// another host touches next are sent there. A task that has ended ([`RunningTask::end`]) is known to others from the next wait of
    /// this worker on, for which [`TaskRun::is_ready`] says that there is something to wait for; or from its end of the run.
    ///
    /// # Errors
    /// Those of [`TaskRun::begin`] and of [`RowRun::begin`](super::rows::RowRun::begin).
    pub fn begin_on_hosts(worker: &mut Worker, graph: Arc<TaskGraph>, areas: &[InPlace]) -> Result<TaskRun> {
        if !worker.shared().segment.spans_hosts() {
            return TaskRun::begin(worker, graph, areas);
        }
        let described = Described {
            order: order(worker, &graph, 0),
            passes: 1,
            tasks: graph.of(worker.rank()).len(),
            misfit: &|at, area| misfit(&graph, at, area),
            unit_bytes: &|_, area| area.element_bytes(),
            crossing: &|places| Ok(graph.crossing_of(places)?),
        };
        let (part, between) = between_hosts::begin(worker, &described, areas)?;
        Ok(TaskRun { graph, part, between: Some(between), is_untold: Cell::new(false) })
    }

    /// Begins the part of this worker, which has a rank below [`TaskGraph::workers`]; the others do the same, with the same
    /// graph and the same areas, one for each of [`TaskGraph::shapes`]. No task runs before all have begun. A worker is in one
    /// run at a time: of one that it is in already it does no more tasks. It begins the next when the others have ended
    /// this one. Whether workers have the same graph is found by a hash of it (FNV, of 64 bits), which is not made against intent.
    ///
    /// # Errors
    /// [`Error::NotOpen`] for an area that is not open to tasks, [`Error::Tasks`] when areas or workers do not fit the
    /// graph, when another run uses the areas, and on several hosts; [`Error::Deleted`], [`Error::OtherJob`].
    pub fn begin(worker: &Worker, graph: Arc<TaskGraph>, areas: &[InPlace]) -> Result<TaskRun> {
        TaskRun::begin_after(worker, graph, areas, |_| None)
    }

    /// The same over areas that were opened once for several runs, of the same workers each: this is the next after those that
    /// `areas` tell of. Between two runs all may read them ([`Area::read_between_runs`]).
    ///
    /// ```
    /// use hectare_dsm::tasks::{Access, Region, Task, TaskGraph, TaskRun};
    /// use hectare_dsm::{AreaSpec, Job};
    /// use std::sync::Arc;
    ///
    /// let job = Job::embedded()?;
    /// let mut worker = job.worker()?;
    /// let owned = worker.create::<u32>(AreaSpec::new("counts").copies(0), 2)?;
    /// let (area, _opened) = (owned.area(), owned.open_to_tasks(&worker)?);
    /// let access = Access { array: 0, reads: vec![], writes: vec![Region::of([0..1])] };
    /// let tasks = vec![vec![Task { accesses: vec![access], after: vec![] }]];
    /// let graph = Arc::new(TaskGraph::new(vec![vec![2]], tasks)?);
    /// let mut runs = area.runs();
    /// for number in 1..=3 {
    ///     let mut run = TaskRun::begin_next(&mut worker, graph.clone(), &mut [&mut runs])?;
    ///     let task = run.next(&worker)?;
    ///     *task.patches::<u32, 1>(&area, 0)?.get_mut([0]).unwrap() += 1;
    ///     task.end();
    ///     assert_eq!(area.read_between_runs(&worker, &runs)?, [number, 0]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`TaskRun::begin`]; [`Error::Tasks`] as well when a worker has not ended the last run, or this one did not begin it.
    pub fn begin_next(
        worker: &mut Worker,
        graph: Arc<TaskGraph>,
        areas: &mut [&mut Runs],
    ) -> Result<TaskRun> {
        let in_place: Vec<InPlace> = areas.iter().map(|runs| runs.area().clone()).collect();
        let run = TaskRun::begin_after(worker, graph, &in_place, |at| areas[at].past(worker))?;
        areas.iter_mut().enumerate().for_each(|(at, runs)| runs.add(&run.part, at));
        Ok(run)
    }

    fn begin_after(
        worker: &Worker,
        graph: Arc<TaskGraph>,
        areas: &[InPlace],
        past: impl Fn(usize) -> Option<PastIn>,
    ) -> Result<TaskRun> {
        if worker.shared().segment.spans_hosts() {
            let what =
                "this job is on several hosts, where all workers meet first: use `begin_on_hosts`".into();
            return Err(Error::Tasks { rank: worker.rank(), what });
        }
        let order = order(worker, &graph, graph.workers());
        let part = Part::begin(worker, &order, areas, past, |at, area| misfit(&graph, at, area))?;
        Ok(TaskRun { graph, part, between: None, is_untold: Cell::new(false) })
    }

    /// How many tasks this worker has done.
    pub fn done(&self) -> usize {
        self.part.done() as usize
    }

    /// How many tasks this worker has in all.
    pub fn len(&self) -> usize {
        self.part.tasks() as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Tells others on several hosts that the last task has ended, if they have not been told.
    fn tell(&mut self, worker: &mut Worker) -> Result<()> {
        if let Some(between) = self.between.as_ref().filter(|_| self.is_untold.get()) {
            between.borrow_mut().end_task(worker, &mut self.part)?;
            // Not after an error: with another worker, for instance, it is still to be told.
            self.is_untold.set(false);
        }
        Ok(())
    }

    /// Waits as [`Part::wait`] does, for the dependences of the next task.
    fn wait_ready<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        mut look: impl FnMut(&Part, &Worker, Rank, &[(Rank, u64)]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.tell(worker)?;
        let (part, after) = (&self.part, self.all_after());
        let look = |worker: &Worker, rank| look(part, worker, rank, &after);
        match &self.between {
            None => part.wait(worker, after.iter().copied(), look, |_| Ok(())),
            Some(between) => between.borrow_mut().wait(worker, part, after.iter().copied(), look),
        }
    }

    /// The dependences of the next task, those by data of other hosts included.
    fn all_after(&self) -> Vec<(Rank, u64)> {
        let mut all: Vec<_> = self.after().collect();
        if let Some(between) = &self.between {
            all.extend(between.borrow().needs(self.part.done()));
        }
        all
    }

    /// The dependences of the next task: other workers, and how many of their tasks must be done.
    #[inline]
    fn after(&self) -> impl Iterator<Item = (Rank, u64)> + Clone {
        let task = self.graph.of(self.part.rank()).get(self.done());
        task.into_iter().flat_map(|task| &task.after).map(|&(rank, count)| (rank, count as u64))
    }

    /// Whether this worker has a next task, and what comes before it is done.
    ///
    /// # Errors
    /// [`Error::TaskLeft`] when a worker has left the run before it had done all its tasks, [`Error::Tasks`] for a worker that
    /// has not begun the run.
    #[inline]
    pub fn is_ready(&self, worker: &Worker) -> Result<bool> {
        if let Some(between) = &self.between {
            // What others need before the first tasks is sent by a wait.
            let is_next = self.done() < self.len() && !self.is_untold.get() && between.borrow().is_started();
            return Ok(is_next && self.part.behind(worker, self.all_after().into_iter())?.is_none());
        }
        Ok(self.done() < self.len() && self.part.behind(worker, self.after())?.is_none())
    }

    /// Waits until what comes before the next task is done, and serves rounds meanwhile: spins, if there is a core for every
    /// worker, then sleeps. `look` is called every few milliseconds, to see whether it still comes: of a worker that has died
    /// nothing is known here.
    ///
    /// # Errors
    /// Those of `look`, after which the worker can wait again; of [`Worker::service`], and of [`TaskRun::is_ready`].
    pub fn wait<E: From<Error>>(
        &mut self,
        worker: &mut Worker,
        mut look: impl FnMut(&Worker) -> Result<(), E>,
    ) -> Result<(), E> {
        self.wait_ready(worker, |_, worker, _, _| look(worker))
    }

    /// The same, of workers that are in the job when this one begins its part: one of them that dies is noticed.
    ///
    /// # Errors
    /// [`Error::TaskLeft`] when a worker that is waited for has died; those of [`TaskRun::wait`].
    pub fn wait_for_living(&mut self, worker: &mut Worker) -> Result<()> {
        self.wait_ready(worker, |part, worker, rank, after| {
            part.check_present(worker, rank, after.iter().copied())
        })
    }

    /// Waits until all workers have begun the run, as [`TaskRun::wait`] does; a worker without tasks waits for nobody.
    ///
    /// # Errors
    /// Those of [`TaskRun::wait`].
    pub fn wait_for_all<E: From<Error>>(
        &self,
        worker: &mut Worker,
        mut look: impl FnMut(&Worker) -> Result<(), E>,
    ) -> Result<(), E> {
        let look = |worker: &Worker, _| look(worker);
        match &self.between {
            None => self.part.wait(worker, std::iter::empty(), look, |_| Ok(())),
            Some(between) => between.borrow_mut().wait(worker, &self.part, std::iter::empty(), look),
        }
    }

    /// Whether a worker has begun the run; it may have ended it, or left it. Of one of another host this is known when a worker of this one
    /// has waited since.
    ///
    /// # Panics
    /// For ranks that no worker has.
    pub fn has_begun(&self, rank: Rank) -> bool {
        self.part.has_begun(rank)
    }

    /// Finds out whether all have begun, when they have met since they did, in [`Worker::barrier`] for instance.
    ///
    /// # Errors
    /// [`Error::TaskLeft`] for one that has not, [`Error::NoSuchWorker`] if it has not come to the job yet; [`Error::Tasks`] as of
    /// [`TaskRun::is_ready`].
    pub fn check_begun(&self, worker: &Worker) -> Result<()> {
        self.part.check(worker)?;
        if let Some(between) = &self.between {
            between.borrow().check_begun(worker)?;
        }
        self.part.check_begun(worker)
    }

    /// Ends the run. If this worker has not done all its tasks, others that wait for them are told that it has left. On several hosts, a
    /// worker that has done all waits until its host has all elements that belong there in the end, or another worker has left.
    ///
    /// # Errors
    /// On several hosts those of [`Worker::service`].
    pub fn end(mut self, worker: &mut Worker) -> Result<EndedRun> {
        self.tell(worker)?;
        if let Some(between) = &self.between {
            between.borrow_mut().end(worker, &self.part)?;
        }
        Ok(EndedRun::of(self.part))
    }

    /// The address of element 0 of an array, for programs that see to it themselves that they touch only what the graph gives them in the
    /// task that they have begun. `area` is the one that the run was begun with, and `array` its place there.
    ///
    /// # Errors
    /// Those of [`RunningTask::patches`].
    pub fn as_ptr<T: Element>(&self, area: &Area<T>, array: usize) -> Result<*mut T> {
        self.part.start(area, array)
    }

    /// Begins the next task.
    ///
    /// # Errors
    /// [`Error::Tasks`] if there is none, or it is not ready ([`TaskRun::is_ready`]).
    pub fn next<'r>(&'r mut self, worker: &'r Worker) -> Result<RunningTask<'r>> {
        if !self.is_ready(worker)? {
            let what = format!("task {} is not ready", self.done());
            return Err(Error::Tasks { rank: worker.rank(), what });
        }
        let taken = RefCell::new(vec![false; self.graph.shapes().len()]);
        Ok(RunningTask { run: self, worker, taken })
    }
}

fn order(worker: &Worker, graph: &TaskGraph, here: usize) -> Order {
    let tasks = graph.of(worker.rank()).len() as u64;
    Order { workers: graph.workers(), here, digest: graph.digest(), tasks, arrays: graph.shapes().len() }
}

fn misfit(graph: &TaskGraph, array: usize, area: &InPlace) -> Option<String> {
    let shape = &graph.shapes()[array];
    let elements = shape.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent));
    let (name, len) = (area.name(), area.len());
    let fits = elements.is_some_and(|elements| elements <= len);
    (!fits).then(|| format!("area {name:?} has {len} elements, fewer than {shape:?}"))
}

/// A task that was begun.
#[derive(Debug)]
pub struct RunningTask<'r> {
    run: &'r mut TaskRun,
    worker: &'r Worker,
    /// Arrays of which there are patches.
    taken: RefCell<Vec<bool>>,
}

impl RunningTask<'_> {
    /// The elements of an array that the task may touch. `area` is the one that the run was begun with, and `array` its place
    /// there.
    ///
    /// # Errors
    /// [`Error::NotOpen`] if it was closed or claimed meanwhile, [`Error::Deleted`], and [`Error::Tasks`] if it is not that
    /// area, has another number of dimensions, or was asked for before.
    pub fn patches<'a, T: Element, const N: usize>(
        &'a self,
        area: &Area<T>,
        array: usize,
    ) -> Result<Patches<'a, T, N>> {
        let run = &*self.run;
        let start = run.part.start(area, array)?;
        let shape = run.graph.shapes().get(array).and_then(|shape| <[usize; N]>::try_from(&shape[..]).ok());
        let (Some(shape), Some(false)) = (shape, self.taken.borrow().get(array).copied()) else {
            let what = format!("array {array} has not {N} dimensions, or was asked for twice");
            return Err(Error::Tasks { rank: run.part.rank(), what });
        };
        self.taken.borrow_mut()[array] = true;
        let mut patches = Vec::new();
        let task = &run.graph.of(run.part.rank())[run.done()];
        if let Some(Access { reads, writes, .. }) = task.accesses.iter().find(|access| access.array == array)
        {
            for at in 0..reads.len().max(writes.len()) {
                // SAFETY: `Patch::new` asks for three things. The area has as many elements as the shape, found when the
                // run began, of type `T`, as of every handle. The task was begun when all before it were done, which was
                // acquired (`TaskWords::done_in`), and those after it wait until it has ended; those that may run beside it
                // touch none of its elements if one of the two writes them, for so was the graph checked. Whoever is in
                // the run has the same graph, areas and epochs: all are in its number. Outside of the run nobody touches
                // the area while it is open to tasks in this epoch; whoever reads it between two runs is one of those without whom
                // no task of the next one begins (`Area::read_between_runs`). Another run in the epoch begins when all have ended
                // this one (`OpeningWords`). A new
                // owner waits until this worker has been at a synchronization point (`wait_for_readers`), which needs
                // `&mut Worker` and so ends `'a`. And there is one set of patches of an array, which lends its elements as
                // it is borrowed itself.
                patches.push(unsafe { Patch::new(start, &shape, reads.get(at), writes.get(at)) });
            }
        }
        Ok(Patches::new(&shape, patches))
    }

    /// The task is done: others that come after it may begin.
    pub fn end(self) {
        if self.run.between.is_some() {
            // Others are told with what it wrote.
            self.run.is_untold.set(true);
            return;
        }
        // A worker that has begun another run since is told so when it begins the next task.
        let _ = self.run.part.end_task(self.worker);
    }
}
