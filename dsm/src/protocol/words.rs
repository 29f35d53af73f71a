//! Words of open areas by which workers tell each other how far they are, and rings of slots that are written and read
//! accordingly. Written over bare words, so that the models run it.
use crate::primitive::{AtomicU64, Ordering};

/// Reads a word; what was written before the [`publish`] that its value comes from is seen from here on.
#[inline]
pub(crate) fn observe(word: &AtomicU64) -> u64 {
    // Acquire: pairs with the release in `publish` and `ring`.
    word.load(Ordering::Acquire)
}

/// Writes a word after all that this worker wrote before.
#[inline]
pub(crate) fn publish(word: &AtomicU64, value: u64) {
    // Release: pairs with the acquire in `observe`.
    word.store(value, Ordering::Release);
}

/// Adds one to a bell, after all that this worker wrote before. Whoever sleeps on it is to be woken.
#[inline]
pub(crate) fn ring(bell: &AtomicU64) {
    // Release: pairs with the acquire in `observe`. To add, and not to store, keeps the rings of all workers in one
    // release sequence: who sees the last sees what was written before each.
    bell.fetch_add(1, Ordering::Release);
}

/// Calls `look` until it has found something. `sleep` sleeps while the bell has the value that `observe` read, which is before
/// every look: whoever makes `look` find something writes that first, then rings.
pub(crate) fn wait<C, R, E>(
    context: &mut C,
    observe: impl Fn(&mut C) -> Result<u64, E>,
    mut look: impl FnMut(&mut C) -> Result<Option<R>, E>,
    mut sleep: impl FnMut(&mut C, u64) -> Result<(), E>,
) -> Result<R, E> {
    loop {
        let seen = observe(context)?;
        if let Some(found) = look(context)? {
            return Ok(found);
        }
        sleep(context, seen)?;
    }
}

/// A ring of slots in shared memory, in which a worker puts what it has for others: one for each of its last clocks.
///
/// The worker writes a slot, then publishes the number of its clocks. The others read the slots of the clocks that they
/// see published, each once and in order, and publish how many they have read. A slot is reused when all have
/// published enough: [`SlotRing::needed`].
///
/// ```
/// let ring = hectare_dsm::SlotRing::new(4);
/// assert_eq!((ring.slot(3), ring.slot(4)), (3, 0));
/// // Clock 4 is written where clock 0 was: one clock must have been read by all.
/// assert_eq!((ring.needed(3), ring.needed(4)), (0, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRing(u64);

impl SlotRing {
    /// A ring of `slots` slots, at least one.
    pub const fn new(slots: u64) -> SlotRing {
        assert!(slots > 0);
        SlotRing(slots)
    }

    /// How many slots.
    pub const fn slots(self) -> usize {
        self.0 as usize
    }

    /// The slot of a clock, which is counted from 0.
    pub const fn slot(self, clock: u64) -> usize {
        (clock % self.0) as usize
    }

    /// How many clocks of this worker all others have to have read before it writes the slot of `clock`.
    pub const fn needed(self, clock: u64) -> u64 {
        (clock + 1).saturating_sub(self.0)
    }
}
