//! Runs of a plan of rows that change owners in batches, in place.
use super::ended::EndedRun;
use super::part::{InPlace, Order, Part, not_there};
use crate::api::area::handle::Area;
use crate::api::worker::Worker;
use crate::error::{Error, Rank, Result};
use crate::protocol::tasks::RowPlan;
use crate::segment::element::Element;
use fnv::FnvHasher;
use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::ops::Range;
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
/// let mut run = RowRun::begin(&worker, plan, 10, &[area.in_place()])?;
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
}

impl RowRun {
    /// Begins the part of this worker, which has a rank below [`RowPlan::workers`]; the others do the same, with the same plan,
    /// passes and areas, one for each of [`RowPlan::arrays`]. All of them are in the job when the first begins
    /// ([`Worker::wait_for_workers`]), and no batch begins before all have begun. The length of a row is that of the area
    /// divided by the number of rows. A worker is in one run at a time, of rows or of tasks, and begins the next when the others
    /// have ended this one. Whether workers have the same plan is found by a hash of it, which is not made against intent.
    ///
    /// # Errors
    /// [`Error::NotOpen`] for an area that is not open to tasks, [`Error::Tasks`] when areas or workers do not fit the
    /// plan, when another run uses the areas (it is to be closed and opened again), and on several hosts; [`Error::NoSuchWorker`]
    /// for a worker that has not come yet, [`Error::TaskLeft`] for one that has left; [`Error::Deleted`], [`Error::OtherJob`].
    pub fn begin(worker: &Worker, plan: Arc<RowPlan>, passes: usize, areas: &[InPlace]) -> Result<RowRun> {
        let tasks = passes.saturating_mul(plan.batches()) as u64;
        if tasks >= crate::protocol::tasks::MOST_TASKS {
            let what = format!("{passes} passes of {} batches are too many", plan.batches());
            return Err(Error::Tasks { rank: worker.rank(), what });
        }
        let mut hash = FnvHasher::default();
        ("rows", plan.digest(), passes).hash(&mut hash);
        let (workers, arrays) = (plan.workers(), plan.arrays().len());
        let order = Order { workers, digest: hash.finish(), tasks, arrays };
        let misfit = |array: usize, area: &InPlace| {
            let (rows, name, len) = (plan.arrays()[array], area.name(), area.len());
            let fits = if rows == 0 || len == 0 { rows == len } else { len % rows == 0 };
            (!fits).then(|| format!("area {name:?} has {len} elements, which are not {rows} rows"))
        };
        let part = Part::begin(worker, &order, areas, |_| None, misfit)?;
        let shared = part.shared();
        if let Some(rank) = (0..workers as Rank).find(|rank| shared.is_gone(*rank)) {
            return Err(not_there(shared, rank));
        }
        let taken = RefCell::new(vec![false; arrays]);
        Ok(RowRun { plan, part, is_under_way: false, taken })
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
        self.part.check_begun(worker)
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
    /// are told that it has left.
    ///
    /// # Errors
    /// [`Error::Tasks`] as of [`RowRun::next`].
    pub fn end(mut self, worker: &Worker) -> Result<EndedRun> {
        self.end_batch(worker)?;
        Ok(EndedRun::of(self.part))
    }

    fn end_batch(&mut self, worker: &Worker) -> Result<()> {
        if std::mem::take(&mut self.is_under_way) { self.part.end_task(worker) } else { Ok(()) }
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
        let (plan, part) = (&self.plan, &self.part);
        part.check(worker)?;
        if part.done() >= part.tasks() {
            return Ok(None);
        }
        let (pass, number) = {
            let (done, batches) = (part.done() as usize, plan.batches());
            (done / batches, done % batches)
        };
        let after = plan.waits(part.rank(), pass, number);
        let look = |worker: &Worker, rank| part.check_present(worker, rank, after.clone());
        part.wait(worker, after.clone(), look)?;
        self.is_under_way = true;
        self.taken.get_mut().fill(false);
        Ok(Some(RowBatch { run: self, worker, pass, number }))
    }
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
        Ok(Rows {
            start,
            len: area.len().checked_div(plan.arrays()[array]).unwrap_or(0),
            writes: plan.writes(rank, array, self.number),
            reads: plan.reads(rank, array, self.number),
            elements: PhantomData,
        })
    }
}

