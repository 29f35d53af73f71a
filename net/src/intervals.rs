//! Sets of numbers, stored as intervals: the lines of a cut that were received, or lost.
use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint intervals that do not touch, by their start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Intervals {
    ends: BTreeMap<u64, u64>,
}

impl Intervals {
    /// Adds all of `range`.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let Range { mut start, mut end } = range;
        if let Some((&before, &its_end)) = self.ends.range(..=start).next_back()
            && its_end >= start
        {
            start = before;
            end = end.max(its_end);
        }
        while let Some((&next, &its_end)) = self.ends.range(start..).next()
            && next <= end
        {
            end = end.max(its_end);
            self.ends.remove(&next);
        }
        self.ends.insert(start, end);
    }

    /// Takes at most `most` numbers from the front, in a row.
    pub(crate) fn take_front(&mut self, most: u64) -> Option<Range<u64>> {
        let (start, end) = self.ends.pop_first()?;
        let cut = end.min(start.saturating_add(most));
        if cut < end {
            self.ends.insert(cut, end);
        }
        Some(start..cut)
    }

    /// Whether all of `0..total` is in it.
    pub(crate) fn covers(&self, total: u64) -> bool {
        total == 0 || self.ends.get(&0).is_some_and(|&end| end >= total)
    }

    /// Whether all of `range` is in it.
    pub(crate) fn contains(&self, range: &Range<u64>) -> bool {
        let before = self.ends.range(..=range.start).next_back();
        range.is_empty() || before.is_some_and(|(_, &end)| end >= range.end)
    }

    /// The lowest number that is not in it.
    pub(crate) fn first_gap(&self) -> u64 {
        self.ends.get(&0).copied().unwrap_or_default()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::Intervals;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn they_are_sets(ranges in prop::collection::vec((0_u64..64, 0_u64..12), 0..24), takes in prop::collection::vec(1_u64..9, 0..6)) {
            let (mut intervals, mut model) = (Intervals::default(), BTreeSet::new());
            for (start, len) in ranges {
                intervals.insert(start..start + len);
                model.extend(start..start + len);
            }
            for most in takes {
                match intervals.take_front(most) {
                    None => prop_assert!(model.is_empty()),
                    Some(taken) => {
                        prop_assert_eq!(Some(&taken.start), model.first());
                        for number in taken {
                            prop_assert!(model.remove(&number));
                        }
                    }
                }
            }
            let all: Vec<u64> = intervals.ends.iter().flat_map(|(&start, &end)| start..end).collect();
            prop_assert_eq!(&all, &model.iter().copied().collect::<Vec<_>>());
            for total in 0..80 {
                prop_assert_eq!(intervals.covers(total), (0..total).all(|number| model.contains(&number)));
            }
            let starts: Vec<(&u64, &u64)> = intervals.ends.iter().collect();
            prop_assert!(starts.windows(2).all(|pair| pair[0].1 < pair[1].0), "none touch");
        }
    }
}
