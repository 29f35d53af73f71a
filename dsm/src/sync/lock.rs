//! The lock of an area for a round, against claims: a claimer changes ownership first and looks at the lock
//! second, a planner locks first and looks at ownership second, so one of the two sees the other.
use super::word::{Phase, Word};
use crate::area::ownership;
use crate::primitive::{AtomicU64, Ordering, fault_point};

/// Locks the area for `round` and returns who owns it. The planner uses the area only if the owner that it
/// sees takes part.
pub(crate) fn lock_for_round(lock: &AtomicU64, owner: &AtomicU64, round: u64) -> ownership::Word {
    // SeqCst, twice: pairs with `seize` and `is_locked`.
    lock.store(round, Ordering::SeqCst);
    fault_point();
    ownership::Word(owner.load(Ordering::SeqCst))
}

/// Whether the round that `seen`, the round word, names may be copying the area. Called by a claimer after
/// [`ownership::seize`].
pub(crate) fn is_locked(lock: &AtomicU64, seen: Word) -> bool {
    // SeqCst: pairs with `lock_for_round`. A lock of an older round is stale.
    let locked = lock.load(Ordering::SeqCst);
    seen.round() <= locked && !matches!(seen.phase(), Phase::Idle | Phase::Open)
}
