//! Mini-batches (Sculley, 2010): centers follow totals that go on from pass to pass.
use super::training::Curve;
use super::{Centers, Options};
use hectare::DistArray;
use hectare::orion::relax::{Buffered, Consistency, Relaxation, Sum};
use hectare::orion::{Context, Result, parallel_for};
use std::cell::RefCell;

/// The contribution of a point to the totals of its cluster.
#[inline(always)]
fn fill(contribution: &mut [f64], point: &[f32]) {
    contribution.iter_mut().zip(point).for_each(|(sum, x)| *sum = f64::from(*x));
    contribution[point.len()] = 1.0;
}

/// One pass: adds each point to the totals of its cluster. A worker's centers follow the totals as it sees them.
fn pass(
    w: &mut Context<'_>,
    points: &DistArray<f32, 2>,
    totals: &mut Buffered<f64, 2, Sum>,
    centers: &mut Centers,
    Relaxation { consistency, every, .. }: Relaxation,
) -> Result<()> {
    let [count, columns] = points.shape();
    let own = RefCell::new((centers.clone(), vec![0.0; columns + 1]));
    parallel_for!(w, unordered, read points, buffer totals, consistency = consistency, every = every;
    for i in 0..count {
        let (centers, contribution) = &mut *own.borrow_mut();
        for cluster in 0..centers.len() {
            centers.follow(cluster, totals.row(cluster));
        }
        let (cluster, _) = centers.nearest(points.row(i));
        fill(contribution, points.row(i));
        totals.add_row(cluster, contribution);
    })?;
    centers.follow_all(&totals.array().to_vec(w)?);
    Ok(())
}

/// Moves the centers, and adds to the curve. Collective.
pub(crate) fn train(
    w: &mut Context<'_>,
    o: &Options,
    points: &DistArray<f32, 2>,
    consistency: Consistency,
    (centers, curve): (&mut Centers, &mut Curve),
) -> Result<()> {
    let [count, columns] = points.shape();
    let zeros = w.zeros::<f64, 2>([centers.len(), columns + 1])?.named("totals");
    let mut totals = w.buffered(zeros, Sum)?;
    let every = o.run.every(count.div_ceil(o.batch));
    let relax = Relaxation { consistency, every, ..Relaxation::default() };
    for _ in 0..o.passes {
        curve.begin();
        pass(w, points, &mut totals, centers, relax)?;
        curve.end();
        let squares = parallel_for!(w, unordered, read points, sum squares: f64;
        for i in 0..count {
            squares += centers.nearest(points.row(i)).1;
        })?;
        if !curve.push(&o.run, None, squares / count as f64, Some(w))? {
            break;
        }
    }
    Ok(())
}

/// The same for the serial twin.
pub(crate) fn train_serially(
    o: &Options,
    points: &[&[f32]],
    centers: &mut Centers,
    curve: &mut Curve,
) -> Result<()> {
    let columns = centers.columns();
    let mut totals = vec![0.0f64; centers.len() * (columns + 1)];
    for _ in 0..o.passes {
        curve.begin();
        for batch in points.chunks(o.batch) {
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
        if !curve.push(&o.run, None, squares / points.len() as f64, None)? {
            break;
        }
    }
    Ok(())
}
