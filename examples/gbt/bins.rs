//! The bins of features: where they are cut, and which slots of histograms they have.
use super::slot::{PAD, Slot};
use hectare::orion::array::text::LabelledRow;

/// The bins of one feature.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Feature {
    /// Values up to the first threshold are in bin 0, up to the second one in bin 1, and so on.
    pub(crate) thresholds: Vec<f32>,
    /// The bin that rows do not mention: that of the most rows. It has no slot, as its sum is the total less all others.
    pub(crate) silent: usize,
    /// The slot of its first bin.
    pub(crate) first: usize,
}

impl Feature {
    fn bin(&self, value: f32) -> usize {
        self.thresholds.partition_point(|threshold| *threshold < value)
    }

    /// The slot of a value, if its bin has one.
    fn slot(&self, value: f32) -> Option<usize> {
        match self.bin(value) {
            bin if bin < self.silent => Some(self.first + bin),
            bin if bin > self.silent => Some(self.first + bin - 1),
            _ => None,
        }
    }

    /// Slots, and places where it can be split: one fewer than bins.
    pub(crate) fn slots(&self) -> usize {
        self.thresholds.len()
    }
}

/// The bins of all features.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Bins {
    pub(crate) features: Vec<Feature>,
    /// Features whose zeros have a slot.
    mentioned: Vec<u32>,
    /// Slots of all.
    pub(crate) slots: usize,
}

impl Bins {
    /// Cuts features into at most `most` bins, by the values of `rows`: a bin for each value, if they are as few, else bins of
    /// about as many rows. The rows have to be the same on all workers.
    pub(crate) fn new<'r>(features: usize, most: usize, rows: impl Iterator<Item = &'r LabelledRow>) -> Bins {
        let mut values: Vec<Vec<f32>> = vec![Vec::new(); features];
        let mut count = 0;
        for row in rows {
            count += 1;
            row.features.iter().for_each(|(feature, value)| values[*feature as usize].push(*value));
        }
        let (mut first, mut mentioned) = (0, Vec::new());
        let cut = |(number, values): (usize, Vec<f32>)| {
            let counted = counted(values, count);
            let thresholds = thresholds(&counted, most);
            let mut feature = Feature { thresholds, silent: 0, first };
            first += feature.slots();
            let mut rows = vec![0; feature.slots() + 1];
            counted.iter().for_each(|(value, count)| rows[feature.bin(*value)] += count);
            let zero = feature.bin(0.0);
            // The first of those with the most, but rather that of zero.
            feature.silent =
                (0..rows.len()).fold(zero, |best, bin| if rows[bin] > rows[best] { bin } else { best });
            if feature.silent != zero {
                mentioned.push(number as u32);
            }
            feature
        };
        let features = values.into_iter().enumerate().map(cut).collect();
        Bins { features, mentioned, slots: first }
    }

    /// The slots of a row, in ascending order of features.
    pub(crate) fn slots_of(&self, row: &LabelledRow, slots: &mut Vec<usize>) {
        slots.clear();
        let mut mentioned = self.mentioned.iter().peekable();
        for (feature, value) in &row.features {
            while let Some(zero) = mentioned.next_if(|zero| *zero < feature) {
                slots.extend(self.features[*zero as usize].slot(0.0));
            }
            mentioned.next_if_eq(&feature);
            slots.extend(self.features[*feature as usize].slot(*value));
        }
        slots.extend(mentioned.filter_map(|zero| self.features[*zero as usize].slot(0.0)));
    }

    /// Slots of a row with the padding, of which each is the slot behind the last one.
    pub(crate) fn padded(slots: &[usize]) -> usize {
        slots.len().next_multiple_of(PAD)
    }

    /// Numbers of a histogram: one for each slot, one for the padding, and the sum of all rows.
    pub(crate) fn width(&self) -> usize {
        self.slots + 2
    }

    /// Whether the slots, and that of the padding behind them, fit this type.
    pub(crate) fn fit<S: Slot>(&self) -> bool {
        self.slots < S::MOST
    }
}

