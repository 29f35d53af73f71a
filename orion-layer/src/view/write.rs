//! The view of an array that a body writes.
use super::frame::{Frame, PartBounds, RowIndex, refuse, refuse_slice};
use super::recording::Recorder;
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
    /// In a checked loop: where the elements of `data` really lie, and who notes what is touched.
    recorded: Option<(Frame<N>, Recorder<'a>)>,
}

impl<'a, T, const N: usize> ViewMut<'a, T, N> {
    /// A view of these parts.
    pub(crate) fn new(bounds: PartBounds<'a>, mut parts: Vec<(Frame<N>, &'a mut [T])>) -> ViewMut<'a, T, N> {
        let (frame, data) =
            if parts.is_empty() { (Frame::new(&[0; N], 0, &(0..0)), &mut [][..]) } else { parts.remove(0) };
        ViewMut { frame, data, others: parts, bounds, recorded: None }
    }

    /// A view of one part that notes what is touched.
    pub(crate) fn recorded(
        bounds: PartBounds<'a>,
        frame: Frame<N>,
        data: &'a mut [T],
        recorder: Recorder<'a>,
    ) -> ViewMut<'a, T, N> {
        let recorded = Some((frame, recorder));
        ViewMut { frame: frame.emptied(), data, others: Vec::new(), bounds, recorded }
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
        if let Some((frame, recorder)) = &self.recorded {
            recorder.note_row(row, frame.row_len(), false);
            if let Some(place) = frame.row_place(row) {
                return &self.data[place..place + frame.row_len()];
            }
        }
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
            None => self.switch_row(row),
        };
        &mut self.data[place..][..self.frame.row_len()]
    }

    /// Two different rows, for writing.
    ///
    /// # Panics
    /// If both are the same row.
    pub fn rows_mut<R: RowIndex<N>>(&mut self, first: R, second: R) -> (&mut [T], &mut [T]) {
        let len = self.frame.row_len();
        let a = match self.frame.row_place(first) {
            Some(place) => place,
            None => self.switch_row(first),
        };
        let b = match self.frame.row_place(second) {
            Some(place) => place,
            None if self.recorded.is_some() => self.switch_row(second),
            None => return self.rows_apart(a, second),
        };
        match self.data.get_disjoint_mut([a..a + len, b..b + len]) {
            Ok([a, b]) => (a, b),
            Err(_) => panic!("rows_mut of one row of {:?} twice: {:?}", self.bounds.array, first.to_vec()),
        }
    }

    /// The row at `place` of the first part, and a row of another part.
    #[cold]
    #[inline(never)]
    fn rows_apart<R: RowIndex<N>>(&mut self, place: usize, second: R) -> (&mut [T], &mut [T]) {
        let found = self.others.iter().position(|(frame, _)| frame.row_place(second).is_some());
        let Some(found) = found else { refuse(self.bounds, second.to_vec(), &self.held()) };
        let (frame, data) = &mut self.others[found];
        let there = frame.row_place(second).unwrap_or_default();
        (&mut self.data[place..place + frame.row_len()], &mut data[there..there + frame.row_len()])
    }

    #[cold]
    #[inline(never)]
    fn switch_row<R: RowIndex<N>>(&mut self, row: R) -> usize {
        if let Some((frame, recorder)) = &self.recorded {
            recorder.note_row(row, frame.row_len(), true);
        }
        self.switch(|frame| frame.row_place(row), || row.to_vec())
    }

    /// Makes another part the one where the view looks first.
    #[cold]
    #[inline(never)]
    fn switch(
        &mut self,
        place: impl Fn(&Frame<N>) -> Option<usize>,
        index: impl FnOnce() -> Vec<usize>,
    ) -> usize {
        if let Some(place) = self.recorded.as_ref().and_then(|(frame, _)| place(frame)) {
            return place;
        }
        let found = self.others.iter().position(|(frame, _)| place(frame).is_some());
        let Some(found) = found else { refuse(self.bounds, index(), &self.held()) };
        let (frame, data) = &mut self.others[found];
        std::mem::swap(frame, &mut self.frame);
        std::mem::swap(data, &mut self.data);
        place(&self.frame).unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn switch_element(&mut self, index: [usize; N]) -> usize {
        if let Some((_, recorder)) = &self.recorded {
            recorder.note_element(index, true);
        }
        self.switch(|frame| frame.place(index), || index.to_vec())
    }

    #[cold]
    #[inline(never)]
    fn elsewhere(&self, index: [usize; N]) -> &T {
        if let Some((frame, recorder)) = &self.recorded {
            recorder.note_element(index, false);
            if let Some(place) = frame.place(index) {
                return &self.data[place];
            }
        }
        let found = self.others.iter().find_map(|(frame, data)| frame.place(index).map(|place| &data[place]));
        found.unwrap_or_else(|| refuse(self.bounds, index.to_vec(), &self.held()))
    }

    fn held(&self) -> Vec<Range<usize>> {
        let first = self.recorded.as_ref().map_or(&self.frame, |(frame, _)| frame);
        let frames = std::iter::once(first).chain(self.others.iter().map(|(frame, _)| frame));
        frames.map(|frame| frame.range(self.bounds.dim)).collect()
    }
}

impl<T> ViewMut<'_, T, 1> {
    /// The elements `range` of an array of one dimension, for reading. They lie in one part.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> &[T] {
        match self.frame.slice_place(&range) {
            Some(place) => &self.data[place],
            None => self.slice_elsewhere(range),
        }
    }

    #[cold]
    #[inline(never)]
    fn slice_elsewhere(&self, range: Range<usize>) -> &[T] {
        if let Some((frame, recorder)) = &self.recorded {
            recorder.note(vec![range.clone()], false);
            if let Some(place) = frame.slice_place(&range) {
                return &self.data[place];
            }
        }
        let found =
            self.others.iter().find_map(|(frame, data)| frame.slice_place(&range).map(|place| &data[place]));
        found.unwrap_or_else(|| refuse_slice(self.bounds, range, &self.held()))
    }

    /// The elements `range` of an array of one dimension. They lie in one part.
    #[inline]
    pub fn slice_mut(&mut self, range: Range<usize>) -> &mut [T] {
        let place = match self.frame.slice_place(&range) {
            Some(place) => place,
            None => self.switch_slice(range),
        };
        &mut self.data[place]
    }

    #[cold]
    #[inline(never)]
    fn switch_slice(&mut self, range: Range<usize>) -> Range<usize> {
        if let Some((_, recorder)) = &self.recorded {
            recorder.note(vec![range.clone()], true);
        }
        let place = |frame: &Frame<1>| frame.slice_place(&range).map(|place| place.start);
        let start = self.switch(place, || vec![range.start, range.end]);
        start..start + range.len()
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
            None => self.switch_element(index),
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
