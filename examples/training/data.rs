//! Entries of sparse matrices and tensors, from files or generated, for workers or for the serial twin.
use super::{Baseline, Options};
use hectare::SparseArray;
use hectare::orion::array::Entry;
use hectare::orion::array::random::Stream;
use hectare::orion::{Context, Error, Result};
use hectare_data::text::{Columns, Share, read_entries};
use std::path::Path;

/// Keys and values, for a serial loop.
type Entries<const N: usize> = Vec<Entry<f32, N>>;

/// Of this many entries, one is kept for testing.
const TEST: usize = 10;
/// Columns of the factors that generated entries come from.
const PLANTED: u64 = 8;

/// Instead of predictions that are worse than none.
const AT_A_LOSS: &str = "steps were too long, or too few: try another --rate, or more --passes";

/// Entry `number` of a generated set: the product of planted factors, and noise.
fn planted<const N: usize>(shape: [usize; N], number: u64) -> ([usize; N], f32) {
    let stream = Stream::new(7, "planted");
    let key = std::array::from_fn(|dim| {
        // Low indices more often than high ones, as in real data.
        let unit = stream.uniform(number * 16 + dim as u64);
        ((unit * unit * shape[dim] as f64) as usize).min(shape[dim] - 1)
    });
    let factor = |dim: usize, k: u64| stream.child(1 + dim as u64).normal(key[dim] as u64 * PLANTED + k);
    let value: f64 = match N {
        2 => 3.0 + (0..PLANTED).map(|k| factor(0, k) * factor(1, k)).sum::<f64>() / (PLANTED as f64).sqrt(),
        // Products of more factors are found by SGD if they are positive.
        _ => {
            (0..PLANTED).map(|k| (0..N).map(|dim| (0.4 * factor(dim, k)).exp()).product::<f64>()).sum::<f64>()
                / 2.0
        }
    };
    (key, (value + 0.3 * stream.normal(number * 16 + 15)) as f32)
}

/// The entries to learn from and those to test with, as arrays on the workers; `shape` and `count` are for those that
/// are generated. Collective.
pub(crate) fn parallel<const N: usize>(
    w: &mut Context<'_>,
    o: &Options,
    shape: [usize; N],
    count: usize,
) -> Result<[SparseArray<f32, N>; 2]> {
    if let (Some(train), Some(test)) = (&o.train, &o.test) {
        let (from, by) = (train, test);
        let train = w.text_file(from, columns::<N>(from).parser())?;
        some("--train", from, train.len())?;
        let test = w.text_file_with_shape(by, train.shape(), columns::<N>(by).parser())?;
        some("--test", by, test.len())?;
        return Ok([train.named("train"), test.named("test")]);
    }
    let train = w.entries(shape, count - count / TEST, |k| planted(shape, k as u64))?;
    let test = w.entries(shape, count / TEST, |k| planted(shape, (count - count / TEST + k) as u64))?;
    Ok([train.named("train"), test.named("test")])
}

/// The columns of a file: of ratings, more may follow, mostly a time; of others it would be unclear which is the value.
fn columns<const N: usize>(path: &Path) -> Columns {
    Columns { more_columns: N == 2, ..Columns::found_in(path, N) }
}

/// A file of no entries is refused: the error of none would be zero.
fn some(option: &str, file: &Path, count: usize) -> Result<()> {
    match count {
        0 => Err(Error::Invalid(format!("{option} {}: the file has no entries", file.display()))),
        _ => Ok(()),
    }
}

/// The same for the serial twin, and the shape.
pub(crate) fn load<const N: usize>(
    o: &Options,
    shape: [usize; N],
    count: usize,
) -> Result<([usize; N], Entries<N>, Entries<N>)> {
    if let Some(train) = &o.train {
        let read = read_entries(train, Share::ALL, columns::<N>(train).parser::<f32, N>())?;
        let (shape, entries) = (read.shape(), read.into_vec());
        some("--train", train, entries.len())?;
        return Ok((shape, entries, tested(o)?));
    }
    let all = (0..count as u64).map(|number| {
        let (key, value) = planted(shape, number);
        Entry { key: key.map(|index| index as u32), value }
    });
    let mut train: Entries<N> = all.collect();
    let test = train.split_off(count - count / TEST);
    Ok((shape, train, test))
}

/// The entries to test with, in the order of their file.
pub(crate) fn tested<const N: usize>(o: &Options) -> Result<Entries<N>> {
    let Some(test) = &o.test else { return Ok(Vec::new()) };
    let entries = read_entries(test, Share::ALL, columns::<N>(test).parser::<f32, N>())?.into_vec();
    some("--test", test, entries.len())?;
    Ok(entries)
}

/// The baseline of predictions of values: the root of the mean squared error of always predicting the mean of those that are learned
/// from each time. Collective.
pub(crate) fn mean_guess<const N: usize>(
    w: &mut Context<'_>,
    train: &SparseArray<f32, N>,
    test: &SparseArray<f32, N>,
) -> Result<Baseline> {
    let mut sum = 0.0;
    train.for_each_local(|_, x| sum += f64::from(*x));
    let mean = w.all_reduce(sum, |a, b| a + b)? / train.len().max(1) as f64;
    let mut squares = 0.0;
    test.for_each_local(|_, x| squares += (f64::from(*x) - mean).powi(2));
    Ok(guess(w.all_reduce(squares, |a, b| a + b)?, test.len()))
}

/// The same for the serial twin.
pub(crate) fn guess_of_entries<const N: usize>(train: &[Entry<f32, N>], test: &[Entry<f32, N>]) -> Baseline {
    let values = |entries: &[Entry<f32, N>]| -> Vec<f64> {
        entries.iter().map(|entry| f64::from(entry.value)).collect()
    };
    let mean = values(train).iter().sum::<f64>() / train.len().max(1) as f64;
    guess(values(test).iter().map(|x| (x - mean).powi(2)).sum(), test.len())
}

fn guess(squares: f64, count: usize) -> Baseline {
    let loss = (squares / count.max(1) as f64).sqrt();
    Baseline { loss, of: "always predicting the mean of the training values", advice: AT_A_LOSS }
}

/// The numbers that [`Context::uniform`] gives.
pub(crate) fn uniform(len: usize, below: f32, seed: u64) -> Vec<f32> {
    let mut numbers = vec![0.0; len];
    Stream::new(0, "uniform").child(seed).fill_uniform(&mut numbers, 0, 0.0..below);
    numbers
}
