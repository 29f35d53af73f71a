//! The words of a worker's clocks in an open area: how many it has published, and a number that it tells with each.
//! Written over bare words, so that the models run it.
use super::words::{SlotRing, observe, publish};
use crate::primitive::AtomicU64;

/// The places of a worker's clocks among the words by which it tells others how far it is.
///
/// A worker publishes clocks 1, 2, 3 and so on, each with a number. The others read the number of a clock that all have
/// read: the lowest of those that each has published as read. Numbers are kept in places that are used again. None is
/// written while its last number may be read, if the worker publishes a clock only when all have read enough
/// ([`SlotRing::needed`]).
///
/// ```
/// # use hectare_dsm::{AreaSpec, ClockWords, Job, SlotRing};
/// # let job = Job::embedded()?;
/// # let mut worker = job.worker()?;
/// let clocks = ClockWords::new(0, SlotRing::new(4));
/// let words = worker.create::<u64>(AreaSpec::new("words").copies(0), clocks.end())?.open(&worker)?;
/// let (area, worker) = (words.area(), &worker);
/// clocks.set(&area.cells(worker)?, 1, false, 70);
/// assert_eq!(clocks.get(&area.cells(worker)?), (1, false));
/// assert_eq!(clocks.told(&area.cells(worker)?, 1), 70);
/// # Ok::<(), hectare_dsm::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ClockWords {
    first: usize,
    places: u64,
}

impl ClockWords {
    /// Places for a worker whose clocks go through `ring`. Element `first` is the first of the words.
    pub const fn new(first: usize, ring: SlotRing) -> ClockWords {
        // Let S be the slots of the ring. Somebody who has read clock c itself asks for the number of a clock no older
        // than c - S, for all had read that when c was published. Meanwhile the worker publishes nothing newer than
        // c + S. So the numbers of 2 S + 1 clocks are in use at once.
        ClockWords { first, places: 2 * ring.slots() as u64 + 1 }
    }

    /// The same with another count of places for numbers.
    #[cfg(all(test, loom))]
    pub(crate) const fn with_places(self, places: u64) -> ClockWords {
        ClockWords { places, ..self }
    }

    /// The first element behind the words.
    pub const fn end(self) -> usize {
        self.first + 1 + self.places as usize
    }

    fn place(self, clock: u64) -> usize {
        self.first + 1 + (clock % self.places) as usize
    }

    /// Publishes a clock with its number.
    pub(crate) fn set_words<'w>(
        self,
        word: impl Fn(usize) -> &'w AtomicU64,
        clock: u64,
        is_last: bool,
        number: u64,
    ) {
        self.tell(&word, clock, number);
        // Last: who sees the clock sees its number.
        self.advance(&word, clock, is_last);
    }

    /// Writes the number of a clock.
    pub(crate) fn tell<'w>(self, word: impl Fn(usize) -> &'w AtomicU64, clock: u64, number: u64) {
        publish(word(self.place(clock)), number);
    }

    /// Writes the clock.
    pub(crate) fn advance<'w>(self, word: impl Fn(usize) -> &'w AtomicU64, clock: u64, is_last: bool) {
        publish(word(self.first), clock << 1 | u64::from(is_last));
    }

    /// The last clock that was published, and whether no more come.
    pub(crate) fn get_words<'w>(self, word: impl Fn(usize) -> &'w AtomicU64) -> (u64, bool) {
        let seen = observe(word(self.first));
        (seen >> 1, seen & 1 == 1)
    }

    /// The number of a clock, one of those that [`ClockWords`] speaks of; 0 for clock 0.
    pub(crate) fn told_words<'w>(self, word: impl Fn(usize) -> &'w AtomicU64, clock: u64) -> u64 {
        match clock {
            0 => 0,
            _ => observe(word(self.place(clock))),
        }
    }
}
