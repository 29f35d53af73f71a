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

    /// Whether the cuts are the same, whoever owns the parts.
    pub fn has_same_cuts(&self, other: &Layout) -> bool {
        self.dim == other.dim && self.bounds == other.bounds
    }
}
