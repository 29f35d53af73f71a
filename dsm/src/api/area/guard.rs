//! The write guard: a mutable view that logs what it hands out.
use crate::engine::area_core::AreaCore;
use crate::log::bitmap::{Lines, Log};
use crate::segment::element::Element;
use crate::segment::layout::LINE;
use std::ops::{Deref, Range};

/// An area open for writing.
///
/// Everything that is handed out mutably is logged at once. Reading through the guard (it dereferences to
/// `[T]`) logs nothing, and so `guard[i] = x` does not compile: [`set`](WriteGuard::set) writes one element,
/// [`range_mut`](WriteGuard::range_mut) and [`row_mut`](WriteGuard::row_mut) some,
/// [`as_mut_slice`](WriteGuard::as_mut_slice) all.
///
/// A guard that is leaked (`mem::forget`) loses nothing: nothing is pending in it.
///
/// In a forked child, what is written through a guard that was open at the fork goes to memory of the child's own
/// that reads as zero at first, and nowhere else.
pub struct WriteGuard<'w, T: Element> {
    data: &'w mut [T],
    core: &'w AreaCore,
    log: &'w Log<'w>,
    row: usize,
    /// Whole rows.
    rows: usize,
    /// Where in a row, in bytes, to find the line that tells whether the row is logged, and the bits of the
    /// lines; `None` where rows are not logged as a whole.
    probe: Option<(usize, Lines<'w>)>,
    /// The elements of the line that was marked last: `span` of them from `low` on. They exist, so that one
    /// compare finds an element to be both in the area and logged.
    low: usize,
    span: usize,
}

impl<T: Element> std::fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteGuard").field("len", &self.data.len()).finish_non_exhaustive()
    }
}

impl<'w, T: Element> WriteGuard<'w, T> {
    /// # Safety
    /// Nobody else accesses the writer copy of `core` for `'w`, and its elements are of `T`.
    #[inline]
    pub(crate) unsafe fn new(core: &'w AreaCore) -> WriteGuard<'w, T> {
        // SAFETY: by the contract above; the writer copy has `len` elements.
        let data = unsafe { std::slice::from_raw_parts_mut(core.parts().writer().cast::<T>(), core.len) };
        let probe = core.by_rows.then(|| (core.row * size_of::<T>() / 2, core.log().lines()));
        WriteGuard {
            data,
            core,
            log: core.log(),
            row: core.row,
            rows: core.len / core.row,
            probe,
            low: 0,
            span: 0,
        }
    }

    /// Writes one element.
    ///
    /// # Panics
    /// If `index` is not below the area's length.
    #[inline(always)]
    #[track_caller]
    pub fn set(&mut self, index: usize, value: T) {
        if index.wrapping_sub(self.low) >= self.span {
            self.log_element(index);
        }
        // SAFETY: the elements of the marked line exist, and `index` is one of them.
        unsafe { *self.data.get_unchecked_mut(index) = value };
    }

    /// Marks the lines of element `index`. Inline and, for elements that fit a line, without a call: a call
    /// in a caller's loop would make it spill its floating-point registers on every turn.
    #[inline(always)]
    #[track_caller]
    fn log_element(&mut self, index: usize) {
        if index >= self.data.len() {
            self.outside(format_args!("element {index}"), self.data.len(), "elements");
        }
        let per_line = LINE as usize / size_of::<T>();
        if (LINE as usize).is_multiple_of(size_of::<T>()) && self.probe.is_none() {
            let line = index / per_line;
            self.log.mark_line(line);
            self.low = line * per_line;
            self.span = per_line.min(self.data.len() - self.low);
        } else {
            self.log.mark(self.core.lines(index..index + 1, size_of::<T>()));
            (self.low, self.span) = (index, 1);
        }
    }

    /// Elements `range`, for writing; logged at once.
    ///
    /// # Panics
    /// If the range does not lie in the area.
    #[inline]
    #[track_caller]
    pub fn range_mut(&mut self, range: Range<usize>) -> &mut [T] {
        if range.start > range.end || range.end > self.data.len() {
            self.outside(format_args!("range {range:?}"), self.data.len(), "elements");
        }
        if !range.is_empty() {
            self.log.mark(self.core.lines(range.clone(), size_of::<T>()));
        }
        &mut self.data[range]
    }

    /// Row `row` of the area ([`AreaSpec::row`](crate::AreaSpec::row)), for writing.
    ///
    /// # Panics
    /// If the area has no such row.
    #[inline(always)]
    #[track_caller]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        if row >= self.rows {
            self.outside(format_args!("row {row}"), self.rows, "rows");
        }
        let start = row * self.row;
        let bytes = start * size_of::<T>();
        // SAFETY: an area whose rows are logged as a whole has a log, and the row is in the area.
        let logged =
            |(probe, lines): (usize, Lines<'_>)| unsafe { lines.has((bytes + probe) / LINE as usize) };
        if !self.probe.is_some_and(logged) {
            let last = (bytes + self.row * size_of::<T>() - 1) / LINE as usize;
            self.log.mark_row(bytes / LINE as usize, last);
        }
        // SAFETY: `rows * row` elements exist, and `row` is below `rows`.
        unsafe { self.data.get_unchecked_mut(start..start + self.row) }
    }

    /// The whole area, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.range_mut(0..self.data.len())
    }

    /// Writes `value` to every element.
    pub fn fill(&mut self, value: T) {
        self.as_mut_slice().fill(value);
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn outside(&self, what: std::fmt::Arguments<'_>, count: usize, of: &str) -> ! {
        panic!("{what} is outside of area {:?}, which has {count} {of}", self.core.name)
    }

    /// Elements per row.
    pub fn row_len(&self) -> usize {
        self.row
    }
}

impl<T: Element> Deref for WriteGuard<'_, T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        self.data
    }
}
