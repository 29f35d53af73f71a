//! A run of a task graph: who waits for whom, and what each task may touch.
use super::patches::{Patch, Patches};
use crate::api::area::handle::Area;
use crate::api::worker::Worker;
use crate::engine::area_core::AreaCore;
use crate::engine::shared::Shared;
use crate::engine::wait::{futex_wake_all, low_half};
use crate::error::{Error, Rank, Result};
use crate::protocol::ownership;
use crate::protocol::tasks::{Access, Done, TaskGraph, TaskWords};
use crate::segment::element::Element;
use fnv::FnvHasher;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    areas: Vec<InPlace>,
    shared: Arc<Shared>,
    rank: Rank,
    /// That of the worker: another may take the rank after it.
    incarnation: u32,
    /// The number of the run, which no other has.
    number: u64,
    done: usize,
    /// Which workers were seen in the run, and by how many tasks.
    seen: RefCell<Vec<Option<u64>>>,
    /// Workers do not go to other threads.
    of_thread: PhantomData<*const ()>,
}

/// An area that is open to tasks, of whatever elements ([`Area::in_place`]).
#[derive(Clone, Debug)]
pub struct InPlace {
    core: Arc<AreaCore>,
    epoch: u64,
}

impl<T: Element> Area<T> {
    /// The area, for [`TaskRun::begin`].
    pub fn in_place(&self) -> InPlace {
        InPlace { core: self.core.clone(), epoch: 0 }
    }
}

/// The words of a worker.
fn words(shared: &Shared, rank: Rank) -> &TaskWords {
    &shared.segment.all_seats()[rank as usize].tasks
}

fn incarnation(shared: &Shared, rank: Rank) -> u32 {
    // Relaxed: a worker's own does not change while it lives.
    shared.segment.all_seats()[rank as usize].incarnation.load(Ordering::Relaxed)
}

