//! The elements of an array in one piece that a worker may touch: boxes, each for reading, writing or both.
use super::lines::{Line, Lines};
use super::marks::{Listed, RowMarks};
use super::patch::{Bounds, Patch};
use super::row_slices::Rows;
use std::cell::Cell;
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
    /// Where to look first. It never changes, and what the slow way changes lies elsewhere in memory, so that compilers keep it
    /// in registers.
    first: Patch<T, N>,
    rest: Box<Rest<'a, T, N>>,
    elements: PhantomData<&'a mut [T]>,
}

/// The slow path: searched when an element is not in the first patch.
struct Rest<'a, T, const N: usize> {
    /// All patches.
    all: Vec<Patch<T, N>>,
    /// The one in which something was found last.
    last: Cell<usize>,
    watch: Option<Watch<'a, N>>,
    /// Whether all patches are of one piece of memory.
    is_one_piece: bool,
    /// The shape of the array if its rows are empty: everybody has such rows.
    shape_without_elements: Option<[usize; N]>,
    /// Rows of a list, instead of patches, or besides one of those that may be written.
    listed: Option<Listed<'a, T, N>>,
    /// The same, where somebody is told of each look.
    told: Option<Listed<'a, T, N>>,
}

/// A callback that is told each access.
pub type Watch<'a, const N: usize> = Box<dyn Fn(Asked<N>) + 'a>;

/// An access, as a [`Watch`] is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked<const N: usize> {
    /// The elements.
    pub elements: Elements<N>,
    /// Whether to be written.
    pub writes: bool,
}

/// Some elements of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Elements<const N: usize> {
    /// The one with this index.
    One([usize; N]),
    /// Those whose index is this in all dimensions but the last.
    Row([usize; N]),
    /// Those of an array of one dimension in this range.
    Range(Range<usize>),
}

impl<T, const N: usize> std::fmt::Debug for Rest<'_, T, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rest").field("patches", &self.all.len()).finish_non_exhaustive()
    }
}

