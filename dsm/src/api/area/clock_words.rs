//! The words of a worker's clocks, in the cells of an open area.
use super::cells::Cells;
use crate::protocol::clock_words::ClockWords;

impl ClockWords {
    /// Publishes clock `clock` with its number, after all that this worker wrote before; `is_last` says that no more come.
    ///
    /// # Panics
    /// If there are no such cells.
    pub fn set(self, words: &Cells<'_, u64>, clock: u64, is_last: bool, number: u64) {
        self.set_words(|index| words.word(index), clock, is_last, number);
    }

    /// The last clock that was published, and whether no more come. What the worker wrote before it published that is seen
    /// from here on.
    ///
    /// # Panics
    /// If there are no such cells.
    pub fn get(self, words: &Cells<'_, u64>) -> (u64, bool) {
        self.get_words(|index| words.word(index))
    }

    /// The number of a clock, of one that all have read, or of a newer one; 0 for clock 0.
    ///
    /// # Panics
    /// If there are no such cells.
    pub fn told(self, words: &Cells<'_, u64>, clock: u64) -> u64 {
        self.told_words(|index| words.word(index), clock)
    }
}
