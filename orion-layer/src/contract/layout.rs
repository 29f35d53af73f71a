//! How an array is cut into partitions, and who owns each.
use hectare_dsm::Rank;
use std::ops::Range;

/// The partitions of an array: ranges of one dimension.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Layout {
    /// The dimension that is cut.
    pub dim: usize,
    /// The bounds of the parts: part `p` holds `bounds[p]..bounds[p + 1]`.
    pub bounds: Vec<usize>,
    /// The owner of each part.
    pub owners: Vec<Rank>,
}

impl Layout {
    /// `parts` ranges of nearly the same length, one per worker in turn.
    pub fn even(dim: usize, extent: usize, parts: usize) -> Layout {
        let bound = |part: usize| (extent as u128 * part as u128 / parts as u128) as usize;
        let bounds = (0..=parts).map(bound).collect();
        Layout { dim, bounds, owners: (0..parts).map(|part| part as Rank).collect() }
    }

    /// How many parts.
    pub fn parts(&self) -> usize {
        self.owners.len()
    }

    /// The range of part `part`.
    pub fn range(&self, part: usize) -> Range<usize> {
        self.bounds[part]..self.bounds[part + 1]
    }

    /// The parts that have something of a range, and perhaps some between them that are empty.
    pub(crate) fn parts_of(&self, range: &Range<usize>) -> Range<usize> {
        if range.is_empty() {
            return 0..0;
        }
        let first = self.bounds.partition_point(|bound| *bound <= range.start).saturating_sub(1);
        let end = self.bounds.partition_point(|bound| *bound < range.end).min(self.parts());
        first.min(end)..end
    }

    /// Whether the cuts are the same, whoever owns the parts.
    pub fn has_same_cuts(&self, other: &Layout) -> bool {
        self.dim == other.dim && self.bounds == other.bounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_range_are_all_that_have_something_of_it() {
        for bounds in [vec![0, 10, 10, 13, 20], vec![0, 0, 1, 2, 20], vec![0, 20, 20, 20], vec![0, 0]] {
            let layout = Layout { dim: 0, owners: vec![0; bounds.len() - 1], bounds };
            for range in (0..22).flat_map(|start| (0..22).map(move |end| start..end)) {
                let found = layout.parts_of(&range);
                for part in 0..layout.parts() {
                    let has = (layout.range(part)).any(|index| range.contains(&index));
                    assert!(!has || found.contains(&part), "{layout:?}: {range:?} in {found:?}");
                }
                let has_ends = found.clone().all(|part| {
                    let of_part = layout.range(part);
                    of_part.is_empty() || of_part.start < range.end && range.start < of_part.end
                });
                assert!(has_ends && found.end <= layout.parts(), "{layout:?}: {range:?} in {found:?}");
            }
        }
    }
}
