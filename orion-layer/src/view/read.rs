//! The view of an array that a body only reads.
use super::gathered::Gathered;
use super::recording::Recorder;
use super::window::{PartBounds, RowIndex, Window, refuse, refuse_slice};
use hectare_dsm::tasks::{Line, Lines};
use std::ops::{Index, Range};

/// An array, for reading: every element in place, wherever it lies.
///
/// Rows and slices are read in place too, if one part of the array holds the whole of them. For the others this worker
/// copies the array into one piece, once between two loops that write it.
///
/// An index outside of it ends the loop with [`Error::OutOfBounds`](crate::Error::OutOfBounds).
#[derive(Debug)]
pub struct View<'a, T, const N: usize> {
    window: Window<N>,
    data: &'a [T],
    /// The second part, where elements of arrays of one dimension are looked for next: on two workers that is all.
    second: (Window<N>, &'a [T]),
    others: Vec<(Window<N>, &'a [T])>,
    bounds: PartBounds<'a>,
    /// The whole array, and this worker's copy of it, if it has made one.
    whole: Window<N>,
    gathered: &'a Gathered<T>,
    recorder: Option<Recorder<'a>>,
}

/// A part without elements.
fn nothing<'a, T, const N: usize>() -> (Window<N>, &'a [T]) {
    (Window::new(&[0; N], 0, &(0..0)), &[])
}

impl<'a, T: Copy, const N: usize> View<'a, T, N> {
    /// A view of these parts, which are all; the first is where the view looks first.
    pub(crate) fn new(
        bounds: PartBounds<'a>,
        whole: Window<N>,
        mut parts: Vec<(Window<N>, &'a [T])>,
        gathered: &'a Gathered<T>,
    ) -> View<'a, T, N> {
        let (window, data) = if parts.is_empty() { nothing() } else { parts.remove(0) };
        let second = parts.first().copied().unwrap_or_else(nothing);
        View { window, data, second, others: parts, bounds, whole, gathered, recorder: None }
    }

    /// A view that notes what is touched.
    pub(crate) fn recorded(
        bounds: PartBounds<'a>,
        whole: Window<N>,
        parts: Vec<(Window<N>, &'a [T])>,
        gathered: &'a Gathered<T>,
        recorder: Recorder<'a>,
    ) -> View<'a, T, N> {
        let window = parts.first().map_or(Window::new(&[0; N], 0, &(0..0)), |(window, _)| window.emptied());
        let recorder = Some(recorder);
        View { window, data: &[], second: nothing(), others: parts, bounds, whole, gathered, recorder }
    }

    /// A row: the elements whose index begins with `row`, in the order of the last dimension.
    #[inline]
    pub fn row<R: RowIndex<N>>(&self, row: R) -> &'a [T] {
        if let Some(place) = self.window.row_place(row)
            && let Some(found) = self.data.get(place..).and_then(|rest| rest.get(..self.window.row_len()))
        {
            return found;
        }
        self.row_elsewhere(row)
    }

    #[cold]
    #[inline(never)]
    fn row_elsewhere<R: RowIndex<N>>(&self, row: R) -> &'a [T] {
        if let Some(recorder) = self.recorder {
            recorder.note_row(row, self.whole.row_len(), false);
        }
        let found = self.others.iter().find_map(|(window, data)| {
            window.row_place(row).map(|place| &data[place..place + window.row_len()])
        });
        let gathered = || {
            let place = self.whole.row_place(row)?;
            Some(&self.in_one_piece()[place..place + self.whole.row_len()])
        };
        let found = found.or_else(gathered);
        found.unwrap_or_else(|| refuse(self.bounds, row.to_vec(), &self.held()))
    }

    /// Lines of `len` elements each, if each lies whole in one part; for `parallel_for!`.
    #[doc(hidden)]
    #[inline(always)]
    pub fn __lines<const K: usize, const M: usize>(
        &self,
        lines: [Line<M>; K],
        len: usize,
    ) -> Option<Lines<'_, T, K>> {
        let mut places = [(&[][..], 0, 0); K];
        for (place, line) in places.iter_mut().zip(&super::of_dims(lines)?) {
            *place = match self.window.line_place(line, len) {
                Some((at, stride)) => (self.data, at, stride),
                None => self.line_elsewhere(line, len)?,
            };
        }
        Lines::of_slices(places, len)
    }

    #[cold]
    #[inline(never)]
    fn line_elsewhere(&self, line: &Line<N>, len: usize) -> Option<(&'a [T], usize, isize)> {
        if self.recorder.is_some() {
            return None;
        }
        self.others.iter().find_map(|(window, data)| {
            window.line_place(line, len).map(|(place, stride)| (*data, place, stride))
        })
    }

    #[cold]
    #[inline(never)]
    fn elsewhere(&self, index: [usize; N]) -> &'a T {
        if let Some(recorder) = self.recorder {
            recorder.note_element(index, false);
        }
        let found =
            self.others.iter().find_map(|(window, data)| window.place(index).map(|place| &data[place]));
        found.unwrap_or_else(|| refuse(self.bounds, index.to_vec(), &self.held()))
    }

    /// The elements of the whole array, copied together.
    fn in_one_piece(&self) -> &'a [T] {
        let parts = self.others.iter().map(|(window, data)| (window, *data));
        self.gathered.get(&self.whole, std::iter::once((&self.window, self.data)).chain(parts))
    }

    fn held(&self) -> Vec<Range<usize>> {
        let windows = std::iter::once(&self.window).chain(self.others.iter().map(|(window, _)| window));
        windows.map(|window| window.range(self.bounds.dim)).collect()
    }
}

impl<T: Copy> View<'_, T, 1> {
    /// The elements `range` of an array of one dimension.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> &[T] {
        match self.window.slice_place(&range).and_then(|place| self.data.get(place)) {
            Some(found) => found,
            None => self.slice_elsewhere(range),
        }
    }

    #[cold]
    #[inline(never)]
    fn slice_elsewhere(&self, range: Range<usize>) -> &[T] {
        if let Some(recorder) = self.recorder {
            recorder.note(vec![range.clone()], false);
        }
        let found = self
            .others
            .iter()
            .find_map(|(window, data)| window.slice_place(&range).map(|place| &data[place]));
        let gathered = || self.whole.slice_place(&range).map(|place| &self.in_one_piece()[place]);
        let found = found.or_else(gathered);
        found.unwrap_or_else(|| refuse_slice(self.bounds, range, &self.held()))
    }
}

impl<T: Copy, const N: usize> Index<[usize; N]> for View<'_, T, N> {
    type Output = T;

    #[inline]
    fn index(&self, index: [usize; N]) -> &T {
        match self.window.place(index).and_then(|place| self.data.get(place)) {
            Some(element) => element,
            None if N == 1 => {
                let (window, data) = &self.second;
                match window.place(index).and_then(|place| data.get(place)) {
                    Some(element) => element,
                    None => self.elsewhere(index),
                }
            }
            None => self.elsewhere(index),
        }
    }
}

impl<T: Copy> Index<usize> for View<'_, T, 1> {
    type Output = T;

    #[inline]
    fn index(&self, index: usize) -> &T {
        &self[[index]]
    }
}
