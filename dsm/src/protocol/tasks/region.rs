//! Sets of elements of an array: boxes of its indices, with a stride in each dimension.
use std::ops::Range;

/// Every `step`-th index of a dimension from `start` on, below `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first.
    pub start: usize,
    /// Behind the last.
    pub end: usize,
    /// The distance from one to the next, not 0.
    pub step: usize,
}

impl Span {
    /// All indices of a range.
    pub const fn of(range: Range<usize>) -> Span {
        Span { start: range.start, end: range.end, step: 1 }
    }

    /// How many.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start).div_ceil(self.step)
    }

    /// Whether there are none.
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Whether an index is one of them.
    pub const fn contains(self, index: usize) -> bool {
        self.start <= index && index < self.end && (index - self.start).is_multiple_of(self.step)
    }

    /// The last; of a span that is not empty.
    const fn last(self) -> usize {
        self.start + (self.len() - 1) * self.step
    }

    /// Whether two spans have an index in common: the Chinese remainder theorem says where, if they do.
    pub fn meets(self, other: Span) -> bool {
        if self.is_empty() || other.is_empty() {
            return false;
        }
        let (low, high) = (self.start.max(other.start), self.last().min(other.last()));
        if low > high {
            return false;
        }
        if self.step == 1 && other.step == 1 {
            return true;
        }
        let common = gcd(self.step, other.step);
        if !self.start.abs_diff(other.start).is_multiple_of(common) {
            return false;
        }
        // The first index of `self` from `low` on that `other` has too comes within `other.step / common` steps.
        let first = self.start + (low - self.start).div_ceil(self.step) * self.step;
        let within = |turn: usize| Some(first + self.step.checked_mul(turn)?).filter(|index| *index <= high);
        (0..other.step / common).map_while(within).any(|index| other.contains(index))
    }

    /// One span of exactly the indices of both, if there is one.
    fn joined(self, other: Span) -> Option<Span> {
        if self.is_empty() || other.is_empty() {
            return Some(if self.is_empty() { other } else { self });
        }
        let (a, b) = if self.start <= other.start { (self, other) } else { (other, self) };
        let fits = a.step == b.step && (b.start - a.start).is_multiple_of(a.step);
        let reaches = b.start <= a.last() + a.step;
        (fits && reaches).then(|| Span { start: a.start, end: a.end.max(b.end), step: a.step })
    }
}

fn gcd(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A box of elements of an array: those whose index in each dimension is in the span of that dimension.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Region {
    /// One span for each dimension of the array.
    pub spans: Vec<Span>,
}

impl Region {
    /// The elements with these indices in each dimension.
    pub fn of(ranges: impl IntoIterator<Item = Range<usize>>) -> Region {
        Region { spans: ranges.into_iter().map(Span::of).collect() }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.spans.iter().any(|span| span.is_empty())
    }

    /// How many elements it has; at most the greatest number.
    pub fn len(&self) -> usize {
        self.spans.iter().fold(1, |all, span| all.saturating_mul(span.len()))
    }

    /// Whether two regions of one array have an element in common.
    pub fn meets(&self, other: &Region) -> bool {
        self.spans.iter().zip(&other.spans).all(|(a, b)| a.meets(*b))
    }

    /// Whether all elements of `other` are in it, as far as steps of 1 tell.
    fn covers(&self, other: &Region) -> bool {
        let inside = |(a, b): (&Span, &Span)| a == b || a.step == 1 && a.start <= b.start && b.end <= a.end;
        self.spans.iter().zip(&other.spans).all(inside)
    }

    /// One box of exactly the elements of both, if there is one.
    fn joined(&self, other: &Region) -> Option<Region> {
        if self.covers(other) {
            return Some(self.clone());
        }
        if other.covers(self) {
            return Some(other.clone());
        }
        let mut differing = (0..self.spans.len()).filter(|dim| self.spans[*dim] != other.spans[*dim]);
        let (dim, None) = (differing.next()?, differing.next()) else { return None };
        let mut joined = self.clone();
        joined.spans[dim] = self.spans[dim].joined(other.spans[dim])?;
        Some(joined)
    }
}

/// The same elements in fewer boxes where boxes fit together; empty ones are left out.
pub fn merged(regions: impl IntoIterator<Item = Region>) -> Vec<Region> {
    let mut list: Vec<Region> = Vec::new();
    for mut region in regions.into_iter().filter(|region| !region.is_empty()) {
        while let Some((at, joined)) =
            list.iter().enumerate().find_map(|(at, other)| Some((at, other.joined(&region)?)))
        {
            list.swap_remove(at);
            region = joined;
        }
        list.push(region);
    }
    list.sort_unstable();
    list
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn indices(span: Span) -> Vec<usize> {
        (0..64).filter(|index| span.contains(*index)).collect()
    }

    fn span() -> impl Strategy<Value = Span> {
        (0usize..20, 0usize..40, 1usize..8).prop_map(|(start, end, step)| Span { start, end, step })
    }

    fn region() -> impl Strategy<Value = Region> {
        (span(), span()).prop_map(|(a, b)| Region { spans: vec![a, b] })
    }

    fn has(region: &Region, i: usize, j: usize) -> bool {
        region.spans[0].contains(i) && region.spans[1].contains(j)
    }

    proptest! {
        #[test]
        fn spans_meet_where_they_have_an_index_in_common(a in span(), b in span()) {
            let common = indices(a).iter().any(|index| b.contains(*index));
            prop_assert_eq!(a.meets(b), common);
            prop_assert_eq!(a.len(), indices(a).len());
        }

        #[test]
        fn merged_regions_have_the_same_elements(regions in prop::collection::vec(region(), 0..6)) {
            let merged = merged(regions.clone());
            for i in 0..40 {
                for j in 0..40 {
                    let before = regions.iter().any(|region| has(region, i, j));
                    prop_assert_eq!(merged.iter().any(|region| has(region, i, j)), before);
                }
            }
            prop_assert!(merged.len() <= regions.len());
        }
    }

    #[test]
    fn the_neighbours_of_a_box_in_all_directions_are_one_box() {
        let shifted = |i: usize, j: usize| Region::of([10 + i - 1..20 + i - 1, 5 + j - 1..9 + j - 1]);
        let nine = (0..3).flat_map(|i| (0..3).map(move |j| shifted(i, j)));
        assert_eq!(merged(nine), [Region::of([9..21, 4..10])]);
    }
}
