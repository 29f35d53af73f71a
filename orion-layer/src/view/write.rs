//! The view of an array that a body writes.
use super::recording::Recorder;
use super::window::{PartBounds, RowIndex, Window, refuse, refuse_slice};
use std::ops::{Index, IndexMut, Range};

/// The part of an array that this worker holds, for reading and writing.
///
/// An index outside of it ends the loop with [`Error::Outside`](crate::Error::Outside): a body is only ever
/// given what its worker owns.
#[derive(Debug)]
pub struct ViewMut<'a, T, const N: usize> {
    window: Window<N>,
    data: &'a mut [T],
    others: Vec<(Window<N>, &'a mut [T])>,
    bounds: PartBounds<'a>,
    /// In a checked loop: where the elements of `data` really lie, and who notes what is touched.
    recorded: Option<(Window<N>, Recorder<'a>)>,
}

impl<'a, T, const N: usize> ViewMut<'a, T, N> {
    /// A view of these parts.
    pub(crate) fn new(bounds: PartBounds<'a>, mut parts: Vec<(Window<N>, &'a mut [T])>) -> ViewMut<'a, T, N> {
        let (window, data) =
            if parts.is_empty() { (Window::new(&[0; N], 0, &(0..0)), &mut [][..]) } else { parts.remove(0) };
        ViewMut { window, data, others: parts, bounds, recorded: None }
    }

    /// A view of one part that notes what is touched.
    pub(crate) fn recorded(
        bounds: PartBounds<'a>,
        window: Window<N>,
        data: &'a mut [T],
        recorder: Recorder<'a>,
    ) -> ViewMut<'a, T, N> {
        let recorded = Some((window, recorder));
        ViewMut { window: window.emptied(), data, others: Vec::new(), bounds, recorded }
    }

    /// A row: the elements whose index begins with `row`, in the order of the last dimension.
    #[inline]
    pub fn row<R: RowIndex<N>>(&self, row: R) -> &[T] {
        match self.window.row_place(row) {
            Some(place) => &self.data[place..][..self.window.row_len()],
            None => self.row_elsewhere(row),
        }
    }

    #[cold]
    #[inline(never)]
    fn row_elsewhere<R: RowIndex<N>>(&self, row: R) -> &[T] {
        if let Some((window, recorder)) = &self.recorded {
            recorder.note_row(row, window.row_len(), false);
            if let Some(place) = window.row_place(row) {
                return &self.data[place..place + window.row_len()];
            }
        }
        let found = self.others.iter().find_map(|(window, data)| {
            window.row_place(row).map(|place| &data[place..place + window.row_len()])
        });
        found.unwrap_or_else(|| refuse(self.bounds, row.to_vec(), &self.held()))
    }

    /// A row, for writing.
    #[inline]
    pub fn row_mut<R: RowIndex<N>>(&mut self, row: R) -> &mut [T] {
        let place = match self.window.row_place(row) {
            Some(place) => place,
            None => self.switch_row(row),
        };
        &mut self.data[place..][..self.window.row_len()]
    }

    /// Two different rows, for writing.
    ///
    /// # Panics
    /// If both are the same row.
    pub fn rows_mut<R: RowIndex<N>>(&mut self, first: R, second: R) -> (&mut [T], &mut [T]) {
        let len = self.window.row_len();
        let a = match self.window.row_place(first) {
            Some(place) => place,
            None => self.switch_row(first),
        };
        let b = match self.window.row_place(second) {
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
        let found = self.others.iter().position(|(window, _)| window.row_place(second).is_some());
        let Some(found) = found else { refuse(self.bounds, second.to_vec(), &self.held()) };
        let (window, data) = &mut self.others[found];
        let there = window.row_place(second).unwrap_or_default();
        (&mut self.data[place..place + window.row_len()], &mut data[there..there + window.row_len()])
    }

    #[cold]
    #[inline(never)]
    fn switch_row<R: RowIndex<N>>(&mut self, row: R) -> usize {
        if let Some((window, recorder)) = &self.recorded {
            recorder.note_row(row, window.row_len(), true);
        }
        self.switch(|window| window.row_place(row), || row.to_vec())
    }

    /// Makes another part the one where the view looks first.
    #[cold]
    #[inline(never)]
    fn switch(
        &mut self,
        place: impl Fn(&Window<N>) -> Option<usize>,
        index: impl FnOnce() -> Vec<usize>,
    ) -> usize {
        if let Some(place) = self.recorded.as_ref().and_then(|(window, _)| place(window)) {
            return place;
        }
        let found = self.others.iter().position(|(window, _)| place(window).is_some());
        let Some(found) = found else { refuse(self.bounds, index(), &self.held()) };
        let (window, data) = &mut self.others[found];
        std::mem::swap(window, &mut self.window);
        std::mem::swap(data, &mut self.data);
        place(&self.window).unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn switch_element(&mut self, index: [usize; N]) -> usize {
        if let Some((_, recorder)) = &self.recorded {
            recorder.note_element(index, true);
        }
        self.switch(|window| window.place(index), || index.to_vec())
    }

    #[cold]
    #[inline(never)]
    fn elsewhere(&self, index: [usize; N]) -> &T {
        if let Some((window, recorder)) = &self.recorded {
            recorder.note_element(index, false);
            if let Some(place) = window.place(index) {
                return &self.data[place];
            }
        }
        let found =
            self.others.iter().find_map(|(window, data)| window.place(index).map(|place| &data[place]));
        found.unwrap_or_else(|| refuse(self.bounds, index.to_vec(), &self.held()))
    }

    fn held(&self) -> Vec<Range<usize>> {
        let first = self.recorded.as_ref().map_or(&self.window, |(window, _)| window);
        let windows = std::iter::once(first).chain(self.others.iter().map(|(window, _)| window));
        windows.map(|window| window.range(self.bounds.dim)).collect()
    }
}

impl<T> ViewMut<'_, T, 1> {
    /// The elements `range` of an array of one dimension, for reading. They lie in one part.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> &[T] {
        match self.window.slice_place(&range) {
            Some(place) => &self.data[place],
            None => self.slice_elsewhere(range),
        }
    }

    #[cold]
    #[inline(never)]
    fn slice_elsewhere(&self, range: Range<usize>) -> &[T] {
        if let Some((window, recorder)) = &self.recorded {
            recorder.note(vec![range.clone()], false);
            if let Some(place) = window.slice_place(&range) {
                return &self.data[place];
            }
        }
        let found = self
            .others
            .iter()
            .find_map(|(window, data)| window.slice_place(&range).map(|place| &data[place]));
        found.unwrap_or_else(|| refuse_slice(self.bounds, range, &self.held()))
    }

    /// The elements `range` of an array of one dimension. They lie in one part.
    #[inline]
    pub fn slice_mut(&mut self, range: Range<usize>) -> &mut [T] {
        let place = match self.window.slice_place(&range) {
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
        let place = |window: &Window<1>| window.slice_place(&range).map(|place| place.start);
        let start = self.switch(place, || vec![range.start, range.end]);
        start..start + range.len()
    }
}

impl<T, const N: usize> Index<[usize; N]> for ViewMut<'_, T, N> {
    type Output = T;

    #[inline]
    fn index(&self, index: [usize; N]) -> &T {
        match self.window.place(index) {
            Some(place) => &self.data[place],
            None => self.elsewhere(index),
        }
    }
}

impl<T, const N: usize> IndexMut<[usize; N]> for ViewMut<'_, T, N> {
    #[inline]
    fn index_mut(&mut self, index: [usize; N]) -> &mut T {
        let place = match self.window.place(index) {
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
