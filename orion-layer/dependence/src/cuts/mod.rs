//! Dimensions cut into parts of consecutive indices.
mod balance;
mod blocks;
mod rotation;
mod table;

pub use self::blocks::BlockWeights;
pub use self::rotation::Rotation;
pub use self::table::PartTable;

use crate::histogram::Histogram;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A dimension cut into parts of consecutive indices. Parts may be empty.
///
/// ```
/// use hectare_dependence::{cuts::Cuts, histogram::Histogram};
/// let mut histogram = Histogram::with_width(6, 1);
/// histogram.add_all([0, 0, 0, 1, 2, 3, 4, 5]);
/// let cuts = Cuts::balanced(&histogram, 2);
/// assert_eq!(cuts.range(0), 0..2);
/// assert_eq!(cuts.find(2), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Cuts {
    /// Part `p` is `bounds[p]..bounds[p + 1]`; the first is 0, the last the extent.
    bounds: Vec<usize>,
}

/// The bounds of parts do not begin at zero or do not ascend.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bounds {bounds:?} do not cut a dimension into parts: they have to begin with 0 and to ascend")]
pub struct NotCuts {
    /// The bounds.
    pub bounds: Vec<usize>,
}

impl Cuts {
    /// Parts with these bounds: one more than parts, the first 0, the last the extent.
    ///
    /// # Errors
    /// [`NotCuts`].
    pub fn new(bounds: Vec<usize>) -> Result<Cuts, NotCuts> {
        if bounds.len() < 2 || bounds[0] != 0 || !bounds.is_sorted() {
            return Err(NotCuts { bounds });
        }
        Ok(Cuts { bounds })
    }

    /// Parts whose sizes differ by at most one.
    ///
    /// # Panics
    /// If `parts` is zero.
    pub fn even(extent: usize, parts: usize) -> Cuts {
        assert!(parts > 0, "a dimension has at least one part");
        let bound = |part| (extent as u128 * part as u128 / parts as u128) as usize;
        Cuts { bounds: (0..=parts).map(bound).collect() }
    }

    /// Parts whose heaviest is as light as bins of the histogram allow, and as equal as that permits.
    ///
    /// # Panics
    /// If `parts` is zero.
    pub fn balanced(histogram: &Histogram, parts: usize) -> Cuts {
        assert!(parts > 0, "a dimension has at least one part");
        if histogram.total() == 0 {
            return Cuts::even(histogram.extent(), parts);
        }
        let bound = |bin: usize| (bin * histogram.width()).min(histogram.extent());
        Cuts { bounds: balance::balance(histogram.counts(), parts).into_iter().map(bound).collect() }
    }

    /// The number of parts.
    pub fn parts(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The extent of the dimension.
    pub fn extent(&self) -> usize {
        self.bounds[self.parts()]
    }

    /// The bounds: part `p` is `bounds()[p]..bounds()[p + 1]`.
    pub fn bounds(&self) -> &[usize] {
        &self.bounds
    }

    /// The indices of a part.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn range(&self, part: usize) -> Range<usize> {
        self.bounds[part]..self.bounds[part + 1]
    }

    /// The part of an index, by binary search; [`table`](Cuts::table) is faster for many.
    ///
    /// # Panics
    /// If `index` is not below the extent.
    pub fn find(&self, index: usize) -> usize {
        assert!(index < self.extent(), "index {index} is outside a dimension of {}", self.extent());
        self.bounds.partition_point(|&bound| bound <= index) - 1
    }

    /// A table that finds parts quickly.
    ///
    /// # Panics
    /// If there are more than 65,536 parts, or the extent is above 2^32.
    pub fn table(&self) -> PartTable {
        PartTable::new(self)
    }
}

#[cfg(test)]
mod tests;
