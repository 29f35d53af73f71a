//! The memory of areas: large ones take and give back their own, small ones are carved from memory that was reserved
//! ahead, so that it costs no system call to create one.
//!
//! There are two free lists. One has ranges without memory. The other has memory that is reserved and that no area
//! uses: a small area that finds none there reserves a slab, as a large area reserves its memory, and puts what it does
//! not need on that list. So limits are never cached: memory on that list already belongs to the job, charged to whoever
//! reserved it, and every reservation checks all limits again. As much is reserved ahead as small areas use, up to
//! [`LARGEST_SLAB`]; when more is unused than they use, all of it is given back.
use super::reclaim::PUNCH_PIECE;
use crate::engine::directory::{Directory, FREE, extent_of, state_of};
use crate::memory::allocator::{Corrupt, Extent, FreeList};
use crate::memory::limits;
use crate::segment::layout::{AreaLayout, AreaSlot, PAGE};
use std::sync::atomic::Ordering;

/// Areas of up to this many bytes, with all copies and logs, are small: to zero so much takes microseconds.
const SMALL: u64 = 64 << 10;
/// The most that is reserved ahead at a time, in bytes.
const LARGEST_SLAB: u64 = 2 << 20;
/// Bytes that may lie unused however few small areas there are.
const LEAST_KEPT: u64 = 128 << 10;

/// Where the memory of a new area comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// It is there, and has to be zeroed.
    Ahead,
    /// To be reserved, more than the area needs.
    Slab,
    /// To be reserved for this area.
    Own,
}

