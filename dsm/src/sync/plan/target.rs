//! The copy that an area is published into.
use super::super::pin::{self, copy_state};
use super::super::round::Seat;
use super::super::runtime::{Runtime, Scratch};
use crate::area::observer::is_pinned;
use crate::area::parts::Parts;
use crate::job::STALL_PIN;
use crate::memory::copy::words;
use crate::memory::layout::{CopyRecord, LINE};
use std::sync::atomic::{AtomicU64, Ordering};

impl Runtime<'_> {
    /// The copy to publish into: one that no straggler and no observer may be reading, with the least to
    /// bring up to date. It is marked as being written.
    pub(super) fn target_copy(
        &self,
        parts: &Parts<'_>,
        area: usize,
        round: u64,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let copies = parts.copies();
        let current = parts.current();
        let pinned = &mut scratch.pinned;
        pinned.clear();
        pinned.resize(copies.len(), false);
        let behind = self.pin_stragglers(parts, round, pinned);
        for (index, copy) in copies.iter().enumerate() {
            if self.is_quarantined(copy) {
                pinned[index] = true;
            }
        }
        // The newest copy owes nothing, so it comes first; then the one that was published last.
        let mut order: Vec<usize> = Vec::new();
        let candidates: &[usize] = if copies.len() == 1 {
            &[0]
        } else {
            order.extend(0..copies.len());
            order.sort_by_key(|&index| {
                // One that holds nothing (`u64::MAX`) comes last.
                let at = copies[index].round.load(Ordering::Relaxed).wrapping_add(1);
                (index != current, std::cmp::Reverse(at))
            });
            &order
        };
        // A copy that may have to be quarantined in the middle must not be the newest one.
        let spare_newest = copies.len() >= 3 && self.shared.segment.config().stall_policy == STALL_PIN;
        for &index in candidates {
            if pinned[index] || (spare_newest && index == current) {
                continue;
            }
            if pin::mark(&copies[index].state, || is_pinned(&self.shared.segment, area, index)) {
                return Some(index);
            }
        }
        scratch.held_back |= behind;
        None
    }

    /// Marks the copies that workers outside of the round may be reading; false if there are none.
    fn pin_stragglers(&self, parts: &Parts<'_>, round: u64, pinned: &mut [bool]) -> bool {
        let mut any = false;
        for seat in self.shared.segment.seats() {
            if seat.is_live() {
                // SeqCst: see `Rounds::takes_part`.
                let arrived = seat.arrived.load(Ordering::SeqCst);
                if arrived < round {
                    pinned[parts.visible(arrived)] = true;
                    any = true;
                }
            }
        }
        any
    }

    fn is_quarantined(&self, copy: &CopyRecord) -> bool {
        if copy.state.load(Ordering::Relaxed) != copy_state::QUARANTINED {
            return false;
        }
        // Whoever was in that round and has not moved since may be at the copy: not only the worker that was
        // found stalled, but any that had a chunk of it.
        let round = copy.quarantine.load(Ordering::Relaxed);
        let stays = |seat: &Seat| seat.is_live() && seat.arrived.load(Ordering::SeqCst) == round;
        if !self.shared.segment.seats().iter().any(stays) {
            copy.state.store(copy_state::VALID, Ordering::Relaxed);
            return false;
        }
        true
    }
}

/// Takes back the marks that a planner left which died: nothing was copied yet. Also where the area cannot be
/// planned any more, as when the planner owned it: observers do not read a marked copy.
pub(super) fn unmark(copies: &[CopyRecord]) {
    for copy in copies {
        if copy.state.load(Ordering::Relaxed) == copy_state::WRITING {
            pin::unmark(&copy.state);
        }
    }
}

/// Bytes that publishing into `target` copies, by counting the log; bounded above by the whole copy.
pub(super) fn dirty_bytes(parts: &Parts<'_>, target: usize) -> u64 {
    // SAFETY: called by the actor while the area's owner, the log's only writer, is inside the round; what a
    // copy owes is written only while chunks are copied.
    let count = |words: &[AtomicU64]| unsafe { words::count(words) };
    let mut lines = 0;
    parts.for_each_logged_run(|words| lines += count(words));
    if parts.copies()[target].owes.load(Ordering::Relaxed) != 0 {
        lines += count(parts.owed(target));
    }
    (lines as u64 * LINE).min(parts.padded_bytes() as u64)
}
