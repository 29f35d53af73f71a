//! A worker's copy of a buffered array, and beside it what its iterations contribute.
//!
//! Where single elements are named, value and sum of an element lie together: who reads the one mostly adds to the other,
//! and in a wide array each is a line of memory that is far away. Where whole rows are, the values of a row lie together.
use crate::accumulate::Number;

/// Values and sums.
#[derive(Debug)]
pub(super) struct Beside<T> {
    cells: Vec<T>,
    place: Place,
}

/// Where they lie: the value of element `k` at `k * stride`, its sum `sums` behind it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    stride: usize,
    sums: usize,
}

impl Place {
    /// One after the other: values alone, or values before sums.
    pub(super) const fn rows(len: usize) -> Place {
        Place { stride: 1, sums: len }
    }

    /// In pairs.
    const PAIRS: Place = Place { stride: 2, sums: 1 };

    /// Where the value of an element is; those of a row are behind it.
    #[inline(always)]
    pub(super) fn value(self, element: usize) -> usize {
        element * self.stride
    }

    /// Where its sum is.
    #[inline(always)]
    pub(super) fn sum(self, element: usize) -> usize {
        element * self.stride + self.sums
    }
}

impl<T: Number> Beside<T> {
    pub(super) const fn new() -> Beside<T> {
        Beside { cells: Vec::new(), place: Place::rows(0) }
    }

    /// Zeros, for an array of `len` elements of which whole rows are named, or single ones.
    pub(super) fn reset(&mut self, len: usize, has_rows: bool) {
        self.place = if has_rows { Place::rows(len) } else { Place::PAIRS };
        self.cells.clear();
        self.cells.resize(2 * len, T::default());
    }

    /// All of it, and where what lies in it.
    pub(super) fn parts(&mut self) -> (&mut [T], Place) {
        (&mut self.cells, self.place)
    }

    /// The elements.
    pub(super) fn values(&mut self) -> impl Iterator<Item = &mut T> {
        let len = self.cells.len() / 2;
        self.cells.iter_mut().step_by(self.place.stride).take(len)
    }

    #[inline(always)]
    pub(super) fn set(&mut self, element: usize, value: T) {
        self.cells[self.place.value(element)] = value;
    }

    /// Takes the sum of an element away.
    #[inline(always)]
    pub(super) fn take_sum(&mut self, element: usize) -> T {
        std::mem::take(&mut self.cells[self.place.sum(element)])
    }
}
