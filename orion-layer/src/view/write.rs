//! The view of an array that a body writes.
use super::recording::Recorder;
use super::window::{PartBounds, RowIndex, refuse, refuse_slice};
use hectare_dsm::tasks::Patches;
use std::ops::{Index, IndexMut, Range};

/// What this worker may touch of an array: parts that it holds, or the elements of an array that lies in place that its task
/// reads and writes.
///
/// An index outside of it ends the loop with [`Error::Outside`](crate::Error::Outside): a body is only ever
/// given what its worker owns.
#[derive(Debug)]
pub struct ViewMut<'a, T, const N: usize> {
    patches: Patches<'a, T, N>,
    bounds: PartBounds<'a>,
    /// In a checked loop: the elements, none of which are in `patches` then, and who notes what is touched.
    recorded: Option<(Patches<'a, T, N>, Recorder<'a>)>,
}

/// Some element of a row.
#[inline(always)]
fn in_row<R: RowIndex<N>, const N: usize>(row: R) -> [usize; N] {
    std::array::from_fn(|k| if k + 1 < N { row.at(k) } else { 0 })
}

impl<'a, T, const N: usize> ViewMut<'a, T, N> {
    /// A view of these elements.
    pub(crate) fn new(bounds: PartBounds<'a>, patches: Patches<'a, T, N>) -> ViewMut<'a, T, N> {
        ViewMut { patches, bounds, recorded: None }
    }

    /// A view that notes what is touched.
    pub(crate) fn recorded(
        bounds: PartBounds<'a>,
        patches: Patches<'a, T, N>,
        recorder: Recorder<'a>,
    ) -> ViewMut<'a, T, N> {
        let none = Patches::of_parts(&[0; N], Vec::new());
        ViewMut { patches: none, bounds, recorded: Some((patches, recorder)) }
    }

    /// A row: the elements whose index begins with `row`, in the order of the last dimension.
    #[inline]
    pub fn row<R: RowIndex<N>>(&self, row: R) -> &[T] {
        match self.patches.row(in_row(row)) {
            Some(found) => found,
            None => self.row_elsewhere(row),
        }
    }

    #[cold]
    #[inline(never)]
    fn row_elsewhere<R: RowIndex<N>>(&self, row: R) -> &[T] {
        let found = self.recorded.as_ref().and_then(|(patches, recorder)| {
            recorder.note_row(row, self.row_len(), false);
            patches.row(in_row(row))
        });
        found.unwrap_or_else(|| refuse(self.bounds, row.to_vec(), &self.held()))
    }

    /// A row, for writing.
    #[inline]
    pub fn row_mut<R: RowIndex<N>>(&mut self, row: R) -> &mut [T] {
        if !self.patches.leads_to_row(in_row(row)) {
            return self.row_mut_elsewhere(row);
        }
        self.patches.row_mut(in_row(row)).unwrap_or_default()
    }

    #[cold]
    #[inline(never)]
    fn row_mut_elsewhere<R: RowIndex<N>>(&mut self, row: R) -> &mut [T] {
        self.note_row_to_write(row);
        if !self.looked_at().may_write_row(in_row(row)) {
            refuse(self.bounds, row.to_vec(), &self.held());
        }
        self.looked_at_mut().row_mut(in_row(row)).unwrap_or_default()
    }

    /// Two different rows, for writing.
    ///
    /// # Panics
    /// If both are the same row.
    pub fn rows_mut<R: RowIndex<N>>(&mut self, first: R, second: R) -> (&mut [T], &mut [T]) {
        for row in [first, second] {
            self.note_row_to_write(row);
            if !self.looked_at().leads_to_row(in_row(row)) && !self.looked_at().may_write_row(in_row(row)) {
                refuse(self.bounds, row.to_vec(), &self.held());
            }
        }
        let array = self.bounds.array;
        match self.looked_at_mut().rows_mut(in_row(first), in_row(second)) {
            Some(rows) => rows,
            None => panic!("rows_mut of one row of {array:?} twice: {:?}", first.to_vec()),
        }
    }

    fn note_row_to_write<R: RowIndex<N>>(&self, row: R) {
        if let Some((_, recorder)) = &self.recorded {
            recorder.note_row(row, self.row_len(), true);
        }
    }

    #[cold]
    #[inline(never)]
    fn elsewhere(&self, index: [usize; N]) -> &T {
        if let Some((_, recorder)) = &self.recorded {
            recorder.note_element(index, false);
        }
        match self.looked_at().get(index) {
            Some(element) => element,
            None => refuse(self.bounds, index.to_vec(), &self.held()),
        }
    }

    #[cold]
    #[inline(never)]
    fn elsewhere_mut(&mut self, index: [usize; N]) -> &mut T {
        if let Some((_, recorder)) = &self.recorded {
            recorder.note_element(index, true);
        }
        if !self.looked_at().may_write(index) {
            refuse(self.bounds, index.to_vec(), &self.held());
        }
        match self.looked_at_mut().get_mut(index) {
            Some(element) => element,
            None => unreachable!("it may be written"),
        }
    }

    fn looked_at(&self) -> &Patches<'a, T, N> {
        self.recorded.as_ref().map_or(&self.patches, |(patches, _)| patches)
    }

    fn looked_at_mut(&mut self) -> &mut Patches<'a, T, N> {
        self.recorded.as_mut().map_or(&mut self.patches, |(patches, _)| patches)
    }

    fn row_len(&self) -> usize {
        self.bounds.shape.last().copied().unwrap_or(1)
    }

    /// What is held of the dimension that the array is cut along.
    fn held(&self) -> Vec<Range<usize>> {
        self.looked_at().boxes().into_iter().map(|mut ranges| std::mem::take(&mut ranges[self.bounds.dim])).collect()
    }
}

impl<T> ViewMut<'_, T, 1> {
    /// The elements `range` of an array of one dimension, for reading. They lie in one part.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> &[T] {
        match self.patches.slice(range.clone()) {
            Some(found) => found,
            None => self.slice_elsewhere(range),
        }
    }

    #[cold]
    #[inline(never)]
    fn slice_elsewhere(&self, range: Range<usize>) -> &[T] {
        if let Some((_, recorder)) = &self.recorded {
            recorder.note(vec![range.clone()], false);
        }
        match self.looked_at().slice(range.clone()) {
            Some(found) => found,
            None => refuse_slice(self.bounds, range, &self.held()),
        }
    }

    /// The elements `range` of an array of one dimension. They lie in one part.
    #[inline]
    pub fn slice_mut(&mut self, range: Range<usize>) -> &mut [T] {
        if let Some((_, recorder)) = &self.recorded {
            recorder.note(vec![range.clone()], true);
        }
        if !self.looked_at().may_write_slice(range.clone()) {
            refuse_slice(self.bounds, range, &self.held());
        }
        self.looked_at_mut().slice_mut(range).unwrap_or_default()
    }
}

impl<T, const N: usize> Index<[usize; N]> for ViewMut<'_, T, N> {
    type Output = T;

    #[inline]
    fn index(&self, index: [usize; N]) -> &T {
        match self.patches.get(index) {
            Some(element) => element,
            None => self.elsewhere(index),
        }
    }
}

impl<T, const N: usize> IndexMut<[usize; N]> for ViewMut<'_, T, N> {
    #[inline]
    fn index_mut(&mut self, index: [usize; N]) -> &mut T {
        if !self.patches.leads_to(index) {
            return self.elsewhere_mut(index);
        }
        match self.patches.get_mut(index) {
            Some(element) => element,
            None => unreachable!("the patches lead there"),
        }
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
