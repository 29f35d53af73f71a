//! The counters of a job. Events of every round are counted in a line of the worker that does it; failures,
//! which are rare, in words that all share.
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts of one worker, on cache lines of its own.
///
/// Written relaxed, by a load and a store, by the thread that holds the rank; in the last place of the table by
/// whoever holds the membership mutex. The next worker of a rank counts on from where the last one was.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Tally {
    /// Rounds that were completed with this worker in them.
    pub(crate) rounds: AtomicU64,
    /// Rounds that this worker waited in until they were abandoned.
    pub(crate) abandoned: AtomicU64,
    /// Rounds that it planned.
    pub(crate) planned: AtomicU64,
    /// Versions that it published, of its own areas and of others'.
    pub(crate) published: AtomicU64,
    /// Chunks that it copied.
    pub(crate) chunks: AtomicU64,
    /// Bytes that it copied into reader copies.
    pub(crate) copied_bytes: AtomicU64,
}

/// Adds to a word of which the caller is the only writer.
pub(crate) fn add(word: &AtomicU64, count: u64) {
    // Relaxed: a reader wants a number that was right a moment ago, and nothing else hangs on it.
    word.store(word.load(Ordering::Relaxed).wrapping_add(count), Ordering::Relaxed);
}

/// Failures in a job and the answers to them, counted by whoever sees them.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) abandoned: AtomicU64,
    /// Publications postponed because every reader copy was pinned.
    pub(crate) postponed_pinned: AtomicU64,
    /// Because another area of the group could not be published.
    pub(crate) postponed_group: AtomicU64,
    /// Because the owner was not in the round.
    pub(crate) postponed_owner: AtomicU64,
    /// Because the owner had not looked the area through.
    pub(crate) postponed_unscanned: AtomicU64,
    /// Chunks taken over from the dead.
    pub(crate) takeovers: AtomicU64,
    /// Rounds taken over from a dead actor.
    pub(crate) round_takeovers: AtomicU64,
    /// Rounds taken over from an actor that lives and stands still.
    pub(crate) replaced_actors: AtomicU64,
    pub(crate) deaths: AtomicU64,
    pub(crate) claims: AtomicU64,
    pub(crate) kills: AtomicU64,
    pub(crate) pinned_copies: AtomicU64,
    pub(crate) unlogged_lines: AtomicU64,
    pub(crate) refused_workers: AtomicU64,
    pub(crate) refused_observers: AtomicU64,
    pub(crate) refused_pins: AtomicU64,
    pub(crate) refused_areas: AtomicU64,
    pub(crate) refused_claims: AtomicU64,
    pub(crate) refused_handovers: AtomicU64,
}

/// Counts an event that several may count at once.
pub(crate) fn count(word: &AtomicU64, events: u64) {
    // Relaxed: see `add`.
    word.fetch_add(events, Ordering::Relaxed);
}
