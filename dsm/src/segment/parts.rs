//! Where one area's parts are in this process: its slot and the typed pieces of its extent.
use crate::protocol::generations::Generations;
use crate::protocol::record::{Copies, CopyRecord};
use crate::segment::layout::{AreaLayout, AreaSlot, LINE};
use crate::segment::mapping::Segment;
use std::sync::atomic::{AtomicU64, Ordering};

/// The parts of one area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts<'s> {
    pub(crate) slot: &'s AreaSlot,
    pub(crate) layout: &'s AreaLayout,
    start: *mut u8,
}

impl<'s> Parts<'s> {
    /// The parts of the area in slot `index`, which is live (or deleted and not yet reclaimed).
    pub(crate) fn of(segment: &'s Segment, index: usize) -> Parts<'s> {
        let slot = &segment.areas()[index];
        // SAFETY: the area lives (or is deleted and not yet reclaimed), so its layout was written before the
        // state that the caller saw, and does not change.
        let layout = unsafe { &*slot.layout.get() };
        let offset = slot.about.extent_offset.load(Ordering::Relaxed);
        Parts { slot, layout, start: segment.heap_at(offset, layout.end) }
    }

    /// The parts of an area that lies at `offset` of the segment, for one who has copied its layout.
    pub(crate) fn with(
        segment: &'s Segment,
        slot: &'s AreaSlot,
        layout: &'s AreaLayout,
        offset: u64,
    ) -> Parts<'s> {
        Parts { slot, layout, start: segment.heap_at(offset, layout.end) }
    }

    /// The same parts as `of` found them, for a handle that keeps what it needs to find them again.
    ///
    /// # Safety
    /// `start` came from [`Parts::start`] of the parts of `slot`, and the mapping still exists.
    #[inline]
    pub(crate) unsafe fn again(slot: &'s AreaSlot, layout: &'s AreaLayout, start: *mut u8) -> Parts<'s> {
        Parts { slot, layout, start }
    }

    /// The first byte of the extent.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start
    }

    /// A piece of the extent.
    ///
    /// # Safety
    /// `AreaLayout` places `count` values of `T` at `offset`, and `T` is changed only through atomics.
    unsafe fn piece<T>(&self, offset: u64, count: u64) -> &'s [T] {
        // SAFETY: by the contract above; the extent lies in the mapping (`heap_at`), which outlives `'s`.
        unsafe { std::slice::from_raw_parts(self.start.add(offset as usize).cast::<T>(), count as usize) }
    }

    #[inline]
    pub(crate) fn copies(&self) -> &'s [CopyRecord] {
        // SAFETY: the extent begins with `copies` records.
        unsafe { self.piece(0, u64::from(self.layout.copies)) }
    }

    /// Ranks whose unpublished writes the writer copy may hold, one bit each.
    pub(crate) fn writers(&self) -> &'s [AtomicU64] {
        // SAFETY: `AreaLayout` places a bit per worker between `writers` and `level0`.
        unsafe { self.piece(self.layout.writers, (self.layout.level0 - self.layout.writers) / 8) }
    }

    fn bit_words(&self) -> u64 {
        if self.layout.is_logged() { self.layout.words } else { 0 }
    }

    /// The log: one bit per line.
    #[inline]
    pub(crate) fn level0(&self) -> &'s [AtomicU64] {
        // SAFETY: `AreaLayout` places `words` words there if the area is logged.
        unsafe { self.piece(self.layout.level0, self.bit_words()) }
    }

    /// The log's upper level: one bit per word of `level0`.
    #[inline]
    pub(crate) fn level1(&self) -> &'s [AtomicU64] {
        let words = if self.layout.is_logged() { self.layout.upper_words } else { 0 };
        // SAFETY: `AreaLayout` places `upper_words` words there if the area is logged.
        unsafe { self.piece(self.layout.level1, words) }
    }

    /// Visits the words of `level0` that `level1` says have bits, neighbouring blocks of 64 together.
    pub(crate) fn for_each_logged_run(&self, mut visit: impl FnMut(&'s [AtomicU64])) {
        let level0 = self.level0();
        let mut run = 0..0;
        for (upper, word) in self.level1().iter().enumerate() {
            if word.load(Ordering::Relaxed) != 0 {
                let first = upper * 64;
                if run.end != first {
                    visit(&level0[run]);
                    run = first..first;
                }
                run.end = (first + 64).min(level0.len());
            }
        }
        visit(&level0[run]);
    }

    /// The generations of the log; there are none if the area is not logged.
    #[inline]
    pub(crate) fn generations(&self) -> Generations<'s> {
        let count = u64::from(self.layout.generations);
        // SAFETY: `AreaLayout` places `generations` records there.
        let records = unsafe { self.piece(self.layout.generation_records, count) };
        // SAFETY: `AreaLayout` places `generations` bitmaps of `words` words there.
        let bits = unsafe { self.piece(self.layout.generation_bits, count * self.bit_words()) };
        Generations { words: &self.slot.round.generations, records, bits }
    }

    /// The lines of the generation that the log goes to now.
    pub(crate) fn open_generation(&self) -> &'s [AtomicU64] {
        let generations = self.generations();
        generations.lines(generations.words.open.load(Ordering::Relaxed) as usize)
    }

    /// The lines that reader copy `copy` lacks; empty if there is only one copy.
    pub(crate) fn owed(&self, copy: usize) -> &'s [AtomicU64] {
        assert!(copy < self.layout.copies as usize, "copy {copy}");
        let words = if self.layout.copies > 1 { self.bit_words() } else { 0 };
        // SAFETY: `AreaLayout` places `copies` bitmaps of `words` words there if there are several copies.
        unsafe { self.piece(self.layout.owed + copy as u64 * words * 8, words) }
    }

    /// The first byte of the writer copy.
    #[inline]
    pub(crate) fn writer(&self) -> *mut u8 {
        // SAFETY: inside the extent, see `of`.
        unsafe { self.start.add(self.layout.writer as usize) }
    }

    /// The first byte of reader copy `copy`.
    #[inline]
    pub(crate) fn reader(&self, copy: usize) -> *mut u8 {
        debug_assert!(copy < self.layout.copies as usize);
        // SAFETY: inside the extent for `copy < copies`, see `of`.
        unsafe { self.writer().add(self.layout.stride as usize * (copy + 1)) }
    }

    /// Bytes of one copy, whole lines.
    pub(crate) fn padded_bytes(&self) -> usize {
        (self.layout.lines * LINE) as usize
    }

    /// The reader copies, as their records tell of them.
    #[inline]
    pub(crate) fn reader_copies(&self) -> Copies<'s> {
        Copies { records: self.copies(), current: &self.slot.read.current }
    }

    /// The newest published copy.
    pub(crate) fn current(&self) -> usize {
        self.reader_copies().newest()
    }

    /// The newest copy published at or before `round`, which a worker that arrived there may read.
    #[inline]
    pub(crate) fn visible(&self, round: u64) -> usize {
        self.reader_copies().visible(round)
    }
}
