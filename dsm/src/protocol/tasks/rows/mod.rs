//! Plans of rows that change owners from batch to batch: which rows of which arrays each worker touches in each batch, the proof
//! that no two touch the same row in one batch if one writes it, and whom each worker has to wait for before each batch.
mod between_hosts;
mod lists;
mod waits;

pub use self::lists::{RowList, Touched};
use self::waits::Waits;
use super::MOST_TASKS;
use super::crossing::Kept;
use crate::error::Rank;
use std::hash::Hasher;

/// Why rows and batches are no [`RowPlan`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    /// Two workers touch the same row in one batch, and the first of them writes it.
    #[error(
        "row {row} of array {array} is written by worker {} in batch {batch}, in which worker {} {} it",
        workers[0], workers[1], if *both_write { "writes" } else { "reads" }
    )]
    Race {
        /// The array.
        array: usize,
        /// The row.
        row: usize,
        /// The batch.
        batch: usize,
        /// Both workers; the first writes it.
        workers: [Rank; 2],
        /// Whether the second does, too.
        both_write: bool,
    },
    /// A list names a row that the array does not have.
    #[error("worker {worker} touches row {row} of array {array} in batch {batch}: it has {rows} rows")]
    NoRow {
        /// The array.
        array: usize,
        /// The row.
        row: usize,
        /// How many it has.
        rows: usize,
        /// The batch.
        batch: usize,
        /// The worker.
        worker: Rank,
    },
    /// A list does not have the batches of the plan one after the other.
    #[error("the list of rows of array {array} that worker {worker} {} does not fit {batches} batches",
        if *is_written { "writes" } else { "reads" })]
    List {
        /// The array.
        array: usize,
        /// The worker.
        worker: Rank,
        /// Whether it is the one of the rows that are written.
        is_written: bool,
        /// How many batches the plan has.
        batches: usize,
    },
    /// A worker has not one pair of lists for each array.
    #[error("worker {worker} has lists for {lists} arrays: the plan has {arrays}")]
    Arrays {
        /// The worker.
        worker: Rank,
        /// How many lists.
        lists: usize,
        /// How many arrays.
        arrays: usize,
    },
    /// More batches, rows or workers than can be counted.
    #[error("a plan has at most {} batches, {} rows in an array, and {} workers", MOST_TASKS - 1, u32::MAX, u16::MAX)]
    TooMany,
    /// There is no memory to check the plan.
    #[error(
        "no memory to check a plan over an array of {rows} rows (array {array}): number only rows that are used"
    )]
    NoMemory {
        /// The array.
        array: usize,
        /// How many rows it has.
        rows: usize,
    },
}

/// A checked plan of the rows of each array that each worker touches in each of a number of batches: in a batch, a row that one worker writes
/// is touched by no other. From one batch to the next, rows go to other workers as the lists say.
///
/// A worker begins a batch when those have done theirs who touched its rows last, and there is no other wait. Who those are is found
/// in one sweep over the lists, in time that is linear in their lengths (and in the number of workers that read a row between two
/// writes of it). After the last batch, a run goes on with the first, if it has several passes.
///
/// Lists may name a row more than once. What is the same in all batches need not be named: constants belong into arrays of
/// one's own.
///
/// ```
/// use hectare_dsm::tasks::{RowError, RowList, RowPlan, Touched};
///
/// // One array of four rows; in the second batch, row 1 goes from worker 0 to worker 1, which reads row 0.
/// let lists = |rows: [&[u32]; 2]| rows.into_iter().collect::<RowList>();
/// let a = Touched { writes: lists([&[0, 1], &[]]), reads: RowList::default() };
/// let b = Touched { writes: lists([&[2], &[1, 3]]), reads: lists([&[], &[0]]) };
/// let plan = RowPlan::new(vec![4], 2, vec![vec![a.clone()], vec![b]])?;
/// // Worker 1 waits for the first batch of worker 0, and in another pass worker 0 for the second of worker 1, its fourth.
/// assert_eq!(plan.waits(1, 0, 1).collect::<Vec<_>>(), [(0, 1)]);
/// assert_eq!(plan.waits(0, 1, 0).collect::<Vec<_>>(), [(1, 2)]);
/// let twice = RowPlan::new(vec![4], 2, vec![vec![a.clone()], vec![a]]);
/// assert!(matches!(twice, Err(RowError::Race { array: 0, row: 0, batch: 0, workers: [0, 1], .. })));
/// # Ok::<(), RowError>(())
/// ```
#[derive(Debug)]
pub struct RowPlan {
    arrays: Vec<usize>,
    batches: usize,
    /// By worker and array.
    touched: Vec<Vec<Touched>>,
    /// By worker.
    waits: Vec<Waits>,
    digest: u64,
    /// The traffic between hosts, for the places where workers and arrays were last.
    crossing: Kept,
}

