//! The agent's answers to all who wait for a name, in a ring, each of several words. Written over bare words, so that the
//! models run it.
//!
//! Only the agent writes. A worker that waits notes how many answers there are, and looks at those that come after. If it looks
//! too late, it misses answers that were overwritten, and asks again.
use crate::primitive::{AtomicU64, Ordering, fault_point, fence};

/// The last `PLACES` answers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Answers<const PLACES: usize, const WORDS: usize> {
    count: AtomicU64,
    places: [Place<WORDS>; PLACES],
}

/// A sequence lock: answer `n` is whole when the stamp is `2n + 2`, and written while it is `2n + 1`.
#[repr(C)]
#[derive(Debug)]
struct Place<const WORDS: usize> {
    stamp: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl<const PLACES: usize, const WORDS: usize> Answers<PLACES, WORDS> {
    /// None yet. In a segment, zeros are that.
    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        let word = |_| AtomicU64::new(0);
        let place = |at| Place { stamp: word(at), words: std::array::from_fn(word) };
        Answers { count: AtomicU64::new(0), places: std::array::from_fn(|_| place(0)) }
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        // Acquire: pairs with the release in `tell`: who counts an answer finds it whole, or a later one in its place.
        self.count.load(Ordering::Acquire)
    }

    /// Adds an answer. One that an agent began before it died is written anew.
    pub(crate) fn tell(&self, words: [u64; WORDS]) {
        // Relaxed: the agents alone write it, and the kernel told of the death of the last.
        let number = self.count.load(Ordering::Relaxed);
        let place = &self.places[number as usize % PLACES];
        place.stamp.store(2 * number + 1, Ordering::Relaxed);
        // Release: pairs with the acquire fence in `get`: who reads a word of this answer sees the stamp.
        fence(Ordering::Release);
        fault_point();
        place.words.iter().zip(words).for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        fault_point();
        // Release: pairs with the acquire in `get`.
        place.stamp.store(2 * number + 2, Ordering::Release);
        // Release: pairs with the acquire in `count`.
        self.count.store(number + 1, Ordering::Release);
    }

    /// An answer, by its number; `None` if it was written over.
    pub(crate) fn get(&self, number: u64) -> Option<[u64; WORDS]> {
        let place = &self.places[number as usize % PLACES];
        let whole = 2 * number + 2;
        // Acquire: pairs with the release at the end of `tell`.
        if place.stamp.load(Ordering::Acquire) != whole {
            return None;
        }
        let words = std::array::from_fn(|at| place.words[at].load(Ordering::Relaxed));
        // Acquire: pairs with the release fence in `tell`.
        fence(Ordering::Acquire);
        (place.stamp.load(Ordering::Relaxed) == whole).then_some(words)
    }

    /// The answers from number `since` on that are still there, with how many there are now.
    pub(crate) fn since(&self, since: u64) -> (impl Iterator<Item = [u64; WORDS]>, u64) {
        let count = self.count();
        let first = since.max(count.saturating_sub(PLACES as u64));
        ((first..count).filter_map(|number| self.get(number)), count)
    }
}

#[cfg(all(test, loom))]
impl<const PLACES: usize, const WORDS: usize> Answers<PLACES, WORDS> {
    /// Makes accesses to the count weaker.
    pub(crate) fn weaken(&self, access: crate::primitive::model::Access, from: Ordering, to: Ordering) {
        self.count.weaken(access, from, to);
    }
}
