//! The two-level bitmap of dirty lines, as its only writer, the owner, marks it.
use crate::segment::layout::Mark;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The owner's hand on an area's log.
///
/// Plain loads and stores: nobody else writes the words of the log while the owner is outside a round, and rounds
/// are ordered by its arrival. Only the mark in `dirty` shares its word with other areas; it is set once per
/// publication.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log<'s> {
    pub(crate) level0: &'s [AtomicU64],
    pub(crate) level1: &'s [AtomicU64],
    pub(crate) dirty: Mark<'s>,
}

/// The bits `low..=high` of a word.
#[inline]
fn mask(low: usize, high: usize) -> u64 {
    (u64::MAX >> (63 - high)) & (u64::MAX << low)
}

/// The lower level, to ask for single lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines<'s>(&'s [AtomicU64]);

impl Lines<'_> {
    /// Whether line `line` is marked. The hot path of a row.
    ///
    /// # Safety
    /// The area has a log, and it has the line.
    #[inline(always)]
    pub(crate) unsafe fn has(self, line: usize) -> bool {
        // SAFETY: the log has a bit for every line.
        let word = unsafe { self.0.get_unchecked(line / 64) };
        word.load(Ordering::Relaxed) >> (line % 64) & 1 != 0
    }
}

impl<'s> Log<'s> {
    pub(crate) fn lines(&self) -> Lines<'s> {
        Lines(self.level0)
    }

    /// Marks lines `lines.start..lines.end`, which the area has. One compare where they are marked already.
    #[inline]
    pub(crate) fn mark(&self, lines: Range<usize>) {
        if lines.start >= lines.end {
            return;
        }
        if self.level0.is_empty() {
            self.touch();
            return;
        }
        let (first, last) = (lines.start / 64, (lines.end - 1) / 64);
        if first == last {
            self.mark_word(first, mask(lines.start % 64, (lines.end - 1) % 64));
        } else {
            self.mark_words(first, last, lines);
        }
    }

    /// [`Log::mark`], out of the way of a loop that seldom needs it.
    #[cold]
    #[inline(never)]
    pub(crate) fn mark_cold(&self, first: usize, last: usize) {
        self.mark(first..last + 1);
    }

    /// Marks one line, which the area has, without a call.
    #[inline(always)]
    pub(crate) fn mark_line(&self, line: usize) {
        let Some(word) = self.level0.get(line / 64) else { return self.touch() };
        let (old, bit) = (word.load(Ordering::Relaxed), 1 << (line % 64));
        if old & bit != 0 {
            // Not written again: the word may lie in the cache of an owner before this one.
            return;
        }
        word.store(old | bit, Ordering::Relaxed);
        if old == 0 {
            // Marked together with the first line of the word.
            let upper = &self.level1[line / 4096];
            upper.store(upper.load(Ordering::Relaxed) | 1 << (line / 64 % 64), Ordering::Relaxed);
            self.touch();
        }
    }

    /// Marks lines `first..=last`, which the area has: for the short runs of a row, inline but for the first mark in a
    /// word, of which there is one in 64 lines.
    #[inline(always)]
    pub(crate) fn mark_row(&self, first: usize, last: usize) {
        if let Some(word) = self.level0.get(first / 64)
            && last / 64 == first / 64
        {
            let bits = (u64::MAX >> (63 - (last - first))) << (first % 64);
            let old = word.load(Ordering::Relaxed);
            if old & bits == bits {
                return;
            }
            // A word with a mark has its bit in the upper level, and the area is known to be dirty.
            if old != 0 {
                return word.store(old | bits, Ordering::Relaxed);
            }
        }
        self.mark_cold(first, last);
    }

    #[inline]
    fn mark_word(&self, word: usize, bits: u64) {
        let slot = &self.level0[word];
        let old = slot.load(Ordering::Relaxed);
        if old & bits != bits {
            slot.store(old | bits, Ordering::Relaxed);
            if old == 0 {
                let upper = &self.level1[word / 64];
                upper.store(upper.load(Ordering::Relaxed) | 1 << (word % 64), Ordering::Relaxed);
                self.touch();
            }
        }
    }

    fn mark_words(&self, first: usize, last: usize, lines: Range<usize>) {
        self.mark_word(first, mask(lines.start % 64, 63));
        for word in first + 1..last {
            self.level0[word].store(u64::MAX, Ordering::Relaxed);
        }
        if last > first + 1 {
            self.mark_upper(first + 1, last - 1);
        }
        self.mark_word(last, mask(0, (lines.end - 1) % 64));
    }

    /// Marks the upper bits of words `first..=last`.
    fn mark_upper(&self, first: usize, last: usize) {
        for upper in first / 64..=last / 64 {
            let low = if upper == first / 64 { first % 64 } else { 0 };
            let high = if upper == last / 64 { last % 64 } else { 63 };
            let word = &self.level1[upper];
            word.store(word.load(Ordering::Relaxed) | mask(low, high), Ordering::Relaxed);
        }
        self.touch();
    }

    /// Takes back the marks of a word of the lower level but those that `which` returns, of those that it is called with.
    pub(crate) fn keep(&self, word: usize, which: impl FnOnce(u64) -> u64) {
        let old = self.level0[word].load(Ordering::Relaxed);
        let kept = old & which(old);
        self.level0[word].store(kept, Ordering::Relaxed);
        if kept == 0 {
            let upper = &self.level1[word / 64];
            upper.store(upper.load(Ordering::Relaxed) & !(1 << (word % 64)), Ordering::Relaxed);
        }
    }

    /// Marks the area as having something to publish.
    #[inline]
    pub(crate) fn touch(&self) {
        self.dirty.set();
    }

    /// Whether line `line` is marked.
    pub(crate) fn is_marked(&self, line: usize) -> bool {
        self.level0[line / 64].load(Ordering::Relaxed) >> (line % 64) & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Marks lines of a log, by one of its means, so that at least lines `start..end` are marked.
    type Means = fn(&Log<'_>, usize, usize);
    const MEANS: [(&str, Means); 4] = [
        ("mark", |log, start, end| log.mark(start..end)),
        ("mark_line", |log, start, end| (start..end).for_each(|line| log.mark_line(line))),
        ("mark_row", |log, start, end| log.mark_row(start, end - 1)),
        ("mark_cold", |log, start, end| log.mark_cold(start, end - 1)),
    ];

    proptest! {
        #[test]
        fn every_means_marks_exactly_the_ranges(
            lines in 1usize..5000,
            marks in prop::collection::vec((0usize..5000, 0usize..4500, 0usize..4), 1..12),
            short in prop::collection::vec((0usize..5000, 0usize..200, 0usize..4), 1..40),
        ) {
            let words = lines.div_ceil(64);
            let level0: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
            let level1: Vec<AtomicU64> = (0..words.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
            let dirty = AtomicU64::new(0);
            let log = Log { level0: &level0, level1: &level1, dirty: Mark::new(&dirty, 65) };
            let mut model = vec![false; lines];
            for (start, len, means) in marks.into_iter().chain(short) {
                let range = start.min(lines)..(start + len).min(lines);
                if means == 0 || !range.is_empty() {
                    MEANS[means].1(&log, range.start, range.end);
                }
                model[range].fill(true);
                for (line, marked) in model.iter().enumerate() {
                    prop_assert_eq!(log.is_marked(line), *marked, "line {} by {}", line, MEANS[means].0);
                }
            }
            for (index, word) in level0.iter().enumerate() {
                let upper = level1[index / 64].load(Ordering::Relaxed) >> (index % 64) & 1 != 0;
                prop_assert_eq!(upper, word.load(Ordering::Relaxed) != 0);
            }
            prop_assert_eq!(dirty.load(Ordering::Relaxed), u64::from(model.contains(&true)) << 1);
        }
    }
}
