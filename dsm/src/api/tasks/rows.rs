//! Runs of a plan of rows that change owners in batches, in place.
use super::between_hosts::{self, Between, Described};
use super::ended::EndedRun;
use super::part::{InPlace, Order, Part, not_there};
use super::row_slices::Rows;
use crate::api::area::handle::Area;
use crate::api::worker::Worker;
use crate::error::{Error, Rank, Result};
use crate::protocol::tasks::RowPlan;
use crate::segment::element::Element;
use fnv::FnvHasher;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// One worker's part in running a [`RowPlan`] over areas that are open to tasks
/// ([`Owned::open_to_tasks`](crate::Owned::open_to_tasks)), a number of times.
///
/// Rows stay where they are. With [`RowRun::next`] those of the last batch go to whoever has them next, and those of the next
/// batch come to this worker when those have done theirs who touched them before; nobody waits for anybody else, and passes
/// follow each other without a barrier.
///
/// ```
/// use hectare_dsm::tasks::{RowList, RowPlan, RowRun, Touched};
/// use hectare_dsm::{AreaSpec, Job};
/// use std::sync::Arc;
///
/// let job = Job::embedded()?;
/// let mut worker = job.worker()?;
/// let owned = worker.create::<f32>(AreaSpec::new("rows").copies(0), 3 * 2)?;
/// let (area, opened) = (owned.area(), owned.open_to_tasks(&worker)?);
/// // Two batches of the only worker: rows 2 and 0, then row 1, which is made of row 2.
/// let lists = |rows: [&[u32]; 2]| rows.into_iter().collect::<RowList>();
/// let touched = Touched { writes: lists([&[2, 0], &[1]]), reads: lists([&[], &[2]]) };
/// let plan = Arc::new(RowPlan::new(vec![3], 2, vec![vec![touched]])?);
/// let mut run = RowRun::begin(&mut worker, plan, 10, &[area.in_place()])?;
/// while let Some(batch) = run.next(&mut worker)? {
///     let mut rows = batch.rows(&area, 0)?;
///     if batch.number() == 0 {
///         rows.get_mut(0).unwrap()[1] += 1.0; // row 2
///     } else {
///         let (two, one) = rows.read_and_write(0, 0).unwrap();
///         one.copy_from_slice(two);
///         assert!(rows.get_mut(1).is_none());
///     }
/// }
/// drop(run);
/// let rows = opened.close(&mut worker)?.finish(&mut worker)?;
/// assert_eq!(rows.read(&worker)?, [0.0, 0.0, 0.0, 10.0, 0.0, 10.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RowRun {
    plan: Arc<RowPlan>,
    part: Part,
    /// Whether a batch was handed out that is not done.
    is_under_way: bool,
    /// Arrays of which the batch has lent its rows.
    taken: RefCell<Vec<bool>>,
    /// In a job on several hosts.
    between: Option<RefCell<Between>>,
}

impl RowRun {
    /// Begins the part of this worker, which has a rank below [`RowPlan::workers`]; the others do the same, with the same plan,
    /// passes and areas, one for each of [`RowPlan::arrays`]. All of them are in the job when the first begins
    /// ([`Worker::wait_for_workers`]), and no batch begins before all have begun. The length of a row is that of the area
    /// divided by the number of rows. A worker is in one run at a time, of rows or of tasks, and begins the next when the others
    /// have ended this one. Whether workers have the same plan is found by a hash of it, which is not made against intent.
    ///
    /// On several hosts, an area that others than its owner's host are to find has reader copies, and is sent on demand
    /// ([`AreaSpec::on_demand`](crate::AreaSpec::on_demand)). Each host gets a copy of the rows while the run lasts, and rows that
    /// a worker of another host touches next are sent there. All workers of the job meet in this ([`Worker::barrier`]), once,
    /// when owners have opened their areas; who cannot begin calls [`RowRun::decline`] instead. Before they begin another, or the same again
    /// after an error, all meet once more: an attempt is not told from the one before.
    ///
    /// # Errors
    /// [`Error::NotOpen`] for an area that is not open to tasks, [`Error::Tasks`] when areas or workers do not fit the
    /// plan, when another run uses the areas (it is to be closed and opened again), and on several hosts when another worker has
    /// described another run; [`Error::NoSuchWorker`] for a worker that has not come yet, [`Error::TaskLeft`] for one
    /// that has left, or on several hosts could not begin; [`Error::Deleted`], [`Error::OtherJob`]; on several hosts
    /// [`Error::InvalidArea`] for an area of another host that is not sent on demand, and those of [`Worker::create`], [`Worker::attach`]
    /// and [`Worker::barrier`].
    pub fn begin(
        worker: &mut Worker,
        plan: Arc<RowPlan>,
        passes: usize,
        areas: &[InPlace],
    ) -> Result<RowRun> {
        match worker.shared().segment.spans_hosts() {
            true => RowRun::begin_on_hosts(worker, plan, passes, areas),
            false => RowRun::begin_here(worker, plan, passes, areas),
        }
    }

