//! The first centers, by greedy k-means++ (Arthur and Vassilvitskii, 2007): of several points that are drawn with
//! probabilities proportional to the squares of their distances, the one that leaves the least is the next center.
//!
//! Squares are added up block by block, so that what is drawn is the same on any number of workers.
use super::blocks::{BLOCK, Blocks, Plain, Shape};
use super::centers::Centers;
use super::kernel::{LANES, Lanes, squares};
use super::training::Instructions;
use super::{Options, training::warn};
use hectare::orion::array::random::Stream;
use hectare::orion::{Context, Result, parallel_for};
use std::cell::RefCell;

/// Points of which one becomes a center: twice as many as in scikit-learn, for distances cost little.
fn trials(clusters: usize) -> usize {
    2 * (2 + (clusters as f64).ln() as usize)
}

/// Down a tree over the lanes.
#[inline(always)]
fn sum(lanes: Lanes) -> f32 {
    let s8: [f32; 8] = std::array::from_fn(|at| lanes[at] + lanes[at + 8]);
    let s4: [f32; 4] = std::array::from_fn(|at| s8[at] + s8[at + 4]);
    (s4[0] + s4[2]) + (s4[1] + s4[3])
}

/// The state of the choice, which all workers have.
#[derive(Debug)]
struct Choice {
    shape: Shape,
    instructions: Instructions,
    random: Stream,
    centers: Centers,
    /// The points of which one comes next.
    candidates: Vec<Vec<f32>>,
}

impl Choice {
    fn new(o: &Options, shape: Shape, first: Vec<f32>) -> Choice {
        let random = Stream::new(o.seed, "first centers");
        let (instructions, centers) = (Instructions::all()[0], Centers::new(shape.columns));
        Choice { shape, instructions, random, centers, candidates: vec![first] }
    }

