//! Recording what a body touches: views that are checked know no element in their fast paths, so that every
//! access takes the slow one, which notes it. Loops that are not checked pay nothing.
use super::window::{RowIndex, Window};
use std::cell::RefCell;
use std::ops::Range;

/// A box of elements that a body asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    /// The number of the array in the loop.
    pub(crate) array: usize,
    /// One range per dimension.
    pub(crate) elements: Vec<Range<usize>>,
    /// Whether it was asked for to be written.
    pub(crate) writes: bool,
}

/// The elements that were touched since the list was last taken.
pub(crate) type Recording = RefCell<Vec<Touch>>;

/// Where a view of one array notes what is touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorder<'a> {
    pub(crate) array: usize,
    pub(crate) list: &'a Recording,
}

impl Recorder<'_> {
    pub(crate) fn note(&self, elements: Vec<Range<usize>>, writes: bool) {
        self.list.borrow_mut().push(Touch { array: self.array, elements, writes });
    }

    pub(crate) fn note_element<const N: usize>(&self, index: [usize; N], writes: bool) {
        self.note(index.iter().map(|at| *at..at.saturating_add(1)).collect(), writes);
    }

    pub(crate) fn note_row<R: RowIndex<N>, const N: usize>(&self, row: R, len: usize, writes: bool) {
        let row = row.to_vec().into_iter().map(|at| at..at.saturating_add(1));
        self.note(row.chain(std::iter::once(0..len)).collect(), writes);
    }
}

impl<const N: usize> Window<N> {
    /// A window of the same rows that holds no element.
    pub(crate) fn emptied(mut self) -> Window<N> {
        if N > 0 {
            self.extent[0] = 0;
            self.rows = 0;
        }
        self
    }
}

impl Window<1> {
    /// The place of a range of elements, if the part holds all of it.
    #[inline]
    pub(super) fn slice_place(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let (from, to) = (range.start.wrapping_sub(self.base[0]), range.end.wrapping_sub(self.base[0]));
        (from <= to && to <= self.extent[0]).then_some(from..to)
    }
}
