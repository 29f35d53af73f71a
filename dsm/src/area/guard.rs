//! The write guard: a mutable view that logs what it hands out.
use super::element::Element;
use crate::log::bitmap::Log;
use crate::memory::layout::LINE;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicU32, Ordering};

/// An area open for writing.
///
/// Everything that is handed out mutably is logged: the guard keeps a pending range and writes it to the
/// log when the next write is not adjacent, and when it is dropped. Reading through the guard (it
/// dereferences to `[T]`) logs nothing.
///
/// A guard that is leaked (`mem::forget`) loses nothing: the next publication copies the whole area.
pub struct WriteGuard<'w, T: Element> {
    data: &'w mut [T],
    row: usize,
    log: Log<'w>,
    open: &'w AtomicU32,
    /// Lines written and not yet in the log.
    pending: Range<usize>,
}

impl<T: Element> std::fmt::Debug for WriteGuard<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteGuard")
            .field("len", &self.data.len())
            .field("pending", &self.pending)
            .finish_non_exhaustive()
    }
}

impl<'w, T: Element> WriteGuard<'w, T> {
    /// # Safety
    /// `data` points to `len` values of `T` that nobody else accesses for `'w`.
    #[inline]
    pub(crate) unsafe fn new(
        data: *mut T,
        len: usize,
        row: usize,
        log: Log<'w>,
        open: &'w AtomicU32,
    ) -> WriteGuard<'w, T> {
        // SAFETY: by the contract above.
        let data = unsafe { std::slice::from_raw_parts_mut(data, len) };
        open.store(1, Ordering::Relaxed);
        WriteGuard { data, row, log, open, pending: 0..0 }
    }

    /// Notes that elements `start..end`, which exist, are being written.
    #[inline(always)]
    fn note(&mut self, start: usize, end: usize) {
        let first = start * size_of::<T>() / LINE as usize;
        let last = (end * size_of::<T>()).div_ceil(LINE as usize);
        if first <= self.pending.end && last >= self.pending.start {
            self.pending.start = self.pending.start.min(first);
            self.pending.end = self.pending.end.max(last);
        } else {
            self.log.mark(self.pending.clone());
            self.pending = first..last;
        }
    }

    /// Writes one element.
    ///
    /// # Panics
    /// If `index` is not below the area's length.
    #[inline(always)]
    pub fn set(&mut self, index: usize, value: T) {
        self.data[index] = value;
        self.note(index, index + 1);
    }

    /// Elements `range`, for writing; logged at once.
    ///
    /// # Panics
    /// If the range does not lie in the area.
    #[inline]
    pub fn range_mut(&mut self, range: Range<usize>) -> &mut [T] {
        assert!(
            range.start <= range.end && range.end <= self.data.len(),
            "range {range:?} outside an area of {} elements",
            self.data.len()
        );
        if !range.is_empty() {
            self.note(range.start, range.end);
        }
        &mut self.data[range]
    }

    /// Row `row` of the area ([`AreaSpec::row`](crate::AreaSpec::row)), for writing.
    ///
    /// # Panics
    /// If the area has no such row.
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> &mut [T] {
        let start = row * self.row;
        let view = &mut self.data[start..start + self.row];
        let (first, end) = (start, start + view.len());
        // `note` needs all of `self`; the row is borrowed anew after it.
        self.note(first, end);
        &mut self.data[first..end]
    }

    /// The whole area, for writing.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.range_mut(0..self.data.len())
    }

    /// Writes `value` to every element.
    pub fn fill(&mut self, value: T) {
        self.as_mut_slice().fill(value);
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

impl<T: Element> Drop for WriteGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.log.mark(self.pending.clone());
        self.open.store(0, Ordering::Relaxed);
    }
}
