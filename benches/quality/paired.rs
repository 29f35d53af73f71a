//! Differences between runs of the same seeds, with their standard errors.

/// The mean of what runs differ by, and its standard error, in percent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    pub(crate) mean: f64,
    pub(crate) error: f64,
}

impl Difference {
    /// Of pairs of ours and theirs, one of each seed, as ratios.
    pub(crate) fn of(pairs: &[(f64, f64)]) -> Difference {
        let logs: Vec<f64> = pairs.iter().map(|(ours, theirs)| 100.0 * (ours / theirs).ln()).collect();
        let (mean, deviation) = spread(&logs);
        Difference { mean, error: deviation / (logs.len() as f64).sqrt() }
    }

    /// The verdict on an aim of at most `percent`: two standard errors to either side.
    pub(crate) fn verdict(&self, percent: f64) -> &'static str {
        let (near, far) = (self.mean.abs() - 2.0 * self.error, self.mean.abs() + 2.0 * self.error);
        match () {
            () if far <= percent => "within",
            () if near > percent => "OFF",
            () if near <= 0.0 => "no difference seen",
            () => "undecided",
        }
    }
}

/// The mean and the standard deviation.
pub(crate) fn spread(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}
