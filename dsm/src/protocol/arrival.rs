//! Versions that arrive from other hosts: the record by which the agent hands one to the rounds. Written over bare words, so
//! that the models run it.
//!
//! The agent writes the lines into the writer copy of an area, then its record, which names a cut, a number that rises; then
//! one word for all areas, the number of the last cut that is complete. So what belongs to one cut arrives at once. A plan reads
//! that word once. A record stays as it is until the round is past that published it.
use super::publication::Version;
use crate::primitive::{AtomicU64, Ordering, fault_point, fence};

/// Instead of a cut: the agent is receiving, or may begin to.
const RECEIVING: u64 = 0;

/// A version that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) version: Version,
    /// The owner's clock when it was published.
    pub(crate) clock: u64,
    /// Its label on the owner's host: see `protocol/label.rs`.
    pub(crate) label: u64,
    /// Monotonic nanoseconds of this host at which it was last known to be the newest.
    pub(crate) as_of_ns: u64,
}

/// The arrivals of an area; the agent writes it.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ArrivalRecord {
    pub(super) cut: AtomicU64,
    term: AtomicU64,
    counter: AtomicU64,
    clock: AtomicU64,
    label: AtomicU64,
    as_of_ns: AtomicU64,
}

impl ArrivalRecord {
    /// Of an area of which nothing has arrived.
    #[cfg(loom)]
    pub(crate) fn new() -> ArrivalRecord {
        let [cut, term, counter, clock, label, as_of_ns] = [0; 6].map(AtomicU64::new);
        ArrivalRecord { cut, term, counter, clock, label, as_of_ns }
    }

    /// The same, in place, of an area that is being created.
    #[cfg(not(loom))]
    pub(crate) fn reset(&self) {
        self.cut.store(RECEIVING, Ordering::Relaxed);
    }

    /// Writes the record of cut `cut`, which is not complete yet, after the lines. The agent is receiving.
    pub(crate) fn write(&self, cut: u64, arrived: &Arrived) {
        self.term.store(arrived.version.term, Ordering::Relaxed);
        self.counter.store(arrived.version.counter, Ordering::Relaxed);
        self.clock.store(arrived.clock, Ordering::Relaxed);
        self.label.store(arrived.label, Ordering::Relaxed);
        self.as_of_ns.store(arrived.as_of_ns, Ordering::Relaxed);
        fault_point();
        // Relaxed: nobody reads more of it before the cut is complete (`commit`).
        self.cut.store(cut, Ordering::Relaxed);
        fault_point();
    }

    /// The arrival as of the cut `complete`, for a plan. It may have been published.
    pub(crate) fn arrived(&self, complete: u64) -> Option<Arrived> {
        // Relaxed: `complete` acquired the record, if its cut is complete.
        let cut = self.cut.load(Ordering::Relaxed);
        if cut == RECEIVING || cut > complete {
            return None;
        }
        let arrived = self.read();
        // Acquire: pairs with the release fence in `reopen`. If the agent has gone on since, this was published, and what was
        // read may be of the next.
        fence(Ordering::Acquire);
        (self.cut.load(Ordering::Relaxed) == cut).then_some(arrived)
    }

    /// The same for who reads the lines where they arrived, and has said so (`viewed.rs`).
    pub(crate) fn in_place(&self, complete: u64) -> Option<Arrived> {
        // SeqCst: after the reader has said so (`Viewed::begin`); pairs with `reopen`.
        let cut = self.cut.load(Ordering::SeqCst);
        if cut == RECEIVING { None } else { self.arrived(complete) }
    }

    fn read(&self) -> Arrived {
        let version = Version {
            term: self.term.load(Ordering::Relaxed),
            counter: self.counter.load(Ordering::Relaxed),
        };
        Arrived {
            version,
            clock: self.clock.load(Ordering::Relaxed),
            label: self.label.load(Ordering::Relaxed),
            as_of_ns: self.as_of_ns.load(Ordering::Relaxed),
        }
    }

    /// The arrival that the agent has handed over and not taken back yet.
    pub(crate) fn handed_over(&self) -> Option<Arrived> {
        // Relaxed: the agent wrote it, or one before it whose death the kernel told.
        (self.cut.load(Ordering::Relaxed) != RECEIVING).then(|| self.read())
    }

    /// Goes on to the next version: what was handed over is published, and its round is past.
    pub(crate) fn reopen(&self) {
        // SeqCst: before the look at who reads in place (`Viewed::is_over`); pairs with `in_place`.
        self.cut.store(RECEIVING, Ordering::SeqCst);
        // Release: pairs with the acquire fence in `arrived`. Who sees anything of the next record sees that this is not the
        // same cut.
        fence(Ordering::Release);
        fault_point();
    }

    /// Takes back what a dead agent had written of a cut that was not complete.
    pub(crate) fn forget_incomplete(&self, complete: u64) {
        // Relaxed: no plan has read it.
        if self.cut.load(Ordering::Relaxed) > complete {
            self.reopen();
        }
    }
}

/// Asks rounds to look at an area, after its cut was completed. `bit` is its mark in `forced`.
pub(crate) fn ask(forced: &AtomicU64, bit: u64) {
    // Release: pairs with the acquire in `await_next`.
    forced.fetch_or(bit, Ordering::Release);
}

/// A plan has looked at an area and found that nothing has arrived: what was asked for is for the next. `has_arrived` looks
/// again, at all that is complete by now.
pub(crate) fn await_next(forced: &AtomicU64, bit: u64, has_arrived: impl FnOnce() -> bool) {
    // Acquire: pairs with the release in `ask`. Whoever asked before this has its cut seen; whoever asks later, its mark.
    forced.fetch_and(!bit, Ordering::Acquire);
    if has_arrived() {
        forced.fetch_or(bit, Ordering::Relaxed);
    }
}

/// The number of the last cut that is complete, for one who is about to look at several areas.
pub(crate) fn complete(cuts: &AtomicU64) -> u64 {
    // Acquire: pairs with the release in `commit`: the lines of the cut, and its records.
    cuts.load(Ordering::Acquire)
}

/// Completes cut `cut`, all records of which are written.
pub(crate) fn commit(cuts: &AtomicU64, cut: u64) {
    // Release: pairs with the acquire in `complete`.
    cuts.store(cut, Ordering::Release);
    fault_point();
}
