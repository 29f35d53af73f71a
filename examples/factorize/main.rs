//! Matrix factorization by SGD through the loop layer, with fixed or adaptive steps, and its serial twin.
//!
//! `cargo run --release --example factorize -- [--workers 2] [--serial] [--train FILE --test FILE] [--help]`
//!
//! As it stands, the loop is run as a rotation, in which nothing is given up. With `--consistency bsp`, `bounded:S` or
//! `async` it gives up the rows of `v`, and needs no handovers (`relaxed`).
mod relaxed;
mod resume;
#[path = "../training/mod.rs"]
pub(crate) mod training;

use clap::Parser;
use hectare::orion::relax::{AdaRevision, Buffered, Consistency, Relaxation};
use hectare::orion::schedule::Dynamic;
use hectare::orion::{Context, Result, dot, parallel_for};
use hectare::{DistArray, SparseArray};
use relaxed::Revised;
use resume::{Begun, Origin};
use std::process::ExitCode;
use training::factors::{self, Factors};
use training::{
    Blocks, Curve, Options, Steps, TOO_LONG, alone, guess_of_entries, load, mean_guess, parallel, uniform,
};

/// How loops may be run: as a rotation, or with the columns relaxed.
const KINDS: [Consistency; 4] =
    [Consistency::Serializable, Consistency::Bsp, Consistency::Bounded(1), Consistency::Async];
/// Clocks in a pass.
const CLOCKS: usize = 16;

/// Of the generated ratings: rows, columns, how many.
pub(crate) const SHAPE: [usize; 2] = [6000, 3500];
pub(crate) const COUNT: usize = 1_000_000;
/// Behind the columns of a row: what its slow and its other columns have seen (adaptive steps).
const SEEN: usize = 2;
/// The files of the factors.
const NAMES: [&str; 2] = ["rows.npy", "columns.npy"];
/// Columns that learn alone in the first pass, and count for themselves.
const SLOW: usize = 4;

/// A step with a fixed rate; the error before it.
#[inline(always)]
fn fixed(o: &Options, a: &mut [f32], b: &mut [f32], x: f32) -> f32 {
    let (a, b) = (&mut a[..o.rank], &mut b[..o.rank]);
    let e = x - dot(a, b);
    let (along, keep) = (o.rate() * e, 1.0 - o.rate() * o.reg);
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (keep * *a + along * *b, keep * *b + along * *a);
    }
    e
}

/// A step of AdaGrad (Duchi et al., 2011) with one rate per row and group of columns (Chin et al., 2015).
#[inline(always)]
fn adaptive(o: &Options, a: &mut [f32], b: &mut [f32], x: f32, first: bool) -> f32 {
    let ((a, ga), (b, gb)) = (a.split_at_mut(o.rank), b.split_at_mut(o.rank));
    let ((slow_a, fast_a), (slow_b, fast_b)) = (a.split_at_mut(SLOW), b.split_at_mut(SLOW));
    let e = x - dot(slow_a, slow_b) - dot(fast_a, fast_b);
    let group = |a: &mut [f32], b: &mut [f32], ga: &mut f32, gb: &mut f32| {
        let each = e * e / a.len() as f32;
        let (more_a, more_b) = (each * dot(b, b), each * dot(a, a));
        let (ra, rb) = (o.rate() / (1.0 + *ga).sqrt(), o.rate() / (1.0 + *gb).sqrt());
        for (a, b) in a.iter_mut().zip(b) {
            let was = *a;
            *a += ra * (e * *b - o.reg * was);
            *b += rb * (e * was - o.reg * *b);
        }
        (*ga, *gb) = (*ga + more_a, *gb + more_b);
    };
    group(slow_a, slow_b, &mut ga[0], &mut gb[0]);
    if !first {
        group(fast_a, fast_b, &mut ga[1], &mut gb[1]);
    }
    e
}

#[inline(always)]
fn step(o: &Options, a: &mut [f32], b: &mut [f32], x: f32, first: bool) -> f32 {
    match o.steps {
        Steps::Fixed => fixed(o, a, b, x),
        _ => adaptive(o, a, b, x, first),
    }
}

