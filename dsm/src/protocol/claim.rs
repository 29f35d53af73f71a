//! The claim on a chunk: free, claimed by a worker, or done, for one round, in one word.
use crate::primitive::{AtomicU64, Ordering, fault_point, fence};

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

/// Lets worker `me` copy what is free, and what is claimed for it, of `chunks`, beginning with number `start`. `piece` reads
/// what the plan says of a chunk, `copy` copies it.
///
/// The piece is read before the claim is made or looked at again: a claim that holds says that it was this round's plan, also
/// for a worker that stood still meanwhile and was left behind (`StallPolicy::Pin`).
pub(crate) fn copy_all<C, P>(
    chunks: &[C],
    claim_of: impl Fn(&C) -> &AtomicU64,
    (start, round, me): (usize, u64, u32),
    piece: impl Fn(&C) -> P,
    mut copy: impl FnMut(&C, &P),
) {
    let (before, from) = chunks.split_at(start);
    for chunk in from.iter().chain(before) {
        let word = claim_of(chunk);
        let (piece, mine) = match read(word, round) {
            Claim::Free => (piece(chunk), take(word, round, me)),
            // Planned for this worker, or inherited.
            Claim::Claimed(rank) if rank == me => {
                let piece = piece(chunk);
                // Acquire: the second look comes after the loads of the plan; pairs with the fence in `begin_plan`.
                fence(Ordering::Acquire);
                (piece, read(word, round) == Claim::Claimed(me))
            }
            _ => continue,
        };
        if mine {
            fault_point();
            copy(chunk, &piece);
            finish(word, round, me);
        }
    }
}

/// The chunks that others have claimed, and who.
pub(crate) fn of_others<C>(
    chunks: &[C],
    claim_of: impl Fn(&C) -> &AtomicU64,
    round: u64,
    me: u32,
) -> impl Iterator<Item = (&C, u32)> {
    chunks.iter().filter_map(move |chunk| match read(claim_of(chunk), round) {
        Claim::Claimed(rank) if rank != me => Some((chunk, rank)),
        _ => None,
    })
}

/// Claims a free chunk.
pub(crate) fn take(word: &AtomicU64, round: u64, me: u32) -> bool {
    // Release: pairs with the acquire in `abandon`; what the plan says was read before. Acquire: pairs with nothing that
    // `read` has not acquired, and costs nothing.
    let ok =
        word.compare_exchange(free(round), claimed(round, me), Ordering::AcqRel, Ordering::Relaxed).is_ok();
    fault_point();
    ok
}

/// Takes a chunk from a worker that is dead.
pub(crate) fn inherit(word: &AtomicU64, round: u64, dead: u32, me: u32) -> bool {
    let from = claimed(round, dead);
    // Acquire: the dead one's bytes come first; pairs with the release in `take`, and the kernel's word of its death.
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
    // Release: pairs with the acquire in `read`. Acquire, and a swap: pairs with the release in `take`, so that who took
    // the chunk before has read the plan before the next one is written.
    word.swap(done(round), Ordering::AcqRel);
}

/// To be called before a plan is written, over the last one.
pub(crate) fn begin_plan() {
    // Release: pairs with the acquire fence in `copy_all`. Who sees anything of this plan sees that claims of earlier
    // rounds do not hold.
    fence(Ordering::Release);
}
