//! Generated examples.
use hectare::orion::array::random::Stream;
use hectare::orion::array::text::LabelledRow;

/// How many features there are, and how many an example has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) features: usize,
    pub(crate) per_row: usize,
}

impl Shape {
    /// The shape of RCV1 (Lewis et al., 2004): 47,236 features, and 71 in the mean.
    pub(crate) const RCV1: Shape = Shape { features: 47_236, per_row: 71 };

    /// A number that spreads features, which are drawn by their frequency, over the weights: coprime to how many there are.
    fn spread(self) -> usize {
        let primes = [28_657, 514_229];
        primes.into_iter().find(|prime| !self.features.is_multiple_of(*prime)).unwrap_or(1)
    }
}

/// Generated example `number`. Features are drawn from Zipf's law with exponent 1: the r-th most frequent one with
/// probability proportional to 1/r. Rarer features have larger values, rows have length 1, and a planted model with noise
/// tells the label.
pub(crate) fn planted(shape: Shape, number: usize) -> LabelledRow {
    let Shape { features: all, per_row } = shape;
    let stream = Stream::new(11, "sparse lr").child(number as u64);
    let weights = Stream::new(12, "sparse lr weights");
    let mut ranks: Vec<usize> = Vec::with_capacity(per_row);
    let mut draws = 0;
    while ranks.len() < per_row {
        // The inverse of the distribution function of 1/r, in the continuous form.
        let rank = (all as f64).powf(stream.uniform(draws)) as usize - 1;
        draws += 1;
        if rank < all && !ranks.contains(&rank) {
            ranks.push(rank);
        }
    }
    let value = |rank: &usize| (1.0 + *rank as f64).ln() + 0.5;
    let length = ranks.iter().map(|rank| value(rank).powi(2)).sum::<f64>().sqrt();
    let margin: f64 =
        ranks.iter().map(|rank| 4.0 * weights.normal(*rank as u64) * value(rank) / length).sum();
    let noisy = margin + 0.5 * stream.child(1).normal(0);
    let spread = shape.spread();
    let mut features: Vec<(u32, f32)> =
        ranks.iter().map(|rank| ((rank * spread % all) as u32, (value(rank) / length) as f32)).collect();
    features.sort_unstable_by_key(|(feature, _)| *feature);
    LabelledRow { label: if noisy > 0.0 { 1.0 } else { -1.0 }, features }
}
