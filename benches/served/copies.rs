//! Bulk by hand: what copying costs.
use super::{RATE, Row, slope};
use hectare::{Cells, SparseArray};

/// The least that a fetch in bulk needs, by hand: the keys of each stretch are copied from the array, the body computes on
/// the copies, and its contributions are added to the array. No versions, no homes, no order, no bound on staleness.
pub(crate) struct Copies {
    /// For each clock, the keys in ascending order, and for each row the places of its features among them.
    stretches: Vec<(Vec<u32>, Vec<Row>)>,
}

impl Copies {
    pub(crate) fn new(rows: &SparseArray<Row, 1>, clocks: usize) -> Copies {
        let local: Vec<Row> = rows.local().iter().map(|entry| entry.value).collect();
        let stretch = |rows: &[Row]| {
            let mut keys: Vec<u32> = rows.iter().flat_map(|row| row.0).collect();
            keys.sort_unstable();
            keys.dedup();
            let place = |feature: u32| keys.binary_search(&feature).expect("it is there") as u32;
            let placed = rows.iter().map(|(features, label)| (features.map(place), *label)).collect();
            (keys, placed)
        };
        Copies { stretches: local.chunks(local.len().div_ceil(clocks).max(1)).map(stretch).collect() }
    }

    pub(crate) fn pass(&self, weights: Cells<'_, f32>) {
        for (keys, rows) in &self.stretches {
            let values: Vec<f32> = keys.iter().map(|key| weights.get(*key as usize)).collect();
            let mut sums = vec![0.0; keys.len()];
            for (features, label) in rows {
                let margin: f32 = features.iter().map(|at| values[*at as usize]).sum();
                let step = -RATE * slope(margin, *label);
                features.iter().for_each(|at| sums[*at as usize] += step);
            }
            for (key, sum) in keys.iter().zip(&sums) {
                weights.set(*key as usize, weights.get(*key as usize) + sum);
            }
        }
    }
}
