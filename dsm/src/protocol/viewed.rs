//! Views of what has arrived from another host, where it arrived: in the writer copy, before a round publishes it. Written over bare
//! words, so that the models run it.
//!
//! A worker first says that it reads and then looks at the record; the agent, when the record's version is published, first takes the
//! record back and then looks who reads. So either the worker finds nothing in place, or the agent waits until the worker has been at
//! a synchronization point, as an owner waits for the readers of what it lent.
use super::arrival::{self, ArrivalRecord, Arrived};
use super::publication::Version;
use super::round::Rounds;
use crate::primitive::{AtomicU64, Ordering, fault_point};

/// The rank of nobody.
const NOBODY: u32 = u32::MAX;

/// Who may read an area in place.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Viewed {
    /// The highest round that was next, or under way, when a worker began to; 0: none did. Written by workers.
    pub(super) round: AtomicU64,
}

impl Viewed {
    /// That of an area that nobody has read.
    #[cfg(loom)]
    pub(crate) fn new() -> Viewed {
        Viewed { round: AtomicU64::new(0) }
    }

    /// The same, in place, of an area that is being created.
    #[cfg(not(loom))]
    pub(crate) fn reset(&self) {
        self.round.store(0, Ordering::Relaxed);
    }

    /// Begins a view of what has arrived, for a worker outside of rounds: it stays as it is until that worker's next synchronization
    /// point. `None` if nothing is there that is complete and newer than `seen`, which the worker sees anyway.
    pub(crate) fn begin(
        &self,
        seen: Version,
        record: &ArrivalRecord,
        cuts: &AtomicU64,
        rounds: &Rounds<'_>,
    ) -> Option<Arrived> {
        let is_newer = |arrived: &Arrived| arrived.version > seen;
        // Where nothing is, nobody is to wait for this.
        record.arrived(arrival::complete(cuts)).filter(is_newer)?;
        // SeqCst: before the look at the record; pairs with `is_over`. The worker's next arrival is in this round or later.
        self.round.fetch_max(rounds.load_total().round(), Ordering::SeqCst);
        fault_point();
        record.in_place(arrival::complete(cuts)).filter(is_newer)
    }

    /// Whether nobody reads any more what was there before the record was taken back; for the agent, which has done that.
    pub(crate) fn is_over(&self, rounds: &Rounds<'_>) -> bool {
        // SeqCst: after the record was taken back (`ArrivalRecord::reopen`); pairs with `begin`.
        let round = self.round.load(Ordering::SeqCst);
        rounds.late_readers(NOBODY, round).next().is_none()
    }
}