/// How long rows are: of `u`, and of `v`.
fn widths(o: &Options) -> [usize; 2] {
    match o.steps {
        // The gradients that a number of `v` has seen are a helper value of its buffer.
        Steps::AdaRevision => [2 * o.rank, o.rank],
        _ => [o.rank + SEEN; 2],
    }
}

/// The rows `v`, and how loops change them.
#[allow(clippy::large_enum_variant)] // there is one
enum Columns {
    Plain(DistArray<f32, 2>),
    Buffered(Buffered<f32, 2, AdaRevision>),
}

impl Columns {
    fn array(&self) -> &DistArray<f32, 2> {
        match self {
            Columns::Plain(array) => array,
            Columns::Buffered(buffered) => buffered.array(),
        }
    }
}

/// One pass; the sum of squared errors.
fn pass(
    w: &mut Context<'_>,
    (o, first, relax): (&Options, bool, Relaxation),
    r: &SparseArray<f32, 2>,
    u: &mut DistArray<f32, 2>,
    v: &mut Columns,
) -> Result<f64> {
    match v {
        Columns::Buffered(v) => relaxed::revised_pass(w, (o, relax), r, u, v),
        Columns::Plain(v) if relax.consistency != Consistency::Serializable => {
            relaxed::pass(w, (o, first, relax), r, u, v)
        }
        Columns::Plain(v) if o.blocks == Blocks::Dynamic => {
            parallel_for!(w, unordered, read r, write [u, v], sum squares: f64, schedule = Dynamic;
            for ((i, j), x) in r {
                let e = step(o, u.row_mut(i), v.row_mut(j), *x, first);
                squares += (e * e) as f64;
            })
        }
        Columns::Plain(v) => {
            parallel_for!(w, unordered, read r, write [u, v], sum squares: f64;
            for ((i, j), x) in r {
                let e = step(o, u.row_mut(i), v.row_mut(j), *x, first);
                squares += (e * e) as f64;
            })
        }
    }
}

/// Where factors begin: between zero and this, so that the slow columns find the mean at once.
const BELOW: f32 = 0.1;

/// Trains, from the factors on that are to be loaded, and saves what they have become, as the options say. Collective.
pub(crate) fn train(w: &mut Context<'_>, o: &Options, consistency: Consistency) -> Result<Curve> {
    let loaded = Factors::load(w, o, NAMES)?;
    let loaded = loaded.as_ref();
    let [mut r, mut test] = parallel(w, o, SHAPE, COUNT)?;
    // Neighbours are alike; in random order, all parts of a row or column are learned from at the same pace.
    for dim in 0..2 {
        (r, test) = (r.permute(w, dim, o.seed)?, test.permute(w, dim, o.seed)?);
    }
    let ([m, n], rank) = (r.shape(), o.rank);
    let [mut u, mut v] = start(w, o, [m, n], loaded)?;
    let mut begun = 0;
    let checkpoint = match &o.checkpoint {
        Some(path) => Some((path, Origin::new(w, o, &r)?)),
        None => None,
    };
    if let Some((path, origin)) = &checkpoint
        && let Some(Begun { passes, factors }) = origin.resume(w, o, path)?
    {
        begun = passes;
        [u, v] = factors;
    }
    let mut v = match o.steps {
        Steps::AdaRevision => Columns::Buffered(w.buffered(v, AdaRevision::new(o.rate().into()))?),
        _ => Columns::Plain(v),
    };
    let relax = Relaxation { consistency, every: o.run.every(CLOCKS), ..Relaxation::default() };
    let baseline = mean_guess(w, &r, &test)?;
    let mut curve = Curve::of("test RMSE", TOO_LONG).against(baseline).after(begun);
    for number in begun..o.passes {
        curve.begin();
        let squares = pass(w, (o, number == 0 && loaded.is_none(), relax), &r, &mut u, &mut v)?;
        curve.end();
        let v = v.array();
        let missed = parallel_for!(w, unordered, read [test, u, v], sum missed: f64;
        for ((i, j), x) in test {
            missed += ((x - dot(&u.row(i)[..rank], &v.row(j)[..rank])) as f64).powi(2);
        })?;
        if let Some((path, origin)) = &checkpoint {
            origin.save(w, path, number + 1, [&u, v])?;
        }
        if !curve.add(&o.run, (squares, r.len()), (missed, test.len()), Some(w))? {
            break;
        }
    }
    training::explain(w, &o.run)?;
    if let Some(folder) = &o.save {
        let renamed = [w.permutation(m, o.seed), w.permutation(n, o.seed)];
        let rows = [u.to_vec(w)?, v.array().to_vec(w)?];
        let found = std::array::from_fn(|at| {
            factors::cut(o, &rows[at], widths(o)[at], |index| renamed[at].apply(index))
        });
        factors::save(w, folder, o, NAMES, &found)?;
    }
    Ok(curve)
}

