//! Which elements of an array were touched: a bit for each.
use std::ops::Range;

/// Elements of a word.
const WORD: usize = u64::BITS as usize;

/// A set of elements of an array.
#[derive(Debug, Default)]
pub(super) struct Touched {
    words: Vec<u64>,
}

impl Touched {
    /// Nothing of an array of this length.
    pub(super) fn reset(&mut self, len: usize) {
        self.words.clear();
        self.words.resize(len.div_ceil(WORD), 0);
    }

    /// Adds an element.
    ///
    /// # Panics
    /// If it is far outside.
    #[inline(always)]
    pub(super) fn add(&mut self, at: usize) {
        self.words[at / WORD] |= 1 << (at % WORD);
    }

    /// Adds elements, a word at a time.
    #[inline]
    pub(super) fn add_all(&mut self, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let end = range.end.min((at / WORD + 1) * WORD);
            self.words[at / WORD] |= (u64::MAX >> (WORD - (end - at))) << (at % WORD);
            at = end;
        }
    }

    /// Calls `act` with each element, ascending, and forgets them.
    #[inline]
    pub(super) fn drain(&mut self, mut act: impl FnMut(usize)) {
        for (number, word) in self.words.iter_mut().enumerate() {
            let mut rest = std::mem::take(word);
            while rest != 0 {
                act(number * WORD + rest.trailing_zeros() as usize);
                rest &= rest - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_added_comes_out_once_and_ascending() {
        let mut touched = Touched::default();
        touched.reset(300);
        for at in [299, 0, 64, 63, 0, 128] {
            touched.add(at);
        }
        let mut all = Vec::new();
        touched.drain(|at| all.push(at));
        assert_eq!(all, [0, 63, 64, 128, 299]);
        touched.drain(|at| panic!("{at} was forgotten"));
    }

    #[test]
    fn ranges_are_as_their_elements() {
        for (start, end) in [(0, 0), (0, 1), (3, 64), (0, 64), (63, 65), (5, 200), (64, 192), (130, 131)] {
            let mut touched = Touched::default();
            touched.reset(200);
            touched.add_all(start..end);
            let mut all = Vec::new();
            touched.drain(|at| all.push(at));
            assert_eq!(all, (start..end).collect::<Vec<_>>());
        }
    }
}
