//! The bounds between the workers' blocks, moved by loads that were measured.
use super::choose::Choice;
use super::{Rotation, ScheduleError, Steps, cell_number, for_each_cell};
use crate::analysis::Dependences;
use crate::cuts::{BlockWeights, Cuts};
use crate::loop_nest::LoopNest;

/// How unequal the shares of workers are: how long the steps take, by the heaviest tile of each, as a multiple of what they would take if
/// all workers had equal shares. `loads` has one number for each cell. 1 if there is no load.
pub fn imbalance(grid: &[usize], steps: &Steps, loads: &[u64]) -> f64 {
    let workers = steps.first().map_or(1, Vec::len);
    let total: u64 = loads.iter().sum();
    if total == 0 {
        return 1.0;
    }
    let load = |tile: &Option<super::Tile>| {
        let mut sum = 0;
        tile.iter().for_each(|tile| {
            for_each_cell(tile, |cell| {
                sum += loads[cell_number(grid, cell)];
                true
            });
        });
        sum
    };
    let length: u64 = steps.iter().map(|step| step.iter().map(load).max().unwrap_or(0)).sum();
    length as f64 * workers as f64 / total as f64
}

impl Choice {
    /// If its bounds can be moved, the rotation that it is: blocks of one dimension are a rotation of one step. They can if the
    /// schedule is the runtime's own, its tiles are not taken as they come free, and its arrays lie in parts.
    pub fn movable(&self) -> Option<Rotation> {
        if self.placement.in_place.is_some() || self.is_dynamic() {
            return None;
        }
        let cut: Vec<usize> = (0..self.grid.len()).filter(|dim| self.grid[*dim] > 1).collect();
        match (&self.rotation, &cut[..]) {
            (Some(rotation), _) => Some(rotation.clone()),
            (None, [dim]) if self.steps.len() == 1 => Some(Rotation::over(vec![*dim])),
            _ => None,
        }
    }

    /// The bounds, in cells, that make the steps short if cells have these loads, for each dimension of [`Choice::movable`].
    pub fn bounds_for(&self, loads: &[u64], workers: usize) -> Option<Vec<Vec<usize>>> {
        let mut rotation = self.movable()?;
        let axes: Vec<Cuts> =
            rotation.dims.iter().map(|dim| Cuts::even(self.grid[*dim], self.grid[*dim])).collect();
        let mut weights = vec![0; axes.iter().map(Cuts::parts).product()];
        let whole = super::Tile { cells: self.grid.iter().map(|cells| 0..*cells).collect() };
        for_each_cell(&whole, |cell| {
            let block = rotation.dims.iter().fold(0, |block, dim| block * self.grid[*dim] + cell[*dim]);
            weights[block] += loads[cell_number(&self.grid, cell)];
            true
        });
        rotation.rebalance(&BlockWeights::of(axes, weights), workers);
        Some(rotation.bounds)
    }

    /// The same choice with other bounds between its blocks: verified and placed as every schedule is.
    ///
    /// # Errors
    /// [`ScheduleError::Bounds`] if these are no bounds of its blocks, and those of verifying and placing.
    pub fn moved(
        &self,
        nest: &LoopNest,
        dependences: &Dependences,
        bounds: &[Vec<usize>],
        workers: usize,
    ) -> Result<Choice, ScheduleError> {
        let refused = |what: String| Err(ScheduleError::Bounds { what });
        let Some(mut rotation) = self.movable() else {
            return refused("its blocks have none that can be moved".into());
        };
        let blocks = rotation.blocks(workers);
        if bounds.len() != blocks.len() {
            return refused(format!("of {} dimensions, and {} are cut", bounds.len(), blocks.len()));
        }
        for ((bounds, blocks), dim) in bounds.iter().zip(blocks).zip(&rotation.dims) {
            let cells = self.grid[*dim];
            let ends = bounds.first() == Some(&0) && bounds.last() == Some(&cells);
            if bounds.len() != blocks + 1 || !ends || !bounds.is_sorted() {
                return refused(format!("{bounds:?} do not cut {cells} cells into {blocks} blocks"));
            }
        }
        rotation.bounds = bounds.to_vec();
        self.with_rotation(nest, dependences, rotation, workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imbalance_is_that_of_the_heaviest_tiles() {
        use super::super::Schedule;
        let blocks = Rotation::over(vec![0]);
        let steps = blocks.steps(&[4], 2);
        assert_eq!(imbalance(&[4], &steps, &[1, 1, 1, 1]), 1.0);
        assert_eq!(imbalance(&[4], &steps, &[4, 2, 1, 1]), 1.5);
        assert_eq!(imbalance(&[4], &steps, &[0; 4]), 1.0);
    }
}
