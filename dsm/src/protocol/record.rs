//! The reader copies of an area as their records tell of them: which one is whose, and what each holds.
use super::pin::{self, copy_state};
use super::publication::{Publication, Version};
use super::round::{Rounds, Seat};
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point, fence};
use std::cmp::Reverse;

/// A reader copy's record, at the start of the area's extent.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct CopyRecord {
    /// The round that published what the copy holds; `u64::MAX`: nothing that a reader may come to.
    pub(crate) round: AtomicU64,
    pub(crate) term: AtomicU64,
    pub(crate) counter: AtomicU64,
    /// Monotonic nanoseconds at which that was what the owner had written: see [`Publication`].
    pub(crate) timestamp_ns: AtomicU64,
    /// The owner's clock at that round.
    pub(crate) clock: AtomicU64,
    /// A [`copy_state`].
    pub(crate) state: AtomicU32,
    /// Whether the copy's `owed` bitmap has any bit.
    pub(crate) owes: AtomicU32,
    /// The version's label. Of a quarantined copy, which has no version, the round whose participants may still be writing it.
    label: AtomicU64,
    /// The number of the agent that pins the copy.
    pub(crate) held: AtomicU64,
}

impl CopyRecord {
    /// The record of a copy that holds the area as it was created, or nothing.
    #[cfg(loom)]
    pub(crate) fn new(holds: bool) -> CopyRecord {
        let [term, counter, timestamp_ns, clock, label, held] = [0; 6].map(AtomicU64::new);
        let [state, owes] = [0; 2].map(AtomicU32::new);
        let round = AtomicU64::new(if holds { 0 } else { u64::MAX });
        CopyRecord { round, term, counter, timestamp_ns, clock, state, owes, label, held }
    }

    /// Writes the record of a publication. Repeatable.
    fn write(&self, published: &Publication) {
        // The record is a sequence lock, of which the round is the sequence: no two publications have the same one.
        // Nobody comes to a copy that is being published, so nobody misses its round.
        self.round.store(u64::MAX, Ordering::Relaxed);
        // Release: pairs with the acquire fence in `Copies::version`. Who sees anything of the new record sees that the
        // round is another.
        fence(Ordering::Release);
        self.term.store(published.version.term, Ordering::Relaxed);
        self.counter.store(published.version.counter, Ordering::Relaxed);
        self.clock.store(published.clock, Ordering::Relaxed);
        self.timestamp_ns.store(published.timestamp_ns, Ordering::Relaxed);
        self.label.store(published.label, Ordering::Relaxed);
        fault_point();
        // Release: who finds the round in the record finds the copy's bytes and the rest of the record; pairs with the
        // acquire loads in `Copies::visible` and `Copies::version`.
        self.round.store(published.round, Ordering::Release);
    }

    /// Sets the copy aside, of which participants of `round` may go on writing all that they had claimed: no reader comes
    /// to it, and no plan before they have moved on. It lacks every line then; the caller has noted that. Repeatable.
    pub(crate) fn set_aside(&self, round: u64) {
        // Relaxed, all of them: for actors, each of which acquires what the last one did. To an observer the copy is one
        // that is being written, as before; and no reader comes to it by its round, old as that is.
        self.label.store(round, Ordering::Relaxed);
        self.owes.store(1, Ordering::Relaxed);
        self.state.store(copy_state::QUARANTINED, Ordering::Relaxed);
        self.round.store(u64::MAX, Ordering::Relaxed);
    }

    /// Says, of a new area's copy, that it has no memory. Nothing is in it that a reader may come to, and it owes nothing yet.
    pub(crate) fn leave_absent(&self) {
        self.state.store(copy_state::ABSENT, Ordering::Relaxed);
    }

    /// Whether the copy has no memory; for one whom nobody but a planner would follow.
    pub(crate) fn is_absent(&self) -> bool {
        // Acquire: pairs with `appear`.
        self.state.load(Ordering::Acquire) == copy_state::ABSENT
    }

    /// The copy, which was absent, has memory, of zeros, as the area was when it was created: what it owes was noted since.
    pub(crate) fn appear(&self) {
        // Release: whoever plans to publish into the copy finds its memory; pairs with `is_absent`.
        self.state.store(copy_state::VALID, Ordering::Release);
    }

    /// The version, for one who keeps the copy from being written.
    pub(crate) fn version(&self) -> Version {
        Version { term: self.term.load(Ordering::Relaxed), counter: self.counter.load(Ordering::Relaxed) }
    }

    /// The label, as [`CopyRecord::version`].
    pub(crate) fn label(&self) -> u64 {
        self.label.load(Ordering::Relaxed)
    }

    /// Whether a worker that stalled may still be writing the copy. Asked by the actor; the answer no is noted.
    fn is_quarantined(&self, rounds: &Rounds<'_>) -> bool {
        if self.state.load(Ordering::Relaxed) != copy_state::QUARANTINED {
            return false;
        }
        // Whoever was in that round and has not moved since may be at the copy: not only the worker that was
        // found stalled, but any that had a chunk of it.
        let round = self.label.load(Ordering::Relaxed);
        let stays = |seat: &Seat| seat.is_live() && seat.arrived() == round;
        if !rounds.seats().iter().any(stays) {
            self.state.store(copy_state::VALID, Ordering::Relaxed);
            return false;
        }
        true
    }
}

