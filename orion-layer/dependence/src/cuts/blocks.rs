//! Cuts of several dimensions together: how many entries a coarse grid of blocks holds, and bounds among those
//! of the coarse grid that make a rotation short.
use super::balance::balance;
use super::{Cuts, Rotation};
use serde::{Deserialize, Serialize};
use std::iter;
use std::ops::Range;

/// How often the bounds of all dimensions are gone through.
const MAX_SWEEPS: usize = 4;

/// By how many coarse blocks a bound is moved at a time.
const STRIDES: [usize; 2] = [4, 1];

/// How many entries lie in each block of a coarse grid, in row-major order.
///
/// Workers count what they hold on the same axes and add up their counts with [`merge`](BlockWeights::merge);
/// [`balance`](BlockWeights::balance) then gives every worker the same cuts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockWeights {
    axes: Vec<Cuts>,
    weights: Vec<u64>,
}

impl BlockWeights {
    /// Given weights of the blocks that these cuts of the dimensions make, in row-major order.
    ///
    /// # Panics
    /// If there is not one for each block.
    pub fn of(axes: Vec<Cuts>, weights: Vec<u64>) -> BlockWeights {
        assert_eq!(weights.len(), axes.iter().map(Cuts::parts).product::<usize>(), "one weight per block");
        BlockWeights { axes, weights }
    }

    /// Counts keys in the blocks that these cuts of the dimensions make.
    ///
    /// # Panics
    /// If a key lies outside the axes, or an axis has more than 65,536 parts.
    pub fn count<const N: usize>(axes: &[Cuts; N], keys: impl IntoIterator<Item = [u32; N]>) -> BlockWeights {
        BlockWeights::count_dims(axes.to_vec(), &std::array::from_fn::<_, N, _>(|dim| dim), keys)
    }

    /// [`BlockWeights::count`] over some of the dimensions, `dims`, in their order: one axis for each.
    ///
    /// # Panics
    /// As above, and if a key has no such dimension.
    pub fn count_dims<const N: usize>(
        axes: Vec<Cuts>,
        dims: &[usize],
        keys: impl IntoIterator<Item = [u32; N]>,
    ) -> BlockWeights {
        assert_eq!(axes.len(), dims.len(), "one axis per dimension");
        let tables: Vec<_> = axes.iter().map(|axis| (axis.table(), axis.parts())).collect();
        let mut weights = vec![0; axes.iter().map(Cuts::parts).product()];
        for key in keys {
            let parts = tables.iter().zip(dims);
            let block = parts.fold(0, |block, ((table, parts), dim)| block * parts + table.find(key[*dim]));
            weights[block] += 1;
        }
        BlockWeights::of(axes, weights)
    }

    /// The cuts between the blocks, dimension by dimension.
    pub fn axes(&self) -> &[Cuts] {
        &self.axes
    }

    /// Adds the counts of another worker.
    ///
    /// # Panics
    /// If they were counted on other axes.
    pub fn merge(&mut self, other: &BlockWeights) {
        assert_eq!(self.axes, other.axes, "block weights of different axes cannot be added");
        self.weights.iter_mut().zip(&other.weights).for_each(|(ours, theirs)| *ours += theirs);
    }

    /// Sets all counts to zero.
    pub fn clear(&mut self) {
        self.weights.fill(0);
    }

    /// The count of each block.
    pub fn weights(&self) -> &[u64] {
        &self.weights
    }

    /// Cuts with `parts` per dimension, their bounds among those of the axes, for a short
    /// [rotation](Rotation): each dimension is first cut by itself, then single bounds are moved as long as
    /// that makes the rotation shorter (at most four times through all of them). The result depends on nothing
    /// but the counts and is never worse than the cuts of each dimension by itself.
    ///
    /// # Panics
    /// If there is not one number of parts per dimension, or one is zero.
    pub fn balance(&self, parts: &[usize]) -> Vec<Cuts> {
        assert_eq!(parts.len(), self.axes.len(), "one number of parts per dimension");
        assert!(parts.iter().all(|&parts| parts > 0), "a dimension has at least one part");
        let mut search = Search::new(self, parts);
        let mut sweeps = 0;
        while sweeps < MAX_SWEEPS && (0..parts.len()).fold(false, |moved, dim| search.sweep(dim) | moved) {
            sweeps += 1;
        }
        let cuts = |(axis, bounds): (&Cuts, Vec<usize>)| Cuts {
            bounds: bounds.into_iter().map(|bound| axis.bounds[bound]).collect(),
        };
        self.axes.iter().zip(search.bounds).map(cuts).collect()
    }

