//! The table of areas: creation, lookup, deletion, and the return of memory after a grace round.
//!
//! Everything here runs under the directory mutex, except for the state word, which readers load. A holder
//! that dies leaves a slot in `CREATING` or a free list that does not fit: the next one repairs both from
//! the table, which is the truth.
use super::element::ElementType;
use super::ownership;
use super::parts::{Parts, flag};
use super::spec::{AreaSpec, Tracking};
use crate::error::{Error, Result};
use crate::job::Shared;
use crate::memory::allocator::{Extent, FreeList};
use crate::memory::layout::{AreaLayout, AreaSlot, HUGE};
use crate::memory::limits::{self, ReserveError};
use crate::memory::mutex::Locked;
use crate::memory::segment::Segment;
use crate::sync::clock;
use std::sync::atomic::Ordering;

const FREE: u64 = 0;
const CREATING: u64 = 1;
const LIVE: u64 = 2;
const DELETED: u64 = 3;
const STATE: u64 = 0b111;

pub(crate) const fn is_live(state: u64) -> bool {
    state & STATE == LIVE
}

fn state_of(slot: &AreaSlot) -> u64 {
    slot.read.state.load(Ordering::Acquire) & STATE
}

fn set_state(slot: &AreaSlot, state: u64) {
    let generation = slot.read.state.load(Ordering::Relaxed) >> 3;
    // Release: what was written into the slot comes before; pairs with the acquire of lookups.
    slot.read.state.store(generation << 3 | state, Ordering::Release);
}

/// A place in the table together with the generation that tells a later area in the same slot apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AreaId {
    pub(crate) index: u32,
    pub(crate) generation: u64,
}

impl AreaId {
    #[inline]
    pub(crate) fn is_live(self, slot: &AreaSlot) -> bool {
        // SeqCst: see `Directory::delete`.
        slot.read.state.load(Ordering::SeqCst) == self.generation << 3 | LIVE
    }
}

/// The directory, locked.
#[derive(Debug)]
pub(crate) struct Directory<'a> {
    shared: &'a Shared,
}

impl Drop for Directory<'_> {
    fn drop(&mut self) {
        self.shared.segment.header().directory.unlock();
    }
}

impl<'a> Directory<'a> {
    /// Locks the directory; `wait` is called between tries while somebody else has it.
    pub(crate) fn lock(shared: &'a Shared, mut wait: impl FnMut()) -> Directory<'a> {
        loop {
            if let Some(directory) = Directory::try_lock(shared) {
                return directory;
            }
            wait();
        }
    }

    pub(crate) fn try_lock(shared: &'a Shared) -> Option<Directory<'a>> {
        let how = shared.segment.header().directory.try_lock()?;
        let directory = Directory { shared };
        if how == Locked::OwnerDied {
            directory.repair();
        }
        Some(directory)
    }

    fn segment(&self) -> &'a Segment {
        &self.shared.segment
    }

    fn slots(&self) -> &'a [AreaSlot] {
        &self.segment().areas()[..self.segment().used_areas()]
    }

