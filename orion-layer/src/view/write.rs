//! The view of an array that a body writes.
use super::recording::Recorder;
use super::window::{PartBounds, RowIndex, refuse, refuse_slice};
use hectare_dsm::tasks::{Asked, Elements, Line, Lines, Patches};
use std::ops::{Index, IndexMut, Range};

/// The elements of an array that this worker may touch: parts that it holds, or those of an array in place that its task
/// reads and writes.
///
/// An index outside of it ends the loop with [`Error::OutOfBounds`](crate::Error::OutOfBounds): a body is only ever
/// given what its worker owns.
#[derive(Debug)]
pub struct ViewMut<'a, T, const N: usize> {
    patches: Patches<'a, T, N>,
    bounds: PartBounds<'a>,
}

/// Some element of a row.
#[inline(always)]
fn in_row<R: RowIndex<N>, const N: usize>(row: R) -> [usize; N] {
    std::array::from_fn(|k| if k + 1 < N { row.at(k) } else { 0 })
}

impl<'a, T, const N: usize> ViewMut<'a, T, N> {
    /// A view of these elements.
    pub(crate) fn new(bounds: PartBounds<'a>, patches: Patches<'a, T, N>) -> ViewMut<'a, T, N> {
        ViewMut { patches, bounds }
    }

    /// A view that notes what is touched.
    pub(crate) fn recorded(
        bounds: PartBounds<'a>,
        patches: Patches<'a, T, N>,
        recorder: Recorder<'a>,
    ) -> ViewMut<'a, T, N> {
        let row_len = bounds.shape.last().copied().unwrap_or(1);
        let watch = move |asked: Asked<N>| {
            let elements = match asked.elements {
                Elements::One(index) => index.iter().map(|at| *at..at.saturating_add(1)).collect(),
                Elements::Range(range) => vec![range],
                Elements::Row(row) => {
                    let ahead = row[..N - 1].iter().map(|at| *at..at.saturating_add(1));
                    ahead.chain(std::iter::once(0..row_len)).collect()
                }
            };
            recorder.note(elements, asked.writes);
        };
        ViewMut { patches: patches.watched(Box::new(watch)), bounds }
    }

    /// A row: the elements whose index begins with `row`, in the order of the last dimension.
    #[inline]
    pub fn row<R: RowIndex<N>>(&self, row: R) -> &[T] {
        match self.patches.row(in_row(row)) {
            Some(found) => found,
            None => refuse(self.bounds, row.to_vec(), &held(self.bounds, &self.patches)),
        }
    }

    /// A row, for writing.
    #[inline(always)]
    pub fn row_mut<R: RowIndex<N>>(&mut self, row: R) -> &mut [T] {
        match self.patches.row_mut(in_row(row)) {
            Ok(found) => found,
            Err(patches) => refuse(self.bounds, row.to_vec(), &held(self.bounds, patches)),
        }
    }

    /// Two different rows, for writing.
    ///
    /// # Panics
    /// If both are the same row.
    #[inline]
    pub fn rows_mut<R: RowIndex<N>>(&mut self, first: R, second: R) -> (&mut [T], &mut [T]) {
        match self.patches.rows_mut(in_row(first), in_row(second)) {
            Ok(rows) => rows,
            Err(patches) => refuse_pair(self.bounds, patches, "rows_mut", [first, second], [true, true]),
        }
    }

    /// Lines of `len` elements each, if all lie where the view looks first; for `parallel_for!`.
    #[doc(hidden)]
    #[inline(always)]
    pub fn __lines<const K: usize, const M: usize>(
        &mut self,
        lines: [Line<M>; K],
        len: usize,
    ) -> Option<Lines<'_, T, K>> {
        self.patches.lines(super::of_dims(lines)?, len)
    }

    /// A row for reading, and another one for writing: of an elimination, the row of the pivot and one below it.
    ///
    /// # Panics
    /// If both are the same row.
    #[inline]
    pub fn row_and_row_mut<R: RowIndex<N>>(&mut self, read: R, write: R) -> (&[T], &mut [T]) {
        match self.patches.row_and_row_mut(in_row(read), in_row(write)) {
            Ok(rows) => rows,
            Err(patches) => {
                refuse_pair(self.bounds, patches, "row_and_row_mut", [read, write], [false, true])
            }
        }
    }
}

