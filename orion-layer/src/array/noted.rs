//! The elements that a slice names of an array that its loop writes.
use crate::contract::{Family, KeyNotes};
use crate::replica::ElementIndex;
use crate::view::RowIndex;
use std::ops::Range;

/// Notes the rows of a written array that an iteration will touch; in one dimension, the elements.
///
/// Subscripts outside of the array are not noted: a body that uses one ends the loop, and a slice may name what the body
/// leaves out.
#[derive(Clone, Copy, Debug)]
pub struct NotedView<'a, const N: usize> {
    shape: [usize; N],
    notes: KeyNotes<'a>,
}

/// [`NotedView`]s of arrays of `N` dimensions.
#[derive(Debug)]
pub struct NotedViewFamily<const N: usize>;

impl<const N: usize> Family for NotedViewFamily<N> {
    type Of<'a> = NotedView<'a, N>;
}

impl<'a, const N: usize> NotedView<'a, N> {
    pub(crate) fn new(shape: [usize; N], notes: KeyNotes<'a>) -> NotedView<'a, N> {
        NotedView { shape, notes }
    }

    /// Notes the row with this index, of which the last number means nothing.
    #[inline(always)]
    fn note(&self, at: impl Fn(usize) -> usize, writes: bool) {
        let (mut number, dims) = (0, if N > 1 { N - 1 } else { N });
        for dim in 0..dims {
            if at(dim) >= self.shape[dim] {
                return;
            }
            number = number * self.shape[dim] + at(dim);
        }
        self.notes.note(number, writes);
    }

    /// A row is read.
    #[inline]
    pub fn row<R: RowIndex<N>>(&self, row: R) {
        self.note(|dim| row.at(dim), false);
    }

    /// A row may be written.
    #[inline]
    pub fn row_mut<R: RowIndex<N>>(&self, row: R) {
        self.note(|dim| row.at(dim), true);
    }

    /// An element is read.
    #[inline]
    pub fn element<I: ElementIndex<N>>(&self, index: I) {
        let index = index.index();
        self.note(|dim| index[dim], false);
    }

    /// An element may be written.
    #[inline]
    pub fn element_mut<I: ElementIndex<N>>(&self, index: I) {
        let index = index.index();
        self.note(|dim| index[dim], true);
    }
}

impl NotedView<'_, 1> {
    fn range(&self, range: Range<usize>, writes: bool) {
        (range.start..range.end.min(self.shape[0])).for_each(|at| self.notes.note(at, writes));
    }

    /// Elements are read.
    pub fn slice(&self, range: Range<usize>) {
        self.range(range, false);
    }

    /// Elements may be written.
    pub fn slice_mut(&self, range: Range<usize>) {
        self.range(range, true);
    }
}
