//! What a worker may touch of an array that lies in one piece: boxes of its elements, each for reading, writing or both.
use crate::protocol::tasks::Region;
use std::marker::PhantomData;
use std::ops::Range;

/// Elements of an array of `N` dimensions, in row-major order, that this worker may read or write: the boxes that a task was
/// given ([`RunningTask::patches`](super::run::RunningTask::patches)), or parts that the worker holds whole
/// ([`Patches::of_parts`]).
///
/// Everything is found by its index in the array. What lies outside is not found, as is what may be read only and is asked for
/// to be written.
#[derive(Debug)]
pub struct Patches<'a, T, const N: usize> {
    /// Where to look first.
    first: Patch<T, N>,
    others: Vec<Patch<T, N>>,
    elements: PhantomData<&'a mut [T]>,
}

/// Two boxes of an array, one to be read and one to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patch<T, const N: usize> {
    /// Where the element with index 0 in each dimension would be.
    origin: *mut T,
    /// Elements from one index to the next, by dimension. In the last it is 1.
    stride: [usize; N],
    read: Bounds<N>,
    write: Bounds<N>,
}

/// A box of indices.
#[derive(Clone, Copy, Debug)]
struct Bounds<const N: usize> {
    base: [usize; N],
    /// From the base to behind the last index.
    extent: [usize; N],
    step: [usize; N],
    /// The bits that are 0 in each distance from the base; all but 0 is looked at closely where steps are no powers of two.
    mask: [usize; N],
    /// The extent of dimension 0 if rows lie whole in the box, otherwise 0.
    rows: usize,
}

impl<const N: usize> Bounds<N> {
    const NONE: Bounds<N> = Bounds { base: [0; N], extent: [0; N], step: [1; N], mask: [0; N], rows: 0 };

    /// The box of a region of an array with rows of `row_len` elements.
    fn of(region: &Region, row_len: usize) -> Bounds<N> {
        let mut bounds = Bounds::NONE;
        for (dim, span) in region.spans.iter().enumerate() {
            bounds.base[dim] = span.start;
            bounds.extent[dim] = span.end.saturating_sub(span.start);
            bounds.step[dim] = span.step;
            bounds.mask[dim] = if span.step.is_power_of_two() { span.step - 1 } else { usize::MAX };
        }
        let last = N - 1;
        let whole = bounds.base[last] == 0 && bounds.extent[last] == row_len && bounds.step[last] == 1;
        bounds.rows = if whole || N == 1 { bounds.extent[0] } else { 0 };
        bounds
    }

    /// Whether an index is in the box; false for some that are where steps are no powers of two.
    #[inline(always)]
    fn has(&self, index: [usize; N]) -> bool {
        let mut odd = 0;
        for (k, index) in index.into_iter().enumerate() {
            let at = index.wrapping_sub(self.base[k]);
            if at >= self.extent[k] {
                return false;
            }
            odd |= at & self.mask[k];
        }
        odd == 0
    }

    /// Whether an index is in the box.
    fn has_exactly(&self, index: [usize; N]) -> bool {
        index.iter().enumerate().all(|(k, index)| {
            let at = index.wrapping_sub(self.base[k]);
            at < self.extent[k] && at.is_multiple_of(self.step[k])
        })
    }

    /// Whether all of a row is in the box, whatever the last number of its index.
    #[inline(always)]
    fn has_row(&self, row: [usize; N]) -> bool {
        let mut odd = 0;
        for k in 0..N - 1 {
            let at = row[k].wrapping_sub(self.base[k]);
            if at >= if k == 0 { self.rows } else { self.extent[k] } {
                return false;
            }
            odd |= at & self.mask[k];
        }
        odd == 0
    }

    fn has_row_exactly(&self, row: [usize; N]) -> bool {
        self.rows > 0
            && (0..N - 1).all(|k| {
                let at = row[k].wrapping_sub(self.base[k]);
                at < self.extent[k] && at.is_multiple_of(self.step[k])
            })
    }

    /// Whether all of a range of the last dimension is in the box, of an array of one dimension.
    #[inline(always)]
    fn has_range(&self, range: &Range<usize>) -> bool {
        let at = range.start.wrapping_sub(self.base[0]);
        at <= self.extent[0] && range.start <= range.end && range.len() <= self.extent[0] - at && self.step[0] == 1
    }
}

impl<T, const N: usize> Patch<T, N> {
    const NONE: Patch<T, N> =
        Patch { origin: std::ptr::null_mut(), stride: [0; N], read: Bounds::NONE, write: Bounds::NONE };

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
        let of = |region: Option<&Region>| region.map_or(Bounds::NONE, |region| Bounds::of(region, shape[N - 1]));
        Patch { origin: start, stride: strides(shape), read: of(read), write: of(write) }
    }

    #[inline(always)]
    fn element(&self, index: [usize; N]) -> *mut T {
        let mut place = 0usize;
        for (k, index) in index.into_iter().enumerate() {
            place = place.wrapping_add(if k + 1 == N { index } else { index.wrapping_mul(self.stride[k]) });
        }
        self.origin.wrapping_add(place)
    }

    #[inline(always)]
    fn row(&self, row: [usize; N]) -> *mut T {
        let place = (0..N - 1).fold(0usize, |place, k| place.wrapping_add(row[k].wrapping_mul(self.stride[k])));
        self.origin.wrapping_add(place)
    }
}

