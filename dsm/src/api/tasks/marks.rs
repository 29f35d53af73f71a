//! Rows of a batch by their numbers, as a loop's body asks for them.
use super::row_slices::Rows;
use std::cell::Cell;
use std::ops::Range;

/// A mark for each row of an array, by which [`Patches::of_rows`](super::patches::Patches::of_rows) tells the rows of a batch from others:
/// the number of the last batch that had the row. Each batch has a new number, so marks need not be cleared between batches. They
/// serve one batch at a time: a row that a later batch has marked is not found by an earlier one any more.
#[derive(Debug, Default)]
pub struct RowMarks {
    /// Of each row, the last batch that had it: twice its number, and 1 if the row may be written.
    of: Vec<Cell<u32>>,
    /// The number of the last batch.
    pub(super) last: Cell<u32>,
    /// How many batches look at the marks.
    pub(super) looking: Cell<usize>,
}

/// The most batches that are told apart before all marks are cleared.
pub(super) const MOST: u32 = u32::MAX >> 1;

impl RowMarks {
    /// Marks for an array with `rows` rows.
    pub fn new(rows: usize) -> RowMarks {
        RowMarks { of: vec![Cell::new(0); rows], last: Cell::new(0), looking: Cell::new(0) }
    }

    /// A number for a new batch, which no row is marked with and no batch in use has. If all numbers are used up, and the marks cannot
    /// be cleared since batches look at them, 0, which is no batch's number.
    fn next(&self) -> u32 {
        if self.last.get() == MOST && self.looking.get() == 0 {
            self.of.iter().for_each(|mark| mark.set(0));
            self.last.set(0);
        }
        if self.last.get() == MOST {
            return 0;
        }
        self.last.set(self.last.get() + 1);
        self.last.get()
    }
}

/// Rows that a batch lends, found by number.
pub(super) struct Listed<'a, T, const N: usize> {
    shape: [usize; N],
    rows: Rows<'a, T>,
    marks: &'a RowMarks,
    /// The number of this batch. A row is marked with it only if it is in a list of `rows`, and as one that may be written only if it
    /// is in the list of those.
    batch: u32,
    /// Rows of the list of those that may be written that are not marked, since they are found in another way first.
    unmarked: Range<usize>,
}

impl<'a, T, const N: usize> Listed<'a, T, N> {
    /// Marks rows; of those that may be written none, if they are those of `unmarked`.
    pub(super) fn new(
        shape: [usize; N],
        rows: Rows<'a, T>,
        marks: &'a RowMarks,
        unmarked: Range<usize>,
    ) -> Listed<'a, T, N> {
        let batch = marks.next();
        marks.looking.set(marks.looking.get() + 1);
        let set = |row: &u32, mark: u32| {
            if let Some(of) = marks.of.get(*row as usize) {
                of.set(mark);
            }
        };
        rows.reads().iter().for_each(|row| set(row, batch << 1));
        // A row in both lists may be written.
        if unmarked.is_empty() {
            rows.writes().iter().for_each(|row| set(row, batch << 1 | 1));
        }
        Listed { shape, rows, marks, batch, unmarked }
    }

    /// The number of the row with this index; in one dimension, of the element.
    #[inline(always)]
    fn number(&self, index: [usize; N]) -> Option<usize> {
        if N <= 2 {
            return Some(index[0]);
        }
        let dims = self.shape.iter().zip(index).take(N - 1);
        // The shape is the caller's: numbers that do not fit are those of no row.
        dims.into_iter().try_fold(0usize, |number, (extent, at)| {
            if at < *extent { number.checked_mul(*extent)?.checked_add(at) } else { None }
        })
    }

    /// Where a row begins, and how many elements it has, if it is in a list and may be used so.
    #[inline(always)]
    pub(super) fn row(&self, index: [usize; N], writes: bool) -> Option<(*mut T, usize)> {
        if N == 1 { None } else { self.find(index, writes) }
    }

    #[inline(always)]
    fn find(&self, index: [usize; N], writes: bool) -> Option<(*mut T, usize)> {
        let number = self.number(index)?;
        let mark = self.marks.of.get(number).map_or(0, Cell::get);
        let known = if writes { mark == self.batch << 1 | 1 } else { mark >> 1 == self.batch };
        // A number that is marked is one of a list, as those that are not marked are, and fits.
        (known && self.batch != 0 || self.unmarked.contains(&number)).then(|| self.rows.row(number as u32))
    }

    #[inline(never)]
    pub(super) fn element(&self, index: [usize; N], writes: bool) -> Option<*mut T> {
        let (start, len) = self.find(index, writes)?;
        let within = if N == 1 { 0 } else { index[N - 1] };
        (within < len).then(|| start.wrapping_add(within))
    }
}

impl<T, const N: usize> Drop for Listed<'_, T, N> {
    fn drop(&mut self) {
        self.marks.looking.set(self.marks.looking.get() - 1);
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
        // One element each: an area without elements has none to give.
        let is_there = |at| self.find([at], writes).is_some_and(|(_, len)| len == 1);
        range.clone().all(is_there).then_some(start)
    }
}