    /// Tells the others that this worker cannot begin a run, for whatever reason: on several hosts, where all workers meet in
    /// [`RowRun::begin`], they would wait for it there. On one host, nothing.
    ///
    /// # Errors
    /// Those of [`Worker::create`] and [`Worker::barrier`].
    pub fn decline(worker: &mut Worker) -> Result<()> {
        if worker.shared().segment.spans_hosts() {
            return between_hosts::decline(worker);
        }
        Ok(())
    }

    fn begin_here(worker: &Worker, plan: Arc<RowPlan>, passes: usize, areas: &[InPlace]) -> Result<RowRun> {
        let order = order(worker, &plan, passes, plan.workers())?;
        let part = Part::begin(worker, &order, areas, |_| None, |at, area| misfit(&plan, at, area))?;
        let shared = part.shared();
        if let Some(rank) = (0..plan.workers() as Rank).find(|rank| shared.is_gone(*rank)) {
            return Err(not_there(shared, rank));
        }
        Ok(RowRun::of(plan, part, None))
    }

    fn begin_on_hosts(
        worker: &mut Worker,
        plan: Arc<RowPlan>,
        passes: usize,
        areas: &[InPlace],
    ) -> Result<RowRun> {
        let order = match order(worker, &plan, passes, 0) {
            Ok(order) => order,
            Err(error) => {
                between_hosts::decline(worker)?;
                return Err(error);
            }
        };
        let described = Described {
            order,
            passes,
            tasks: plan.batches(),
            misfit: &|at, area| misfit(&plan, at, area),
            unit_bytes: &|at, area| {
                (area.len() * area.element_bytes()).checked_div(plan.arrays()[at]).unwrap_or(0)
            },
            crossing: &|places| Ok(plan.crossing_of(places)?),
        };
        let (part, between) = between_hosts::begin(worker, &described, areas)?;
        Ok(RowRun::of(plan, part, Some(between)))
    }

    fn of(plan: Arc<RowPlan>, part: Part, between: Option<RefCell<Between>>) -> RowRun {
        let taken = RefCell::new(vec![false; plan.arrays().len()]);
        RowRun { plan, part, is_under_way: false, taken, between }
    }

    /// The plan.
    pub fn plan(&self) -> &Arc<RowPlan> {
        &self.plan
    }

    /// Finds out whether all have begun, when they have met since they did, in [`Worker::barrier`] for instance. Without this, the
    /// first batch waits for those who live and have not begun.
    ///
    /// # Errors
    /// [`Error::TaskLeft`] for one that has not, [`Error::NoSuchWorker`] if it has not come to the job yet; [`Error::Tasks`] as of
    /// [`RowRun::next`].
    pub fn check_begun(&self, worker: &Worker) -> Result<()> {
        self.part.check(worker)?;
        if let Some(between) = &self.between {
            between.borrow().check_begun(worker)?;
        }
        self.part.check_begun(worker)
    }

    /// The bytes of rows that hosts send each other in the run, all passes together, by sender and receiver; nothing on one host. They
    /// follow from the plan and from where its areas are.
    pub fn bytes_between_hosts(&self) -> Vec<Vec<u64>> {
        self.between.as_ref().map_or_else(Vec::new, |between| between.borrow().bytes())
    }

    /// The address of row 0 of an array, for programs that see to it themselves that they touch only what the plan gives them in the
    /// batch that they have begun. `area` is the one that the run was begun with, and `array` its place there.
    ///
    /// # Errors
    /// Those of [`RowBatch::rows`].
    pub fn as_ptr<T: Element>(&self, area: &Area<T>, array: usize) -> Result<*mut T> {
        self.part.start(area, array)
    }

    /// The batch that was handed out is done, and the run ends. If it was not the last, others that wait for this worker
    /// are told that it has left. On several hosts, a worker that has done all sends the rows that belong elsewhere in the end, and waits
    /// until its host has those that belong there, or another worker has left. No worker leaves the job before all have met after this
    /// ([`Worker::barrier`]): others may not know yet that it has done all.
    ///
    /// # Errors
    /// [`Error::Tasks`] as of [`RowRun::next`]; on several hosts those of [`Worker::service`].
    pub fn end(mut self, worker: &mut Worker) -> Result<EndedRun> {
        self.end_batch(worker)?;
        if let Some(between) = &self.between {
            between.borrow_mut().end(worker, &self.part)?;
        }
        Ok(EndedRun::of(self.part))
    }

    fn end_batch(&mut self, worker: &mut Worker) -> Result<()> {
        match &self.between {
            _ if !self.is_under_way => {}
            None => self.part.end_task(worker)?,
            Some(between) => between.borrow_mut().end_task(worker, &mut self.part)?,
        }
        // Not after an error: another worker, for instance, does not end it.
        self.is_under_way = false;
        Ok(())
    }

