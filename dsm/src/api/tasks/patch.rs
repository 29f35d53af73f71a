//! A box of the elements of an array in one piece, as one may read it and one may write it.
use super::lines::{Line, stays_below};
use super::row_slices::Rows;
use crate::protocol::tasks::Region;
use std::ops::Range;

/// Two boxes of an array, one to be read and one to be written.
#[derive(Debug)]
pub(crate) struct Patch<T, const N: usize> {
    /// Where the element with index 0 in each dimension would be.
    pub(super) origin: *mut T,
    /// Elements from one index to the next, by dimension. In the last it is 1.
    pub(super) stride: [usize; N],
    pub(super) read: Bounds<N>,
    pub(super) write: Bounds<N>,
}

impl<T, const N: usize> Clone for Patch<T, N> {
    fn clone(&self) -> Patch<T, N> {
        *self
    }
}

impl<T, const N: usize> Copy for Patch<T, N> {}

/// A box of indices.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds<const N: usize> {
    base: [usize; N],
    /// From the base to behind the last index; 0 if only a close look tells what is in the box.
    extent: [usize; N],
    /// In one dimension: the bits that are 0 in each distance from the base.
    mask: usize,
    /// The extent of dimension 0 if rows lie whole in the box, otherwise 0; 0 also where a close look is needed.
    rows: usize,
    /// The same closely.
    exact: [(usize, usize); N],
    has_rows: bool,
}

impl<const N: usize> Bounds<N> {
    const NONE: Bounds<N> =
        Bounds { base: [0; N], extent: [0; N], mask: 0, rows: 0, exact: [(0, 0); N], has_rows: false };

    /// The box of a region of an array with rows of `row_len` elements.
    pub(super) fn of(region: &Region, row_len: usize) -> Bounds<N> {
        let mut bounds = Bounds::NONE;
        for (dim, span) in region.spans.iter().enumerate() {
            bounds.base[dim] = span.start;
            bounds.exact[dim] = (span.end.saturating_sub(span.start), span.step);
        }
        let (extent, step) = bounds.exact[N - 1];
        bounds.has_rows = N > 1 && bounds.base[N - 1] == 0 && extent == row_len && step == 1;
        let is_plain = bounds.exact.iter().all(|(_, step)| *step == 1);
        if is_plain || N == 1 && step.is_power_of_two() {
            bounds.extent = bounds.exact.map(|(extent, _)| extent);
            bounds.mask = step - 1;
            bounds.rows = if bounds.has_rows { bounds.extent[0] } else { 0 };
        }
        bounds
    }

    /// Whether an index is in the box; false for some that only a close look finds.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an iterator would keep the index in memory")]
    pub(super) fn has(&self, index: [usize; N]) -> bool {
        for k in 0..N {
            let at = index[k].wrapping_sub(self.base[k]);
            if at >= self.extent[k] || N == 1 && at & self.mask != 0 {
                return false;
            }
        }
        true
    }

    /// Whether an index is in the box.
    pub(super) fn has_exactly(&self, index: [usize; N]) -> bool {
        (0..N).all(|k| self.has_in(k, index))
    }

    fn has_in(&self, k: usize, index: [usize; N]) -> bool {
        let (at, (extent, step)) = (index[k].wrapping_sub(self.base[k]), self.exact[k]);
        at < extent && at.is_multiple_of(step)
    }

    /// Whether all of a row is in the box, whatever the last number of its index; false for some that only a close look finds.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "an iterator would keep the index in memory")]
    pub(super) fn has_row(&self, row: [usize; N]) -> bool {
        if N == 1 {
            return false;
        }
        for k in 0..N - 1 {
            let at = row[k].wrapping_sub(self.base[k]);
            if at >= if k == 0 { self.rows } else { self.extent[k] } {
                return false;
            }
        }
        true
    }

    pub(super) fn has_row_exactly(&self, row: [usize; N]) -> bool {
        self.has_rows && (0..N - 1).all(|k| self.has_in(k, row))
    }

    /// Whether all of a range of the last dimension is in the box, of an array of one dimension.
    #[inline(always)]
    pub(super) fn has_range(&self, range: &Range<usize>) -> bool {
        let (at, (extent, step)) = (range.start.wrapping_sub(self.base[0]), self.exact[0]);
        at <= extent && range.start <= range.end && range.len() <= extent - at && step == 1
    }

    /// Whether all of `len` elements of a line are in the box; false for some that only a close look finds.
    #[inline(always)]
    pub(super) fn has_line(&self, line: &Line<N>, len: usize) -> bool {
        (0..N).all(|k| {
            let (at, step) = (line.first[k].wrapping_sub(self.base[k]), line.step[k]);
            let is_between = N == 1 && (at | step as usize) & self.mask != 0;
            stays_below(self.extent[k], at, step, len) && !is_between
        })
    }

