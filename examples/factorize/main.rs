//! Matrix factorization by SGD through the loop layer, with fixed or adaptive steps, and its serial twin.
//!
//! `cargo run --release --example factorize -- [--workers 2] [--serial] [--train FILE --test FILE] [--help]`
#[path = "../training/mod.rs"]
pub(crate) mod training;

use clap::Parser;
use hectare::orion::{Context, Result, dot, parallel_for};
use training::{Curve, Options, Steps, load, parallel, uniform};

/// Of the generated ratings: rows, columns, how many.
pub(crate) const SHAPE: [usize; 2] = [6000, 3500];
pub(crate) const COUNT: usize = 1_000_000;
/// Behind the columns of a row: what its slow and its other columns have seen (adaptive steps).
const SEEN: usize = 2;
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
        Steps::Adaptive => adaptive(o, a, b, x, first),
    }
}

/// Where factors begin: between zero and this, so that the slow columns find the mean at once.
const BELOW: f32 = 0.1;

pub(crate) fn train(w: &mut Context<'_>, o: &Options) -> Result<Curve> {
    let [mut r, mut test] = parallel(w, o, SHAPE, COUNT)?;
    // Neighbours are alike; in random order, all parts of a row or column are learned from at the same pace.
    for dim in 0..2 {
        (r, test) = (r.permute(w, dim, o.seed)?, test.permute(w, dim, o.seed)?);
    }
    let ([m, n], rank) = (r.shape(), o.rank);
    let mut u = w.uniform([m, rank + SEEN], 0.0..BELOW, 2 * o.seed)?;
    let mut v = w.uniform([n, rank + SEEN], 0.0..BELOW, 2 * o.seed + 1)?;
    let mut begun = 0;
    if let Some(path) = &o.checkpoint
        && let Some(saved) = w.open_checkpoint(path)?
    {
        begun = saved.value("passes")?;
        (u, v) = (saved.array(w, "u")?, saved.array(w, "v")?);
    }
    let mut curve = Curve::after(begun);
    for pass in begun..o.passes {
        let first = pass == 0;
        curve.begin();
        let squares = parallel_for!(w, unordered, read r, write [u, v], sum squares: f64;
        for ((i, j), x) in r {
            let e = step(o, u.row_mut(i), v.row_mut(j), *x, first);
            squares += (e * e) as f64;
        })?;
        curve.end();
        let missed = parallel_for!(w, unordered, read [test, u, v], sum missed: f64;
        for ((i, j), x) in test {
            missed += ((x - dot(&u.row(i)[..rank], &v.row(j)[..rank])) as f64).powi(2);
        })?;
        if let Some(path) = &o.checkpoint {
            w.save_checkpoint(path, |c| {
                c.value("passes", &(pass + 1))?;
                c.array("u", &u)?;
                c.array("v", &v)
            })?;
        }
        if !curve.add(o, (squares, r.len()), (missed, test.len()), w.rank() == 0) {
            break;
        }
    }
    w.root(|| o.explain.then(|| w.explain().iter().for_each(|loop_| println!("{loop_}"))));
    Ok(curve)
}

/// The same without Hectare.
pub(crate) fn serial(o: &Options) -> Result<Curve> {
    let ([m, n], list, test) = load(o, SHAPE, COUNT)?;
    let (rank, width) = (o.rank, o.rank + SEEN);
    let mut u = uniform(m * width, BELOW, 2 * o.seed);
    let mut v = uniform(n * width, BELOW, 2 * o.seed + 1);
    let mut curve = Curve::default();
    for pass in 0..o.passes {
        curve.begin();
        let mut squares = 0.0;
        for entry in &list {
            let [i, j] = entry.key.map(|key| key as usize);
            let (a, b) = (&mut u[i * width..][..width], &mut v[j * width..][..width]);
            let e = step(o, a, b, entry.value, pass == 0);
            squares += (e * e) as f64;
        }
        curve.end();
        let miss = |entry: &hectare::orion::array::Entry<f32, 2>| {
            let [i, j] = entry.key.map(|key| key as usize);
            ((entry.value - dot(&u[i * width..][..rank], &v[j * width..][..rank])) as f64).powi(2)
        };
        if !curve.add(o, (squares, list.len()), (test.iter().map(miss).sum(), test.len()), true) {
            break;
        }
    }
    Ok(curve)
}

fn main() -> anyhow::Result<()> {
    let o = Options::parse();
    anyhow::ensure!(o.rank > SLOW, "--rank {}: at least {}", o.rank, SLOW + 1);
    let curve =
        if o.serial { serial(&o)? } else { hectare::run(o.workers, |w| train(w, &o))?.swap_remove(0) };
    curve.finish(&o)
}
