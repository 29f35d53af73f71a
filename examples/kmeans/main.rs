//! k-means through the loop layer, by passes (Lloyd, 1982) or in mini-batches (Sculley, 2010), and its serial twin.
//!
//! `cargo run --release --example kmeans -- [--workers 2] [--batch 4096 --consistency bounded:1] [--points FILE]
//! [--serial] [--help]`
//!
//! A loop over the points: each is added to the totals of the cluster whose center is the nearest. Which cluster that is
//! depends on the data, so the totals take contributions through a *buffer*, and every worker has the centers that follow
//! from the totals as it sees them.
mod centers;
mod options;
#[path = "../training/mod.rs"]
pub(crate) mod training;
pub(crate) use self::centers::Centers;
pub(crate) use self::options::{Options, points};

use centers::{fill, square};
use clap::Parser;
use hectare::DistArray;
use hectare::orion::array::random::Stream;
use hectare::orion::relax::{Buffered, Consistency, Every, Relax, Sum};
use hectare::orion::{Context, Error, Result, parallel_for};
use std::cell::RefCell;
use std::process::ExitCode;
use training::{Baseline, Curve};

const KINDS: [Consistency; 3] = [Consistency::Bsp, Consistency::Bounded(1), Consistency::Async];
const MEASURE: &str = "mean square distance";
const ADVICE: &str =
    "coordinates, and the squares of their differences, have to fit 32 bits: scale the points";

/// When point `number` comes in the race for the next center: after a time that is exponentially distributed, the
/// sooner the farther it is from the centers that there are. So the first is drawn with a probability proportional to the
/// square of its distance, whoever runs which points.
fn arrival(o: &Options, center: usize, number: usize, square: f32) -> f64 {
    let unit = Stream::new(o.seed, "first centers").child(center as u64).uniform(number as u64);
    -(1.0 - unit).ln() / f64::from(square)
}

/// The point that is the first center.
fn first(o: &Options, count: usize) -> usize {
    Stream::new(o.seed, "first center").below(0, count as u64) as usize
}

/// The first centers, by k-means++ (Arthur and Vassilvitskii, 2007). Collective.
pub(crate) fn seed(w: &mut Context<'_>, o: &Options, points: &DistArray<f32, 2>) -> Result<Centers> {
    let [count, columns] = points.shape();
    if count == 0 {
        return Err(Error::Invalid("there are no points".into()));
    }
    let (mut centers, mut chosen) = (Centers::new(columns), first(o, count));
    let mut squares = w.fill::<f32, 1>([count], f32::INFINITY)?;
    for number in 1..=o.clusters {
        let center = points.read(w)?.row(chosen).to_vec();
        centers.push(&center);
        let best = parallel_for!(w, unordered, read points, write squares,
            fold best: [f64; 2] = [f64::INFINITY, 0.0] with |a, b| if b[0] < a[0] { b } else { a };
        for i in 0..count {
            let near = squares[i].min(square(points.row(i), &center));
            squares[i] = near;
            best = fold(best, [arrival(o, number, i, near), i as f64]);
        })?;
        chosen = best[1] as usize;
    }
    squares.delete(w)?;
    Ok(centers)
}

/// One pass: adds each point to the totals of its cluster. Centers follow the totals in the midst of the pass if `follows`.
fn pass(
    w: &mut Context<'_>,
    points: &DistArray<f32, 2>,
    totals: &mut Buffered<f64, 2, Sum>,
    centers: &mut Centers,
    (follows, Relax { consistency, every }): (bool, Relax),
) -> Result<()> {
    let [count, columns] = points.shape();
    let own = RefCell::new((centers.clone(), vec![0.0; columns + 1]));
    parallel_for!(w, unordered, read points, buffer totals, consistency = consistency, every = every;
    for i in 0..count {
        let (centers, contribution) = &mut *own.borrow_mut();
        if follows {
            for cluster in 0..centers.len() {
                centers.follow(cluster, totals.row(cluster));
            }
        }
        let (cluster, _) = centers.nearest(points.row(i));
        fill(contribution, points.row(i));
        totals.add_row(cluster, contribution);
    })?;
    centers.follow_all(&totals.array().to_vec(w)?);
    Ok(())
}

/// One cluster whose center is the mean of all points; `sums` has the sum of each coordinate, and of its squares.
fn one_cluster(sums: &[[f64; 2]], count: usize) -> Baseline {
    let count = count.max(1) as f64;
    let variance = |[sum, squares]: &[f64; 2]| squares / count - (sum / count).powi(2);
    let advice = "larger batches, or whole passes (--batch 0)";
    Baseline { loss: sums.iter().map(variance).sum(), of: "a single center in the middle", advice }
}

/// Adds coordinate `x` to the sums of its column.
fn tally(sums: &mut [f64; 2], x: f32) {
    let x = f64::from(x);
    *sums = [sums[0] + x, sums[1] + x * x];
}