    /// The counts along one dimension.
    fn marginal(&self, dim: usize) -> Vec<u64> {
        let inner: usize = self.axes[dim + 1..].iter().map(Cuts::parts).product();
        let len = self.axes[dim].parts();
        let mut sums = vec![0; len];
        self.weights.iter().enumerate().for_each(|(block, weight)| sums[block / inner % len] += weight);
        sums
    }
}

/// Bounds in numbers of coarse blocks, the weights of the blocks between them, and their cost.
struct Search<'a> {
    coarse: &'a BlockWeights,
    rotation: Rotation,
    bounds: Vec<Vec<usize>>,
    weights: Vec<u64>,
    cost: u64,
}

/// Where the coarse blocks of a slab across one dimension lie among the blocks.
struct Slab {
    /// For each combination of the dimensions before it, the number of the first block.
    outer: Vec<usize>,
    /// For each combination of the dimensions after it, what is to be added.
    inner: Vec<usize>,
    /// The weight to be added per part of this dimension.
    stride: usize,
    /// Coarse parts of this dimension.
    len: usize,
}

impl<'a> Search<'a> {
    fn new(coarse: &'a BlockWeights, parts: &[usize]) -> Search<'a> {
        let cut = |dim| balance(&coarse.marginal(dim), parts[dim]);
        let bounds: Vec<Vec<usize>> = (0..parts.len()).map(cut).collect();
        let (rotation, weights) = (Rotation::new(parts), vec![0; parts.iter().product()]);
        let mut search = Search { coarse, rotation, bounds, weights, cost: 0 };
        let all = search.offsets(0..parts.len(), 1);
        for (block, weight) in all.into_iter().zip(&coarse.weights) {
            search.weights[block] += weight;
        }
        search.cost = search.rotation.cost(&search.weights);
        search
    }

    /// For each combination of coarse parts of these dimensions, the sum of their parts' strides, where `stride`
    /// is that of the last of them.
    fn offsets(&self, dims: Range<usize>, mut stride: usize) -> Vec<usize> {
        let mut offsets = vec![0];
        for bounds in self.bounds[dims].iter().rev() {
            let parts = bounds.windows(2).enumerate().flat_map(|(part, b)| iter::repeat_n(part, b[1] - b[0]));
            offsets = parts.flat_map(|part| offsets.iter().map(move |inner| part * stride + inner)).collect();
            stride *= bounds.len() - 1;
        }
        offsets
    }

    /// Tries to move each bound of a dimension; true if one was moved.
    fn sweep(&mut self, dim: usize) -> bool {
        let stride: usize = self.bounds[dim + 1..].iter().map(|bounds| bounds.len() - 1).product();
        let slab = Slab {
            outer: self.offsets(0..dim, stride * (self.bounds[dim].len() - 1)),
            inner: self.offsets(dim + 1..self.bounds.len(), 1),
            stride,
            len: self.coarse.axes[dim].parts(),
        };
        let mut moved = false;
        for bound in 1..self.bounds[dim].len() - 1 {
            for stride in STRIDES {
                while self.shift(dim, bound, stride as isize, &slab) {
                    moved = true;
                }
                while self.shift(dim, bound, -(stride as isize), &slab) {
                    moved = true;
                }
            }
        }
        moved
    }

    /// Moves one bound if that makes the rotation shorter.
    fn shift(&mut self, dim: usize, bound: usize, by: isize, slab: &Slab) -> bool {
        let bounds = &self.bounds[dim];
        let old = bounds[bound];
        let Some(new) = old.checked_add_signed(by) else { return false };
        if new < bounds[bound - 1] || new > bounds[bound + 1] {
            return false;
        }
        let (from, to) = if new < old { (bound - 1, bound) } else { (bound, bound - 1) };
        let range = old.min(new)..old.max(new);
        self.transfer(slab, range.clone(), from, to);
        let cost = self.rotation.cost(&self.weights);
        if cost >= self.cost {
            self.transfer(slab, range, to, from);
            return false;
        }
        (self.cost, self.bounds[dim][bound]) = (cost, new);
        true
    }

    /// Moves the weights of coarse parts from one part of a dimension to another.
    fn transfer(&mut self, slab: &Slab, range: Range<usize>, from: usize, to: usize) {
        for (number, outer) in slab.outer.iter().enumerate() {
            for coarse in range.clone() {
                let start = (number * slab.len + coarse) * slab.inner.len();
                for (weight, inner) in self.coarse.weights[start..].iter().zip(&slab.inner) {
                    self.weights[outer + from * slab.stride + inner] -= weight;
                    self.weights[outer + to * slab.stride + inner] += weight;
                }
            }
        }
    }
}
