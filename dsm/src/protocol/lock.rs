//! The lock of an area for a round, against claims and against owners that take back what they have lent: these change ownership
//! first and look at the lock second, a planner locks first and looks at ownership second, so one of the two sees the other.
use super::round::{Rounds, Work};
use super::word::{Phase, RoundWord};
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point};
use crate::protocol::ownership;

/// Locks the area for `round` and returns who owns it. The planner uses the area only if the owner that it
/// sees takes part.
pub(crate) fn lock_for_round(lock: &AtomicU64, owner: &AtomicU64, round: u64) -> ownership::OwnershipWord {
    // SeqCst, twice: pairs with `seize` or `recall`, and `locked_by`.
    lock.store(round, Ordering::SeqCst);
    fault_point();
    ownership::OwnershipWord(owner.load(Ordering::SeqCst))
}

/// The round word, if the round that it names may be copying the area. Called after [`ownership::seize`] or
/// [`ownership::recall`]; or by the agent, which asks whether the round that has published it is past.
pub(crate) fn locked_by(lock: &AtomicU64, round: &AtomicU64) -> Option<RoundWord> {
    // SeqCst: pairs with `lock_for_round`. A lock of an older round is stale.
    let locked = lock.load(Ordering::SeqCst);
    // After the lock: who locked had shifted the word to Plan before, so whoever sees the lock sees that.
    let seen = RoundWord(round.load(Ordering::Acquire));
    (seen.round() <= locked && !matches!(seen.phase(), Phase::Idle | Phase::Open)).then_some(seen)
}

/// Takes the area over from a holder that is gone: what the word said before. `may_seize` refuses while the holder is there.
pub(crate) fn seize_from<E>(
    owner: &AtomicU64,
    me: u32,
    mut may_seize: impl FnMut(ownership::OwnershipWord) -> Result<(), E>,
) -> Result<ownership::OwnershipWord, E> {
    loop {
        let seen = ownership::load_to_claim(owner);
        may_seize(seen)?;
        if ownership::seize(owner, seen, me) {
            return Ok(seen);
        }
    }
}

/// Waits until no round is under way that planned the area before `me` seized it, or took it back.
pub(crate) fn wait_past(lock: &AtomicU64, rounds: &Rounds<'_>, me: u32, work: &impl Work) {
    while let Some(seen) = locked_by(lock, rounds.word) {
        rounds.drive_past(me, seen.round(), work);
    }
}

/// Of one who has seized an area that may have views, since `ever` says that there were some: the round whose end those who
/// hold them have to have come to before it is written. See `Rounds::late_readers`.
pub(crate) fn views_until(ever: &AtomicU32, rounds: &Rounds<'_>) -> Option<u64> {
    // SeqCst, after the change of the word: as in `take_back`.
    ownership::may_have_views(ever).then(|| rounds.load_total().round())
}

/// Takes back, by `change`, an area that `me` has lent or opened in `epoch`. The round whose end its readers have to have
/// come to: see `Rounds::late_readers`. `None` if it is not this worker's any more. A round may be copying what was lent:
/// [`wait_past`].
pub(crate) fn take_back(
    owner: &AtomicU64,
    rounds: &Rounds<'_>,
    (me, epoch): (u32, u64),
    change: impl FnOnce(&AtomicU64, u32, u64) -> bool,
) -> Option<u64> {
    // SeqCst, after the change of the word: whoever views the area after this passed the word that we see. Pairs with the
    // store of `arrived` and the load in `ownership::load_to_read`.
    change(owner, me, epoch).then(|| rounds.load_total().round())
}