/// The reader copies of one area.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Copies<'s> {
    pub(crate) records: &'s [CopyRecord],
    /// The index of the newest.
    pub(crate) current: &'s AtomicU32,
}

impl Copies<'_> {
    /// The newest published copy.
    #[inline]
    pub(crate) fn newest(&self) -> usize {
        // Acquire: pairs with the release in `publish`, for readers that were not in the round.
        self.current.load(Ordering::Acquire) as usize
    }

    /// How many have memory.
    pub(crate) fn present(&self) -> usize {
        self.records.iter().filter(|copy| !copy.is_absent()).count()
    }

    /// The newest copy published at or before `round`, which a worker that arrived there may read.
    #[inline]
    pub(crate) fn visible(&self, round: u64) -> usize {
        let newest = self.newest();
        // Acquire: pairs with the release in `CopyRecord::write`.
        if self.records[newest].round.load(Ordering::Acquire) <= round {
            return newest;
        }
        self.visible_slow(round)
    }

    #[cold]
    fn visible_slow(&self, round: u64) -> usize {
        // Acquire: as in `visible`.
        pin::newest_at(round, self.records.iter().map(|copy| copy.round.load(Ordering::Acquire)))
    }

    /// The newest version, for one who holds no copy: term and counter of one publication. `None` while a publication
    /// is under way; ask again.
    pub(crate) fn version(&self) -> Option<Version> {
        let newest = self.newest();
        // A deleted area's slot may be another's by now, with more copies.
        let record = self.records.get(newest)?;
        // Acquire: pairs with the release at the end of `CopyRecord::write`.
        let round = record.round.load(Ordering::Acquire);
        let version = record.version();
        // Acquire: pairs with the release fence in `CopyRecord::write`.
        fence(Ordering::Acquire);
        let is_same = round != u64::MAX && record.round.load(Ordering::Relaxed) == round;
        (is_same && self.newest() == newest).then_some(version)
    }

    /// The round that published `version`, if that is the newest; for the agent, which knows no other of the number.
    pub(crate) fn published(&self, version: Version) -> Option<u64> {
        let record = &self.records[self.newest()];
        // Acquire: pairs with the release at the end of `CopyRecord::write`.
        let round = record.round.load(Ordering::Acquire);
        let found = record.version();
        // Acquire: pairs with the release fence in `CopyRecord::write`. Else the version may be that of a later round, which is
        // under way.
        fence(Ordering::Acquire);
        let is_same = round != u64::MAX && record.round.load(Ordering::Relaxed) == round;
        (is_same && found == version).then_some(round)
    }

    /// Makes a publication's copy, which was marked and written, the newest. Repeatable.
    pub(crate) fn publish(&self, published: &Publication) {
        let record = &self.records[published.copy as usize];
        record.write(published);
        fault_point();
        // Release: who finds the copy here finds its bytes and its record; pairs with the acquire in `newest`.
        self.current.store(published.copy, Ordering::Release);
        fault_point();
        pin::unmark(&record.state);
    }

    /// Takes back the marks that a planner left which died: nothing was copied yet.
    pub(crate) fn take_marks_back(&self) {
        for copy in self.records {
            // Relaxed: whoever marked it was the actor, or is.
            if copy.state.load(Ordering::Relaxed) == copy_state::WRITING {
                pin::unmark(&copy.state);
            }
        }
    }

    /// The copy to publish into: one that has memory and that no straggler and no observer may be reading, with the least to bring
    /// up to date. It is marked as being written. `pinned` is room for an answer per copy; `spares_newest` says that the newest
    /// copy may not be taken, and `is_observed` whether an observer pins a copy. The copy that was published in round `kept`
    /// is taken only if there is no other.
    pub(crate) fn target(
        &self,
        rounds: &Rounds<'_>,
        round: u64,
        spares_newest: bool,
        kept: u64,
        pinned: &mut Vec<bool>,
        is_observed: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let (copies, newest) = (self.records, self.newest());
        pinned.clear();
        pinned.resize(copies.len(), false);
        self.pin_stragglers(rounds, round, pinned);
        for (copy, pinned) in copies.iter().zip(pinned.iter_mut()) {
            *pinned |= copy.is_absent() || copy.is_quarantined(rounds);
        }
        pinned[newest] |= spares_newest;
        // The newest copy owes nothing, so it comes first; then the one that was published last, and one that holds nothing
        // (`u64::MAX`, as `kept` of a state that there is not) last.
        let rank = |index: &usize| {
            let published = copies[*index].round.load(Ordering::Relaxed);
            (published == kept, *index != newest, Reverse(published.wrapping_add(1)))
        };
        while let Some(best) = (0..copies.len()).filter(|index| !pinned[*index]).min_by_key(rank) {
            if pin::mark(&copies[best].state, || is_observed(best)) {
                return Some(best);
            }
            pinned[best] = true;
        }
        None
    }

    /// Marks the copies that workers outside of the round may be reading.
    fn pin_stragglers(&self, rounds: &Rounds<'_>, round: u64, pinned: &mut [bool]) {
        for seat in rounds.seats().iter().filter(|seat| seat.is_live()) {
            let arrived = seat.arrived();
            if arrived < round {
                pinned[self.visible(arrived)] = true;
            }
        }
    }
}
