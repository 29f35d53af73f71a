//! The lock of an area for a round, against claims: a claimer changes ownership first and looks at the lock
//! second, a planner locks first and looks at ownership second, so one of the two sees the other.
use super::word::{Phase, Word};
use crate::area::ownership;
use crate::primitive::{AtomicU64, Ordering, fault_point};

/// Locks the area for `round` and returns who owns it. The planner uses the area only if the owner that it
/// sees takes part.
pub(crate) fn lock_for_round(lock: &AtomicU64, owner: &AtomicU64, round: u64) -> ownership::Word {
    // SeqCst, twice: pairs with `seize` and `locked_by`.
    lock.store(round, Ordering::SeqCst);
    fault_point();
    ownership::Word(owner.load(Ordering::SeqCst))
}

/// The round word, if the round that it names may be copying the area. Called by a claimer after
/// [`ownership::seize`].
pub(crate) fn locked_by(lock: &AtomicU64, round: &AtomicU64) -> Option<Word> {
    // SeqCst: pairs with `lock_for_round`. A lock of an older round is stale.
    let locked = lock.load(Ordering::SeqCst);
    // After the lock: who locked had shifted the word to Plan before, so whoever sees the lock sees that.
    let seen = Word(round.load(Ordering::Acquire));
    (seen.round() <= locked && !matches!(seen.phase(), Phase::Idle | Phase::Open)).then_some(seen)
}
