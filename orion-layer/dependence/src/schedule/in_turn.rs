//! On several hosts: the tiles of a schedule for arrays in place, one after the other on one worker.
use super::kinds::{tile, whole};
use super::{Schedule, Steps, Tile, Wavefront};

/// What a schedule has several workers of one host do, on one worker and in an order in which they may do it. The cells are the same, and so
/// are the bits of what is combined cell by cell, and of what the order of conflicting iterations decides.
#[derive(Debug)]
pub(super) struct InTurn<'a> {
    pub(super) schedule: &'a dyn Schedule,
    pub(super) wavefront: Option<&'a Wavefront>,
}

impl Schedule for InTurn<'_> {
    fn name(&self) -> String {
        format!("{}, in turn", self.schedule.name())
    }

    fn grid(&self, extents: &[usize], workers: usize) -> Vec<usize> {
        self.schedule.grid(extents, workers)
    }

    fn steps(&self, grid: &[usize], workers: usize) -> Steps {
        let tiles: Vec<Option<Tile>> = match self.wavefront {
            // Of the workers of one step, one may wait for what another does in a later one; rows keep all dependences.
            Some(wavefront) => {
                let row = |row: usize| {
                    let mut cells = whole(grid);
                    cells[wavefront.outer] = row..row + 1;
                    tile(cells)
                };
                (0..grid[wavefront.outer]).map(row).collect()
            }
            None => self.schedule.steps(grid, workers).into_iter().flatten().collect(),
        };
        let on_the_first = |tile: Tile| {
            let mut step = vec![None; workers];
            step[0] = Some(tile);
            step
        };
        tiles.into_iter().flatten().map(on_the_first).collect()
    }
}
