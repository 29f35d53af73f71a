//! The claim on a chunk: free, claimed by a worker, or done, for one round, in one word.
use crate::primitive::{AtomicU64, Ordering, fault_point};

/// A decoded claim word: `round << 24 | rank << 2 | state`, with the low 40 bits of the round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Nobody works on the chunk.
    Free,
    /// A worker copies it.
    Claimed(u32),
    /// It is copied, or its area was abandoned.
    Done,
    /// The word belongs to another round.
    Stale,
}

const ROUND: u32 = 24;

fn tag(round: u64) -> u64 {
    round << ROUND
}

pub(crate) fn free(round: u64) -> u64 {
    tag(round)
}

pub(crate) fn claimed(round: u64, rank: u32) -> u64 {
    tag(round) | u64::from(rank) << 2 | 1
}

fn done(round: u64) -> u64 {
    tag(round) | 2
}

pub(crate) fn decode(word: u64, round: u64) -> Claim {
    if word >> ROUND != tag(round) >> ROUND {
        return Claim::Stale;
    }
    match word & 3 {
        0 => Claim::Free,
        1 => Claim::Claimed((word >> 2 & 0x3f_ffff) as u32),
        _ => Claim::Done,
    }
}

pub(crate) fn read(word: &AtomicU64, round: u64) -> Claim {
    // Acquire: pairs with the release in `finish`, so that who sees the chunk done sees its bytes.
    decode(word.load(Ordering::Acquire), round)
}

/// Claims a free chunk.
pub(crate) fn take(word: &AtomicU64, round: u64, me: u32) -> bool {
    let ok =
        word.compare_exchange(free(round), claimed(round, me), Ordering::AcqRel, Ordering::Relaxed).is_ok();
    fault_point();
    ok
}

/// Takes a chunk from a worker that is dead.
pub(crate) fn inherit(word: &AtomicU64, round: u64, dead: u32, me: u32) -> bool {
    let from = claimed(round, dead);
    let ok = word.compare_exchange(from, claimed(round, me), Ordering::AcqRel, Ordering::Relaxed).is_ok();
    fault_point();
    ok
}

/// Marks a chunk that `me` claimed as done. Fails if it was taken away (its area was abandoned).
pub(crate) fn finish(word: &AtomicU64, round: u64, me: u32) -> bool {
    fault_point();
    // Release: the copied bytes come before; pairs with the acquire in `read`.
    word.compare_exchange(claimed(round, me), done(round), Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Marks a chunk as done whatever it is: its area was abandoned for this round.
pub(crate) fn abandon(word: &AtomicU64, round: u64) {
    word.store(done(round), Ordering::Release);
}
