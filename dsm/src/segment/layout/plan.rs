//! The plan of a round.
use crate::primitive::{AtomicU32, AtomicU64};
use std::sync::atomic::Ordering::Relaxed;

/// The head of the plan.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PlanHeader {
    pub(crate) entries: AtomicU32,
    pub(crate) chunks: AtomicU32,
    pub(crate) bytes: AtomicU64,
    pub(crate) workers: AtomicU32,
    pub(crate) now_ns: AtomicU64,
    /// What `ActorWords::lowest_clock` becomes when the plan is published as a whole.
    pub(crate) lowest_clock: AtomicU64,
}

/// One area in the plan: everything that publication will write, as absolute values.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct PlanEntry {
    pub(crate) area: AtomicU32,
    pub(crate) copy: AtomicU32,
    pub(crate) owner: AtomicU32,
    /// 0: copy and publish, unless another entry of its group was abandoned; 1: abandoned, its copy is quarantined.
    pub(crate) abandoned: AtomicU32,
    /// 1: every line, whatever the log says.
    pub(crate) whole: AtomicU32,
    pub(crate) _spare: AtomicU32,
    pub(crate) term: AtomicU64,
    pub(crate) counter: AtomicU64,
    pub(crate) clock: AtomicU64,
}

impl PlanEntry {
    /// Takes over what another entry says.
    pub(crate) fn copy_from(&self, other: &PlanEntry) {
        let small = |to: &AtomicU32, from: &AtomicU32| to.store(from.load(Relaxed), Relaxed);
        let large = |to: &AtomicU64, from: &AtomicU64| to.store(from.load(Relaxed), Relaxed);
        small(&self.area, &other.area);
        small(&self.copy, &other.copy);
        small(&self.owner, &other.owner);
        small(&self.abandoned, &other.abandoned);
        small(&self.whole, &other.whole);
        large(&self.term, &other.term);
        large(&self.counter, &other.counter);
        large(&self.clock, &other.clock);
    }
}

/// A piece of an area to copy.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Chunk {
    /// See `sync::claim`.
    pub(crate) claim: AtomicU64,
    pub(crate) entry: AtomicU32,
    pub(crate) owner: AtomicU32,
    /// First log word and number of log words (64 lines each).
    pub(crate) first: AtomicU64,
    pub(crate) words: AtomicU64,
}