/// The factors at first.
fn start(
    w: &mut Context<'_>,
    o: &Options,
    shape: [usize; 2],
    loaded: Option<&Factors<2>>,
) -> Result<[DistArray<f32, 2>; 2]> {
    let [wide, narrow] = widths(o);
    if let Some(loaded) = loaded {
        let mut array = |dim: usize, width: usize| {
            let renamed = w.permutation(shape[dim], o.seed);
            let rows = loaded.widened(o, (dim, shape[dim]), width, |index| renamed.apply(index))?;
            w.from_slice([shape[dim], width], &rows)
        };
        return Ok([array(0, wide)?, array(1, narrow)?]);
    }
    let u = w.uniform([shape[0], wide], 0.0..BELOW, 2 * o.seed)?;
    let v = w.uniform([shape[1], narrow], 0.0..BELOW, 2 * o.seed + 1)?;
    Ok([u, v])
}

/// The same without Hectare, but for the files.
pub(crate) fn serial(o: &Options) -> Result<Curve> {
    let loaded = alone(|w| Factors::load(w, o, NAMES))?;
    let loaded = loaded.as_ref();
    let ([m, n], list, test) = load(o, SHAPE, COUNT)?;
    let (rank, [wide, narrow]) = (o.rank, widths(o));
    let start = |dim: usize, extent: usize, width: usize| match loaded {
        Some(loaded) => loaded.widened(o, (dim, extent), width, |index| index),
        None => Ok(uniform(extent * width, BELOW, 2 * o.seed + dim as u64)),
    };
    let (mut u, mut v) = (start(0, m, wide)?, start(1, n, narrow)?);
    let mut revised = (o.steps == Steps::AdaRevision).then(|| Revised::new(o, n * rank));
    let mut curve = Curve::of("test RMSE", TOO_LONG).against(guess_of_entries(&list, &test));
    for pass in 0..o.passes {
        curve.begin();
        let mut squares = 0.0;
        for entry in &list {
            let [i, j] = entry.key.map(|key| key as usize);
            let (a, b) = (&mut u[i * wide..][..wide], &mut v[j * narrow..][..narrow]);
            let e = match &mut revised {
                Some(revised) => revised.step(o, a, b, entry.value, j),
                None => step(o, a, b, entry.value, pass == 0 && loaded.is_none()),
            };
            squares += (e * e) as f64;
        }
        curve.end();
        let miss = |entry: &hectare::orion::array::Entry<f32, 2>| {
            let [i, j] = entry.key.map(|key| key as usize);
            ((entry.value - dot(&u[i * wide..][..rank], &v[j * narrow..][..rank])) as f64).powi(2)
        };
        if !curve.add(&o.run, (squares, list.len()), (test.iter().map(miss).sum(), test.len()), None)? {
            break;
        }
    }
    if let Some(folder) = &o.save {
        let found = [factors::cut(o, &u, wide, |index| index), factors::cut(o, &v, narrow, |index| index)];
        alone(|w| factors::save(w, folder, o, NAMES, &found))?;
    }
    Ok(curve)
}

fn run(o: &Options) -> anyhow::Result<()> {
    anyhow::ensure!(o.rank > SLOW, "--rank {}: at least {}", o.rank, SLOW + 1);
    anyhow::ensure!(
        o.checkpoint.is_none() || o.steps != Steps::AdaRevision,
        "--checkpoint: not with --steps ada-revision, which has more to go on from than factors: --steps adaptive"
    );
    o.check()?;
    if let Some(path) = &o.predict {
        return factors::predict(o, NAMES, path, |[a, b]| dot(a, b));
    }
    let parallel =
        |workers, consistency| Ok(hectare::run(workers, |w| train(w, o, consistency))?.swap_remove(0));
    o.run.by(o.steps.said()).train(&KINDS, || Ok(serial(o)?), parallel)
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
