//! Marks for rounds: a bit for each area, so that a round scans a word per 64 areas and looks at those only
//! that are marked.
use crate::primitive::{AtomicU64, Ordering};
use crate::protocol::due::DueWord;

/// The marks of 64 areas.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Marks {
    /// To be published in the next round.
    pub(crate) forced: AtomicU64,
    /// Their owners wrote something that is not published.
    pub(crate) dirty: AtomicU64,
    /// They have an interval.
    pub(crate) timed: AtomicU64,
    /// They are in a group.
    pub(crate) grouped: AtomicU64,
    /// The agent has not heard yet that they were created, deleted or published.
    pub(crate) news: AtomicU64,
    /// The agent's bell rings when they are published, even if the agent has chosen only some areas.
    pub(crate) chosen: AtomicU64,
    /// Before this time (monotonic nanoseconds), none of those that have an interval is due. The first may be due later.
    pub(crate) due_ns: AtomicU64,
}

impl Marks {
    /// The words that say when one of these areas falls due.
    pub(crate) fn due_word(&self) -> DueWord<'_> {
        DueWord { timed: &self.timed, due_ns: &self.due_ns }
    }
}

/// One area's bit in a word of [`Marks`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark<'s> {
    word: &'s AtomicU64,
    bit: u64,
}

impl<'s> Mark<'s> {
    /// The bit of area `index` in `word`.
    #[inline]
    pub(crate) fn new(word: &'s AtomicU64, index: usize) -> Mark<'s> {
        Mark { word, bit: 1 << (index % 64) }
    }

    // Relaxed, here and below: what a mark is about is ordered by arrivals and by the transitions of the round word.
    #[inline]
    pub(crate) fn is_set(self) -> bool {
        self.word.load(Ordering::Relaxed) & self.bit != 0
    }

    /// Sets the mark; writes nothing if it is set already.
    #[inline]
    pub(crate) fn set(self) {
        if !self.is_set() {
            self.word.fetch_or(self.bit, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn clear(self) {
        if self.is_set() {
            self.word.fetch_and(!self.bit, Ordering::Relaxed);
        }
    }

    /// Clears the mark; whether it was set.
    pub(crate) fn take(self) -> bool {
        self.word.fetch_and(!self.bit, Ordering::Relaxed) & self.bit != 0
    }

    /// [`Mark::set`] or [`Mark::clear`].
    pub(crate) fn put(self, set: bool) {
        if set { self.set() } else { self.clear() }
    }
}

/// The positions of the bits of a word, lowest first.
#[inline]
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (word != 0).then(|| {
            let bit = word.trailing_zeros() as usize;
            word &= word - 1;
            bit
        })
    })
}
