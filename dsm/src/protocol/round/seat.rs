//! A worker's words for the others about rounds.
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::protocol::tasks::{Inbox, TaskWords};

/// The state of a worker's slot.
pub(crate) mod slot_state {
    pub(crate) const FREE: u32 = 0;
    pub(crate) const JOINING: u32 = 1;
    pub(crate) const LIVE: u32 = 2;
    pub(crate) const LEAVING: u32 = 3;
    pub(crate) const DEAD: u32 = 4;
    /// A worker of another host has the rank. No round waits for it, it pins nothing, and its mutex is never asked.
    pub(crate) const REMOTE: u32 = 5;
    /// The rank is of another host, and its worker is not there yet, or has left.
    pub(crate) const ABSENT: u32 = 6;
    /// The worker of another host that had the rank is dead, or its host is.
    pub(crate) const LOST: u32 = 7;
    /// The worker of another host that had the rank has left it. As `REMOTE`, but that nothing is given to it.
    pub(crate) const LEFT: u32 = 8;

    /// Whether a rank is of another host.
    pub(crate) fn is_elsewhere(state: u32) -> bool {
        matches!(state, REMOTE | ABSENT | LOST | LEFT)
    }
}

/// A worker's words for the others about rounds; one per worker, on cache lines of its own.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Seat {
    /// The last round in which the worker stood at a synchronization point. Written by the worker alone. A
    /// view that the worker holds is of a copy published at or before this round.
    pub(crate) arrived: AtomicU64,
    /// The last round that was given up because this worker did not come. While it is above `arrived`, the
    /// worker is a known straggler: rounds do not wait for it.
    pub(crate) missed: AtomicU64,
    /// The worker's own clock (bounded staleness).
    pub(crate) clock: AtomicU64,
    /// How often this worker was left behind by a round that was given up. Written with `missed`, by others.
    pub(crate) late: AtomicU64,
    /// One of [`slot_state`].
    pub(crate) state: AtomicU32,
    /// Rises with every worker that takes the slot.
    pub(crate) incarnation: AtomicU32,
    /// Not 0: the worker waits for something that may come from other hosts. See `protocol/remote_clocks.rs`.
    pub(crate) waits: AtomicU32,
    /// How far the worker is in tasks, on a line of its own.
    pub(crate) tasks: TaskWords,
    /// Of a worker of another host: how much of what its tasks wrote is in place here.
    pub(crate) inbox: Inbox,
}

impl Seat {
    #[cfg(loom)]
    pub(crate) fn new() -> Seat {
        Seat {
            arrived: AtomicU64::new(0),
            missed: AtomicU64::new(0),
            clock: AtomicU64::new(0),
            late: AtomicU64::new(0),
            state: AtomicU32::new(slot_state::FREE),
            incarnation: AtomicU32::new(0),
            waits: AtomicU32::new(0),
            tasks: TaskWords::new(),
            inbox: Inbox::new(),
        }
    }

    /// The last round in which the worker arrived.
    #[inline]
    pub(crate) fn arrived(&self) -> u64 {
        // SeqCst: pairs with the stores in `Rounds::arrive` and `Rounds::settle`. Whoever looks has changed the word
        // (to Plan) or its own seat before, which the arriving worker looks at after its store: see SYNC.md, "late
        // arrival", and the table of pairs.
        self.arrived.load(Ordering::SeqCst)
    }

    /// One of [`slot_state`].
    #[inline]
    pub(crate) fn state(&self) -> u32 {
        // SeqCst: pairs with `set_state`.
        self.state.load(Ordering::SeqCst)
    }

    /// Changes the state of the slot.
    pub(crate) fn set_state(&self, state: u32) {
        // SeqCst: pairs with `state`. A joiner settles after it, who leaves looks at the round after it, and a new worker
        // looks at what is on its way to it: see the table of pairs in SYNC.md. Release, as it is too: whoever frees the
        // slot has made the areas of its worker claimable.
        self.state.store(state, Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.state() == slot_state::LIVE
    }

    /// Whether a worker is there, on this host or on another, or has been there on another.
    pub(crate) fn is_there(&self) -> bool {
        matches!(self.state(), slot_state::LIVE | slot_state::REMOTE | slot_state::LEFT)
    }

    /// Whether rounds go on without this worker until it comes back to a synchronization point.
    pub(crate) fn is_straggler(&self) -> bool {
        // SeqCst: pairs with `set_missed`. Who is found to be one is not waited for, whatever it does next.
        self.missed.load(Ordering::SeqCst) > self.arrived()
    }

    /// Notes that `round` was given up because this worker did not come.
    pub(crate) fn set_missed(&self, round: u64) {
        // SeqCst: pairs with `is_straggler`.
        self.missed.fetch_max(round, Ordering::SeqCst);
    }
}