/// The range that is held of the dimension that the array is cut along.
#[cold]
#[inline(never)]
fn held<T, const N: usize>(bounds: PartBounds<'_>, patches: &Patches<'_, T, N>) -> Vec<Range<usize>> {
    patches.boxes().into_iter().map(|mut ranges| std::mem::take(&mut ranges[bounds.dim])).collect()
}

/// Of two rows that were asked for by `method`, some to be written, one is not held, or both are the same.
#[cold]
#[inline(never)]
fn refuse_pair<T, R: RowIndex<N>, const N: usize>(
    bounds: PartBounds<'_>,
    patches: &Patches<'_, T, N>,
    method: &str,
    rows: [R; 2],
    writes: [bool; 2],
) -> ! {
    let has = |(row, writes): (R, bool)| {
        if writes { patches.may_write_row(in_row(row)) } else { patches.row(in_row(row)).is_some() }
    };
    match rows.into_iter().zip(writes).find(|asked| !has(*asked)) {
        Some((row, _)) => refuse(bounds, row.to_vec(), &held(bounds, patches)),
        None => panic!("{method} of one row of {:?} twice: {:?}", bounds.array, rows[0].to_vec()),
    }
}

impl<T> ViewMut<'_, T, 1> {
    /// The elements `range` of an array of one dimension, for reading. They lie in one part.
    #[inline]
    pub fn slice(&self, range: Range<usize>) -> &[T] {
        match self.patches.slice(range.clone()) {
            Some(found) => found,
            None => refuse_slice(self.bounds, range, &held(self.bounds, &self.patches)),
        }
    }

    /// The elements `range` of an array of one dimension. They lie in one part.
    #[inline]
    pub fn slice_mut(&mut self, range: Range<usize>) -> &mut [T] {
        match self.patches.slice_mut(range.clone()) {
            Ok(found) => found,
            Err(patches) => refuse_slice(self.bounds, range, &held(self.bounds, patches)),
        }
    }
}

impl<T, const N: usize> Index<[usize; N]> for ViewMut<'_, T, N> {
    type Output = T;

    #[inline]
    fn index(&self, index: [usize; N]) -> &T {
        match self.patches.get(index) {
            Some(element) => element,
            None => missing(self.bounds, index, &self.patches),
        }
    }
}

impl<T, const N: usize> IndexMut<[usize; N]> for ViewMut<'_, T, N> {
    #[inline]
    fn index_mut(&mut self, index: [usize; N]) -> &mut T {
        match self.patches.get_mut(index) {
            Ok(element) => element,
            Err(patches) => missing(self.bounds, index, patches),
        }
    }
}

/// Refuses an index. Its numbers go by registers: an array would be stored whenever it is made, for a call that is hardly ever
/// made.
#[inline(always)]
fn missing<T, const N: usize>(bounds: PartBounds<'_>, index: [usize; N], patches: &Patches<'_, T, N>) -> ! {
    let at = |k: usize| if k < N { index[k] } else { 0 };
    match N {
        1..=3 => missing_by(bounds, patches, at(0), at(1), at(2)),
        _ => refuse(bounds, index.to_vec(), &held(bounds, patches)),
    }
}

#[cold]
#[inline(never)]
fn missing_by<T, const N: usize>(
    bounds: PartBounds<'_>,
    patches: &Patches<'_, T, N>,
    i: usize,
    j: usize,
    k: usize,
) -> ! {
    refuse(bounds, [i, j, k][..N].to_vec(), &held(bounds, patches))
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
