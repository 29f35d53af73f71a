//! Which reader copy may be written and which may be read: stragglers' and observers' pins.
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// States of a reader copy.
pub(crate) mod copy_state {
    /// Holds a version that may be read.
    pub(crate) const VALID: u32 = 0;
    /// Is being written by the round under way.
    pub(crate) const WRITING: u32 = 1;
    /// May still be written by workers that stalled in the round that `CopyRecord::label` names.
    pub(crate) const QUARANTINED: u32 = 2;
    /// Has no memory yet: only what is sent to other hosts needs it.
    pub(crate) const ABSENT: u32 = 3;
}

/// Marks a copy as being written, unless `is_pinned` finds that an observer holds it. True if it is marked.
pub(crate) fn mark(state: &AtomicU32, is_pinned: impl FnOnce() -> bool) -> bool {
    // SeqCst: an observer writes its pin first and reads this state second; this writes the state first and
    // reads the pins second (`is_at`). One of the two sees the other.
    state.store(copy_state::WRITING, Ordering::SeqCst);
    if !is_pinned() {
        return true;
    }
    unmark(state);
    false
}

/// Makes a copy that was marked readable again, with what was written into it.
pub(crate) fn unmark(state: &AtomicU32) {
    // Release: an observer that finds the copy valid finds its bytes; pairs with the load in `pin`.
    state.store(copy_state::VALID, Ordering::Release);
}

/// Pins the copy that `word` stands for and whose state is `state`. False, and no pin, if a round is writing it.
/// `is_current` tells whether the copy is the newest one still.
pub(crate) fn pin(pin: &AtomicU64, word: u64, state: &AtomicU32, is_current: impl FnOnce() -> bool) -> bool {
    // SeqCst, twice: pairs with `mark`, and with `unmark`, of which it acquires the copy's bytes.
    pin.store(word, Ordering::SeqCst);
    if state.load(Ordering::SeqCst) == copy_state::VALID && is_current() {
        return true;
    }
    unpin(pin);
    false
}

/// Takes a pin away.
pub(crate) fn unpin(pin: &AtomicU64) {
    // Release: whoever finds the pin gone (`is_at`) writes the copy after the observer has read it.
    pin.store(0, Ordering::Release);
}

/// Whether a pin is at the copy that `word` stands for.
pub(crate) fn is_at(pin: &AtomicU64, word: u64) -> bool {
    // SeqCst: pairs with the store in `pin`. Acquire: with the one in `unpin`.
    pin.load(Ordering::SeqCst) == word
}

/// The copy that a worker which stood at `round` reads when the newest is too new for it: the one published
/// last, at or before `round`. `published` has the copies' rounds, no two of them equal.
pub(crate) fn newest_at(round: u64, published: impl Iterator<Item = u64>) -> usize {
    published
        .enumerate()
        .filter(|(_, at)| *at <= round)
        .max_by_key(|(_, at)| *at)
        .map_or(0, |(index, _)| index)
}