impl RowPlan {
    /// Checks the lists of all workers and finds who waits for whom: `arrays` has the number of rows of each array, and
    /// `touched[w][a]` the rows of array `a` that worker `w` touches, in each of the batches.
    ///
    /// # Errors
    /// [`RowError`], which names array, row, batch and workers.
    pub fn new(arrays: Vec<usize>, batches: usize, touched: Vec<Vec<Touched>>) -> Result<RowPlan, RowError> {
        RowPlan::check_size(&arrays, batches, touched.len())?;
        for (worker, lists) in (0..).zip(&touched) {
            if lists.len() != arrays.len() {
                return Err(RowError::Arrays { worker, lists: lists.len(), arrays: arrays.len() });
            }
            for (array, (of_array, rows)) in lists.iter().zip(&arrays).enumerate() {
                of_array.check(array, *rows, worker, batches)?;
            }
        }
        let waits = Waits::of(&arrays, batches, &touched)?;
        let digest = digest(&arrays, batches, &touched);
        Ok(RowPlan { arrays, batches, touched, waits, digest, crossing: Kept::default() })
    }

    /// Whether there can be a plan of this size: rows of each array, batches, workers.
    ///
    /// # Errors
    /// [`RowError::TooMany`].
    pub fn check_size(arrays: &[usize], batches: usize, workers: usize) -> Result<(), RowError> {
        let fits = batches < MOST_TASKS as usize && workers <= u16::MAX as usize;
        match fits && arrays.iter().all(|rows| *rows <= u32::MAX as usize) {
            true => Ok(()),
            false => Err(RowError::TooMany),
        }
    }

    /// How many workers it is for.
    pub fn workers(&self) -> usize {
        self.touched.len()
    }

    /// How many batches it has.
    pub fn batches(&self) -> usize {
        self.batches
    }

    /// How many rows each array has.
    pub fn arrays(&self) -> &[usize] {
        &self.arrays
    }

    /// The rows that a worker may write in a batch, as they were listed. Nothing for what is no worker, array or batch.
    pub fn writes(&self, worker: Rank, array: usize, batch: usize) -> &[u32] {
        self.touched_by(worker, array).map_or(&[], |touched| touched.writes.of(batch))
    }

    /// The rows that a worker may read in a batch besides those that it may write, as they were listed.
    pub fn reads(&self, worker: Rank, array: usize, batch: usize) -> &[u32] {
        self.touched_by(worker, array).map_or(&[], |touched| touched.reads.of(batch))
    }

    fn touched_by(&self, worker: Rank, array: usize) -> Option<&Touched> {
        self.touched.get(worker as usize)?.get(array)
    }

    /// The dependences of a worker's batch in a pass: other workers, and how many batches of each must be done, those of earlier
    /// passes included. Those that it has already waited for before an earlier batch of the pass are left out.
    #[inline]
    pub fn waits(
        &self,
        worker: Rank,
        pass: usize,
        batch: usize,
    ) -> impl Iterator<Item = (Rank, u64)> + Clone + '_ {
        let listed = self.waits.get(worker as usize).map_or(&[][..], |waits| waits.before(batch));
        let (batches, before) = (self.batches as u64, (pass * self.batches) as u64);
        // They are those of the second pass.
        let shifted =
            move |&(rank, count): &(Rank, u32)| (rank, (u64::from(count) + before).saturating_sub(batches));
        listed.iter().map(shifted).filter(|(_, count)| *count > 0)
    }

    /// The same number for the same plan.
    pub fn digest(&self) -> u64 {
        self.digest
    }
}

/// A hash of a plan. Lists may have millions of entries, of which two are taken at a time.
fn digest(arrays: &[usize], batches: usize, touched: &[Vec<Touched>]) -> u64 {
    let mut hash = fnv::FnvHasher::default();
    arrays.iter().chain([&batches, &touched.len()]).for_each(|number| hash.write_usize(*number));
    for list in touched.iter().flatten().flat_map(|touched| [&touched.writes, &touched.reads]) {
        hash.write_u64(list.digest());
    }
    hash.finish()
}

#[cfg(test)]
mod between_hosts_tests;
#[cfg(test)]
mod tests;
