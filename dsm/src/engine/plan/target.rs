//! The copy that an area is published into.
use super::super::runtime::Runtime;
use crate::engine::directory;
use crate::memory::copy::words;
use crate::protocol::abandon;
use crate::protocol::label;
use crate::protocol::ownership;
use crate::segment::layout::LINE;
use crate::segment::layout::STALL_PIN;
use crate::segment::parts::Parts;
use crate::segment::pins::{is_held, is_pinned};
use std::sync::atomic::{AtomicU64, Ordering};

impl Runtime<'_> {
    /// The copy to publish into: one that no straggler, no observer and no agent may be reading, with the least to
    /// bring up to date. It is marked as being written.
    pub(crate) fn target_copy(
        &self,
        parts: &Parts<'_>,
        area: usize,
        round: u64,
        kept: u64,
        pinned: &mut Vec<bool>,
    ) -> Option<usize> {
        let segment = &self.shared.segment;
        // A copy that may have to be quarantined in the middle must not be the newest one.
        let spares_newest =
            segment.config().stall_policy == STALL_PIN && parts.reader_copies().present() >= abandon::COPIES;
        let is_observed =
            |index: usize| is_held(segment, &parts.copies()[index].held) || is_pinned(segment, area, index);
        let rounds = segment.rounds();
        parts.reader_copies().target(&rounds, round, spares_newest, kept, pinned, is_observed)
    }

    /// The round of the state of an area that is kept when one of this label is published: see `protocol/label.rs`. Nothing in a
    /// job on one host, and of an area whose owner is on another.
    pub(crate) fn keeps(&self, parts: &Parts<'_>, label: u64) -> u64 {
        if !self.shared.segment.spans_hosts() || ownership::load(&parts.slot.own.ownership).is_remote() {
            return label::NONE;
        }
        let newest = &parts.copies()[parts.current()];
        let kept = parts.slot.round.kept.load(Ordering::Relaxed);
        label::keep(label, newest.label(), newest.round.load(Ordering::Relaxed), kept)
    }

    /// Takes back the marks that a planner left which died: nothing was copied yet. Of all areas: this plan may not
    /// come to each that the last one had marked, and observers do not read a marked copy.
    pub(crate) fn take_marks_back(&self) {
        let segment = &self.shared.segment;
        for (index, slot) in segment.areas()[..segment.used_areas()].iter().enumerate() {
            // SeqCst: comes after the shift to Plan; pairs with the store in `Directory::delete`.
            if !directory::is_live(slot.read.state.load(Ordering::SeqCst)) {
                continue;
            }
            Parts::of(segment, index).reader_copies().take_marks_back();
        }
    }
}

/// Bytes that publishing into `target` copies, by counting the log; bounded above by the whole copy.
pub(crate) fn dirty_bytes(parts: &Parts<'_>, target: usize) -> u64 {
    // SAFETY: called by the actor while the area's owner, the log's only writer, is inside the round, or has lent the area and waits for
    // the round before it writes it again; what a copy owes is written only while chunks are copied.
    let count = |words: &[AtomicU64]| unsafe { words::count(words) };
    let mut lines = 0;
    parts.for_each_logged_run(|words| lines += count(words));
    if parts.copies()[target].owes.load(Ordering::Relaxed) != 0 {
        lines += count(parts.owed(target));
    }
    (lines as u64 * LINE).min(parts.padded_bytes() as u64)
}