impl<'a, T, const N: usize> Patches<'a, T, N> {
    /// Patches of an array that lies in one piece.
    pub(super) fn new(shape: &[usize; N], all: Vec<Patch<T, N>>) -> Patches<'a, T, N> {
        let first = all.first().copied().unwrap_or(Patch::NONE);
        let rest = Box::new(Rest {
            all,
            last: Cell::new(0),
            watch: None,
            is_one_piece: true,
            shape_without_elements: (N > 1 && shape[N - 1] == 0).then_some(*shape),
            listed: None,
            told: None,
        });
        Patches { first, rest, elements: PhantomData }
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
    /// // Rows without elements are with everybody.
    /// assert!(Patches::<u8, 2>::of_parts(&[9, 0], vec![]).row_mut([8, 0]).unwrap().is_empty());
    /// ```
    ///
    /// # Panics
    /// If a part has fewer elements than indices, or ends before it begins.
    pub fn of_parts(shape: &[usize; N], parts: Vec<([Range<usize>; N], &'a mut [T])>) -> Patches<'a, T, N> {
        let patch = |(ranges, elements): ([Range<usize>; N], &'a mut [T])| {
            let read = Patch::of_box(shape, ranges, elements.len(), elements.as_mut_ptr());
            Patch { write: read.read, ..read }
        };
        let mut patches = Patches::new(shape, parts.into_iter().map(patch).collect());
        patches.rest.is_one_piece = false;
        patches
    }

    /// The same, and beyond the parts, boxes that may only be read.
    ///
    /// ```
    /// use hectare_dsm::tasks::Patches;
    ///
    /// let (mut own, above) = ([3.0, 4.0], [1.0, 2.0]);
    /// let own = Patches::of_parts(&[9, 2], vec![([4..5, 0..2], &mut own[..])]);
    /// let mut both = own.with_ghosts(&[9, 2], vec![([3..4, 0..2], &above[..])]);
    /// assert_eq!(both.row([3, 0]).unwrap(), [1.0, 2.0]);
    /// assert!(both.row_mut([3, 0]).is_err());
    /// assert_eq!(both.row_mut([4, 0]).unwrap(), [3.0, 4.0]);
    /// assert_eq!((both.get([3, 1]), both.get([2, 1])), (Some(&2.0), None));
    /// ```
    ///
    /// # Panics
    /// As [`Patches::of_parts`].
    #[must_use]
    pub fn with_ghosts(
        mut self,
        shape: &[usize; N],
        ghosts: Vec<([Range<usize>; N], &'a [T])>,
    ) -> Patches<'a, T, N> {
        // Never written: only their boxes for reading have anything in them.
        let patch = |(ranges, elements): ([Range<usize>; N], &'a [T])| {
            Patch::of_box(shape, ranges, elements.len(), elements.as_ptr().cast_mut())
        };
        self.rest.all.extend(ghosts.into_iter().map(patch));
        // They lie elsewhere: no line is found in them by where the first patch is.
        self.rest.is_one_piece = false;
        self
    }

    /// Rows of an array of this shape that a batch lends: those in the lists of `rows`, which are found by `marks`
    /// ([`RowMarks`](super::marks::RowMarks)). In one dimension, rows are elements. Neighbouring rows in ascending order are found
    /// fastest.
    pub fn of_rows(shape: &[usize; N], rows: Rows<'a, T>, marks: &'a RowMarks) -> Patches<'a, T, N> {
        let range = rows.range().unwrap_or(0..0);
        let side_by_side = Patch::of_range(&rows, range.clone());
        let found = if side_by_side.is_some() { range } else { 0..0 };
        let mut patches = Patches::new(shape, side_by_side.into_iter().collect());
        patches.rest.listed = Some(Listed::new(*shape, rows, marks, found));
        patches
    }

    /// The same, with somebody who is told whatever is asked for, found or not. Each look takes the slow way.
    #[must_use]
    pub fn watched(mut self, watch: Watch<'a, N>) -> Patches<'a, T, N> {
        self.first = Patch::NONE;
        self.rest.told = self.rest.listed.take().or(self.rest.told);
        self.rest.watch = Some(watch);
        self
    }

    /// An element.
    #[inline(always)]
    pub fn get(&self, index: [usize; N]) -> Option<&T> {
        let element = match self.first.read.has(index) {
            true => self.first.element(index),
            false => self.rest.find(index, false)?,
        };
        // SAFETY: the index is in a box of the array that may be read, see `Patch::new` and `of_parts`. What was lent to be
        // written borrows all patches.
        Some(unsafe { &*element })
    }

    /// An element, to be written.
    ///
    /// # Errors
    /// The patches, which do not have it to be written. So do all that lend something to be written.
    #[inline(always)]
    pub fn get_mut(&mut self, index: [usize; N]) -> Result<&mut T, &Self> {
        let element = match self.first.write.has(index) {
            true => self.first.element(index),
            false => match self.rest.find(index, true) {
                Some(element) => element,
                None => return Err(self),
            },
        };
        // SAFETY: the index is in a box of the array that may be written, see `Patch::new` and `of_parts`; the patches are
        // borrowed for as long as the element is.
        Ok(unsafe { &mut *element })
    }

    /// Of an array of several dimensions, the row of elements whose index is that of `row` in all dimensions but the last, if all may be read. The last number of
    /// `row` means nothing.
    #[inline(always)]
    pub fn row(&self, row: [usize; N]) -> Option<&[T]> {
        let (start, len) = self.place_of_row_to_read(row)?;
        // SAFETY: all of the row is in a box that may be read, see `get`.
        Some(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// The elements of a row, if all may be written.
    ///
    /// # Errors
    /// As [`Patches::get_mut`].
    #[inline(always)]
    pub fn row_mut(&mut self, row: [usize; N]) -> Result<&mut [T], &Self> {
        let Some((start, len)) = self.place_of_row(row) else { return Err(self) };
        // SAFETY: all of the row is in a box that may be written, see `get_mut`.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    #[inline(always)]
    fn place_of_row_to_read(&self, row: [usize; N]) -> Option<(*mut T, usize)> {
        match self.first.read.has_row(row) {
            true => Some((self.first.row(row), self.first.read.row_len())),
            false => match &self.rest.listed {
                Some(listed) => listed.row(row, false),
                None => self.rest.find_row(row, false),
            },
        }
    }

    #[inline(always)]
    fn place_of_row(&self, row: [usize; N]) -> Option<(*mut T, usize)> {
        match self.first.write.has_row(row) {
            true => Some((self.first.row(row), self.first.write.row_len())),
            false => match &self.rest.listed {
                Some(listed) => listed.row(row, true),
                None => self.rest.find_row(row, true),
            },
        }
    }

    /// Whether all of a row may be written.
    pub fn may_write_row(&self, row: [usize; N]) -> bool {
        let listed = self.rest.listed.as_ref().or(self.rest.told.as_ref());
        listed.is_some_and(|listed| listed.row(row, true).is_some())
            || self.rest.all.iter().any(|patch| patch.write.has_row_exactly(row))
            || self.rest.empty_row(row).is_some()
    }

    /// Two different rows, if both may be written.
    ///
    /// # Errors
    /// As [`Patches::get_mut`], and if they are the same.
    #[inline(always)]
    pub fn rows_mut(&mut self, a: [usize; N], b: [usize; N]) -> Result<(&mut [T], &mut [T]), &Self> {
        let (a_row, b_row) = (self.place_of_row(a), self.place_of_row(b));
        let (Some((a_at, a_len)), Some((b_at, b_len)), true) = (a_row, b_row, a[..N - 1] != b[..N - 1])
        else {
            return Err(self);
        };
        // SAFETY: both may be written, see `get_mut`, and are rows with different indices, which have no element in common.
        Ok(unsafe {
            (std::slice::from_raw_parts_mut(a_at, a_len), std::slice::from_raw_parts_mut(b_at, b_len))
        })
    }

    /// A row that may be read and another that may be written.
    ///
    /// # Errors
    /// As [`Patches::get_mut`], and if they are the same.
    #[inline(always)]
    pub fn row_and_row_mut(
        &mut self,
        read: [usize; N],
        write: [usize; N],
    ) -> Result<(&[T], &mut [T]), &Self> {
        let (from, to) = (self.place_of_row_to_read(read), self.place_of_row(write));
        let (Some((from, len)), Some((to, to_len)), true) = (from, to, read[..N - 1] != write[..N - 1])
        else {
            return Err(self);
        };
        // SAFETY: one may be read and one written, see `get` and `get_mut`, and they have no element in common.
        Ok(unsafe { (std::slice::from_raw_parts(from, len), std::slice::from_raw_parts_mut(to, to_len)) })
    }

    /// Lines of `len` elements each, if each lies whole in a patch: of parts, in the first. Otherwise elements are looked up one by
    /// one.
    #[inline(always)]
    pub fn lines<const K: usize>(&mut self, lines: [Line<N>; K], len: usize) -> Option<Lines<'_, T, K>> {
        let is_held = |line: &Line<N>| {
            self.first.bounds(line.writes).has_line(line, len) || self.rest.has_line(line, len)
        };
        // In a loop of its own, so that the next is short enough for compilers to unroll: what follows knows each line by itself.
        if !lines.iter().all(is_held) {
            return None;
        }
        // All places are seen from one, so that compilers know how far the lines are from each other.
        let mut first = [self.first.origin; K];
        let (mut stride, mut writes) = ([0; K], [false; K]);
        for (k, line) in lines.iter().enumerate() {
            first[k] = self.first.element(line.first);
            stride[k] = line.stride(&self.first.stride);
            writes[k] = line.writes;
        }
        // SAFETY: each line lies in a box of the array that may be read, or written if it is to be, see `Patch::new` and
        // `of_parts`. What may be written may be read: nobody else touches it. All patches are borrowed for as long as the lines.
        Some(unsafe { Lines::new(first, stride, writes, len) })
    }

    /// The boxes that may be read or written, for messages: hulls, in no order.
    pub fn boxes(&self) -> Vec<[Range<usize>; N]> {
        let all = self.rest.all.iter().flat_map(|patch| [&patch.read, &patch.write]);
        let mut boxes: Vec<[Range<usize>; N]> = all.filter_map(Bounds::hull).collect();
        boxes.dedup();
        boxes
    }
}

impl<T, const N: usize> Rest<'_, T, N> {
    /// Looks in all patches for an element.
    #[inline(always)]
    fn find(&self, index: [usize; N], writes: bool) -> Option<*mut T> {
        // In registers: an array would be stored whenever it is made, for a call that is hardly ever made.
        let at = |k: usize| if k < N { index[k] } else { 0 };
        if N <= 3 { self.find_by(at(0), at(1), at(2), writes) } else { self.find_in(index, writes) }
    }

    #[inline(never)]
    fn find_by(&self, i: usize, j: usize, k: usize, writes: bool) -> Option<*mut T> {
        self.find_in(std::array::from_fn(|dim| [i, j, k][dim]), writes)
    }

    #[inline(never)]
    fn find_in(&self, index: [usize; N], writes: bool) -> Option<*mut T> {
        if let Some(listed) = &self.listed {
            return listed.element(index, writes);
        }
        self.tell(|| Elements::One(index), writes);
        if let Some(told) = &self.told {
            return told.element(index, writes);
        }
        let found = self.look(|patch| patch.bounds(writes).has_exactly(index))?;
        Some(found.element(index))
    }

    #[inline(never)]
    fn find_row(&self, row: [usize; N], writes: bool) -> Option<(*mut T, usize)> {
        self.tell(|| Elements::Row(row), writes);
        if let Some(told) = &self.told {
            return told.row(row, writes);
        }
        match self.look(|patch| patch.bounds(writes).has_row_exactly(row)) {
            Some(found) => Some((found.row(row), found.bounds(writes).row_len())),
            None => self.empty_row(row),
        }
    }

    fn empty_row(&self, row: [usize; N]) -> Option<(*mut T, usize)> {
        let shape = self.shape_without_elements?;
        let is_inside = row.iter().zip(shape).take(N - 1).all(|(at, extent)| *at < extent);
        is_inside.then_some((std::ptr::dangling_mut(), 0))
    }

    /// Whether all of a line is in one of the patches, which are of one piece of memory: all have the same origin and strides.
    #[inline(never)]
    fn has_line(&self, line: &Line<N>, len: usize) -> bool {
        self.is_one_piece
            && self.watch.is_none()
            && self.all.iter().any(|patch| patch.bounds(line.writes).has_line_exactly(line, len))
    }

    fn tell(&self, elements: impl FnOnce() -> Elements<N>, writes: bool) {
        if let Some(watch) = &self.watch {
            watch(Asked { elements: elements(), writes });
        }
    }

    /// A patch that has what is looked for. Whoever looks there looks there again.
    fn look(&self, has: impl Fn(&Patch<T, N>) -> bool) -> Option<&Patch<T, N>> {
        let last = self.all.get(self.last.get())?;
        if has(last) {
            return Some(last);
        }
        let at = self.all.iter().position(has)?;
        self.last.set(at);
        self.all.get(at)
    }
}

impl<T> Patches<'_, T, 1> {
    /// The elements of a range, if all may be read, and lie in one patch.
    #[inline(always)]
    pub fn slice(&self, range: Range<usize>) -> Option<&[T]> {
        let start = match self.first.read.has_range(&range) {
            true => self.first.element([range.start]),
            false => self.rest.find_range(&range, false)?,
        };
        // SAFETY: all of the range is in a box that may be read, see `get`.
        Some(unsafe { std::slice::from_raw_parts(start, range.len()) })
    }

    /// The elements of a range, if all may be written, and lie in one patch.
    ///
    /// # Errors
    /// As [`Patches::get_mut`].
    #[inline(always)]
    pub fn slice_mut(&mut self, range: Range<usize>) -> Result<&mut [T], &Self> {
        let start = match self.first.write.has_range(&range) {
            true => self.first.element([range.start]),
            false => match self.rest.find_range(&range, true) {
                Some(start) => start,
                None => return Err(self),
            },
        };
        // SAFETY: all of the range is in a box that may be written, see `get_mut`.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, range.len()) })
    }
}

impl<T> Rest<'_, T, 1> {
    #[inline(never)]
    fn find_range(&self, range: &Range<usize>, writes: bool) -> Option<*mut T> {
        if let Some(listed) = &self.listed {
            return listed.range(range, writes);
        }
        self.tell(|| Elements::Range(range.clone()), writes);
        if let Some(told) = &self.told {
            return told.range(range, writes);
        }
        if self.all.is_empty() && *range == (0..0) {
            // All of an array without elements.
            return Some(std::ptr::dangling_mut());
        }
        Some(self.look(|patch| patch.bounds(writes).has_range(range))?.element([range.start]))
    }
}
