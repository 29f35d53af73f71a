//! Boxes of cells, which workers run.
use std::ops::Range;

/// The number of a worker.
pub type Rank = u32;

/// A box of cells: one range per dimension of the loop.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Tile {
    /// The cells, dimension by dimension.
    pub cells: Vec<Range<usize>>,
}

impl Tile {
    /// Whether it has no cells.
    pub fn is_empty(&self) -> bool {
        self.cells.iter().any(Range::is_empty)
    }
}

/// The tiles of a schedule: `steps[s][w]` is that of worker `w` in step `s`, if it has one.
pub type Steps = Vec<Vec<Option<Tile>>>;

/// The number of a cell in row-major order.
#[inline]
pub fn cell_number(grid: &[usize], cell: &[usize]) -> usize {
    grid.iter().zip(cell).fold(0, |number, (extent, at)| number * extent + at)
}

/// Calls `visit` with every cell of the tile in row-major order; stops when it returns false.
pub fn for_each_cell(tile: &Tile, mut visit: impl FnMut(&[usize]) -> bool) {
    if tile.is_empty() {
        return;
    }
    let mut cell: Vec<usize> = tile.cells.iter().map(|range| range.start).collect();
    loop {
        if !visit(&cell) {
            return;
        }
        let mut dim = cell.len();
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            cell[dim] += 1;
            if cell[dim] < tile.cells[dim].end {
                break;
            }
            cell[dim] = tile.cells[dim].start;
        }
    }
}
