//! The rows of an array that a batch lends.
use std::marker::PhantomData;
use std::ops::Range;

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

impl<'a, T> Rows<'a, T> {
    /// Rows of `len` elements each, the first of which begins at `start`.
    ///
    /// # Safety
    /// For `'a`, what the lists name are rows of an array of `T`, nobody else accesses those of `writes`, nobody writes those of `reads`
    /// but through this, and there is no other of these rows.
    pub(super) unsafe fn new(start: *mut T, len: usize, writes: &'a [u32], reads: &'a [u32]) -> Rows<'a, T> {
        Rows { start, len, writes, reads, elements: PhantomData }
    }

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

    // SAFETY, of all below: the contract of `new`, by which rows of the lists may be read, and written where they may be; different rows
    // have no element in common, as row `r` is the elements from `r * len` on; and what may be written is lent as `self` is borrowed.

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