    /// The batch that was handed out is done. Gives the next one, or nothing after the last of the last pass: waits until those
    /// have done theirs who touched its rows before, and serves rounds meanwhile.
    ///
    /// # Errors
    /// [`Error::TaskLeft`] when a worker that this one waits for has died, or has left the run before its end;
    /// [`Error::Tasks`] for a worker that has not begun the run, or has begun another since; those of [`Worker::service`].
    pub fn next<'r>(&'r mut self, worker: &'r mut Worker) -> Result<Option<RowBatch<'r>>> {
        self.end_batch(worker)?;
        worker.service()?;
        self.part.check(worker)?;
        if self.part.done() >= self.part.tasks() {
            return Ok(None);
        }
        let (pass, number) = {
            let (done, batches) = (self.part.done() as usize, self.plan.batches());
            (done / batches, done % batches)
        };
        let (plan, part) = (&self.plan, &self.part);
        let after = plan.waits(part.rank(), pass, number);
        let look = |worker: &Worker, rank| part.check_present(worker, rank, after.clone());
        match &self.between {
            None => part.wait(worker, after.clone(), look, |_| Ok(()))?,
            Some(between) => between.borrow_mut().wait(worker, part, after.clone(), look)?,
        }
        self.is_under_way = true;
        self.taken.get_mut().fill(false);
        Ok(Some(RowBatch { run: self, worker, pass, number }))
    }
}

fn order(worker: &Worker, plan: &RowPlan, passes: usize, here: usize) -> Result<Order> {
    let tasks = passes.saturating_mul(plan.batches()) as u64;
    if tasks >= crate::protocol::tasks::MOST_TASKS {
        let what = format!("{passes} passes of {} batches are too many", plan.batches());
        return Err(Error::Tasks { rank: worker.rank(), what });
    }
    let mut hash = FnvHasher::default();
    ("rows", plan.digest(), passes).hash(&mut hash);
    Ok(Order { workers: plan.workers(), here, digest: hash.finish(), tasks, arrays: plan.arrays().len() })
}

fn misfit(plan: &RowPlan, array: usize, area: &InPlace) -> Option<String> {
    let (rows, name, len) = (plan.arrays()[array], area.name(), area.len());
    let fits = if rows == 0 || len == 0 { rows == len } else { len % rows == 0 };
    (!fits).then(|| format!("area {name:?} has {len} elements, which are not {rows} rows"))
}

/// A batch of a [`RowRun`], which this worker has begun. The next call of [`RowRun::next`] ends it. A worker that ends its run
/// instead leaves it, and others that wait for the batch learn of that.
#[derive(Debug)]
pub struct RowBatch<'r> {
    run: &'r RowRun,
    /// Makes no synchronization point while it has rows.
    worker: &'r Worker,
    pass: usize,
    number: usize,
}

impl RowBatch<'_> {
    /// The number of the batch in the plan.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The worker that runs it.
    pub fn rank(&self) -> Rank {
        self.worker.rank()
    }

    /// In which pass.
    pub fn pass(&self) -> usize {
        self.pass
    }

    /// The worker.
    pub fn worker(&self) -> &Worker {
        self.worker
    }

    /// The numbers of the rows of array number `array` of the plan that this worker may write in the batch, and of those that it may
    /// read besides.
    pub fn lists(&self, array: usize) -> (&[u32], &[u32]) {
        let (plan, rank) = (&self.run.plan, self.run.part.rank());
        (plan.writes(rank, array, self.number), plan.reads(rank, array, self.number))
    }

    /// The rows of an array that this worker touches in the batch. `area` is the one that the run was begun with, and `array` its
    /// place there.
    ///
    /// # Errors
    /// [`Error::NotOpen`] if it was closed or claimed meanwhile, [`Error::Deleted`], and [`Error::Tasks`] if it is not that
    /// area, or was asked for before in this batch.
    pub fn rows<'a, T: Element>(&'a self, area: &Area<T>, array: usize) -> Result<Rows<'a, T>> {
        let run = self.run;
        run.part.check(self.worker)?;
        let start = run.part.start(area, array)?;
        if std::mem::replace(&mut run.taken.borrow_mut()[array], true) {
            let what = format!("the rows of array {array} were asked for twice");
            return Err(Error::Tasks { rank: run.part.rank(), what });
        }
        let (plan, rank) = (&run.plan, run.part.rank());
        let len = area.len().checked_div(plan.arrays()[array]).unwrap_or(0);
        // SAFETY: a row in the lists of the plan is one of the array (`Touched::check`), whose area has as many
        // elements as all rows together, found when the run began, of type `T`, as of every handle. The batch was begun when all
        // batches of others were done that touch a row of it before, if one of the two writes it, which was acquired
        // (`TaskWords::done_in`); those after it wait until it has ended; and beside it, nobody else touches a row of which one writes
        // (`RowPlan::new`). What comes from other hosts is put in place between the batches that touch it (`between_hosts`). That
        // there is no access outside of the run, or while the area is open in another epoch, is as for `RunningTask::patches`.
        // And there is one `Rows` of an array.
        Ok(unsafe {
            Rows::new(start, len, plan.writes(rank, array, self.number), plan.reads(rank, array, self.number))
        })
    }
}
