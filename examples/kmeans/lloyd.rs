//! A pass of k-means (Lloyd, 1982) over a block of points: each goes to the nearest of all centers.
//!
//! Most distances are not computed (Hamerly, 2010): a point keeps an upper bound of its distance to its own center and a
//! lower one of that to every other, which centers that move make worse by as much as they moved. While the upper bound is
//! the lower of the two, the point stays. Bounds are rounded away from each other, and where two centers are nearer to each
//! other than the products' rounding errors, differences decide: so which center is the nearest does not depend on what
//! was left out.
use super::blocks::{BLOCK, Shape};
use super::centers::Centers;
use super::kernel::{Kernel, LANES, Nearest, squares};

/// Of a point without a center.
pub(crate) const NONE: u32 = u32::MAX;
/// A sum, a root and a product of bounds err by less, in parts of the result.
const SLACK: f32 = 4.0 * f32::EPSILON;

/// Centers, and what follows from them and the ones before.
#[derive(Debug)]
pub(crate) struct Pass {
    shape: Shape,
    pub(crate) centers: Centers,
    kernel: Kernel,
    /// How far each center has moved, at most; and the farthest of all others.
    moved: Vec<[f32; 2]>,
    /// The largest distance of a center from zero.
    longest: f32,
    /// A center in the middle.
    zero: Vec<f32>,
}

/// Places for points on their way, used again and again.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// Points of a block whose bounds do not say that they stay, and that are not sixteen side by side.
    open: Vec<usize>,
    /// Sixteen of them, side by side.
    batch: Vec<f32>,
    point: Vec<f32>,
    contribution: Vec<f64>,
}

impl Scratch {
    pub(crate) fn new(shape: Shape) -> Scratch {
        Scratch {
            open: Vec::with_capacity(BLOCK),
            batch: vec![0.0; shape.group()],
            point: vec![0.0; shape.columns],
            contribution: vec![0.0; shape.columns + 1],
        }
    }
}

/// The state of the points of a block.
#[derive(Debug)]
pub(crate) struct Kept<'a> {
    /// Their clusters.
    labels: &'a mut [u32],
    upper: &'a mut [f32],
    lower: &'a mut [f32],
}

impl<'a> Kept<'a> {
    /// `bounds` are all upper and then all lower ones.
    pub(crate) fn new(labels: &'a mut [u32], bounds: &'a mut [f32]) -> Kept<'a> {
        let (upper, lower) = bounds.split_at_mut(BLOCK);
        Kept { labels, upper, lower }
    }

    fn is_open(&self, at: usize) -> bool {
        let stays = self.upper[at] < self.lower[at];
        // Also if they are not numbers: then nothing is known.
        !stays
    }
}

impl Pass {
    /// The first one.
    pub(crate) fn first(shape: Shape, centers: Centers) -> Pass {
        let moved = vec![[0.0; 2]; centers.len()];
        let longest = centers.halves().iter().fold(0.0f32, |most, half| most.max(*half));
        let longest = (2.0 * longest).sqrt() * (1.0 + SLACK);
        Pass { shape, kernel: Kernel::new(&centers), centers, moved, longest, zero: vec![0.0; shape.columns] }
    }

    /// The next one, with the means of the clusters whose totals these are.
    pub(crate) fn next(&self, totals: &[f64]) -> Pass {
        let mut centers = self.centers.clone();
        centers.follow_all(totals);
        let apart = |cluster: usize| -> f32 {
            let pairs = centers.row(cluster).iter().zip(self.centers.row(cluster));
            let square: f64 = pairs.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
            square.sqrt() as f32 * (1.0 + SLACK)
        };
        let each: Vec<f32> = (0..centers.len()).map(apart).collect();
        let mut most = [(0.0f32, usize::MAX); 2];
        for (cluster, apart) in each.iter().enumerate() {
            if *apart > most[0].0 {
                most = [(*apart, cluster), most[0]];
            } else if *apart > most[1].0 {
                most[1] = (*apart, cluster);
            }
        }
        let others = |cluster| if most[0].1 == cluster { most[1].0 } else { most[0].0 };
        let moved = each.iter().enumerate().map(|(cluster, own)| [*own, others(cluster)]).collect();
        Pass { moved, ..Pass::first(self.shape, centers) }
    }

    /// Visits a block. Calls `add` with what a point that changes its cluster takes away from the one, and with what it adds
    /// to the other. How many do.
    pub(crate) fn visit(
        &self,
        (number, block): (usize, &[f32]),
        mut kept: Kept<'_>,
        scratch: &mut Scratch,
        add: &mut impl FnMut(usize, &[f64]),
    ) -> u64 {
        let (points, group) = (self.shape.points_of(number), self.shape.group());
        self.loosen(&mut kept);
        scratch.open.clear();
        let mut changed = 0;
        for first in (0..points).step_by(LANES) {
            let places: [usize; LANES] = std::array::from_fn(|lane| first + lane);
            if first + LANES <= points && places.iter().all(|at| kept.is_open(*at)) {
                let side_by_side = &block[first / LANES * group..][..group];
                changed += self.settle((block, side_by_side), &places, &mut kept, scratch, add);
            } else {
                scratch.open.extend(places.iter().filter(|at| **at < points && kept.is_open(**at)));
            }
        }
        let (open, mut batch) = (std::mem::take(&mut scratch.open), std::mem::take(&mut scratch.batch));
        let (mut places, mut count) = ([0; LANES], 0);
        for at in open.iter().copied() {
            if self.fetch(block, at, &mut kept, &mut scratch.point) {
                batch.iter_mut().skip(count).step_by(LANES).zip(&scratch.point).for_each(|(to, x)| *to = *x);
                places[count] = at;
                count += 1;
            }
            if count == LANES {
                changed += self.settle((block, &batch), &places, &mut kept, scratch, add);
                count = 0;
            }
        }
        changed += self.settle((block, &batch), &places[..count], &mut kept, scratch, add);
        (scratch.open, scratch.batch) = (open, batch);
        changed
    }

