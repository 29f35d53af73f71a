//! Which worker runs which iterations, and when.
//!
//! A loop's space is cut into a grid of *cells*. A schedule gives, for every step and worker, a *tile*: a box of
//! cells. Steps are not separated by barriers: what orders them is that a worker needs the partitions of the
//! arrays that its tile writes, and gets them from whoever used them last.
mod build;
mod candidates;
mod choose;
mod cost;
mod dynamic;
mod error;
mod in_turn;
#[cfg(test)]
mod in_turn_tests;
#[cfg(test)]
mod isl_tests;
mod kinds;
mod rebalance;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod tests;
mod verify;
mod wavefront;

pub use self::build::Cut;
pub use self::choose::{Candidate, Choice, Team, Uncut, Verdict, choose};
pub use self::cost::{Cost, iterations};
pub use self::dynamic::Dynamic;
pub use self::error::ScheduleError;
pub use self::kinds::{Blocks, Rotation, Serial};
pub use self::rebalance::imbalance;
pub use self::verify::{verify, verify_dynamic};
pub use self::wavefront::Wavefront;
pub use crate::tiles::{Steps, Tile, cell_number, for_each_cell};

use std::collections::BTreeMap;
use std::fmt::Debug;

/// A way to run a loop on several workers.
///
/// The runtime checks what a schedule of one's own returns as it checks its own: every cell is run exactly once,
/// tiles of different workers in one step never conflict, and ordered dependences are kept. A schedule that
/// fails is refused with `Error::InvalidSchedule`.
///
/// ```
/// use hectare_dependence::schedule::{Schedule, Steps, Tile};
///
/// /// Rows of cells, dealt out in turn.
/// #[derive(Debug)]
/// struct Dealt;
///
/// impl Schedule for Dealt {
///     fn name(&self) -> String {
///         "rows in turn".into()
///     }
///     fn grid(&self, extents: &[usize], _workers: usize) -> Vec<usize> {
///         let mut grid = vec![1; extents.len()];
///         grid[0] = extents[0].min(12);
///         grid
///     }
///     fn steps(&self, grid: &[usize], workers: usize) -> Steps {
///         let tile = |row: usize| {
///             let cells = grid.iter().enumerate().map(|(dim, n)| if dim == 0 { row..row + 1 } else { 0..*n });
///             (row < grid[0]).then(|| Tile { cells: cells.collect() })
///         };
///         (0..grid[0].div_ceil(workers)).map(|step| (0..workers).map(|w| tile(step * workers + w)).collect()).collect()
///     }
/// }
/// assert_eq!(Dealt.steps(&[3, 1], 2).len(), 2);
/// ```
pub trait Schedule: Debug {
    /// Its name in explanations.
    fn name(&self) -> String;

    /// Into how many cells each dimension is cut; 1 for those that are not. At most the dimension's extent (1 if
    /// that is 0).
    fn grid(&self, extents: &[usize], workers: usize) -> Vec<usize>;

    /// The tiles.
    fn steps(&self, grid: &[usize], workers: usize) -> Steps;

    /// Whether it is [`Dynamic`]: the runtime's own choice, whose blocks are taken as they come free.
    fn is_dynamic(&self) -> bool {
        false
    }

    /// If it is a [`Wavefront`]: its tiles wait for each other, and steps say nothing.
    fn wavefront(&self) -> Option<&Wavefront> {
        None
    }
}

/// Cells of a dimension, of one that is cut with another.
const CELLS: usize = 48;

/// How many cells a dimension is cut into if `cut` of them are: a multiple of 48 (24 where more than two are cut),
/// so that two, three, four, six, eight, twelve or twenty-four workers get equal shares, and the cells, in which
/// accumulators are combined, do not depend on how many workers there are.
fn cells_for(extent: usize, workers: usize, cut: usize) -> usize {
    let cells = if cut > 2 { CELLS / 2 } else { CELLS };
    (cells * (2 * workers).div_ceil(cells)).min(extent).max(1)
}

/// How often a pass visits what belongs to an index of the dimension that stays, at least.
pub const VISITS: usize = 4;

/// The cells of a tile in an order without a pattern, one after the other, so that stochastic methods learn about all
/// rows and columns at much the same pace; but not quite: cells with the same index in dimension `stays` come in
/// `visits` groups, so that what belongs to that index is brought into the cache so often and no oftener. The order
/// depends on nothing else.
pub fn scrambled(tile: &Tile, stays: usize, visits: usize) -> Vec<usize> {
    // The finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
    let mix = |hash: u64, word: usize| {
        let mixed = (hash ^ word as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    };
    let mut rows: BTreeMap<usize, Vec<(u64, Vec<usize>)>> = BTreeMap::new();
    for_each_cell(tile, |cell| {
        let hash = cell.iter().fold(0, |hash, at| mix(hash, *at));
        rows.entry(cell[stays]).or_default().push((hash, cell.to_vec()));
        true
    });
    let mut groups = Vec::new();
    for (row, mut cells) in rows {
        cells.sort();
        let size = cells.len().div_ceil(visits.max(1)).max(1);
        groups.extend(cells.chunks(size).enumerate().map(|(visit, group)| {
            let cells: Vec<usize> = group.iter().flat_map(|(_, cell)| cell.clone()).collect();
            (visit, mix(visit as u64, row), cells)
        }));
    }
    groups.sort();
    groups.into_iter().flat_map(|(_, _, cells)| cells).collect()
}
