//! Publications that were asked for and are postponed because every copy is pinned: rounds try them again.
//!
//! Whoever drops a pin tells nobody: it may be an observer in another process, and reading owes nothing to rounds. So a round falls due
//! a while after one that has postponed something, and later the more of them there were in a row.
use crate::segment::layout::{AreaSlot, Mark, SyncWords};
use std::sync::atomic::Ordering;

/// The time to the first round that tries again; each further one comes after twice the time.
const FIRST_NS: u64 = 1_000_000;
/// So often the time doubles: to 16 ms.
const DOUBLINGS: u32 = 4;

/// Whether the area, which is postponed, is to be tried again before it falls due by itself. One without an interval was asked for,
/// maybe by way of another of its group, whose mark is cleared if it is clean.
pub(super) fn is_asked_for(slot: &AreaSlot, forced: Mark<'_>) -> bool {
    if slot.about.interval_ns.load(Ordering::Relaxed) == 0 {
        forced.set();
    }
    forced.is_set()
}

/// Notes whether this round has `postponed` what is to be tried again, after the areas were selected.
pub(super) fn note(sync: &SyncWords, postponed: bool, now: impl FnOnce() -> u64) {
    // Relaxed: the actor's own word.
    let rounds = &sync.acting.postponed;
    let before = rounds.load(Ordering::Relaxed);
    if postponed {
        rounds.store(before.saturating_add(1), Ordering::Relaxed);
        sync.due().try_again(now().saturating_add(delay_ns(before)));
    } else if before != 0 {
        rounds.store(0, Ordering::Relaxed);
    }
}

/// The time to the next round after so many have postponed something.
fn delay_ns(before: u32) -> u64 {
    FIRST_NS << before.min(DOUBLINGS)
}

#[cfg(test)]
mod tests {
    #[test]
    fn rounds_try_again_less_and_less_often() {
        let delays = [0, 1, 2, 3, 4, 5, u32::MAX].map(super::delay_ns);
        assert_eq!(delays, [1, 2, 4, 8, 16, 16, 16].map(|ms| ms * 1_000_000));
    }
}
