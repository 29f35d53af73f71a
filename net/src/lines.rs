//! Which lines of an area a cut has.
use std::ops::Range;

/// Lines in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Run {
    /// The first line.
    pub first: u32,
    /// How many.
    pub count: u32,
}

/// Lines of an area, as runs in rising order. The lines have positions, counted from 0 in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    runs: Vec<Run>,
    /// The position of the first line of each run.
    starts: Vec<u64>,
    total: u64,
}

impl Lines {
    /// All `count` lines of an area; an area has at most 2^32 lines.
    #[must_use]
    pub fn whole(count: u64) -> Lines {
        let (half, count) = (1_u64 << 31, count.min(1 << 32));
        // The number of lines of a run is below 2^32.
        [(0, count.min(half)), (half, count.saturating_sub(half))]
            .into_iter()
            .filter(|&(_, count)| count > 0)
            .map(|(first, count)| Run { first: first as u32, count: count as u32 })
            .collect()
    }

    /// How many lines there are.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The lines at `positions`, as runs of at most `u16::MAX` lines.
    pub fn at(&self, positions: Range<u64>) -> impl Iterator<Item = Run> + '_ {
        let mut place = self.starts.partition_point(|&start| start <= positions.start).saturating_sub(1);
        let mut position = positions.start;
        let end = positions.end.min(self.total);
        std::iter::from_fn(move || {
            if position >= end {
                return None;
            }
            let (run, start) = (self.runs[place], self.starts[place]);
            let skipped = (position - start) as u32;
            let count = u64::from(run.count - skipped).min(end - position).min(u64::from(u16::MAX)) as u32;
            position += u64::from(count);
            if skipped + count == run.count {
                place += 1;
            }
            Some(Run { first: run.first + skipped, count })
        })
    }
}

impl FromIterator<Run> for Lines {
    /// Of runs in rising order; empty ones are left out.
    fn from_iter<I: IntoIterator<Item = Run>>(runs: I) -> Lines {
        let mut lines = Lines::default();
        for run in runs.into_iter().filter(|run| run.count > 0) {
            lines.starts.push(lines.total);
            lines.total += u64::from(run.count);
            lines.runs.push(run);
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, Run};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn positions_are_lines_in_order(gaps in prop::collection::vec((1_u32..5, 0_u32..70_000), 0..4), from in 0_u64..200_000, len in 0_u64..100_000) {
            let (mut next, mut runs) = (0, Vec::new());
            for (gap, count) in gaps {
                runs.push(Run { first: next + gap, count });
                next += gap + count;
            }
            let all: Vec<u32> = runs.iter().flat_map(|run| run.first..run.first + run.count).collect();
            let lines: Lines = runs.into_iter().collect();
            prop_assert_eq!(lines.total(), all.len() as u64);
            let from = from.min(lines.total());
            let end = (from + len).min(lines.total());
            let some: Vec<u32> = lines.at(from..from + len).flat_map(|run| {
                assert!(run.count <= u32::from(u16::MAX));
                run.first..run.first + run.count
            }).collect();
            prop_assert_eq!(&some[..], &all[from as usize..end as usize]);
        }
    }

    #[test]
    fn the_largest_area_has_all_its_lines() {
        let lines = Lines::whole(1 << 32);
        assert_eq!(lines.total(), 1 << 32);
        assert_eq!(lines.at((1 << 32) - 1..1 << 32).next(), Some(Run { first: u32::MAX, count: 1 }));
    }
}
