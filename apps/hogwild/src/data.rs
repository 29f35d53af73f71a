//! Examples: a worker's part of a LIBSVM file, or of generated ones.
use crate::options::Options;
use anyhow::{Result, bail, ensure};
use hectare_data::random::Stream;
use hectare_data::text::{LabelledRow, Share, libsvm, read_rows};
use std::path::Path;

/// Features of a generated example.
const PER_ROW: usize = 12;
/// One test example is generated for this many training examples.
const TEST: usize = 5;

/// The examples of one worker.
#[derive(Debug)]
pub(crate) struct Examples {
    pub(crate) train: Vec<LabelledRow>,
    /// Of the worker that tests, which is the first; empty elsewhere.
    pub(crate) test: Vec<LabelledRow>,
    /// Of all workers' examples.
    pub(crate) features: usize,
    /// The most examples that a worker has.
    pub(crate) longest: usize,
}

/// Part `rank` of `size`.
pub(crate) fn load(options: &Options, rank: usize, size: usize) -> Result<Examples> {
    let part = |count: usize| rank * count / size..(rank + 1) * count / size;
    let Some(path) = &options.data else {
        let tested = if rank == 0 { options.rows / TEST } else { 0 };
        return Ok(Examples {
            train: part(options.rows).map(|number| planted(number, options.features)).collect(),
            test: (options.rows..options.rows + tested).map(|n| planted(n, options.features)).collect(),
            features: options.features,
            longest: options.rows.div_ceil(size),
        });
    };
    let mut all = read(path)?;
    let mut test = options.test.as_deref().map_or_else(|| Ok(all.clone()), read)?;
    // All workers read the same files, and so come to the same numbers.
    let features = |rows: &[LabelledRow]| {
        rows.iter().flat_map(|row| &row.features).map(|(feature, _)| *feature as usize + 1).max().unwrap_or(0)
    };
    let (count, features) = (all.len(), features(&all).max(features(&test)));
    ensure!(count >= size, "{}: {count} examples are too few for {size} workers", path.display());
    let positive = all.iter().map(|row| row.label).fold(f32::MIN, f32::max);
    let negative = all.iter().map(|row| row.label).fold(f32::MAX, f32::min);
    for row in all.iter_mut().chain(&mut test) {
        if row.label != positive && row.label != negative {
            bail!("{}: labels {negative}, {positive} and {}; two are wanted", path.display(), row.label);
        }
        row.label = if row.label == positive { 1.0 } else { -1.0 };
    }
    let train = all.drain(part(count)).collect();
    if rank != 0 {
        test.clear();
    }
    Ok(Examples { train, test, features, longest: count.div_ceil(size) })
}

fn read(path: &Path) -> Result<Vec<LabelledRow>> {
    Ok(read_rows(path, Share::ALL, libsvm)?)
}

/// Generated example `number`: some random features of value 1, and a label by a planted model with noise.
fn planted(number: usize, features: usize) -> LabelledRow {
    let stream = Stream::new(21, "hogwild").child(number as u64);
    let weights = Stream::new(22, "hogwild weights");
    let mut chosen: Vec<u32> = Vec::with_capacity(PER_ROW);
    let mut draws = 0;
    while chosen.len() < PER_ROW {
        // Half of them are from the first sixteenth: some features are common.
        let bound = if draws % 2 == 0 { features / 16 } else { features };
        let feature = stream.below(draws, bound as u64) as u32;
        draws += 1;
        // A row has as many features as there are, if there are few.
        if !chosen.contains(&feature) || draws > 100 {
            chosen.push(feature);
        }
    }
    chosen.sort_unstable();
    chosen.dedup();
    let margin: f64 = chosen.iter().map(|feature| weights.normal(u64::from(*feature))).sum();
    let noisy = margin + stream.child(1).normal(0);
    let label = if noisy > 0.0 { 1.0 } else { -1.0 };
    LabelledRow { label, features: chosen.into_iter().map(|feature| (feature, 1.0)).collect() }
}
