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

    /// Calls `act` with each element below `end`, ascending, and forgets these.
    #[inline]
    pub(super) fn drain(&mut self, end: usize, mut act: impl FnMut(usize)) {
        for (number, word) in self.words.iter_mut().take(end.div_ceil(WORD)).enumerate() {
            let below = end - number * WORD;
            let mask = if below < WORD { (1 << below) - 1 } else { u64::MAX };
            let mut rest = *word & mask;
            *word &= !mask;
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
        touched.drain(300, |at| all.push(at));
        assert_eq!(all, [0, 63, 64, 128, 299]);
        touched.drain(300, |at| panic!("{at} was forgotten"));
    }

    #[test]
    fn what_is_behind_the_end_stays() {
        let all = [0, 63, 64, 65, 128, 299];
        for end in [0, 1, 63, 64, 65, 66, 129, 299, 300] {
            let mut touched = Touched::default();
            touched.reset(300);
            all.iter().for_each(|at| touched.add(*at));
            let (mut before, mut after) = (Vec::new(), Vec::new());
            touched.drain(end, |at| before.push(at));
            touched.drain(300, |at| after.push(at));
            assert!(before.iter().all(|at| *at < end) && after.iter().all(|at| *at >= end), "{end}");
            assert_eq!([before, after].concat(), all);
        }
    }

    #[test]
    fn ranges_are_as_their_elements() {
        for (start, end) in [(0, 0), (0, 1), (3, 64), (0, 64), (63, 65), (5, 200), (64, 192), (130, 131)] {
            let mut touched = Touched::default();
            touched.reset(200);
            touched.add_all(start..end);
            let mut all = Vec::new();
            touched.drain(200, |at| all.push(at));
            assert_eq!(all, (start..end).collect::<Vec<_>>());
        }
    }
}
