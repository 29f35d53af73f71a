//! Generated examples, with the shape of RCV1.
use hectare::orion::array::random::Stream;
use hectare::orion::array::text::LabelledRow;

/// Features of the generated examples, and how many an example has: those of RCV1 (Lewis et al., 2004), of which there
/// are 47,236, and 71 in the mean.
pub(crate) const FEATURES: usize = 47_236;
pub(crate) const PER_ROW: usize = 71;
/// Spreads features, which are drawn by their frequency, over the weights; coprime to [`FEATURES`].
const SPREAD: usize = 28_657;

/// Generated example `number`. Features are drawn from Zipf's law with exponent 1: the r-th most frequent one with
/// probability proportional to 1/r. Rarer features have larger values, rows have length 1, and a planted model with noise
/// tells the label.
pub(crate) fn planted(number: usize) -> LabelledRow {
    let stream = Stream::new(11, "sparse lr").child(number as u64);
    let weights = Stream::new(12, "sparse lr weights");
    let mut ranks: Vec<usize> = Vec::with_capacity(PER_ROW);
    let mut draws = 0;
    while ranks.len() < PER_ROW {
        // The inverse of the distribution function of 1/r, in the continuous form.
        let rank = (FEATURES as f64).powf(stream.uniform(draws)) as usize - 1;
        draws += 1;
        if rank < FEATURES && !ranks.contains(&rank) {
            ranks.push(rank);
        }
    }
    let value = |rank: &usize| (1.0 + *rank as f64).ln() + 0.5;
    let length = ranks.iter().map(|rank| value(rank).powi(2)).sum::<f64>().sqrt();
    let margin: f64 =
        ranks.iter().map(|rank| 4.0 * weights.normal(*rank as u64) * value(rank) / length).sum();
    let noisy = margin + 0.5 * stream.child(1).normal(0);
    let mut features: Vec<(u32, f32)> =
        ranks.iter().map(|rank| ((rank * SPREAD % FEATURES) as u32, (value(rank) / length) as f32)).collect();
    features.sort_unstable_by_key(|(feature, _)| *feature);
    LabelledRow { label: if noisy > 0.0 { 1.0 } else { -1.0 }, features }
}
