//! Leaving an area, with all of its group, for a later round: a worker stands still while it copies (`StallPolicy::Pin`).
//!
//! The actor decides, at work, and by one store: an entry says that it was abandoned, and from then on nothing of its
//! group is published in this round. The rest is done here, and again in Publish, by whoever publishes.
use super::claim;
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point};

/// Copies that an area must have to be abandoned: one that readers have, one that the stalled worker may be writing
/// for ever, and one for the next publication.
pub(crate) const COPIES: usize = 3;

/// The plan of a round, as far as abandoning has to know it.
pub(crate) trait Entries {
    /// How many areas are to be published.
    fn count(&self) -> usize;
    /// The group of the area of entry `entry`; 0: none.
    fn group(&self, entry: usize) -> u32;
    /// How many reader copies the area has.
    fn copies(&self, entry: usize) -> usize;
    /// Not 0: the entry was abandoned. Written and read by actors of the round, the next after the last.
    fn abandoned(&self, entry: usize) -> &AtomicU32;
    /// Sets the copy aside that the area was to be published into. Repeatable.
    ///
    /// Any participant may be writing it, and goes on doing so when the round is past: nobody reads it, and nobody
    /// else writes it before they have moved on.
    fn set_aside(&self, entry: usize, round: u64);
    /// Visits the claims on all chunks, with the entry that each is of.
    fn for_each_claim(&self, visit: impl FnMut(usize, &AtomicU64));
}

/// Abandons an entry of the plan of `round`, a chunk of which somebody stands still at, and the others of its group;
/// unless one of them has too few copies, for which the round waits. Returns which.
pub(crate) fn abandon(plan: &impl Entries, round: u64, entry: usize) -> Vec<usize> {
    let group = plan.group(entry);
    let is_left = |index: &usize| *index == entry || (group != 0 && plan.group(*index) == group);
    let left: Vec<usize> = (0..plan.count()).filter(is_left).collect();
    if left.iter().any(|index| plan.copies(*index) < COPIES) {
        return Vec::new();
    }
    // First of all: who finds the group abandoned by half completes it. Relaxed: whoever is the actor next acquires
    // what this one did, by the actor word or the kernel's word of its death.
    plan.abandoned(entry).store(1, Ordering::Relaxed);
    for index in &left {
        fault_point();
        plan.set_aside(*index, round);
    }
    fault_point();
    // Last: when all chunks are done, the round is published.
    plan.for_each_claim(|of, claim| {
        if left.contains(&of) {
            claim::abandon(claim, round);
        }
    });
    left
}

/// Which entries nobody publishes: those that were abandoned, and all of their groups.
pub(crate) fn left(plan: &impl Entries) -> impl Fn(usize) -> bool {
    // Relaxed: as in `abandon`.
    let is_abandoned = |entry: &usize| plan.abandoned(*entry).load(Ordering::Relaxed) != 0;
    let entries = (0..plan.count()).filter(is_abandoned);
    let groups: Vec<u32> = entries.map(|entry| plan.group(entry)).filter(|group| *group != 0).collect();
    move |entry| is_abandoned(&entry) || groups.contains(&plan.group(entry))
}