/// Elements from one index to the next in each dimension, in row-major order.
fn strides<const N: usize>(extent: &[usize; N]) -> [usize; N] {
    let mut stride = [1; N];
    for k in (0..N.saturating_sub(1)).rev() {
        stride[k] = stride[k + 1] * extent[k + 1];
    }
    stride
}

impl<'a, T, const N: usize> Patches<'a, T, N> {
    pub(super) fn new(patches: Vec<Patch<T, N>>) -> Patches<'a, T, N> {
        let mut all = patches.into_iter();
        let first = all.next().unwrap_or(Patch::NONE);
        Patches { first, others: all.collect(), elements: PhantomData }
    }

    /// Parts of an array of this shape: boxes of its indices, each with its elements in row-major order, to be read and
    /// written. Where two have the same index, the first that is found counts.
    ///
    /// ```
    /// use hectare_dsm::tasks::Patches;
    ///
    /// let mut rows = [1.0, 2.0, 3.0, 4.0];
    /// let mut part = Patches::of_parts(&[9, 2], vec![([4..6, 0..2], &mut rows[..])]);
    /// *part.get_mut([5, 0]).unwrap() += 1.0;
    /// assert_eq!(part.row([5, 0]).unwrap(), [4.0, 4.0]);
    /// assert_eq!(part.get([6, 0]), None);
    /// ```
    ///
    /// # Panics
    /// If a part has fewer elements than indices, or ends before it begins.
    pub fn of_parts(shape: &[usize; N], parts: Vec<([Range<usize>; N], &'a mut [T])>) -> Patches<'a, T, N> {
        let patch = |(ranges, elements): ([Range<usize>; N], &'a mut [T])| {
            let extent = ranges.each_ref().map(|range| range.end - range.start);
            let all = extent.iter().try_fold(1usize, |all, extent| all.checked_mul(*extent));
            assert!(all.is_some_and(|all| all <= elements.len()), "a part of {extent:?} has {} elements", elements.len());
            let stride = strides(&extent);
            let ahead = (0..N).fold(0usize, |sum, k| sum.wrapping_add(ranges[k].start.wrapping_mul(stride[k])));
            let bounds = Bounds::of(&Region::of(ranges), shape[N - 1]);
            let origin = elements.as_mut_ptr().wrapping_sub(ahead);
            Patch { origin, stride, read: bounds, write: bounds }
        };
        Patches::new(parts.into_iter().map(patch).collect())
    }

    /// An element.
    #[inline(always)]
    pub fn get(&self, index: [usize; N]) -> Option<&T> {
        match self.first.read.has(index) {
            // SAFETY: the index is in a box of the array that may be read, see `Patch::new` and `of_parts`. What was lent
            // to be written borrows all patches.
            true => Some(unsafe { &*self.first.element(index) }),
            false => self.get_elsewhere(index),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_elsewhere(&self, index: [usize; N]) -> Option<&T> {
        let patch = self.all().find(|patch| patch.read.has_exactly(index))?;
        // SAFETY: as in `get`.
        Some(unsafe { &*patch.element(index) })
    }

    /// Whether an element may be written, and is where the patches look first: then [`Patches::get_mut`] finds it.
    #[inline(always)]
    pub fn leads_to(&self, index: [usize; N]) -> bool {
        self.first.write.has(index)
    }

    /// The same of a row.
    #[inline(always)]
    pub fn leads_to_row(&self, row: [usize; N]) -> bool {
        self.first.write.has_row(row)
    }

    /// Whether an element may be written.
    pub fn may_write(&self, index: [usize; N]) -> bool {
        self.all().any(|patch| patch.write.has_exactly(index))
    }

    /// Whether all of a row may be written.
    pub fn may_write_row(&self, row: [usize; N]) -> bool {
        self.all().any(|patch| patch.write.has_row_exactly(row))
    }

    /// An element, to be written.
    #[inline(always)]
    pub fn get_mut(&mut self, index: [usize; N]) -> Option<&mut T> {
        match self.first.write.has(index) {
            // SAFETY: the index is in a box of the array that may be written, see `Patch::new` and `of_parts`; the patches
            // are borrowed for as long as the element is.
            true => Some(unsafe { &mut *self.first.element(index) }),
            false => self.get_mut_elsewhere(index),
        }
    }

    #[cold]
    #[inline(never)]
    fn get_mut_elsewhere(&mut self, index: [usize; N]) -> Option<&mut T> {
        let found = self.others.iter().position(|patch| patch.write.has_exactly(index));
        let element = match found {
            None if self.first.write.has_exactly(index) => self.first.element(index),
            None => return None,
            Some(at) => {
                // Whoever writes there writes on there.
                std::mem::swap(&mut self.first, &mut self.others[at]);
                self.first.element(index)
            }
        };
        // SAFETY: as in `get_mut`.
        Some(unsafe { &mut *element })
    }

    /// The row of elements whose index is that of `row` in all dimensions but the last, if all may be read. The last number of
    /// `row` means nothing.
    #[inline(always)]
    pub fn row(&self, row: [usize; N]) -> Option<&[T]> {
        match self.first.read.has_row(row) {
            // SAFETY: all of the row is in a box that may be read, see `get`.
            true => Some(unsafe { std::slice::from_raw_parts(self.first.row(row), self.first.read.extent[N - 1]) }),
            false => self.row_elsewhere(row),
        }
    }

    #[cold]
    #[inline(never)]
    fn row_elsewhere(&self, row: [usize; N]) -> Option<&[T]> {
        let patch = self.all().find(|patch| patch.read.has_row_exactly(row))?;
        // SAFETY: as in `row`.
        Some(unsafe { std::slice::from_raw_parts(patch.row(row), patch.read.extent[N - 1]) })
    }

    /// The elements of a row, if all may be written.
    #[inline(always)]
    pub fn row_mut(&mut self, row: [usize; N]) -> Option<&mut [T]> {
        if !self.first.write.has_row(row) {
            self.turn_to_row(row)?;
        }
        let len = self.first.write.extent[N - 1];
        // SAFETY: all of the row is in a box that may be written, as was asked or `turn_to_row` found, see `get_mut`.
        Some(unsafe { std::slice::from_raw_parts_mut(self.first.row(row), len) })
    }

    /// Makes a patch in which the row may be written the first; `None` if there is none.
    #[cold]
    #[inline(never)]
    fn turn_to_row(&mut self, row: [usize; N]) -> Option<()> {
        if !self.first.write.has_row_exactly(row) {
            let found = self.others.iter().position(|patch| patch.write.has_row_exactly(row))?;
            std::mem::swap(&mut self.first, &mut self.others[found]);
        }
        Some(())
    }

    /// Two different rows, if both may be written; `None` also if they are the same.
    #[inline(always)]
    pub fn rows_mut(&mut self, a: [usize; N], b: [usize; N]) -> Option<(&mut [T], &mut [T])> {
        if a[..N - 1] == b[..N - 1] {
            return None;
        }
        let first = std::ptr::from_mut(self.row_mut(a)?);
        let second = std::ptr::from_mut(self.row_mut(b)?);
        // SAFETY: both may be written, and are rows with different indices, which have no element in common, nor have
        // two parts.
        Some(unsafe { (&mut *first, &mut *second) })
    }

    /// All patches, the first first.
    fn all(&self) -> impl Iterator<Item = &Patch<T, N>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The boxes that may be read or written, for messages: hulls, in no order.
    pub fn boxes(&self) -> Vec<[Range<usize>; N]> {
        let ranges = |bounds: &Bounds<N>| std::array::from_fn(|k| bounds.base[k]..bounds.base[k] + bounds.extent[k]);
        let all = self.all().flat_map(|patch| [&patch.read, &patch.write]);
        let mut boxes: Vec<[Range<usize>; N]> =
            all.filter(|bounds| bounds.extent.iter().all(|extent| *extent > 0)).map(ranges).collect();
        boxes.dedup();
        boxes
    }
}

impl<T> Patches<'_, T, 1> {
    /// The elements of a range, if all may be read, and lie in one patch.
    #[inline(always)]
    pub fn slice(&self, range: Range<usize>) -> Option<&[T]> {
        let patch = match self.first.read.has_range(&range) {
            true => &self.first,
            false => self.others.iter().find(|patch| patch.read.has_range(&range))?,
        };
        // SAFETY: all of the range is in a box that may be read, see `get`.
        Some(unsafe { std::slice::from_raw_parts(patch.element([range.start]), range.len()) })
    }

    /// Whether all elements of a range may be written, and lie in one patch.
    pub fn may_write_slice(&self, range: Range<usize>) -> bool {
        self.all().any(|patch| patch.write.has_range(&range))
    }

    /// The elements of a range, if all may be written, and lie in one patch.
    #[inline(always)]
    pub fn slice_mut(&mut self, range: Range<usize>) -> Option<&mut [T]> {
        if !self.first.write.has_range(&range) {
            let found = self.others.iter().position(|patch| patch.write.has_range(&range))?;
            std::mem::swap(&mut self.first, &mut self.others[found]);
        }
        // SAFETY: all of the range is in a box that may be written, see `get_mut`.
        Some(unsafe { std::slice::from_raw_parts_mut(self.first.element([range.start]), range.len()) })
    }
}