    fn with_heap<R>(&self, act: impl FnOnce(&mut FreeList<'_>) -> R) -> R {
        let segment = self.segment();
        let header = segment.header();
        let mut len = header.extents_len.load(Ordering::Relaxed);
        let count = segment.map_of_tables().max_extents as usize;
        // SAFETY: the table has `max_extents` extents, any bytes are an extent, and the directory mutex,
        // which `self` holds, makes this the only reference.
        let entries = unsafe { std::slice::from_raw_parts_mut(segment.extents(), count) };
        let result = act(&mut FreeList::new(entries, &mut len));
        header.extents_len.store(len, Ordering::Relaxed);
        result
    }

    /// Gives slots back that a dead creator left half made, and rebuilds the free list.
    pub(crate) fn repair(&self) {
        let map = self.segment().map_of_tables();
        for slot in self.slots() {
            if state_of(slot) == CREATING {
                self.punch_extent(slot);
                set_state(slot, FREE);
            } else if state_of(slot) == DELETED
                && slot.about.deleted_round.load(Ordering::Relaxed) == u64::MAX
            {
                let now = self.segment().rounds().load_total().round();
                slot.about.deleted_round.store(now, Ordering::Relaxed);
            }
        }
        let mut live: Vec<Extent> = self
            .slots()
            .iter()
            .filter(|slot| matches!(state_of(slot), LIVE | DELETED))
            .map(|slot| Extent {
                offset: slot.about.extent_offset.load(Ordering::Relaxed),
                len: slot.about.extent_len.load(Ordering::Relaxed),
            })
            .collect();
        let whole = Extent { offset: map.heap, len: map.end - map.heap };
        if let Err(error) = self.with_heap(|heap| heap.rebuild(whole, &mut live)) {
            tracing::error!(%error, "the table of areas contradicts itself; no further area can be created");
        }
    }

    fn punch_extent(&self, slot: &AreaSlot) {
        let (offset, len) =
            (slot.about.extent_offset.load(Ordering::Relaxed), slot.about.extent_len.load(Ordering::Relaxed));
        if len != 0
            && let Err(error) = limits::punch(self.segment().fd(), offset, len)
        {
            tracing::warn!(%error, offset, len, "could not give memory back");
        }
    }

    fn text(&self, groups: bool, index: usize) -> String {
        let about = &self.segment().areas()[index].about;
        let len = if groups { &about.group_len } else { &about.name_len }.load(Ordering::Relaxed);
        let len = len.min(self.segment().config().max_name_bytes) as usize;
        // SAFETY: the row has `max_name_bytes` bytes, written under the directory mutex, which `self` holds.
        let bytes = unsafe { std::slice::from_raw_parts(self.segment().name_row(groups, index), len) };
        String::from_utf8_lossy(bytes).into_owned()
    }

    fn set_text(&self, groups: bool, index: usize, text: &str) {
        let about = &self.segment().areas()[index].about;
        // SAFETY: `AreaSpec::check` bounded the text by `max_name_bytes`; the directory mutex makes this
        // the only access.
        unsafe {
            let row = self.segment().name_row(groups, index);
            std::ptr::copy_nonoverlapping(text.as_ptr(), row, text.len());
        }
        let len = if groups { &about.group_len } else { &about.name_len };
        len.store(text.len() as u32, Ordering::Relaxed);
    }

    /// The live area of this name.
    pub(crate) fn find(&self, name: &str) -> Option<AreaId> {
        self.live().find(|id| self.text(false, id.index as usize) == name)
    }

    /// All live areas.
    pub(crate) fn live(&self) -> impl Iterator<Item = AreaId> {
        self.slots().iter().enumerate().filter(|(_, slot)| state_of(slot) == LIVE).map(|(index, slot)| {
            AreaId { index: index as u32, generation: slot.read.state.load(Ordering::Relaxed) >> 3 }
        })
    }

    pub(crate) fn name(&self, id: AreaId) -> String {
        self.text(false, id.index as usize)
    }

    pub(crate) fn group(&self, id: AreaId) -> Option<String> {
        let about = &self.segment().areas()[id.index as usize].about;
        (about.group.load(Ordering::Relaxed) != 0).then(|| self.text(true, id.index as usize))
    }

    /// Makes an area owned by `rank`. Its bytes are zero.
    pub(crate) fn create(
        &self,
        spec: &AreaSpec,
        element: ElementType,
        len: usize,
        rank: u32,
    ) -> Result<AreaId> {
        let segment = self.segment();
        let config = segment.config();
        spec.check(config.max_name_bytes as usize)?;
        if self.find(&spec.name).is_some() {
            return Err(Error::NameTaken { name: spec.name.clone() });
        }
        let logged = spec.tracking != Tracking::Whole;
        let no_memory = |asked, free, limit, payer: &str| Error::OutOfMemory {
            name: spec.name.clone(),
            asked,
            free,
            limit,
            payer: payer.to_owned(),
        };
        let layout = (len as u64)
            .checked_mul(u64::from(element.size))
            .and_then(|bytes| AreaLayout::of(bytes, spec.copies, logged, config))
            .ok_or_else(|| no_memory(u64::MAX, 0, u64::MAX, "the address space"))?;
        // A line number has 32 bits: 256 GiB.
        if layout.lines > u64::from(u32::MAX) {
            return Err(no_memory(
                layout.footprint(),
                0,
                u64::from(u32::MAX) * 64,
                "the log (32-bit line numbers)",
            ));
        }
        self.reclaim();
        let index = self.free_slot()?;
        let offset = self.with_heap(|heap| heap.allocate(layout.end, layout.align)).ok_or_else(|| {
            let free = self.with_heap(|heap| heap.largest());
            no_memory(
                layout.end,
                free,
                config.reserve_bytes,
                "the job's reserved range (`JobBuilder::reserve`)",
            )
        })?;
        let slot = &segment.areas()[index];
        slot.about.extent_offset.store(offset, Ordering::Relaxed);
        slot.about.extent_len.store(layout.end, Ordering::Relaxed);
        set_state(slot, CREATING);
        crate::primitive::fault_point();
        if let Err(error) = self.reserve(offset, &layout) {
            self.punch_extent(slot);
            self.free_extent(offset, layout.end);
            set_state(slot, FREE);
            return Err(match error {
                ReserveError::OutOfMemory { free, limit, payer, .. } => {
                    no_memory(layout.footprint(), free, limit, &payer)
                }
                ReserveError::Os { call, source } => Error::Os { call, source },
            });
        }
        crate::primitive::fault_point();
        // SAFETY: the slot is in `CREATING`, and this is the creator.
        unsafe { *slot.layout.get() = layout };
        self.describe(index, spec, element, len, rank);
        // Copy 0 holds version 0; the others hold nothing that a reader may come to. No two copies may name
        // the same round, or a reader and a planner might not mean the same one.
        for copy in Parts::of(segment, index).copies().iter().skip(1) {
            copy.round.store(u64::MAX, Ordering::Relaxed);
        }
        let generation = slot.read.state.load(Ordering::Relaxed) >> 3;
        set_state(slot, LIVE);
        if spec.interval.is_some() {
            // After the area can be found: a planner that missed it does not move the time past this.
            let due = slot.round.next_due_ns.load(Ordering::Relaxed);
            segment.header().sync.next_due_ns.fetch_min(due, Ordering::Relaxed);
        }
        Ok(AreaId { index: index as u32, generation })
    }

    fn free_slot(&self) -> Result<usize> {
        let segment = self.segment();
        let used = segment.used_areas();
        if let Some(index) = self.slots().iter().position(|slot| state_of(slot) == FREE) {
            return Ok(index);
        }
        if used == segment.config().max_areas as usize {
            return Err(Error::TooManyAreas { max: used });
        }
        segment.header().sync.areas_high.store(used as u32 + 1, Ordering::Release);
        Ok(used)
    }

    /// Backs the area by memory: its records and bitmaps, then each copy.
    fn reserve(&self, offset: u64, layout: &AreaLayout) -> Result<(), ReserveError> {
        let segment = self.segment();
        if layout.meta_end != 0 {
            limits::reserve(segment.fd(), offset, layout.meta_end)?;
        }
        let bytes = layout.data_bytes();
        if bytes == 0 {
            return Ok(());
        }
        let mut huge = true;
        for copy in 0..=u64::from(layout.copies) {
            let start = offset + layout.writer + copy * layout.stride;
            limits::reserve(segment.fd(), start, bytes)?;
            if layout.align == HUGE {
                huge &= segment.collapse(start, bytes);
            }
        }
        if layout.align == HUGE {
            tracing::info!(bytes = layout.footprint(), huge_pages = huge, "area memory reserved");
        }
        Ok(())
    }

    fn describe(&self, index: usize, spec: &AreaSpec, element: ElementType, len: usize, rank: u32) {
        let segment = self.segment();
        let slot = &segment.areas()[index];
        let about = &slot.about;
        about.bytes.store(len as u64 * u64::from(element.size), Ordering::Relaxed);
        about.elem_size.store(element.size, Ordering::Relaxed);
        about.elem_align.store(element.align, Ordering::Relaxed);
        about.elem_kind.store(element.kind, Ordering::Relaxed);
        about.copies.store(spec.copies, Ordering::Relaxed);
        about.row_len.store(spec.row as u32, Ordering::Relaxed);
        about.len.store(len as u64, Ordering::Relaxed);
        let logged = if spec.tracking == Tracking::Whole { 0 } else { flag::LOGGED };
        let automatic = if spec.tracking == Tracking::Automatic { flag::AUTOMATIC } else { 0 };
        about.flags.store(logged | automatic, Ordering::Relaxed);
        let interval_ns = spec.interval.map_or(0, clock::nanos);
        about.interval_ns.store(interval_ns, Ordering::Relaxed);
        self.set_text(false, index, &spec.name);
        about.group.store(0, Ordering::Relaxed);
        if let Some(group) = &spec.group {
            let id = self.group_id(group);
            self.set_text(true, index, group);
            about.group.store(id, Ordering::Relaxed);
        }
        let round = &slot.round;
        round.term.store(1, Ordering::Relaxed);
        round.lock.store(0, Ordering::Relaxed);
        round.open_generation.store(1, Ordering::Relaxed);
        round.since_seal.store(0, Ordering::Relaxed);
        round.seal_requested.store(0, Ordering::Relaxed);
        round.generations_seq.store(0, Ordering::Relaxed);
        round.put_off.store(0, Ordering::Relaxed);
        let now = clock::now_ns();
        round.confirmed_ns.store(now, Ordering::Relaxed);
        round.next_due_ns.store(now.saturating_add(interval_ns), Ordering::Relaxed);
        slot.own.raw.store(0, Ordering::Relaxed);
        slot.own.scanned.store(0, Ordering::Relaxed);
        slot.own.lent.store(0, Ordering::Relaxed);
        slot.own.ownership.store(ownership::Word::held(rank, 1).0, Ordering::Relaxed);
        slot.read.current.store(0, Ordering::Relaxed);
        segment.dirty()[index].store(0, Ordering::Relaxed);
        segment.forced()[index].store(0, Ordering::Relaxed);
    }

    fn group_id(&self, group: &str) -> u32 {
        let known = self.live().find(|id| self.group(*id).as_deref() == Some(group));
        match known {
            Some(id) => self.segment().areas()[id.index as usize].about.group.load(Ordering::Relaxed),
            None => self.segment().header().next_group.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    /// Deletes a live area: its name is free at once, its memory after a grace round.
    pub(crate) fn delete(&self, id: AreaId) -> bool {
        let segment = self.segment();
        let slot = &segment.areas()[id.index as usize];
        if !id.is_live(slot) {
            return false;
        }
        let header = segment.header();
        // Not to be freed, until the round is known.
        slot.about.deleted_round.store(u64::MAX, Ordering::Relaxed);
        header.pending_frees.fetch_add(1, Ordering::SeqCst);
        // SeqCst, before the round is looked at, and before `reclaim` looks at pins and seats: whoever still
        // finds the area live stood at a synchronization point no later than the round that the word names
        // after this, or has its pin seen. Paired with the loads in `is_live`.
        let generation = slot.read.state.load(Ordering::Relaxed) >> 3;
        slot.read.state.store(generation << 3 | DELETED, Ordering::SeqCst);
        crate::primitive::fault_point();
        slot.about.deleted_round.store(segment.rounds().load_total().round(), Ordering::Relaxed);
        self.reclaim();
        true
    }

    /// Frees deleted areas that no worker and no observer can be looking at any more.
    pub(crate) fn reclaim(&self) {
        let segment = self.segment();
        let header = segment.header();
        if header.pending_frees.load(Ordering::SeqCst) == 0 {
            return;
        }
        for (index, slot) in self.slots().iter().enumerate() {
            if state_of(slot) != DELETED || !self.is_unseen(index, slot) {
                continue;
            }
            let (offset, len) = (
                slot.about.extent_offset.load(Ordering::Relaxed),
                slot.about.extent_len.load(Ordering::Relaxed),
            );
            self.punch_extent(slot);
            crate::primitive::fault_point();
            self.free_extent(offset, len);
            let generation = (slot.read.state.load(Ordering::Relaxed) >> 3) + 1;
            slot.read.state.store(generation << 3 | FREE, Ordering::Release);
        }
        let left = self.slots().iter().filter(|slot| state_of(slot) == DELETED).count();
        header.pending_frees.store(left as u32, Ordering::SeqCst);
    }

    fn is_unseen(&self, index: usize, slot: &AreaSlot) -> bool {
        let segment = self.segment();
        let deleted = slot.about.deleted_round.load(Ordering::Relaxed);
        let word = segment.rounds().load();
        // A round that planned the area may still be copying it.
        let copying = word.round() <= deleted && word.phase() != crate::sync::word::Phase::Idle;
        let seen = segment
            .seats()
            .iter()
            .any(|seat| seat.is_live() && seat.arrived.load(Ordering::SeqCst) <= deleted);
        let copies = slot.about.copies.load(Ordering::Relaxed) as usize;
        !copying && !seen && !(0..copies).any(|copy| super::observer::is_pinned(segment, index, copy))
    }

    fn free_extent(&self, offset: u64, len: u64) {
        if let Err(error) = self.with_heap(|heap| heap.release(Extent { offset, len })) {
            tracing::error!(%error, "memory of a deleted area is lost to the job");
        }
    }

    /// Bytes that are free in the job's range.
    pub(crate) fn free_bytes(&self) -> u64 {
        self.with_heap(|heap| heap.total())
    }
}

/// Puts the whole heap on the free list of a new segment.
pub(crate) fn initialize(shared: &Shared) {
    if let Some(directory) = Directory::try_lock(shared) {
        directory.repair();
    }
}
