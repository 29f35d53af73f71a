//! Deletion, and the return of memory after a grace round.
use crate::engine::directory::{AreaId, DELETED, Directory, extent_of, state_of};
use crate::engine::shared::Shared;
use crate::memory::allocator::Extent;
use crate::memory::limits;
use crate::primitive::fault_point;
use crate::protocol::area_state;
use crate::protocol::word::Phase;
use crate::segment::layout::{AreaSlot, Mark};
use crate::segment::pins::is_held;
use std::sync::atomic::Ordering;

/// The most that is given back to the system while the mutex is held, in bytes: some milliseconds.
pub(crate) const PUNCH_PIECE: u64 = 64 << 20;

/// Gives the memory of deleted areas back, if nobody else is at it; the directory is free between its pieces.
pub(crate) fn reclaim(shared: &Shared) {
    while Directory::try_lock(shared).is_some_and(|directory| directory.reclaim()) {}
}

impl Directory<'_> {
    /// Deletes a live area: its name is free at once, its memory after a grace round.
    pub(crate) fn delete(&self, id: AreaId) -> bool {
        let segment = self.segment();
        let index = id.index as usize;
        let slot = &segment.areas()[index];
        if !id.is_live(slot) {
            return false;
        }
        // Not to be freed, until the round is known.
        slot.about.deleted_round.store(u64::MAX, Ordering::Relaxed);
        id.delete(&slot.read.state);
        fault_point();
        slot.about.deleted_round.store(segment.rounds().load_total().round(), Ordering::Relaxed);
        self.put_away(index);
        true
    }

    /// The rest of a deletion: name, marks, and a place in the queue.
    pub(crate) fn put_away(&self, index: usize) {
        let segment = self.segment();
        self.remove_name(index);
        let marks = &segment.marks()[index / 64];
        for word in [&marks.forced, &marks.dirty, &marks.timed, &marks.grouped] {
            Mark::new(word, index).clear();
        }
        self.shared.tell_agent(index);
        segment.areas()[index].about.punched.store(0, Ordering::Relaxed);
        self.enqueue(index as u32);
    }

    fn enqueue(&self, index: u32) {
        let (header, queue) = (self.segment().header(), self.segment().deleted());
        let head = header.deleted_head.load(Ordering::Relaxed) as usize;
        let len = header.pending_frees.load(Ordering::Relaxed);
        queue[(head + len as usize) % queue.len()].store(index, Ordering::Relaxed);
        header.pending_frees.store(len + 1, Ordering::Relaxed);
    }

    fn dequeue(&self) {
        let (header, queue) = (self.segment().header(), self.segment().deleted());
        let head = header.deleted_head.load(Ordering::Relaxed) as usize;
        header.deleted_head.store(((head + 1) % queue.len()) as u32, Ordering::Relaxed);
        header.pending_frees.fetch_sub(1, Ordering::Relaxed);
    }

    /// Fills the queue from the table.
    pub(crate) fn queue_deleted(&self) {
        let header = self.segment().header();
        header.deleted_head.store(0, Ordering::Relaxed);
        header.pending_frees.store(0, Ordering::Relaxed);
        let slots = self.slots();
        let mut deleted: Vec<usize> =
            (0..slots.len()).filter(|index| state_of(&slots[*index]) == DELETED).collect();
        deleted.sort_by_key(|index| slots[*index].about.deleted_round.load(Ordering::Relaxed));
        deleted.into_iter().for_each(|index| self.enqueue(index as u32));
    }

    /// Frees deleted areas that no worker, no observer and no agent can be looking at any more, and what dead creators left.
    /// Gives back a limited number of bytes; true if there may be more to give back.
    pub(crate) fn reclaim(&self) -> bool {
        let segment = self.segment();
        let header = segment.header();
        self.give_up_dead_creations();
        let pending = header.pending_frees.load(Ordering::Relaxed);
        if pending == 0 {
            return false;
        }
        let word = segment.rounds().load();
        let live = segment.seats().iter().filter(|seat| seat.is_live());
        let oldest_view = live.map(|seat| seat.arrived()).min().unwrap_or(u64::MAX);
        let mut budget = PUNCH_PIECE;
        for _ in 0..pending {
            let head = header.deleted_head.load(Ordering::Relaxed) as usize;
            let index = segment.deleted()[head].load(Ordering::Relaxed);
            let slot = &segment.areas()[index as usize];
            let deleted = slot.about.deleted_round.load(Ordering::Relaxed);
            // A round that planned the area may still be copying it.
            let copying = word.round() <= deleted && word.phase() != Phase::Idle;
            if deleted != 0 && (copying || oldest_view <= deleted) {
                // Those behind it were deleted later.
                return false;
            }
            if self.is_pinned(index as usize, slot) || is_held(segment, &slot.agent.used) {
                self.dequeue();
                self.enqueue(index);
                continue;
            }
            if slot.about.backed.load(Ordering::Relaxed) == 0 && !self.punch(slot, &mut budget) {
                return true;
            }
            fault_point();
            self.release_range(slot);
            area_state::free(&slot.read.state);
            self.free_slot(index as usize);
            self.dequeue();
        }
        false
    }

    fn is_pinned(&self, index: usize, slot: &AreaSlot) -> bool {
        let copies = slot.about.copies.load(Ordering::Relaxed) as usize;
        (0..copies).any(|copy| crate::segment::pins::is_pinned(self.segment(), index, copy))
    }

    /// Gives the memory of a deleted area back, as far as `budget` bytes reach; true if all of it is given back. May
    /// be repeated by whoever finds it half done.
    fn punch(&self, slot: &AreaSlot, budget: &mut u64) -> bool {
        let Extent { offset, len } = extent_of(slot);
        let done = slot.about.punched.load(Ordering::Relaxed).min(len);
        let piece = (len - done).min(*budget);
        if piece > 0 {
            if let Err(error) = limits::punch(self.segment().fd(), offset + done, piece) {
                tracing::warn!(%error, offset, len, "could not give memory back");
            }
            slot.about.punched.store(done + piece, Ordering::Relaxed);
            *budget -= piece;
        }
        done + piece == len
    }
}
