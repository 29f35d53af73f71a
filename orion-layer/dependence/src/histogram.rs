//! How many indices fall into which part of a dimension.
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Counts of the indices `0..extent` in bins of equal width (the last one may be narrower).
///
/// Workers count what they hold and add up their histograms with [`merge`](Histogram::merge).
///
/// ```
/// use hectare_dependence::histogram::Histogram;
/// let mut histogram = Histogram::new(10, 3);
/// for index in [0, 3, 4, 9] {
///     histogram.add(index);
/// }
/// assert_eq!(histogram.counts(), [2, 1, 1]);
/// assert_eq!(histogram.range(2), 8..10);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    extent: usize,
    width: usize,
    counts: Vec<u64>,
}

/// Two histograms have different bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a histogram of {} indices in bins of {} cannot be added to one of {} in bins of {}: \
     count with the same extent and number of bins on every worker",
    theirs.0, theirs.1, ours.0, ours.1
)]
pub struct BinsDiffer {
    /// Extent and width of the histogram that was to be added to.
    pub ours: (usize, usize),
    /// Extent and width of the other one.
    pub theirs: (usize, usize),
}

impl Histogram {
    /// An empty histogram of at most `bins` bins: as few as bins of the same whole width need.
    ///
    /// # Panics
    /// If `bins` is zero.
    pub fn new(extent: usize, bins: usize) -> Histogram {
        assert!(bins > 0, "a histogram needs at least one bin");
        Histogram::with_width(extent, extent.div_ceil(bins).max(1))
    }

    /// An empty histogram with bins of this width. Powers of two are faster to count in.
    ///
    /// # Panics
    /// If `width` is zero.
    pub fn with_width(extent: usize, width: usize) -> Histogram {
        assert!(width > 0, "a bin of a histogram is at least one index wide");
        Histogram { extent, width, counts: vec![0; extent.div_ceil(width)] }
    }

    /// Counts one index.
    ///
    /// # Panics
    /// If `index` is not below the extent.
    #[inline]
    pub fn add(&mut self, index: usize) {
        self.counts[index / self.width] += 1;
    }

    /// Counts many indices.
    ///
    /// # Panics
    /// If one of them is not below the extent.
    pub fn add_all(&mut self, indices: impl IntoIterator<Item = u32>) {
        if self.width.is_power_of_two() {
            let shift = self.width.trailing_zeros();
            indices.into_iter().for_each(|index| self.counts[index as usize >> shift] += 1);
        } else {
            indices.into_iter().for_each(|index| self.add(index as usize));
        }
    }

    /// Adds the counts of another histogram with the same bins.
    ///
    /// # Errors
    /// [`BinsDiffer`] if it has others; then nothing has changed.
    pub fn merge(&mut self, other: &Histogram) -> Result<(), BinsDiffer> {
        if (self.extent, self.width) != (other.extent, other.width) {
            return Err(BinsDiffer { ours: (self.extent, self.width), theirs: (other.extent, other.width) });
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(ours, theirs)| *ours += theirs);
        Ok(())
    }

    /// The number of bins.
    pub fn bins(&self) -> usize {
        self.counts.len()
    }

    /// Indices in a bin.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The extent of the dimension.
    pub fn extent(&self) -> usize {
        self.extent
    }

    /// One count per bin.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The sum of the counts.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The indices of a bin.
    pub fn range(&self, bin: usize) -> Range<usize> {
        bin * self.width..((bin + 1) * self.width).min(self.extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn merged_parts_are_the_whole(
            extent in 1usize..300, bins in 1usize..400, seeds in prop::collection::vec(any::<u32>(), 0..200), cut: prop::sample::Index,
        ) {
            let indices: Vec<u32> = seeds.iter().map(|seed| seed % extent as u32).collect();
            let count = |indices: &[u32]| {
                let mut histogram = Histogram::new(extent, bins);
                histogram.add_all(indices.iter().copied());
                histogram
            };
            let (left, right) = indices.split_at(cut.index(indices.len() + 1));
            let mut merged = count(left);
            merged.merge(&count(right)).unwrap();
            prop_assert_eq!(&merged, &count(&indices));
            prop_assert!(merged.bins() <= bins);
            prop_assert_eq!(merged.total(), indices.len() as u64);
            for bin in 0..merged.bins() {
                let expected = indices.iter().filter(|&&index| merged.range(bin).contains(&(index as usize))).count();
                prop_assert_eq!(merged.counts()[bin], expected as u64);
            }
        }
    }

    #[test]
    fn other_bins_are_refused() {
        let mut histogram = Histogram::new(10, 2);
        assert!(histogram.merge(&Histogram::new(10, 3)).is_err());
        assert!(histogram.merge(&Histogram::new(9, 2)).unwrap_err().to_string().contains("of 9 indices"));
    }
}
