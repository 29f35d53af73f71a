//! The view of an array that a body writes.
use super::frame::{Frame, PartBounds, RowIndex, refuse};
use std::ops::{Index, IndexMut, Range};

/// The part of an array that this worker holds, for reading and writing.
///
/// An index outside of it ends the loop with [`Error::Outside`](crate::Error::Outside): a body is only ever
/// given what its worker owns.
#[derive(Debug)]
pub struct ViewMut<'a, T, const N: usize> {
    frame: Frame<N>,
    data: &'a mut [T],
    others: Vec<(Frame<N>, &'a mut [T])>,
    bounds: PartBounds<'a>,
}

impl<'a, T, const N: usize> ViewMut<'a, T, N> {
    /// A view of these parts.
    pub(crate) fn new(bounds: PartBounds<'a>, mut parts: Vec<(Frame<N>, &'a mut [T])>) -> ViewMut<'a, T, N> {
        let (frame, data) =
            if parts.is_empty() { (Frame::new(&[0; N], 0, &(0..0)), &mut [][..]) } else { parts.remove(0) };
        ViewMut { frame, data, others: parts, bounds }
    }

    /// A row: the elements whose index begins with `row`, in the order of the last dimension.
    #[inline]
    pub fn row<R: RowIndex<N>>(&self, row: R) -> &[T] {
        match self.frame.row_place(row) {
            Some(place) => &self.data[place..][..self.frame.row_len()],
            None => self.row_elsewhere(row),
        }
    }

    #[cold]
    #[inline(never)]
    fn row_elsewhere<R: RowIndex<N>>(&self, row: R) -> &[T] {
        let found = self.others.iter().find_map(|(frame, data)| {
            frame.row_place(row).map(|place| &data[place..place + frame.row_len()])
        });
        found.unwrap_or_else(|| refuse(self.bounds, row.to_vec(), &self.held()))
    }

    /// A row, for writing.
    #[inline]
    pub fn row_mut<R: RowIndex<N>>(&mut self, row: R) -> &mut [T] {
        let place = match self.frame.row_place(row) {
            Some(place) => place,
            None => self.switch(|frame| frame.row_place(row), || row.to_vec()),
        };
        &mut self.data[place..][..self.frame.row_len()]
    }

    /// Two different rows, for writing.
    ///
    /// # Panics
    /// If both are the same row, or lie in different parts of the array.
    pub fn rows_mut<R: RowIndex<N>>(&mut self, first: R, second: R) -> (&mut [T], &mut [T]) {
        let len = self.frame.row_len();
        let a = match self.frame.row_place(first) {
            Some(place) => place,
            None => self.switch(|frame| frame.row_place(first), || first.to_vec()),
        };
        let Some(b) = self.frame.row_place(second) else {
            refuse(self.bounds, second.to_vec(), &self.held())
        };
        match self.data.get_disjoint_mut([a..a + len, b..b + len]) {
            Ok([a, b]) => (a, b),
            Err(_) => panic!("rows_mut of one row of {:?} twice: {:?}", self.bounds.array, first.to_vec()),
        }
    }

    /// Makes another part the one where the view looks first.
    #[cold]
    #[inline(never)]
    fn switch(
        &mut self,
        place: impl Fn(&Frame<N>) -> Option<usize>,
        index: impl FnOnce() -> Vec<usize>,
    ) -> usize {
        let found = self.others.iter().position(|(frame, _)| place(frame).is_some());
        let Some(found) = found else { refuse(self.bounds, index(), &self.held()) };
        let (frame, data) = &mut self.others[found];
        std::mem::swap(frame, &mut self.frame);
        std::mem::swap(data, &mut self.data);
        place(&self.frame).unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn elsewhere(&self, index: [usize; N]) -> &T {
        let found = self.others.iter().find_map(|(frame, data)| frame.place(index).map(|place| &data[place]));
        found.unwrap_or_else(|| refuse(self.bounds, index.to_vec(), &self.held()))
    }

    fn held(&self) -> Vec<Range<usize>> {
        let frames = std::iter::once(&self.frame).chain(self.others.iter().map(|(frame, _)| frame));
        frames.map(|frame| frame.range(self.bounds.dim)).collect()
    }
}

impl<T> ViewMut<'_, T, 1> {
    /// The elements `range` of an array of one dimension, for reading.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> &[T] {
        let start = self.frame.range(0).start;
        let inside = self.data.get(range.start.wrapping_sub(start)..range.end.wrapping_sub(start));
        inside.unwrap_or_else(|| refuse(self.bounds, vec![range.start, range.end], &self.held()))
    }

    /// The elements `range` of an array of one dimension.
    #[inline]
    pub fn slice_mut(&mut self, range: Range<usize>) -> &mut [T] {
        let start = self.frame.range(0).start;
        let (from, to) = (range.start.wrapping_sub(start), range.end.wrapping_sub(start));
        if from > to || to > self.data.len() {
            refuse(self.bounds, vec![range.start, range.end], &self.held())
        }
        &mut self.data[from..to]
    }
}

impl<T, const N: usize> Index<[usize; N]> for ViewMut<'_, T, N> {
    type Output = T;

    #[inline]
    fn index(&self, index: [usize; N]) -> &T {
        match self.frame.place(index) {
            Some(place) => &self.data[place],
            None => self.elsewhere(index),
        }
    }
}

impl<T, const N: usize> IndexMut<[usize; N]> for ViewMut<'_, T, N> {
    #[inline]
    fn index_mut(&mut self, index: [usize; N]) -> &mut T {
        let place = match self.frame.place(index) {
            Some(place) => place,
            None => self.switch(|frame| frame.place(index), || index.to_vec()),
        };
        &mut self.data[place]
    }
}

impl<T> Index<usize> for ViewMut<'_, T, 1> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self[[index]]
    }
}

impl<T> IndexMut<usize> for ViewMut<'_, T, 1> {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut self[[index]]
    }
}