/// Different values in ascending order, and how many rows have each; `count` rows in all, of which the rest is zero.
fn counted(mut values: Vec<f32>, count: usize) -> Vec<(f32, usize)> {
    let zeros = count - values.len();
    values.iter_mut().for_each(|value| *value += 0.0); // zero has two signs
    values.sort_unstable_by(f32::total_cmp);
    let mut counted: Vec<(f32, usize)> =
        values.chunk_by(|a, b| a == b).map(|same| (same[0], same.len())).collect();
    if zeros > 0 {
        match counted.binary_search_by(|(value, _)| value.total_cmp(&0.0)) {
            Ok(at) => counted[at].1 += zeros,
            Err(at) => counted.insert(at, (0.0, zeros)),
        }
    }
    counted
}

/// Where to cut between values, so that there are at most `most` bins.
fn thresholds(counted: &[(f32, usize)], most: usize) -> Vec<f32> {
    let mut rest: usize = counted.iter().map(|(_, count)| count).sum();
    let mut cuts = Vec::new();
    let (mut bins, mut filled) = (most, 0);
    for (number, pair) in counted.windows(2).enumerate() {
        let ((low, count), (high, _)) = (pair[0], pair[1]);
        filled += count;
        // The rest is spread over the bins that are left; if there is a bin for each value, each gets one.
        let is_full = filled * bins >= rest || counted.len() - number <= bins;
        if is_full && bins > 1 {
            cuts.push(between(low, high));
            rest -= filled;
            (bins, filled) = (bins - 1, 0);
        }
    }
    cuts
}

/// A number from `low` on and below `high`, in the middle if there is one.
fn between(low: f32, high: f32) -> f32 {
    let middle = ((f64::from(low) + f64::from(high)) / 2.0) as f32;
    if middle < high { middle } else { low }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(columns: &[&[f32]]) -> Vec<LabelledRow> {
        let row = |number: usize| LabelledRow {
            label: 0.0,
            features: (0u32..)
                .zip(columns)
                .map(|(f, values)| (f, values[number]))
                .filter(|(_, x)| *x != 0.0)
                .collect(),
        };
        (0..columns[0].len()).map(row).collect()
    }

    #[test]
    fn few_values_have_a_bin_each_and_many_share_them_evenly() {
        let few = [1.0, 0.0, -2.0, 1.0, 0.0, 0.0];
        let many: Vec<f32> = (0..6).map(|k| k as f32 + 1.0).collect();
        let rows = rows(&[&few, &many, &[7.0; 6]]);
        let bins = Bins::new(4, 3, rows.iter());
        assert_eq!(bins.features[0].thresholds, [-1.0, 0.5]);
        assert_eq!(bins.features[1].thresholds, [2.5, 4.5]);
        assert!(bins.features[2].thresholds.is_empty() && bins.features[3].thresholds.is_empty());
        assert_eq!((bins.slots, bins.features[0].silent), (4, 1));
        let mut slots = Vec::new();
        bins.slots_of(&rows[0], &mut slots);
        assert_eq!(slots, [1]); // 1.0 above the silent bin of zero; 1.0 in the silent bin 0
        bins.slots_of(&rows[2], &mut slots);
        assert_eq!(slots, [0, 2]);
    }

    #[test]
    fn zeros_are_mentioned_where_most_rows_have_another_value() {
        let rows = rows(&[&[1.0, 1.0, 0.0], &[0.0, 0.0, 5.0]]);
        let bins = Bins::new(2, 255, rows.iter());
        assert_eq!((bins.features[0].silent, bins.features[1].silent), (1, 0));
        let slots = rows.iter().map(|row| {
            let mut slots = Vec::new();
            bins.slots_of(row, &mut slots);
            slots
        });
        assert_eq!(slots.collect::<Vec<_>>(), [vec![], vec![], vec![0, 1]]);
    }

    #[test]
    fn a_threshold_lies_below_the_higher_value() {
        let next = f32::from_bits(1.0f32.to_bits() + 1);
        assert!((1.0..next).contains(&between(1.0, next)));
        assert_eq!(between(f32::MIN, f32::MAX), 0.0);
    }
}