/// The centers, and the mean square of the distances to them after each pass. Collective.
pub(crate) fn train(w: &mut Context<'_>, o: &Options, consistency: Consistency) -> Result<(Centers, Curve)> {
    let points = points(w, o)?;
    let ([count, columns], mut centers) = (points.shape(), seed(w, o, &points)?);
    let zeros = w.zeros::<f64, 2>([o.clusters, columns + 1])?.named("totals");
    let mut totals = w.buffered(zeros, Sum)?;
    let lloyd = o.batch == 0;
    let relax = match lloyd {
        true => Relax { consistency: Consistency::Bsp, every: Every::PerPass(1) },
        false => Relax { consistency, every: o.run.every(count.div_ceil(o.batch)) },
    };
    let mut sums = vec![[0.0; 2]; columns];
    points.for_each_local(w, |[_, column], x| tally(&mut sums[column], x))?;
    for sums in &mut sums {
        *sums = w.all_reduce(*sums, |a, b| [a[0] + b[0], a[1] + b[1]])?;
    }
    let mut curve = Curve::of(MEASURE, ADVICE).against(one_cluster(&sums, count));
    for _ in 0..o.passes {
        curve.begin();
        if lloyd {
            totals.reset(w, 0.0)?;
        }
        pass(w, &points, &mut totals, &mut centers, (!lloyd, relax))?;
        curve.end();
        let squares = parallel_for!(w, unordered, read points, sum squares: f64;
        for i in 0..count {
            squares += centers.nearest(points.row(i)).1;
        })?;
        if !curve.push(&o.run, None, squares / count as f64, w.rank() == 0)? {
            break;
        }
    }
    training::explain(w, &o.run)?;
    Ok((centers, curve))
}

/// The same without Hectare, for points in rows of `columns` numbers.
pub(crate) fn serial(o: &Options, columns: usize, points: &[f32]) -> Result<(Centers, Curve)> {
    let points: Vec<&[f32]> = points.chunks_exact(columns).collect();
    let (mut centers, mut chosen) = (Centers::new(columns), first(o, points.len()));
    let mut squares = vec![f32::INFINITY; points.len()];
    for number in 1..=o.clusters {
        centers.push(points[chosen]);
        let mut best = (f64::INFINITY, 0);
        for (i, (point, near)) in points.iter().zip(&mut squares).enumerate() {
            *near = near.min(square(point, points[chosen]));
            let arrival = arrival(o, number, i, *near);
            if arrival < best.0 {
                best = (arrival, i);
            }
        }
        chosen = best.1;
    }
    let mut totals = vec![0.0f64; o.clusters * (columns + 1)];
    let mut sums = vec![[0.0; 2]; columns];
    for point in &points {
        sums.iter_mut().zip(*point).for_each(|(sums, x)| tally(sums, *x));
    }
    let mut curve = Curve::of(MEASURE, ADVICE).against(one_cluster(&sums, points.len()));
    for _ in 0..o.passes {
        curve.begin();
        if o.batch == 0 {
            totals.fill(0.0);
        }
        for batch in points.chunks(if o.batch == 0 { points.len() } else { o.batch }) {
            for point in batch {
                let (cluster, _) = centers.nearest(point);
                let totals = &mut totals[cluster * (columns + 1)..][..columns + 1];
                totals.iter_mut().zip(*point).for_each(|(sum, x)| *sum += f64::from(*x));
                totals[columns] += 1.0;
            }
            centers.follow_all(&totals);
        }
        curve.end();
        let squares: f64 = points.iter().map(|point| centers.nearest(point).1).sum();
        if !curve.push(&o.run, None, squares / points.len() as f64, true)? {
            break;
        }
    }
    Ok((centers, curve))
}

/// The points for the serial twin: dimensions, and coordinates.
pub(crate) fn load(o: &Options) -> Result<(usize, Vec<f32>)> {
    let all = hectare::run(1, |w| {
        let points = points(w, o)?;
        Ok((points.shape()[1], points.to_vec(w)?))
    });
    Ok(all?.swap_remove(0))
}

fn run(o: &Options) -> anyhow::Result<()> {
    o.check()?;
    let twin = || {
        let (columns, points) = load(o)?;
        anyhow::ensure!(!points.is_empty(), "there are no points");
        Ok(serial(o, columns, &points)?.1)
    };
    let parallel = |workers, consistency| {
        let all = hectare::run(workers, |w| train(w, o, consistency));
        Ok(all?.swap_remove(0).1)
    };
    // By passes there is but one way.
    o.run.train(if o.batch == 0 { &[] } else { &KINDS }, twin, parallel)
}

fn main() -> ExitCode {
    training::exit(run(&Options::parse()))
}
