//! The plan of a round.
use crate::primitive::{AtomicU32, AtomicU64};
use crate::protocol::publication::{Publication, Version};
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
    /// The next `ActorWords::whole`.
    pub(crate) whole: AtomicU64,
    /// The next `ActorWords::lowest_clock`, once the plan is published as a whole.
    pub(crate) lowest_clock: AtomicU64,
    /// The same of `ActorWords::local_clock`.
    pub(crate) local_clock: AtomicU64,
    /// Not 0: these are not what they were when the plan was made.
    pub(crate) clocks_rise: AtomicU32,
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
    pub(crate) timestamp_ns: AtomicU64,
    pub(crate) label: AtomicU64,
    pub(crate) kept: AtomicU64,
}

impl PlanEntry {
    /// Enters a publication of an area of worker `owner`, or `OTHER_HOST`.
    pub(crate) fn enter(&self, publication: &Publication, owner: u32) {
        let Publication { area, copy, whole, version, clock, timestamp_ns, label, kept, .. } = *publication;
        self.area.store(area, Relaxed);
        self.copy.store(copy, Relaxed);
        self.owner.store(owner, Relaxed);
        self.abandoned.store(0, Relaxed);
        self.whole.store(u32::from(whole), Relaxed);
        self.term.store(version.term, Relaxed);
        self.counter.store(version.counter, Relaxed);
        self.clock.store(clock, Relaxed);
        self.timestamp_ns.store(timestamp_ns, Relaxed);
        self.label.store(label, Relaxed);
        self.kept.store(kept, Relaxed);
    }

    /// The publication that `round` is to make of an area of this group.
    pub(crate) fn publication(&self, group: u32, round: u64) -> Publication {
        Publication {
            area: self.area.load(Relaxed),
            group,
            copy: self.copy.load(Relaxed),
            whole: self.whole.load(Relaxed) != 0,
            version: Version { term: self.term.load(Relaxed), counter: self.counter.load(Relaxed) },
            round,
            clock: self.clock.load(Relaxed),
            timestamp_ns: self.timestamp_ns.load(Relaxed),
            label: self.label.load(Relaxed),
            kept: self.kept.load(Relaxed),
        }
    }

    /// Takes over what another entry says.
    pub(crate) fn copy_from(&self, other: &PlanEntry) {
        self.enter(&other.publication(0, 0), other.owner.load(Relaxed));
        self.abandoned.store(other.abandoned.load(Relaxed), Relaxed);
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
