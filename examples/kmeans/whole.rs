//! Whole passes: all points go to their centers, then all centers to the means of their points.
use super::blocks::{BLOCK, Blocks, Plain};
use super::lloyd::{Kept, NONE, Pass, Scratch};
use super::training::Curve;
use super::{Centers, Options};
use hectare::DistArray;
use hectare::orion::relax::{Buffered, Consistency, Every, Sum};
use hectare::orion::{Context, Result, parallel_for};
use std::cell::RefCell;

/// The points' clusters and bounds, beside the totals of the clusters.
struct State {
    labels: DistArray<u32, 2>,
    bounds: DistArray<f32, 2>,
    totals: Buffered<f64, 2, Sum>,
}

/// Visits all points; how many change their clusters.
fn visit(w: &mut Context<'_>, points: &Blocks, pass: &Pass, state: &mut State) -> Result<u64> {
    let (Blocks { shape, rows, .. }, State { labels, bounds, totals }) = (points, state);
    let scratch = RefCell::new(Scratch::new(*shape));
    parallel_for!(w, unordered, read rows, write [labels, bounds], buffer totals,
        consistency = Consistency::Bsp, every = Every::PerPass(1), sum changed: u64;
    for b in 0..shape.blocks() {
        let kept = Kept::new(labels.row_mut(b), bounds.row_mut(b));
        let mut add = |cluster: usize, x: &[f64]| totals.add_row(cluster, x);
        changed += pass.visit((b, rows.row(b)), kept, &mut scratch.borrow_mut(), &mut add);
    })
}

/// Moves the centers, which are as far from zero as the blocks', and adds to the curve; the clusters of the points at last.
/// Collective.
pub(crate) fn train(
    w: &mut Context<'_>,
    o: &Options,
    points: &Blocks,
    centers: &mut Centers,
    curve: &mut Curve,
) -> Result<Vec<u32>> {
    let (shape, rows) = (points.shape, &points.rows);
    let totals = w.zeros::<f64, 2>([centers.len(), shape.columns + 1])?.named("totals");
    let mut state = State {
        labels: w.fill([shape.blocks(), BLOCK], NONE)?.named("labels"),
        bounds: w.zeros([shape.blocks(), 2 * BLOCK])?.named("bounds"),
        totals: w.buffered(totals, Sum)?,
    };
    let squares = parallel_for!(w, unordered, read rows, sum squares: f64; for b in 0..shape.blocks() {
        squares += square(rows.row(b));
    })?;
    let mut pass = Pass::first(shape, centers.clone());
    curve.begin();
    let mut changed = visit(w, points, &pass, &mut state)?;
    for _ in 0..o.passes {
        // Centers are the means of their points: nothing would change.
        if changed == 0 {
            break;
        }
        curve.begin_unless_begun();
        pass = pass.next(&state.totals.array().to_vec(w)?);
        changed = visit(w, points, &pass, &mut state)?;
        curve.end();
        let loss = pass.loss(&state.totals.array().to_vec(w)?, squares);
        if !curve.push(&o.run, None, loss, Some(w))? {
            break;
        }
    }
    *centers = pass.centers;
    let mut labels = state.labels.to_vec(w)?;
    labels.truncate(shape.count);
    Ok(labels)
}

/// The same for the serial twin.
pub(crate) fn train_serially(
    o: &Options,
    points: &Plain,
    centers: &mut Centers,
    curve: &mut Curve,
) -> Result<Vec<u32>> {
    let (shape, width) = (points.shape, points.shape.columns + 1);
    let (mut labels, mut bounds) =
        (vec![NONE; shape.blocks() * BLOCK], vec![0.0; shape.blocks() * 2 * BLOCK]);
    let mut totals = vec![0.0; centers.len() * width];
    let squares: f64 = (0..shape.blocks()).map(|b| square(points.block(b))).sum();
    let mut scratch = Scratch::new(shape);
    let mut visit = |pass: &Pass, totals: &mut [f64]| {
        let mut contributions = vec![0.0; totals.len()];
        let mut add = |cluster: usize, x: &[f64]| {
            contributions[cluster * width..][..width].iter_mut().zip(x).for_each(|(sum, x)| *sum += x);
        };
        let kept = labels.chunks_exact_mut(BLOCK).zip(bounds.chunks_exact_mut(2 * BLOCK));
        let visit = |(b, (labels, bounds))| {
            pass.visit((b, points.block(b)), Kept::new(labels, bounds), &mut scratch, &mut add)
        };
        let changed: u64 = kept.enumerate().map(visit).sum();
        totals.iter_mut().zip(contributions).for_each(|(total, more)| *total += more);
        changed
    };
    let mut pass = Pass::first(shape, centers.clone());
    curve.begin();
    let mut changed = visit(&pass, &mut totals);
    for _ in 0..o.passes {
        if changed == 0 {
            break;
        }
        curve.begin_unless_begun();
        pass = pass.next(&totals);
        changed = visit(&pass, &mut totals);
        curve.end();
        if !curve.push(&o.run, None, pass.loss(&totals, squares), None)? {
            break;
        }
    }
    *centers = pass.centers;
    labels.truncate(shape.count);
    Ok(labels)
}

/// The sum of the squares of all coordinates.
fn square(block: &[f32]) -> f64 {
    block.iter().map(|x| f64::from(*x) * f64::from(*x)).sum()
}