impl Directory<'_> {
    fn with_list<R>(&self, backed: bool, act: impl FnOnce(&mut FreeList<'_>) -> R) -> R {
        let header = self.segment().header();
        let word = if backed { &header.backed_len } else { &header.extents_len };
        let mut len = word.load(Ordering::Relaxed);
        let (start, count) = self.segment().extents(backed);
        // SAFETY: the table has `count` extents, any bytes are an extent, and the directory mutex, which `self`
        // holds, makes this the only reference.
        let entries = unsafe { std::slice::from_raw_parts_mut(start, count) };
        let result = act(&mut FreeList::new(entries, &mut len));
        word.store(len, Ordering::Relaxed);
        result
    }

    /// Takes a range for an area; `own` forbids to reserve more than it needs. `None` if there is none.
    pub(crate) fn take_range(&self, layout: &AreaLayout, own: bool) -> Option<(Extent, Source)> {
        let header = self.segment().header();
        let taken = |offset, len, source| (Extent { offset, len }, source);
        if layout.end <= SMALL {
            let small = header.small_bytes.load(Ordering::Relaxed);
            if let Some(offset) = self.with_list(true, |list| list.allocate(layout.end, layout.align)) {
                header.backed_bytes.fetch_sub(layout.end, Ordering::Relaxed);
                header.small_bytes.store(small + layout.end, Ordering::Relaxed);
                return Some(taken(offset, layout.end, Source::Ahead));
            }
            let slab = small.clamp(SMALL, LARGEST_SLAB).next_multiple_of(PAGE);
            if !own && let Some(offset) = self.with_list(false, |list| list.allocate(slab, PAGE)) {
                header.small_bytes.store(small + layout.end, Ordering::Relaxed);
                return Some(taken(offset, slab, Source::Slab));
            }
        }
        let offset = loop {
            let free = self.with_list(false, |list| list.allocate(layout.end, layout.align));
            if free.is_some() || header.backed_bytes.load(Ordering::Relaxed) == 0 {
                break free?;
            }
            // Memory reserved ahead may stand in the way.
            self.trim(0);
        };
        Some(taken(offset, layout.end, Source::Own))
    }

    /// Puts a range back that was taken for an area of this layout and not used.
    pub(crate) fn return_range(&self, extent: Extent, source: Source, layout: &AreaLayout) {
        match source {
            Source::Ahead => self.keep(extent),
            Source::Slab | Source::Own => self.release(extent),
        }
        if source != Source::Own {
            self.segment().header().small_bytes.fetch_sub(layout.end, Ordering::Relaxed);
        }
    }

    /// Keeps `len` bytes of a slab for the area that reserved it; the rest is for others.
    pub(crate) fn share_slab(&self, slot: &AreaSlot, len: u64) {
        let slab = extent_of(slot);
        slot.about.extent_len.store(len, Ordering::Relaxed);
        slot.about.backed.store(1, Ordering::Relaxed);
        self.keep(Extent { offset: slab.offset + len, len: slab.len - len });
    }

    /// Puts the range of an area that is gone where it came from; memory that is not kept ahead was given back before.
    pub(crate) fn release_range(&self, slot: &AreaSlot) {
        let header = self.segment().header();
        if slot.about.backed.load(Ordering::Relaxed) != 0 {
            self.keep(extent_of(slot));
        } else {
            self.release(extent_of(slot));
        }
        let small = header.small_bytes.load(Ordering::Relaxed);
        let small = small.saturating_sub(slot.about.small.load(Ordering::Relaxed));
        header.small_bytes.store(small, Ordering::Relaxed);
        self.trim(small.max(LEAST_KEPT));
    }

    /// Puts memory on the list of what was reserved ahead.
    fn keep(&self, extent: Extent) {
        match self.with_list(true, |list| list.release(extent)) {
            Ok(()) => {
                self.segment().header().backed_bytes.fetch_add(extent.len, Ordering::Relaxed);
            }
            Err(Corrupt::Full { .. }) => self.give_back(extent),
            Err(error) => tracing::error!(%error, "memory of a deleted area is lost to the job"),
        }
    }

    fn release(&self, extent: Extent) {
        if let Err(error) = self.with_list(false, |list| list.release(extent)) {
            tracing::error!(%error, "memory of a deleted area is lost to the job");
        }
    }

    fn give_back(&self, extent: Extent) {
        if let Err(error) = limits::punch(self.segment().fd(), extent.offset, extent.len) {
            tracing::warn!(%error, %extent, "could not give memory back");
        }
        self.release(extent);
    }

    /// Gives back what was reserved ahead, if it is more than `kept` bytes; at most some milliseconds' worth.
    fn trim(&self, kept: u64) {
        let bytes = &self.segment().header().backed_bytes;
        if bytes.load(Ordering::Relaxed) <= kept {
            return;
        }
        let mut given = 0;
        while given < PUNCH_PIECE {
            let Some(extent) = self.with_list(true, |list| list.pop()) else { break };
            bytes.fetch_sub(extent.len, Ordering::Relaxed);
            self.give_back(extent);
            given += extent.len;
        }
    }

    /// Rebuilds both lists: everything that no area has is without memory.
    pub(crate) fn repair_heap(&self) {
        for extent in self.rebuild_heap() {
            if let Err(error) = limits::punch(self.segment().fd(), extent.offset, extent.len) {
                tracing::warn!(%error, %extent, "could not give memory back");
            }
        }
    }

    /// Fills both lists from the table; returns what is free.
    pub(crate) fn rebuild_heap(&self) -> Vec<Extent> {
        let (header, map) = (self.segment().header(), self.segment().map_of_tables());
        header.backed_len.store(0, Ordering::Relaxed);
        header.backed_bytes.store(0, Ordering::Relaxed);
        let used = || self.slots().iter().filter(|slot| state_of(slot) != FREE);
        let small = used().map(|slot| slot.about.small.load(Ordering::Relaxed)).fold(0, u64::saturating_add);
        header.small_bytes.store(small, Ordering::Relaxed);
        let mut live: Vec<Extent> = used().map(extent_of).collect();
        let whole = Extent { offset: map.heap, len: map.end - map.heap };
        let free =
            self.with_list(false, |list| list.rebuild(whole, &mut live).map(|()| list.extents().to_vec()));
        free.unwrap_or_else(|error| {
            tracing::error!(%error, "the table of areas contradicts itself; no further area can be created");
            Vec::new()
        })
    }

    /// Bytes that are free in the job's range, with those that were reserved ahead, and the largest piece.
    pub(crate) fn free_bytes(&self) -> (u64, u64) {
        let (free, largest) = self.with_list(false, |list| (list.total(), list.largest()));
        (free + self.segment().header().backed_bytes.load(Ordering::Relaxed), largest)
    }
}
