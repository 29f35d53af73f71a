//! A plan as it was made.
use crate::protocol::abandon::Entries;
use crate::protocol::publication::Publication;
use crate::segment::layout::{Chunk, PlanEntry};
use crate::segment::mapping::Segment;
use crate::segment::parts::Parts;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The plan of the round under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planned<'s> {
    segment: &'s Segment,
    pub(crate) entries: &'s [PlanEntry],
    pub(crate) chunks: &'s [Chunk],
}

impl<'s> Planned<'s> {
    pub(crate) fn of(segment: &'s Segment) -> Planned<'s> {
        let plan = &segment.header().sync.acting.plan;
        let entries = &segment.plan_entries()[..plan.entries.load(Ordering::Relaxed) as usize];
        let chunks = &segment.plan_chunks()[..plan.chunks.load(Ordering::Relaxed) as usize];
        Planned { segment, entries, chunks }
    }

    pub(crate) fn area(&self, entry: usize) -> u32 {
        self.entries[entry].area.load(Ordering::Relaxed)
    }

    /// The publication of an entry by `round`.
    pub(crate) fn publication(&self, entry: usize, round: u64) -> Publication {
        self.entries[entry].publication(self.group(entry), round)
    }

    pub(crate) fn parts(&self, entry: usize) -> Parts<'s> {
        Parts::of(self.segment, self.area(entry) as usize)
    }
}

impl Entries for Planned<'_> {
    fn count(&self) -> usize {
        self.entries.len()
    }

    fn group(&self, entry: usize) -> u32 {
        self.segment.group_of(self.area(entry))
    }

    fn copies(&self, entry: usize) -> usize {
        let (parts, target) = (self.parts(entry), self.entries[entry].copy.load(Ordering::Relaxed) as usize);
        // Copies may have got memory since the round was planned: it may be publishing into the newest one, which readers have.
        if parts.current() == target { 1 } else { parts.reader_copies().present() }
    }

    fn abandoned(&self, entry: usize) -> &AtomicU32 {
        &self.entries[entry].abandoned
    }

    fn set_aside(&self, entry: usize, round: u64) {
        let (parts, copy) = (self.parts(entry), self.entries[entry].copy.load(Ordering::Relaxed) as usize);
        for word in parts.owed(copy) {
            word.store(u64::MAX, Ordering::Relaxed);
        }
        parts.copies()[copy].set_aside(round);
    }

    fn for_each_claim(&self, mut visit: impl FnMut(usize, &AtomicU64)) {
        for chunk in self.chunks {
            visit(chunk.entry.load(Ordering::Relaxed) as usize, &chunk.claim);
        }
    }
}
