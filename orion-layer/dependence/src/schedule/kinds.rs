//! The schedules that the runtime chooses from.
use super::{Schedule, Steps, Tile, cells_for};
use crate::cuts::{BlockWeights, Cuts};
use crate::mutant::{self, Mutant};
use std::ops::Range;

/// One worker runs everything, in the order of the serial program.
#[derive(Clone, Debug)]
pub struct Serial;

/// The iterations are cut along one dimension: one block per worker, one step.
#[derive(Clone, Debug)]
pub struct Blocks {
    /// The dimension.
    pub dim: usize,
}

/// Unordered rotation over several dimensions, two as in Orion (Wei et al., 2019) and DSGD (Gemulla et al.,
/// 2011), three as in the diagonal strata for tensors of Beutel et al. (2014).
///
/// The first dimension is cut into one block per worker, which stays; the others into two per worker, which
/// go around: at every step no two workers share a block of any of these dimensions, and while a worker is busy
/// with one block, its next is on its way.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// The dimensions, the one that stays first.
    pub dims: Vec<usize>,
    /// The cells at which the blocks of each begin, and where the last ends; equal numbers of cells if empty.
    pub bounds: Vec<Vec<usize>>,
    /// Whether its blocks are taken as they come free ([`Dynamic`](super::Dynamic)). Then there are several for each worker in
    /// the first dimension, too, and the steps are what would be if all workers were equally fast.
    pub dynamic: bool,
}

impl Rotation {
    /// A rotation over these dimensions, the one that stays first.
    pub fn over(dims: Vec<usize>) -> Rotation {
        Rotation { dims, bounds: Vec::new(), dynamic: false }
    }

    /// Moves the bounds of the blocks so that the steps are short: `weights` says how many iterations lie in each
    /// cell, with one axis for each of the dimensions, in their order.
    pub fn rebalance(&mut self, weights: &BlockWeights, workers: usize) {
        // The bounds of the balanced cuts are among those of the cells. Cells may be empty, so that a bound is
        // found at several: any of them will do.
        let cells = |(cuts, axis): (Cuts, &Cuts)| {
            let at = |bound: &usize| axis.bounds().partition_point(|other| other < bound);
            let mut cells: Vec<usize> = cuts.bounds().iter().map(at).collect();
            if let Some(last) = cells.last_mut() {
                *last = axis.parts();
            }
            cells
        };
        let balanced = weights.balance(&self.blocks(workers));
        self.bounds = balanced.into_iter().zip(weights.axes()).map(cells).collect();
    }

    /// Blocks of each dimension: one worker needs nothing to be on its way.
    pub(super) fn blocks(&self, workers: usize) -> Vec<usize> {
        let turns = if workers == 1 { 1 } else { 2 * workers };
        (0..self.dims.len()).map(|at| if at == 0 { workers * self.shares(workers) } else { turns }).collect()
    }

    /// Blocks for each worker in the dimension that stays. What is taken as it comes free is the finer the better, as far
    /// as cells go: who is slow has only a block in hand.
    fn shares(&self, workers: usize) -> usize {
        if self.dynamic && workers > 1 { (super::CELLS / workers).clamp(2, FREE_SHARES) } else { 1 }
    }
}

/// The most blocks for each worker in the dimension that stays, if they are taken as they come free.
const FREE_SHARES: usize = 4;

/// Share `part` of `of` shares of `cells` cells.
fn share(cells: usize, part: usize, of: usize) -> Range<usize> {
    cells * part / of..cells * (part + 1) / of
}

pub(super) fn whole(grid: &[usize]) -> Vec<Range<usize>> {
    grid.iter().map(|cells| 0..*cells).collect()
}

pub(super) fn tile(cells: Vec<Range<usize>>) -> Option<Tile> {
    let tile = Tile { cells };
    (!tile.is_empty()).then_some(tile)
}

/// The name of [`Serial`] as a candidate.
pub(super) const SERIAL: &str = "serial";

impl Schedule for Serial {
    fn name(&self) -> String {
        SERIAL.into()
    }

    fn grid(&self, extents: &[usize], _workers: usize) -> Vec<usize> {
        vec![1; extents.len()]
    }

    fn steps(&self, grid: &[usize], workers: usize) -> Steps {
        let mut step = vec![None; workers];
        step[0] = tile(whole(grid));
        vec![step]
    }
}

impl Schedule for Blocks {
    fn name(&self) -> String {
        format!("blocks of dimension {}", self.dim)
    }

    fn grid(&self, extents: &[usize], workers: usize) -> Vec<usize> {
        let mut grid = vec![1; extents.len()];
        grid[self.dim] = cells_for(extents[self.dim], workers, 1);
        grid
    }

    fn steps(&self, grid: &[usize], workers: usize) -> Steps {
        let block = |worker| {
            let mut cells = whole(grid);
            cells[self.dim] = share(grid[self.dim], worker, workers);
            tile(cells)
        };
        vec![(0..workers).map(block).collect()]
    }
}

impl Schedule for Rotation {
    fn name(&self) -> String {
        let dims: Vec<String> = self.dims.iter().map(usize::to_string).collect();
        format!("rotation over dimensions {}", dims.join(", "))
    }

    fn grid(&self, extents: &[usize], workers: usize) -> Vec<usize> {
        let mut grid = vec![1; extents.len()];
        for &dim in &self.dims {
            grid[dim] = cells_for(extents[dim], workers, self.dims.len());
        }
        grid
    }

    fn steps(&self, grid: &[usize], workers: usize) -> Steps {
        let blocks = self.blocks(workers);
        let range = |at: usize, block: usize| match self.bounds.get(at) {
            Some(bounds) if bounds.len() == blocks[at] + 1 => bounds[block]..bounds[block + 1],
            _ => share(grid[self.dims[at]], block, blocks[at]),
        };
        let around: usize = blocks[1..].iter().product();
        let one = |step: usize, worker: usize| {
            let mut cells = whole(grid);
            cells[self.dims[0]] = range(0, worker * self.shares(workers) + step / around);
            let mut step = step % around;
            for at in (1..blocks.len()).rev() {
                // Two blocks apart from the neighbours': a block that worker w + 1 worked on in step s is the one
                // that worker w works on in step s + 2.
                let turns = blocks[at];
                let ahead = if worker == 1 && mutant::is(Mutant::RotationAhead) { 2 } else { 0 };
                let turn = (2 * worker + step % turns + ahead) % turns;
                step /= turns;
                cells[self.dims[at]] = range(at, turn);
            }
            tile(cells)
        };
        (0..around * self.shares(workers))
            .map(|step| (0..workers).map(|worker| one(step, worker)).collect())
            .collect()
    }
}
