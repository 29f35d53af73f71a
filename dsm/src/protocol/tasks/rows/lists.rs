//! Lists of rows, batch by batch.
use super::{MOST_TASKS, RowError};
use crate::error::Rank;
use std::collections::TryReserveError;

/// For each batch a list of rows, all in one piece. The empty list ([`RowList::default`]) has none in any batch.
///
/// ```
/// use hectare_dsm::tasks::RowList;
///
/// let list = RowList::new(vec![0, 2, 3], vec![7, 8, 7]);
/// assert_eq!((list.of(0), list.of(1), list.of(2)), (&[7, 8][..], &[7][..], &[][..]));
/// assert_eq!(list, [vec![7, 8], vec![7]].into_iter().collect());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowList {
    starts: Vec<usize>,
    rows: Vec<u32>,
}

/// The rows of an array that a worker touches, batch by batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// The rows that it may write, and read.
    pub writes: RowList,
    /// The rows that it may read, besides.
    pub reads: RowList,
}

impl<L: AsRef<[u32]>> FromIterator<L> for RowList {
    /// One list for each batch.
    fn from_iter<I: IntoIterator<Item = L>>(batches: I) -> RowList {
        let mut list = RowList { starts: vec![0], rows: Vec::new() };
        for batch in batches {
            list.rows.extend_from_slice(batch.as_ref());
            list.starts.push(list.rows.len());
        }
        list
    }
}

impl RowList {
    /// The rows of all batches, one batch after the other: those of batch `b` are `rows[starts[b]..starts[b + 1]]`, and batches
    /// behind the last have none. What does not fit each other is found by [`RowPlan::new`](super::RowPlan::new).
    pub fn new(starts: Vec<usize>, rows: Vec<u32>) -> RowList {
        RowList { starts, rows }
    }

    /// Makes room for `rows` rows of a batch.
    ///
    /// # Errors
    /// If there is no memory.
    pub fn try_reserve(&mut self, batch: usize, rows: usize) -> Result<(), TryReserveError> {
        let starts = batch.saturating_add(2).saturating_sub(self.starts.len());
        self.starts.try_reserve(starts)?;
        self.rows.try_reserve(rows)
    }

    /// Adds rows to a batch, the last that has some or one behind it; false if it is one before, or has a number that no plan
    /// has ([`RowError::TooMany`]).
    ///
    /// ```
    /// # use hectare_dsm::tasks::RowList;
    /// let mut list = RowList::default();
    /// assert!(list.add(1, [7]) && list.add(1, [8]) && list.add(4, [7]));
    /// assert!(!list.add(3, [9]) && !list.add(1 << 32, [9]) && !list.add(usize::MAX, [9]));
    /// assert_eq!((list.of(1), list.of(3), list.of(4)), (&[7, 8][..], &[][..], &[7][..]));
    /// ```
    pub fn add(&mut self, batch: usize, rows: impl IntoIterator<Item = u32>) -> bool {
        if batch >= MOST_TASKS as usize || batch + 2 < self.starts.len() {
            return false;
        }
        self.starts.resize(batch + 2, self.rows.len());
        self.rows.extend(rows);
        self.starts[batch + 1] = self.rows.len();
        true
    }

    /// The rows of a batch; none of what is no batch.
    #[inline]
    pub fn of(&self, batch: usize) -> &[u32] {
        match (self.starts.get(batch), self.starts.get(batch + 1)) {
            (Some(start), Some(end)) => self.rows.get(*start..*end).unwrap_or(&[]),
            _ => &[],
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn has(&self, batches: usize) -> bool {
        let is_empty = self.starts.is_empty() && self.rows.is_empty();
        let ends = (self.starts.first(), self.starts.last());
        is_empty
            || self.starts.len() <= batches + 1
                && ends == (Some(&0), Some(&self.rows.len()))
                && self.starts.is_sorted()
    }

    pub(super) fn digest(&self) -> u64 {
        // An odd number without a pattern: the golden ratio's digits.
        const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = |hash: u64, number: u64| (hash.rotate_left(23) ^ number).wrapping_mul(FACTOR);
        let starts =
            self.starts.iter().fold(self.starts.len() as u64, |hash, start| mixed(hash, *start as u64));
        let (pairs, last) = self.rows.as_chunks::<2>();
        let rows = pairs.iter().fold(starts, |hash, [a, b]| mixed(hash, u64::from(*a) << 32 | u64::from(*b)));
        last.iter().fold(rows, |hash, row| mixed(hash, u64::from(*row)))
    }
}

impl Touched {
    pub(super) fn check(
        &self,
        array: usize,
        rows: usize,
        worker: Rank,
        batches: usize,
    ) -> Result<(), RowError> {
        for (list, is_written) in [(&self.writes, true), (&self.reads, false)] {
            if !list.has(batches) {
                return Err(RowError::List { array, worker, is_written, batches });
            }
            if list.rows.iter().copied().max().is_some_and(|row| row as usize >= rows) {
                let outside = |row: &u32| *row as usize >= rows;
                let at = list.rows.iter().position(outside).unwrap_or_default();
                let (row, batch) =
                    (list.rows[at] as usize, list.starts.partition_point(|start| *start <= at));
                return Err(RowError::NoRow { array, row, rows, batch: batch - 1, worker });
            }
        }
        Ok(())
    }
}
