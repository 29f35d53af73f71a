//! Rows of a batch by their numbers, as a loop's body asks for them.
use super::rows::{RowBatch, Rows};
use std::ops::Range;

/// For each row of an array, its place in the lists of a batch. What it says of rows that are in no list means nothing, and is
/// found to be wrong when it is used: so nothing is cleared from batch to batch.
#[derive(Clone, Debug, Default)]
pub struct RowPlaces {
    /// Twice the place, and 1 if the list is that of the rows that are only read.
    of: Vec<u32>,
}

impl RowPlaces {
    /// Of an array with so many rows.
    pub fn new(rows: usize) -> RowPlaces {
        RowPlaces { of: vec![0; rows] }
    }

    /// Goes over to the lists of a batch: array number `array` of its plan.
    pub fn set(&mut self, batch: &RowBatch<'_>, array: usize) {
        let (writes, reads) = batch.lists(array);
        for (place, row) in (0u32..).zip(reads) {
            if let Some(of) = self.of.get_mut(*row as usize) {
                *of = place << 1 | 1;
            }
        }
        // A row in both lists may be written.
        for (place, row) in (0u32..).zip(writes) {
            if let Some(of) = self.of.get_mut(*row as usize) {
                *of = place << 1;
            }
        }
    }
}

/// Rows that a batch lends, found by number.
pub(super) struct Listed<'a, T, const N: usize> {
    shape: [usize; N],
    rows: Rows<'a, T>,
    places: &'a [u32],
}

impl<'a, T, const N: usize> Listed<'a, T, N> {
    pub(super) fn new(shape: [usize; N], rows: Rows<'a, T>, places: &'a RowPlaces) -> Listed<'a, T, N> {
        Listed { shape, rows, places: &places.of }
    }

    /// The number of the row with this index; in one dimension, of the element.
    #[inline(always)]
    fn number(&self, index: [usize; N]) -> Option<usize> {
        if N <= 2 {
            return Some(index[0]);
        }
        let mut number = 0;
        for dim in 0..N - 1 {
            if index[dim] >= self.shape[dim] {
                return None;
            }
            number = number * self.shape[dim] + index[dim];
        }
        Some(number)
    }

    /// Where a row begins, and how many elements it has, if it is in a list and may be used so.
    #[inline(always)]
    pub(super) fn row(&self, index: [usize; N], writes: bool) -> Option<(*mut T, usize)> {
        if N == 1 { None } else { self.find(index, writes) }
    }

    #[inline(always)]
    fn find(&self, index: [usize; N], writes: bool) -> Option<(*mut T, usize)> {
        let number = self.number(index)?;
        let place = *self.places.get(number)?;
        self.rows.find(number, (place >> 1) as usize, writes, place & 1 == 0)
    }

    #[inline(never)]
    pub(super) fn element(&self, index: [usize; N], writes: bool) -> Option<*mut T> {
        let (start, len) = self.find(index, writes)?;
        let within = if N == 1 { 0 } else { index[N - 1] };
        (within < len).then(|| start.wrapping_add(within))
    }
}

impl<T> Listed<'_, T, 1> {
    /// Elements side by side, if all are in a list.
    pub(super) fn range(&self, range: &Range<usize>, writes: bool) -> Option<*mut T> {
        let (start, _) = match range.is_empty() {
            true => {
                return (range.start <= range.end && range.end <= self.shape[0]).then(std::ptr::dangling_mut);
            }
            false => self.find([range.start], writes)?,
        };
        range.clone().all(|at| self.find([at], writes).is_some()).then_some(start)
    }
}