impl TaskRun {
    /// Begins the part of this worker, which has a rank below [`TaskGraph::workers`]; the others do the same, with the same
    /// graph and the same areas, one for each of [`TaskGraph::shapes`]. No task runs before all have begun. A worker is in one
    /// run at a time: of one that it is in already it does no more tasks. It begins the next when the others have ended
    /// this one.
    ///
    /// # Errors
    /// [`Error::NotOpen`] for an area that is not open to tasks, [`Error::Tasks`] when areas or workers do not fit the
    /// graph, when another run uses the areas, and on several hosts; [`Error::Deleted`], [`Error::OtherJob`].
    pub fn begin(worker: &Worker, graph: Arc<TaskGraph>, areas: &[InPlace]) -> Result<TaskRun> {
        let rank = worker.rank();
        let refuse = |what: String| Err(Error::Tasks { rank, what });
        let workers = graph.workers();
        let shared = worker.shared();
        let seats = shared.segment.all_seats().len();
        if rank as usize >= workers || workers > seats || shared.segment.spans_hosts() {
            return refuse(format!("they are for workers 0 to {} of one host", workers.saturating_sub(1)));
        }
        if areas.is_empty() || areas.len() != graph.shapes().len() {
            return refuse(format!(
                "they have {} arrays, and were given {} areas",
                graph.shapes().len(),
                areas.len()
            ));
        }
        let mut hash = FnvHasher::default();
        graph.digest().hash(&mut hash);
        let mut areas = areas.to_vec();
        for (at, (area, shape)) in areas.iter_mut().zip(graph.shapes()).enumerate() {
            let core = &area.core;
            core.check_job(worker.shared())?;
            core.check_live()?;
            let word = ownership::load_to_read(&core.slot().own.ownership);
            if !word.is_open_to_tasks() {
                return Err(Error::NotOpen { name: core.name.clone(), owner: word.to_string() });
            }
            let elements = shape.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent));
            if elements.is_none_or(|elements| elements > core.len) {
                return refuse(format!(
                    "area {:?} has {} elements, fewer than {shape:?}",
                    core.name, core.len
                ));
            }
            area.epoch = word.epoch();
            (at, core.id.index, core.id.generation, area.epoch).hash(&mut hash);
        }
        if let Some(twice) =
            (1..areas.len()).find(|at| areas[..*at].iter().any(|a| a.core.id == areas[*at].core.id))
        {
            return refuse(format!("area {:?} stands for two arrays", areas[twice].core.name));
        }
        // Not 0, which is no run.
        let number = hash.finish().max(1);
        for area in &areas {
            let own = &area.core.slot().own;
            // Relaxed: these only say who may begin. What tasks have written is ordered by the words of the workers.
            let used = own.run.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed);
            let is_of_run = used.is_ok() || used == Err(number);
            // Whoever has done its tasks does not begin again.
            if !is_of_run || own.begun.fetch_add(1, Ordering::Relaxed) >= workers as u64 {
                return refuse(format!(
                    "other tasks use area {:?} in place: it is to be closed and opened anew for these",
                    area.core.name
                ));
            }
        }
        let own = words(shared, rank);
        if own.begin(number) {
            futex_wake_all(low_half(own.futex()));
        }
        let seen = RefCell::new(vec![None; workers]);
        if graph.of(rank).is_empty() {
            own.finish();
        }
        let (shared, incarnation) = (shared.clone(), incarnation(shared, rank));
        Ok(TaskRun { graph, areas, shared, rank, incarnation, number, done: 0, seen, of_thread: PhantomData })
    }

    /// Refuses a worker that did not begin the run, or that has begun another since.
    #[inline]
    fn check(&self, worker: &Worker) -> Result<()> {
        if self.is_of(worker.shared(), worker.rank()) && words(&self.shared, self.rank).is_in(self.number) {
            return Ok(());
        }
        let what = "another worker has begun their run, or this one has begun another run since".into();
        Err(Error::Tasks { rank: worker.rank(), what })
    }

    #[inline]
    fn is_of(&self, shared: &Arc<Shared>, rank: Rank) -> bool {
        Arc::ptr_eq(&self.shared, shared)
            && rank == self.rank
            && incarnation(&self.shared, rank) == self.incarnation
    }

    /// How many tasks this worker has done.
    pub fn done(&self) -> usize {
        self.done
    }

    /// How many tasks this worker has in all.
    pub fn len(&self) -> usize {
        self.graph.of(self.rank).len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether this worker has a next task, and what comes before it is done.
    ///
    /// # Errors
    /// [`Error::TaskLeft`] when a worker has left the run before it had done all its tasks, [`Error::Tasks`] for a worker that
    /// has not begun the run.
    #[inline]
    pub fn is_ready(&self, worker: &Worker) -> Result<bool> {
        Ok(self.done < self.len() && self.behind(worker)?.is_none())
    }

    /// A worker that has something to do before the next task of this one.
    #[inline]
    fn behind(&self, worker: &Worker) -> Result<Option<Rank>> {
        self.check(worker)?;
        let Some(task) = self.graph.of(self.rank).get(self.done) else { return Ok(None) };
        let mut seen = self.seen.borrow_mut();
        if self.done == 0 {
            // A run that not all have begun may be refused by one of them.
            for rank in 0..seen.len() {
                if !self.has_done(rank, 0, &mut seen)? {
                    return Ok(Some(rank as Rank));
                }
            }
        }
        for &(rank, count) in &task.after {
            if !self.has_done(rank as usize, count as u64, &mut seen)? {
                return Ok(Some(rank));
            }
        }
        Ok(None)
    }

    /// Waits until what comes before the next task is done, and serves rounds meanwhile: spins, if there is a core for every
    /// worker, then sleeps. `look` is called every few milliseconds, to see whether it still comes: of a worker that has died
    /// nothing is known here.
    ///
    /// # Errors
    /// Those of `look`, of [`Worker::service`], and of [`TaskRun::is_ready`].
    pub fn wait<E: From<Error>>(
        &self,
        worker: &mut Worker,
        mut look: impl FnMut(&Worker) -> Result<(), E>,
    ) -> Result<(), E> {
        for _ in 0..worker.spins() {
            if self.behind(worker)?.is_none() {
                return Ok(());
            }
            worker.service()?;
            std::hint::spin_loop();
        }
        worker.forget_waiting();
        while let Some(rank) = self.behind(worker)? {
            let theirs = words(&self.shared, rank);
            let word = theirs.expect_sleep();
            let waited = match self.behind(worker) {
                Ok(Some(other)) if other == rank => worker.wait_step(Some(word)).map(drop),
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            theirs.end_sleep();
            waited?;
            look(worker)?;
        }
        Ok(())
    }

    #[inline]
    fn has_done(&self, rank: usize, count: u64, seen: &mut [Option<u64>]) -> Result<bool> {
        if seen[rank].is_some_and(|done| done >= count) {
            return Ok(true);
        }
        let done = match words(&self.shared, rank as Rank).done_in(self.number) {
            Done::Some(done) => done,
            Done::All => u64::MAX,
            Done::NotBegun if seen[rank].is_none() => return Ok(false),
            Done::NotBegun | Done::Left => return Err(Error::TaskLeft { rank: rank as Rank }),
        };
        seen[rank] = Some(done);
        Ok(done >= count)
    }

    /// Begins the next task.
    ///
    /// # Errors
    /// [`Error::Tasks`] if there is none, or it is not ready ([`TaskRun::is_ready`]).
    pub fn next<'r>(&'r mut self, worker: &'r Worker) -> Result<RunningTask<'r>> {
        if !self.is_ready(worker)? {
            let what = format!("task {} is not ready", self.done);
            return Err(Error::Tasks { rank: worker.rank(), what });
        }
        let taken = RefCell::new(vec![false; self.areas.len()]);
        Ok(RunningTask { run: self, worker, taken })
    }
}

impl Drop for TaskRun {
    fn drop(&mut self) {
        // Whoever waits for tasks that were not done learns that they will not be. Not if the worker is gone, whose rank another
        // may have, nor in a forked child.
        if self.shared.check_process().is_ok() && incarnation(&self.shared, self.rank) == self.incarnation {
            words(&self.shared, self.rank).leave(self.number);
        }
    }
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
        let held = run.areas.get(array).filter(|held| held.core.id == area.core.id);
        let shape = run.graph.shapes().get(array).and_then(|shape| <[usize; N]>::try_from(&shape[..]).ok());
        let (Some(held), Some(shape), Some(false)) = (held, shape, self.taken.borrow().get(array).copied())
        else {
            let what = format!("area {:?} is not array {array} of the task, or asked for twice", area.name());
            return Err(Error::Tasks { rank: run.rank, what });
        };
        let core = &held.core;
        core.check_job(self.worker.shared())?;
        core.check_live()?;
        let word = ownership::load_to_read(&core.slot().own.ownership);
        if !word.is_open_to_tasks() || word.epoch() != held.epoch {
            return Err(Error::NotOpen { name: core.name.clone(), owner: word.to_string() });
        }
        self.taken.borrow_mut()[array] = true;
        let start = core.parts().writer().cast::<T>();
        let mut patches = Vec::new();
        let task = &run.graph.of(run.rank)[run.done];
        if let Some(Access { reads, writes, .. }) = task.accesses.iter().find(|access| access.array == array)
        {
            for at in 0..reads.len().max(writes.len()) {
                // SAFETY: `Patch::new` asks for three things. The area has as many elements as the shape, found when the
                // run began, of type `T`, as of every handle. The task was begun when all before it were done, which was
                // acquired (`TaskWords::done_in`), and those after it wait until it has ended; those that may run beside it
                // touch none of its elements if one of the two writes them, for so was the graph checked. Whoever is in
                // the run has the same graph, areas and epochs: all are in its number. Outside of the run nobody touches
                // the area while it is open to tasks in this epoch, and there is no other run in the epoch (`begin`). A new
                // owner waits until this worker has been at a synchronization point (`wait_for_readers`), which needs
                // `&mut Worker` and so ends `'a`. And there is one set of patches of an array, which lends its elements as
                // it is borrowed itself.
                patches.push(unsafe { Patch::new(start, &shape, reads.get(at), writes.get(at)) });
            }
        }
        Ok(Patches::new(patches))
    }

    /// The task is done: others that come after it may begin.
    pub fn end(self) {
        let RunningTask { run, worker, .. } = self;
        // A worker that has begun another run since has left this one.
        if run.check(worker).is_err() {
            return;
        }
        run.done += 1;
        let own = words(&run.shared, run.rank);
        if own.advance(run.done == run.len()) {
            futex_wake_all(low_half(own.futex()));
        }
    }
}