    /// The squares of the distances of block `number` to the last center, if nearer than `near`, go there. What each
    /// candidate would leave of their sum goes to `left`.
    fn visit(&self, number: usize, block: &[f32], near: &mut [f32], left: &mut [f64]) {
        // Places without a point are where a center is.
        near[self.shape.points_of(number)..].fill(0.0);
        match self.instructions {
            Instructions::Baseline => self.visit_in_lanes(block, near, left),
            // SAFETY: `Instructions::all`, where they come from, has found that the processor has them.
            #[cfg(target_arch = "x86_64")]
            _ => unsafe { self.visit_avx2(block, near, left) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn visit_avx2(&self, block: &[f32], near: &mut [f32], left: &mut [f64]) {
        self.visit_in_lanes(block, near, left);
    }

    #[inline(always)]
    fn visit_in_lanes(&self, block: &[f32], near: &mut [f32], left: &mut [f64]) {
        left.fill(0.0);
        let last = self.centers.len().checked_sub(1).map(|last| self.centers.row(last));
        for (points, near) in block.chunks_exact(self.shape.group()).zip(near.as_chunks_mut::<LANES>().0) {
            if let Some(center) = last {
                let squares = squares(points, center);
                for lane in 0..LANES {
                    near[lane] = near[lane].min(squares[lane]);
                }
            }
            for (candidate, left) in self.candidates.iter().zip(&mut *left) {
                let squares = squares(points, candidate);
                *left += f64::from(sum(std::array::from_fn(|lane| near[lane].min(squares[lane]))));
            }
        }
    }

    /// Takes the best candidate, by what all blocks say, and draws the next ones; `of_block` gives the points of a block,
    /// and their distances as they were. Whether all points are centers now.
    fn choose<E>(
        &mut self,
        trials: usize,
        left: &[f64],
        of_block: impl Fn(usize) -> Result<(Vec<f32>, Vec<f32>), E>,
    ) -> Result<bool, E> {
        let left_by = |candidate: usize| left.iter().skip(candidate).step_by(trials).sum::<f64>();
        let sums: Vec<f64> = (0..self.candidates.len()).map(left_by).collect();
        let best = (0..sums.len()).reduce(|a, b| if sums[b] < sums[a] { b } else { a }).unwrap_or(0);
        let center = self.candidates.swap_remove(best);
        self.centers.push(&center);
        let stream = self.random.child(self.centers.len() as u64);
        let draw = |trial: usize| -> Result<Vec<f32>, E> {
            let (unit, mut number, mut at) = (stream.uniform(trial as u64), 0, 0);
            let mut rest = unit * sums[best];
            if !(sums[best] > 0.0 && rest.is_finite()) {
                // Nothing is left, or more than a number holds: any point is as good.
                let point = (unit * self.shape.count as f64) as usize;
                (number, at) = (point / BLOCK, point % BLOCK);
                return Ok(self.shape.point(&of_block(number)?.0, at).collect());
            }
            for (block, left) in left.iter().skip(best).step_by(trials).enumerate() {
                // Rounding may leave a little more than all blocks have.
                if *left > 0.0 {
                    number = block;
                    if rest < *left {
                        break;
                    }
                    rest -= left;
                }
            }
            let (block, near) = of_block(number)?;
            let squares = block.chunks_exact(self.shape.group()).flat_map(|points| squares(points, &center));
            for (point, (near, x)) in near.iter().zip(squares).enumerate().take(self.shape.points_of(number))
            {
                let square = f64::from(near.min(x));
                if square > 0.0 {
                    at = point;
                    if rest < square {
                        break;
                    }
                    rest -= square;
                }
            }
            Ok(self.shape.point(&block, at).collect())
        };
        self.candidates = (0..trials).map(draw).collect::<Result<_, E>>()?;
        Ok(sums[best] == 0.0)
    }
}

/// Which point is the first center.
fn first(o: &Options, count: usize) -> usize {
    Stream::new(o.seed, "first center").below(0, count as u64) as usize
}

/// Says that there are fewer different points than clusters.
fn tell(o: &Options, exhausted: Option<usize>) {
    if let Some(different) = exhausted.filter(|different| *different < o.clusters) {
        let clusters = o.clusters;
        warn(format_args!(
            "warning: only {different} points differ: the other clusters of {clusters} stay empty"
        ));
    }
}

/// Centers to begin with. Collective.
pub(crate) fn seed(w: &mut Context<'_>, o: &Options, points: &Blocks) -> Result<Centers> {
    let Blocks { shape, rows, .. } = points;
    let (shape, trials) = (*shape, trials(o.clusters));
    let block = |w: &Context<'_>, b: usize| rows.read_range(w, [b..b + 1, 0..shape.width()]);
    let chosen = first(o, shape.count);
    let start = shape.point(&block(w, chosen / BLOCK)?, chosen % BLOCK).collect();
    let mut choice = Choice::new(o, shape, start);
    let mut near = w.fill::<f32, 2>([shape.blocks(), BLOCK], f32::INFINITY)?.named("near");
    let mut left = w.zeros::<f64, 2>([shape.blocks(), trials])?.named("left");
    let mut exhausted = None;
    while choice.centers.len() < o.clusters {
        let state = RefCell::new(&choice);
        parallel_for!(w, unordered, read rows, write [near, left]; for b in 0..shape.blocks() {
            state.borrow().visit(b, rows.row(b), near.row_mut(b), left.row_mut(b));
        })?;
        let all = left.to_vec(w)?;
        let of_block =
            |b: usize| -> Result<_> { Ok((block(w, b)?, near.read_range(w, [b..b + 1, 0..BLOCK])?)) };
        if choice.choose(trials, &all, of_block)? {
            exhausted = exhausted.or(Some(choice.centers.len()));
        }
    }
    near.delete(w)?;
    left.delete(w)?;
    w.root(|| tell(o, exhausted));
    Ok(choice.centers)
}

/// The same for the serial twin.
pub(crate) fn seed_serially(o: &Options, points: &Plain) -> Centers {
    let (shape, trials) = (points.shape, trials(o.clusters));
    let chosen = first(o, shape.count);
    let mut choice =
        Choice::new(o, shape, shape.point(points.block(chosen / BLOCK), chosen % BLOCK).collect());
    let mut near = vec![f32::INFINITY; shape.blocks() * BLOCK];
    let mut left = vec![0.0; shape.blocks() * trials];
    let mut exhausted = None;
    while choice.centers.len() < o.clusters {
        let rows = near.chunks_exact_mut(BLOCK).zip(left.chunks_exact_mut(trials));
        for (b, (near, left)) in rows.enumerate() {
            choice.visit(b, points.block(b), near, left);
        }
        let of_block = |b: usize| Ok((points.block(b).to_vec(), near[b * BLOCK..][..BLOCK].to_vec()));
        let Ok::<_, std::convert::Infallible>(none_left) = choice.choose(trials, &left, of_block);
        if none_left {
            exhausted = exhausted.or(Some(choice.centers.len()));
        }
    }
    tell(o, exhausted);
    choice.centers
}
