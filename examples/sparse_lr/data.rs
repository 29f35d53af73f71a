//! Examples: from files, or generated with the shape of RCV1.
use super::Options;
use hectare::SparseArray;
use hectare::orion::array::random::Stream;
use hectare::orion::array::text::{LabelledRow, Share, libsvm, read_rows};
use hectare::orion::{Context, Error, Result};

/// Features of the generated examples, and how many an example has: those of RCV1 (Lewis et al., 2004), of which there
/// are 47,236, and 71 in the mean.
pub(crate) const FEATURES: usize = 47_236;
pub(crate) const PER_ROW: usize = 71;
/// Spreads features, which are drawn by their frequency, over the weights; coprime to [`FEATURES`].
const SPREAD: usize = 28_657;
/// Of this many examples, one more is made to test with.
const TEST: usize = 10;

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

/// The examples to learn from, those to test with, and how many features there are. Collective.
pub(crate) fn parallel(
    w: &mut Context<'_>,
    o: &Options,
) -> Result<(SparseArray<LabelledRow, 1>, SparseArray<LabelledRow, 1>, usize)> {
    let (train, test) = match &o.data {
        Some(train) => {
            let test = o.test.as_ref().unwrap_or(train);
            (w.text_rows(train, libsvm)?, w.text_rows(test, libsvm)?)
        }
        None => {
            let count = o.rows / TEST;
            let test = w.entries([count], count, |k| ([k], planted(o.rows + k)))?;
            (w.entries([o.rows], o.rows, |k| ([k], planted(k)))?, test)
        }
    };
    let mut most = 0;
    for rows in [&train, &test] {
        rows.for_each_local(|_, row| most = most.max(row.features.last().map_or(0, |(f, _)| *f as u64 + 1)));
    }
    let features = w.all_reduce(most, u64::max)? as usize;
    Ok((train.named("train"), test.named("test"), features))
}

/// Refuses to learn from nothing, and to test with nothing.
pub(crate) fn check(learned: usize, tested: usize) -> Result<()> {
    match (learned, tested) {
        (0, _) => Err(Error::Invalid("there are no examples to learn from".into())),
        (_, 0) => {
            Err(Error::Invalid(format!("there are no examples to test with: --test, or --rows {TEST}")))
        }
        _ => Ok(()),
    }
}

/// Examples for the serial twin: labels, and the features of all one after the other.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    pub(crate) labels: Vec<f32>,
    pub(crate) ends: Vec<usize>,
    pub(crate) features: Vec<(u32, f32)>,
}

impl Rows {
    fn of(rows: impl Iterator<Item = LabelledRow>) -> Rows {
        let mut all = Rows::default();
        for row in rows {
            all.labels.push(row.label);
            all.features.extend(row.features);
            all.ends.push(all.features.len());
        }
        all
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (f32, &[(u32, f32)])> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(&self.ends).map(|(start, end)| &self.features[start..*end]);
        self.labels.iter().copied().zip(ranges)
    }

    /// Part `part` of `of`.
    pub(crate) fn part(&self, part: usize, of: usize) -> Rows {
        let row =
            |(label, features): (f32, &[(u32, f32)])| LabelledRow { label, features: features.to_vec() };
        let bound = |part: usize| self.labels.len() * part / of;
        Rows::of(self.iter().skip(bound(part)).take(bound(part + 1) - bound(part)).map(row))
    }
}

/// The examples for the serial twin.
pub(crate) fn load(o: &Options) -> Result<(Rows, Rows, usize)> {
    let (train, test) = match &o.data {
        Some(train) => {
            let read = |path| {
                Ok::<_, hectare::orion::Error>(Rows::of(read_rows(path, Share::ALL, libsvm)?.into_iter()))
            };
            (read(train)?, read(o.test.as_ref().unwrap_or(train))?)
        }
        None => {
            let test = (o.rows..o.rows + o.rows / TEST).map(planted);
            (Rows::of((0..o.rows).map(planted)), Rows::of(test))
        }
    };
    let features =
        train.features.iter().chain(&test.features).map(|(feature, _)| *feature as usize + 1).max();
    Ok((train, test, features.unwrap_or(0)))
}
