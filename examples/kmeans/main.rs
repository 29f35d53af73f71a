//! k-means through the loop layer, by passes (Lloyd, 1982) or in mini-batches (Sculley, 2010), and its serial twin.
//!
//! `cargo run --release --example kmeans -- [--workers 2] [--batch 4096 --consistency bounded:1] [--points FILE]
//! [--serial] [--help]`
//!
//! A loop over blocks of points: each point is added to the totals of the cluster whose center is the nearest. Which cluster
//! that is depends on the data, so the totals take contributions through a *buffer*, and every worker has the centers that
//! follow from the totals as it sees them.
mod batches;
mod blocks;
mod centers;
mod first;
mod kernel;
mod lloyd;
mod options;
mod points;
mod saved;
#[path = "../training/mod.rs"]
pub(crate) mod training;
mod whole;
pub(crate) use self::centers::Centers;
pub(crate) use self::first::seed;
#[allow(unused_imports)] // for tests
pub(crate) use self::kernel::{Kernel, LANES};
pub(crate) use self::options::Options;
pub(crate) use self::points::{points, rows};
#[allow(unused_imports)] // for tests
pub(crate) use self::training::Instructions;

use blocks::{Blocks, Plain};
use clap::Parser;
use hectare::orion::relax::Consistency;
use hectare::orion::{Context, Result};
use std::process::ExitCode;
use training::{Baseline, Curve, alone};

const KINDS: [Consistency; 3] = [Consistency::Bsp, Consistency::Bounded(1), Consistency::Async];
const MEASURE: &str = "mean square distance";
const ADVICE: &str =
    "coordinates, and the squares of their differences, have to fit 32 bits: scale the points";

/// The clusters that were learned, and the course of the training.
#[derive(Clone, Debug)]
pub(crate) struct Trained {
    pub(crate) centers: Centers,
    /// The clusters of the points, after whole passes.
    pub(crate) labels: Vec<u32>,
    pub(crate) curve: Curve,
}

/// One cluster whose center is the mean of all points; `sums` has the sum of each coordinate, and of its squares, less about the middle:
/// of points that are far away, little would be left of the difference between the two.
fn one_cluster(sums: &[[f64; 2]], count: usize) -> Baseline {
    let count = count.max(1) as f64;
    let variance = |[sum, squares]: &[f64; 2]| squares / count - (sum / count).powi(2);
    let advice = "larger batches, or whole passes (--batch 0)";
    Baseline { loss: sums.iter().map(variance).sum(), of: "a single center in the middle", advice }
}

/// Adds coordinate `x` to the sums of its column, whose middle is about there.
fn tally(sums: &mut [f64; 2], x: f32, middle: f32) {
    let x = f64::from(x) - f64::from(middle);
    *sums = [sums[0] + x, sums[1] + x * x];
}

/// Centers, and the mean square of the distances to them after each pass. Collective.
pub(crate) fn train(w: &mut Context<'_>, o: &Options, consistency: Consistency) -> Result<Trained> {
    let points = points(w, o)?;
    let [count, columns] = points.shape();
    let blocks = Blocks::new(w, &points)?;
    let mut sums = vec![[0.0; 2]; columns];
    points.for_each_local(w, |[_, column], x| tally(&mut sums[column], x, blocks.middle[column]))?;
    for sums in &mut sums {
        *sums = w.all_reduce(*sums, |a, b| [a[0] + b[0], a[1] + b[1]])?;
    }
    let mut curve = Curve::of(MEASURE, ADVICE).against(one_cluster(&sums, count));
    let mut centers = match &o.load {
        Some(path) => saved::load(w, path, columns)?.moved(&blocks.middle, -1.0),
        None => seed(w, o, &blocks)?,
    };
    let labels = if o.batch == 0 {
        points.delete(w)?;
        let labels = whole::train(w, o, &blocks, &mut centers, &mut curve)?;
        centers = centers.moved(&blocks.middle, 1.0);
        labels
    } else {
        centers = centers.moved(&blocks.middle, 1.0);
        blocks.rows.delete(w)?;
        batches::train(w, o, &points, consistency, (&mut centers, &mut curve))?;
        Vec::new()
    };
    training::explain(w, &o.run)?;
    let trained = Trained { centers, labels, curve };
    saved::save(w, o, &trained)?;
    Ok(trained)
}

/// The same without Hectare, for points in rows of `columns` numbers.
pub(crate) fn serial(o: &Options, columns: usize, points: &[f32]) -> Result<Trained> {
    let rows: Vec<&[f32]> = points.chunks_exact(columns).collect();
    let blocks = Plain::new(columns, points);
    let mut sums = vec![[0.0; 2]; columns];
    for point in &rows {
        let columns = sums.iter_mut().zip(*point).zip(&blocks.middle);
        columns.for_each(|((sums, x), middle)| tally(sums, *x, *middle));
    }
    let mut curve = Curve::of(MEASURE, ADVICE).against(one_cluster(&sums, rows.len()));
    let mut centers = match &o.load {
        Some(path) => {
            let loaded = alone(|w| saved::load(w, path, columns))?;
            loaded.moved(&blocks.middle, -1.0)
        }
        None => first::seed_serially(o, &blocks),
    };
    let mut labels = Vec::new();
    if o.batch == 0 {
        labels = whole::train_serially(o, &blocks, &mut centers, &mut curve)?;
        centers = centers.moved(&blocks.middle, 1.0);
    } else {
        centers = centers.moved(&blocks.middle, 1.0);
        batches::train_serially(o, &rows, &mut centers, &mut curve)?;
    }
    let trained = Trained { centers, labels, curve };
    alone(|w| saved::save(w, o, &trained))?;
    Ok(trained)
}

/// The points for the serial twin: dimensions, and coordinates.
pub(crate) fn load(o: &Options) -> Result<(usize, Vec<f32>)> {
    alone(|w| {
        let points = points(w, o)?;
        Ok((points.shape()[1], points.to_vec(w)?))
    })
}

fn run(o: &Options) -> anyhow::Result<()> {
    o.check()?;
    let twin = || {
        let (columns, points) = load(o)?;
        Ok(serial(o, columns, &points)?.curve)
    };
    let parallel = |workers, consistency| {
        let all = hectare::run(workers, |w| train(w, o, consistency));
        Ok(all?.swap_remove(0).curve)
    };
    // By passes there is but one way.
    o.run.train(if o.batch == 0 { &[] } else { &KINDS }, twin, parallel)
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
