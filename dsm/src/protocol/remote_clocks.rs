//! The clocks of other hosts, and how a worker sleeps until they are reached. Written over bare words, so that the models run
//! it.
//!
//! The agent stores a host's clock, and the next round takes it up: the lowest clock rises in rounds only, so that all who wait
//! for it here go on after the same round. A worker that waits first says so and then looks at the clocks; the agent first stores a
//! clock and then looks whether a worker waits. So either the worker sees the clock, and opens a round, or the agent sees the worker,
//! and opens one.
use super::round::{Rounds, Seat, Work};
use super::word::Phase;
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point};

/// Another host of the job, or this one.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct HostRecord {
    /// The lowest clock of its workers; `u64::MAX`: it has none in the clocks any more. Written by the agent; of this host, not
    /// used.
    pub(crate) clock: AtomicU64,
    /// Its first rank, and how many it has.
    pub(crate) first: AtomicU32,
    pub(crate) ranks: AtomicU32,
}

/// The hosts of a job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteClocks<'s> {
    /// All of them, in the order of their ranks; none if the job is on this host alone.
    pub(crate) hosts: &'s [HostRecord],
    /// Which one this is.
    pub(crate) here: usize,
}

impl RemoteClocks<'_> {
    /// The lowest clock of the other hosts, as far as it is known here; `u64::MAX` if there are none.
    pub(crate) fn lowest_clock(self) -> u64 {
        let others = self.hosts.iter().enumerate().filter(|(host, _)| *host != self.here);
        // SeqCst: comes after the shift to Plan, or after `Seat::waits` was set; pairs with `tell`.
        others.fold(u64::MAX, |lowest, (_, host)| lowest.min(host.clock.load(Ordering::SeqCst)))
    }

    /// The agent has heard that the workers of a host have all reached `clock`, and all that it covers is published here. Opens
    /// a round if a worker of this host waits and none is under way.
    pub(crate) fn tell(self, host: usize, clock: u64, rounds: &Rounds<'_>, work: &impl Work) {
        // SeqCst: before the looks at `waits` and at the word; pairs with `lowest_clock`.
        self.hosts[host].clock.fetch_max(clock, Ordering::SeqCst);
        fault_point();
        self.call(rounds, work);
    }

    /// Opens a round if a worker of this host waits and none is under way. A round that is open is planned after this, and
    /// who is in one that is past Open looks at the clocks again before it sleeps.
    pub(crate) fn call(self, rounds: &Rounds<'_>, work: &impl Work) {
        let is_awaited = rounds.seats().iter().any(|seat| seat.is_live() && seat.waits());
        if is_awaited && rounds.load_total().phase() == Phase::Idle {
            rounds.open(false, work);
        }
    }
}

impl Seat {
    /// Whether the worker waits for something that may come from other hosts.
    pub(crate) fn waits(&self) -> bool {
        // SeqCst: pairs with `set_waits`.
        self.waits.load(Ordering::SeqCst) != 0
    }

    /// Says whether the worker waits for something that may come from other hosts; what it said before.
    pub(crate) fn set_waits(&self, waits: bool) -> bool {
        // SeqCst: before the worker's look at the clocks; pairs with `waits`.
        self.waits.swap(u32::from(waits), Ordering::SeqCst) != 0
    }
}