    /// Makes bounds worse by as much as centers have moved.
    fn loosen(&self, kept: &mut Kept<'_>) {
        for ((label, upper), lower) in kept.labels.iter().zip(&mut *kept.upper).zip(&mut *kept.lower) {
            if let Some([own, others]) = self.moved.get(*label as usize) {
                *upper = (*upper + own) * (1.0 + SLACK);
                *lower = (*lower - others) * (1.0 - SLACK);
            }
        }
    }

    /// Copies a point, and looks how far its own center is; whether it may be nearer to another.
    fn fetch(&self, block: &[f32], at: usize, kept: &mut Kept<'_>, point: &mut [f32]) -> bool {
        point.iter_mut().zip(self.shape.point(block, at)).for_each(|(to, x)| *to = x);
        if kept.labels[at] != NONE {
            kept.upper[at] = self.above(square(point, self.centers.row(kept.labels[at] as usize)));
        }
        kept.is_open(at)
    }

    /// A bound above the root of a square that was computed from differences.
    fn above(&self, square: f32) -> f32 {
        (square * (1.0 + (self.shape.columns + 4) as f32 * f32::EPSILON)).sqrt() * (1.0 + SLACK)
    }

    /// Finds the nearest centers of up to sixteen points of a block, which are side by side, and notes them.
    fn settle(
        &self,
        (block, side_by_side): (&[f32], &[f32]),
        places: &[usize],
        kept: &mut Kept<'_>,
        scratch: &mut Scratch,
        add: &mut impl FnMut(usize, &[f64]),
    ) -> u64 {
        if places.is_empty() {
            return 0;
        }
        let Nearest { best, second, cluster } = self.kernel.nearest(side_by_side);
        let lengths = squares(side_by_side, &self.zero);
        let mut changed = 0;
        for (lane, at) in places.iter().copied().enumerate() {
            // Twice the largest error of a sum of this many products.
            let error = (self.shape.columns + 8) as f32
                * f32::EPSILON
                * (lengths[lane].sqrt() + self.longest).powi(2);
            let mut label = cluster[lane];
            // Not if one of them is not a number either.
            if second[lane] - best[lane] > error {
                kept.upper[at] = self.above((2.0 * best[lane] + lengths[lane]).max(0.0) + error);
                let second = (2.0 * second[lane] + lengths[lane] - error).max(0.0);
                kept.lower[at] = second.sqrt() * (1.0 - SLACK);
            } else {
                scratch.point.iter_mut().zip(self.shape.point(block, at)).for_each(|(to, x)| *to = x);
                label = self.by_differences(&scratch.point);
                // Looked at again in the next pass.
                (kept.upper[at], kept.lower[at]) = (f32::INFINITY, 0.0);
            }
            if label != kept.labels[at] {
                self.contribute((block, at), kept.labels[at], label, &mut scratch.contribution, add);
                kept.labels[at] = label;
                changed += 1;
            }
        }
        changed
    }

    /// The first of the nearest centers.
    #[cold]
    fn by_differences(&self, point: &[f32]) -> u32 {
        let (mut label, mut least) = (0, f32::INFINITY);
        for (number, center) in self.centers.rows().chunks_exact(self.shape.columns).enumerate() {
            let square = square(point, center);
            if square < least {
                (label, least) = (number as u32, square);
            }
        }
        label
    }

    fn contribute(
        &self,
        (block, at): (&[f32], usize),
        from: u32,
        to: u32,
        contribution: &mut [f64],
        add: &mut impl FnMut(usize, &[f64]),
    ) {
        contribution.iter_mut().zip(self.shape.point(block, at)).for_each(|(to, x)| *to = f64::from(x));
        contribution[self.shape.columns] = 1.0;
        add(to as usize, contribution);
        if from != NONE {
            contribution.iter_mut().for_each(|x| *x = -*x);
            add(from as usize, contribution);
        }
    }

    /// The mean of the squares of the distances of all points to the centers of their clusters, whose totals these are;
    /// `squares` is the sum of the squares of all coordinates.
    pub(crate) fn loss(&self, totals: &[f64], squares: f64) -> f64 {
        let columns = self.shape.columns;
        let of_cluster = |(center, totals): (&[f32], &[f64])| -> f64 {
            let each = center.iter().zip(totals).map(|(c, sum)| {
                let c = f64::from(*c);
                c * (totals[columns] * c - 2.0 * sum)
            });
            each.sum()
        };
        let pairs = self.centers.rows().chunks_exact(columns).zip(totals.chunks_exact(columns + 1));
        let loss = (squares + pairs.map(of_cluster).sum::<f64>()).max(0.0) / self.shape.count as f64;
        // Beyond that, distances were not numbers.
        if loss > f64::from(f32::MAX) { f64::INFINITY } else { loss }
    }
}

/// The square of the distance between two points.
fn square(a: &[f32], b: &[f32]) -> f32 {
    let (a, a_rest) = a.as_chunks::<8>();
    let (b, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0f32; 8];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..8 {
            sums[lane] += (a[lane] - b[lane]) * (a[lane] - b[lane]);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(a, b)| (a - b) * (a - b)).sum();
    sums.iter().sum::<f32>() + rest
}