    /// Whether all of `len` elements of a line are in the box.
    pub(super) fn has_line_exactly(&self, line: &Line<N>, len: usize) -> bool {
        (0..N).all(|k| {
            let (at, (extent, step)) = (line.first[k].wrapping_sub(self.base[k]), self.exact[k]);
            let by = line.step[k];
            stays_below(extent, at, by, len)
                && at.is_multiple_of(step)
                && by.unsigned_abs().is_multiple_of(step as u64)
        })
    }

    /// Elements of a row of which all are in the box.
    #[inline(always)]
    /// The box from its first index to behind its last, unless nothing is in it.
    pub(super) fn hull(&self) -> Option<[Range<usize>; N]> {
        let has_any = self.exact.iter().all(|(extent, _)| *extent > 0);
        has_any.then(|| std::array::from_fn(|k| self.base[k]..self.base[k] + self.exact[k].0))
    }

    pub(super) fn row_len(&self) -> usize {
        self.exact[N - 1].0
    }
}

impl<T, const N: usize> Patch<T, N> {
    pub(super) const NONE: Patch<T, N> =
        Patch { origin: std::ptr::dangling_mut(), stride: [0; N], read: Bounds::NONE, write: Bounds::NONE };

    /// Boxes of the array of this shape that begins at `start`.
    ///
    /// # Safety
    /// The array lies there, and the regions in its shape. For as long as the patch is used, nobody else writes what is in
    /// `read`, or touches what is in `write`. All patches of one array that are used at a time belong to one [`Patches`].
    pub(crate) unsafe fn new(
        start: *mut T,
        shape: &[usize; N],
        read: Option<&Region>,
        write: Option<&Region>,
    ) -> Patch<T, N> {
        let of =
            |region: Option<&Region>| region.map_or(Bounds::NONE, |region| Bounds::of(region, shape[N - 1]));
        Patch { origin: start, stride: strides(shape), read: of(read), write: of(write) }
    }

    /// A box of an array of this shape whose `len` elements or more lie at `start`, in row-major order: to be read.
    ///
    /// # Panics
    /// If the box has more elements, or ends before it begins.
    pub(super) fn of_box(
        shape: &[usize; N],
        ranges: [Range<usize>; N],
        len: usize,
        start: *mut T,
    ) -> Patch<T, N> {
        let extent = ranges.each_ref().map(|range| range.end - range.start);
        let all = extent.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent));
        assert!(all.is_some_and(|all| all <= len), "a part of {extent:?} has {len} elements");
        let stride = strides(&extent);
        let ahead = (0..N).fold(0usize, |sum, k| sum.wrapping_add(ranges[k].start.wrapping_mul(stride[k])));
        let read = Bounds::of(&Region::of(ranges), shape[N - 1]);
        Patch { origin: start.wrapping_sub(ahead), stride, read, write: Bounds::NONE }
    }

    /// The rows that a batch may write, which are side by side: a box of the array whose rows are as long as they are.
    pub(super) fn of_range(rows: &Rows<'_, T>, range: Range<usize>) -> Option<Patch<T, N>> {
        let len = rows.row_len();
        // All elements of the range are in rows of the list.
        let bounds = match N {
            1 if len == 1 => Bounds::of(&Region::of([range]), 1),
            2 => Bounds::of(&Region::of([range, 0..len]), len),
            _ => return None,
        };
        let mut stride = [1; N];
        stride[0] = len;
        Some(Patch { origin: rows.start(), stride, read: bounds, write: bounds })
    }

    pub(super) fn bounds(&self, writes: bool) -> &Bounds<N> {
        if writes { &self.write } else { &self.read }
    }

    #[inline(always)]
    pub(super) fn element(&self, index: [usize; N]) -> *mut T {
        self.row(index).wrapping_add(index[N - 1])
    }

    #[inline(always)]
    pub(super) fn row(&self, row: [usize; N]) -> *mut T {
        let place =
            (0..N - 1).fold(0usize, |place, k| place.wrapping_add(row[k].wrapping_mul(self.stride[k])));
        self.origin.wrapping_add(place)
    }
}

/// Elements from one index to the next in each dimension, in row-major order.
pub(super) fn strides<const N: usize>(extent: &[usize; N]) -> [usize; N] {
    let mut stride = [1; N];
    for k in (0..N.saturating_sub(1)).rev() {
        stride[k] = stride[k + 1] * extent[k + 1];
    }
    stride
}
