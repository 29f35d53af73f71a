//! The state of a slot in the table of areas, and whether what was read of a slot belongs to one area. Written over bare
//! words, so that the models run it.
//!
//! The generation beside the state rises before the slot is another area's. So whoever finds the same live state before
//! and after has read what belongs to one area: the slot is a sequence lock, and its state the sequence.
use crate::primitive::{AtomicU64, Ordering, fence};

pub(crate) const FREE: u64 = 0;
/// Taken by a creator, which `AboutLines::creator` names, and which fills it with memory.
pub(crate) const CREATING: u64 = 1;
pub(crate) const LIVE: u64 = 2;
pub(crate) const DELETED: u64 = 3;
const STATE: u64 = 0b111;

pub(crate) const fn is_live(state: u64) -> bool {
    state & STATE == LIVE
}

/// One area of a job on this host: a place in the table together with the generation that tells a later area in the same
/// slot apart. It means nothing on another host, nor in another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AreaId {
    pub(crate) index: u32,
    pub(crate) generation: u64,
}

impl AreaId {
    /// The area in slot `index`, if one lives there.
    pub(crate) fn of(index: usize, state: &AtomicU64) -> Option<AreaId> {
        // SeqCst, hence acquire: pairs with the release of `set` after all that describes the area was written.
        let state = state.load(Ordering::SeqCst);
        is_live(state).then_some(AreaId { index: index as u32, generation: state >> 3 })
    }

    #[inline]
    pub(crate) fn lives_in(self, state: &AtomicU64) -> bool {
        // SeqCst: pairs with `delete`.
        state.load(Ordering::SeqCst) == self.live_state()
    }

    const fn live_state(self) -> u64 {
        self.generation << 3 | LIVE
    }

    /// Whether what was just read of the slot, after [`AreaId::of`], belongs to this area.
    pub(crate) fn is_unchanged(self, state: &AtomicU64) -> bool {
        // Acquire: pairs with the release fence in `begin`; who has read something of a later area finds the state of that
        // one or a later.
        fence(Ordering::Acquire);
        state.load(Ordering::Relaxed) == self.live_state()
    }

    /// Deletes the area.
    pub(crate) fn delete(self, state: &AtomicU64) {
        // SeqCst, before the round is looked at, and before `reclaim` looks at pins and seats: whoever still
        // finds the area live stood at a synchronization point no later than the round that the word names
        // after this, or has its pin seen. Paired with the loads in `lives_in`.
        state.store(self.generation << 3 | DELETED, Ordering::SeqCst);
    }
}

/// To be called before anything of another area is written into a slot that was freed.
pub(crate) fn begin() {
    // Release: whoever reads what is written from here on, and then the state, finds that the slot was freed;
    // pairs with the acquire fence of `AreaId::is_unchanged`.
    fence(Ordering::Release);
}

/// The state without the generation.
pub(crate) fn get(state: &AtomicU64) -> u64 {
    // Acquire: pairs with the release in `set`, and with that of a slot which becomes free.
    state.load(Ordering::Acquire) & STATE
}

/// Changes the state, and not the generation; under the directory mutex, or by who creates the area.
pub(crate) fn set(state: &AtomicU64, to: u64) {
    let generation = state.load(Ordering::Relaxed) >> 3;
    // Release: what was written into the slot comes before; pairs with the acquire of lookups.
    state.store(generation << 3 | to, Ordering::Release);
}

/// Frees the slot of a deleted area: its generation rises.
pub(crate) fn free(state: &AtomicU64) {
    let generation = (state.load(Ordering::Relaxed) >> 3) + 1;
    // Release: its memory was given back; pairs with the acquire in `get`. The generation rises before the slot is
    // anybody's: see `AreaId::is_unchanged`.
    state.store(generation << 3 | FREE, Ordering::Release);
}