/// The rows of an array that a worker touches in a batch, by their places in the plan's lists: a place is looked up nowhere, and
/// what the plan does not give has none.
#[derive(Debug)]
pub struct Rows<'a, T> {
    /// Where row 0 of the array begins.
    start: *mut T,
    /// Of each row.
    len: usize,
    writes: &'a [u32],
    reads: &'a [u32],
    elements: PhantomData<&'a mut [T]>,
}

impl<T> Rows<'_, T> {
    /// The numbers of the rows that may be written, in the order of their places.
    pub fn writes(&self) -> &[u32] {
        self.writes
    }

    /// The numbers of the rows that may be read besides.
    pub fn reads(&self) -> &[u32] {
        self.reads
    }

    /// Where a row of a list begins, and how many elements it has.
    #[inline(always)]
    pub(super) fn row(&self, row: u32) -> (*mut T, usize) {
        (self.place(row), self.len)
    }

    /// The rows that may be written, if they are all of a range in ascending order: the first, and the one behind the last.
    pub(super) fn range(&self) -> Option<Range<usize>> {
        let (first, last) = (*self.writes.first()? as usize, *self.writes.last()? as usize);
        let is_range = last.checked_sub(first)? + 1 == self.writes.len()
            && self.writes.iter().zip(first..).all(|(row, at)| *row as usize == at);
        is_range.then_some(first..last + 1)
    }

    /// Where row 0 of the array begins.
    pub(super) fn start(&self) -> *mut T {
        self.start
    }

    /// Elements of a row.
    pub(super) fn row_len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn place(&self, row: u32) -> *mut T {
        self.start.wrapping_add(row as usize * self.len)
    }

    // SAFETY, of all below: a row in the lists of the plan is one of the array (`Touched::check`), whose area has as many
    // elements as all rows together, found when the run began, of type `T`, as of every handle. Row `r` of the area is the
    // elements from `r * len` on, so that different rows have none in common. The batch was begun when all batches of others were
    // done that touch a row of it before, if one of the two writes it, which was acquired (`TaskWords::done_in`);
    // those after it wait until it has ended; and beside it, nobody else touches a row of which one writes (`RowPlan::new`). That
    // there is no access outside of the run, or while the area is open in another epoch, is as for `RunningTask::patches`.
    // And there is one `Rows` of an array, which lends what may be written as it is borrowed itself.

    /// The row at a place in the list of those that may be written, to be read.
    #[inline(always)]
    pub fn get(&self, place: usize) -> Option<&[T]> {
        let row = self.place(*self.writes.get(place)?);
        // SAFETY: see above.
        Some(unsafe { std::slice::from_raw_parts(row, self.len) })
    }

    /// The row at a place in the list of those that may be written.
    #[inline(always)]
    pub fn get_mut(&mut self, place: usize) -> Option<&mut [T]> {
        let row = self.place(*self.writes.get(place)?);
        // SAFETY: see above.
        Some(unsafe { std::slice::from_raw_parts_mut(row, self.len) })
    }

    /// The rows at two places in the list of those that may be written, if they are different rows.
    #[inline(always)]
    pub fn two_mut(&mut self, one: usize, other: usize) -> Option<(&mut [T], &mut [T])> {
        let (one, other) = (*self.writes.get(one)?, *self.writes.get(other)?);
        if one == other {
            return None;
        }
        let (a, b) = (self.place(one), self.place(other));
        // SAFETY: see above; they have no element in common.
        Some(unsafe {
            (std::slice::from_raw_parts_mut(a, self.len), std::slice::from_raw_parts_mut(b, self.len))
        })
    }

    /// The row at a place in the list of those that may be read besides.
    #[inline(always)]
    pub fn read(&self, place: usize) -> Option<&[T]> {
        let row = self.place(*self.reads.get(place)?);
        // SAFETY: see above. If it is also one that may be written, it is not lent while that is: that borrows all rows.
        Some(unsafe { std::slice::from_raw_parts(row, self.len) })
    }

    /// The row at a place in the list of those that may be read besides, and one in the list of those that may be written, if they
    /// are different rows.
    #[inline(always)]
    pub fn read_and_write(&mut self, read: usize, write: usize) -> Option<(&[T], &mut [T])> {
        let (from, to) = (*self.reads.get(read)?, *self.writes.get(write)?);
        if from == to {
            return None;
        }
        let (from, to) = (self.place(from), self.place(to));
        // SAFETY: see above; they have no element in common.
        Some(unsafe {
            (std::slice::from_raw_parts(from, self.len), std::slice::from_raw_parts_mut(to, self.len))
        })
    }
}
