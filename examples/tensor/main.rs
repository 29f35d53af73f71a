//! CP tensor factorization by SGD through the loop layer, by diagonal strata (Beutel et al., 2014), and its serial
//! twin.
//!
//! `cargo run --release --example tensor -- [--workers 2] [--serial] [--train FILE --test FILE] [--help]`
#[path = "../training/mod.rs"]
pub(crate) mod training;

use clap::Parser;
use hectare::orion::{Context, Result, parallel_for};
use std::process::ExitCode;
use training::factors::{self, Factors};
use training::{
    Blocks, Curve, Options, Steps, TOO_LONG, alone, guess_of_entries, load, mean_guess, parallel, uniform,
};

/// Of the generated tensor: extents, how many entries.
const SHAPE: [usize; 3] = [3000, 2000, 400];
const COUNT: usize = 1_000_000;
/// The files of the factors.
const NAMES: [&str; 3] = ["first.npy", "second.npy", "third.npy"];
/// Behind the columns of a row: what it has seen (adaptive steps).
const SEEN: usize = 1;
/// Where factors begin: between zero and this.
const BELOW: f32 = 1.0;

/// The value that three rows predict: sixteen partial sums, so that it vectorizes.
#[inline(always)]
fn predict(a: &[f32], b: &[f32], c: &[f32]) -> f32 {
    let mut lanes = [0.0f32; 16];
    let blocks = a.chunks(16).zip(b.chunks(16)).zip(c.chunks(16));
    for ((a, b), c) in blocks {
        for (lane, ((a, b), c)) in lanes.iter_mut().zip(a.iter().zip(b).zip(c)) {
            *lane += a * b * c;
        }
    }
    lanes.iter().sum()
}

/// A step of SGD; the error before it. With adaptive steps, a row's rate falls with the gradients it has seen.
#[inline(always)]
fn step(rows: [&mut [f32]; 3], x: f32, o: &Options) -> f32 {
    let [(a, ga), (b, gb), (c, gc)] = rows.map(|row| row.split_at_mut(o.rank));
    let (e, reg) = (x - predict(a, b, c), o.reg);
    let [ra, rb, rc] = match o.steps {
        Steps::Fixed => [o.rate() / 4.0; 3],
        _ => [ga, gb, gc].map(|seen| {
            let rate = o.rate() / (1.0 + seen[0]).sqrt();
            seen[0] += e * e;
            rate
        }),
    };
    for ((a, b), c) in a.iter_mut().zip(b).zip(c) {
        let (p, q, r) = (*a, *b, *c);
        *a += ra * (e * q * r - reg * p);
        *b += rb * (e * p * r - reg * q);
        *c += rc * (e * p * q - reg * r);
    }
    e
}

/// Trains, from the factors on that are to be loaded, and saves what they have become, as the options say. Collective.
fn train(w: &mut Context<'_>, o: &Options) -> Result<Curve> {
    let loaded = Factors::load(w, o, NAMES)?;
    let loaded = loaded.as_ref();
    let [t, test] = parallel(w, o, SHAPE, COUNT)?;
    let ([l, m, n], rank) = (t.shape(), o.rank);
    let mut start = |dim: usize, extent: usize| match loaded {
        Some(loaded) => {
            let rows = loaded.widened(o, (dim, extent), rank + SEEN, |index| index)?;
            w.from_slice([extent, rank + SEEN], &rows)
        }
        None => w.uniform([extent, rank + SEEN], 0.0..BELOW, 3 * o.seed + dim as u64),
    };
    let (mut u, mut v, mut z) = (start(0, l)?, start(1, m)?, start(2, n)?);
    let mut curve = Curve::of("test RMSE", TOO_LONG).against(mean_guess(w, &t, &test)?);
    for _ in 0..o.passes {
        curve.begin();
        let squares = parallel_for!(w, unordered, read t, write [u, v, z], sum squares: f64;
        for ((i, j, k), x) in t {
            let e = step([u.row_mut(i), v.row_mut(j), z.row_mut(k)], *x, o);
            squares += (e * e) as f64;
        })?;
        curve.end();
        let missed = parallel_for!(w, unordered, read [test, u, v, z], sum missed: f64;
        for ((i, j, k), x) in test {
            let guess = predict(&u.row(i)[..rank], &v.row(j)[..rank], &z.row(k)[..rank]);
            missed += ((x - guess) as f64).powi(2);
        })?;
        if !curve.add(&o.run, (squares, t.len()), (missed, test.len()), Some(w))? {
            break;
        }
    }
    training::explain(w, &o.run)?;
    if let Some(folder) = &o.save {
        let rows = [u.to_vec(w)?, v.to_vec(w)?, z.to_vec(w)?];
        let found = rows.map(|rows| factors::cut(o, &rows, rank + SEEN, |index| index));
        factors::save(w, folder, o, NAMES, &found)?;
    }
    Ok(curve)
}

/// The same without Hectare, but for the files.
fn serial(o: &Options) -> Result<Curve> {
    let loaded = alone(|w| Factors::load(w, o, NAMES))?;
    let loaded = loaded.as_ref();
    let (shape, list, test) = load(o, SHAPE, COUNT)?;
    let (rank, width) = (o.rank, o.rank + SEEN);
    let start = |dim: usize| match loaded {
        Some(loaded) => loaded.widened(o, (dim, shape[dim]), width, |index| index),
        None => Ok(uniform(shape[dim] * width, BELOW, 3 * o.seed + dim as u64)),
    };
    let (mut u, mut v, mut z) = (start(0)?, start(1)?, start(2)?);
    let mut curve = Curve::of("test RMSE", TOO_LONG).against(guess_of_entries(&list, &test));
    for _ in 0..o.passes {
        curve.begin();
        let mut squares = 0.0;
        for entry in &list {
            let [a, b, c] = entry.key.map(|key| key as usize * width);
            let rows = [&mut u[a..][..width], &mut v[b..][..width], &mut z[c..][..width]];
            squares += f64::from(step(rows, entry.value, o).powi(2));
        }
        curve.end();
        let miss = |entry: &hectare::orion::array::Entry<f32, 3>| {
            let [a, b, c] = entry.key.map(|key| key as usize * width);
            f64::from(entry.value - predict(&u[a..][..rank], &v[b..][..rank], &z[c..][..rank])).powi(2)
        };
        if !curve.add(&o.run, (squares, list.len()), (test.iter().map(miss).sum(), test.len()), None)? {
            break;
        }
    }
    if let Some(folder) = &o.save {
        let found = [u, v, z].map(|rows| factors::cut(o, &rows, width, |index| index));
        alone(|w| factors::save(w, folder, o, NAMES, &found))?;
    }
    Ok(curve)
}

fn run(o: &Options) -> anyhow::Result<()> {
    anyhow::ensure!(o.steps != Steps::AdaRevision, "--steps: fixed or adaptive");
    anyhow::ensure!(o.checkpoint.is_none(), "--checkpoint: this program saves none (`factorize` does)");
    anyhow::ensure!(o.blocks == Blocks::Planned, "--blocks: planned (`factorize` has others)");
    o.check()?;
    if let Some(path) = &o.predict {
        return factors::predict(o, NAMES, path, |[a, b, c]| predict(a, b, c));
    }
    let parallel = |workers, _| Ok(hectare::run(workers, |w| train(w, o))?.swap_remove(0));
    o.run.by(o.steps.said()).train(&[], || Ok(serial(o)?), parallel)
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
