//! Arrays that stay where they are while several workers write them: which elements each tile touches, and which tiles come
//! before it.
//!
//! Parts of an array are one writer's each, so a written array has to be cut into contiguous, disjoint pieces. Where it cannot
//! be, it lies in one piece, and each element has one writer at a time as a plan says. What the plan says is checked again by
//! whoever runs it ([`CheckTasks`]), element by element: nothing here has to be right for a program to be sound.
mod touched;

pub use self::touched::{Span, Touched, touched};
use crate::loop_nest::{LoopNest, Space};
use crate::mutant::{self, Mutant};
use crate::tiles::{Rank, Steps, Tile};

/// A tile as a task: the elements that it touches, and its dependences.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TileTask {
    /// The elements that it touches of each array that lies in place.
    pub touched: Vec<Touched>,
    /// Dependences: a worker, and how many of its tiles must be done before.
    pub after: Vec<(Rank, usize)>,
}

/// The tiles of a schedule whose written arrays lie in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InPlace {
    /// The arrays, by their numbers in the nest.
    pub arrays: Vec<usize>,
    /// The tasks of each worker, in the order of the steps.
    pub tasks: Vec<Vec<TileTask>>,
}

/// The executor's own form of the tasks, made when they are checked; opaque to this crate.
pub type Checked = std::sync::Arc<dyn std::any::Any + Send + Sync>;

/// Why arrays cannot lie in place under a schedule: two tiles that may run at once touch the same element, or the loop is
/// not one for that.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("with its arrays in place, {what}")]
pub struct InPlaceError {
    /// The two tiles, or the fault, in words.
    pub what: String,
}

/// Looks for two tiles that may run at once and touch the same element of which one writes it.
#[derive(Clone, Copy)]
pub struct CheckTasks<'a>(pub &'a dyn Fn(&LoopNest, &InPlace) -> Result<Checked, InPlaceError>);

impl std::fmt::Debug for CheckTasks<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CheckTasks").finish_non_exhaustive()
    }
}

/// The rule that says which tiles come before a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// All of earlier steps.
    Steps,
    /// Of the row before, as many blocks as the tile is in its own, and `ahead` more ([`Wavefront`](crate::schedule::Wavefront)).
    Rows {
        /// Blocks of a row.
        blocks: usize,
        /// How many more.
        ahead: usize,
    },
}

impl InPlace {
    /// The arrays of a loop that would lie in place; none if the loop is not one for that.
    pub fn arrays_of(nest: &LoopNest) -> Vec<usize> {
        match nest.relaxed.is_empty() && nest.space == Space::Dense {
            true => (0..nest.arrays.len()).filter(|array| nest.is_written(*array)).collect(),
            false => Vec::new(),
        }
    }

    /// The tasks of these steps; `cuts[d]` are the values of loop dimension `d` between the cells.
    pub fn of(nest: &LoopNest, cuts: &[Vec<i64>], steps: &Steps, workers: usize, waits: Waits) -> InPlace {
        let arrays = InPlace::arrays_of(nest);
        let mut tasks: Vec<Vec<TileTask>> = vec![Vec::new(); workers];
        // How many tiles each worker has in the steps before.
        let mut before = vec![0; workers];
        for (number, step) in steps.iter().enumerate() {
            for (worker, tile) in step.iter().enumerate() {
                let Some(tile) = tile else { continue };
                let after = match waits {
                    Waits::Steps => earlier(&before, worker),
                    Waits::Rows { blocks, ahead } => row_before(number, worker, workers, (blocks, ahead)),
                };
                let touched =
                    arrays.iter().map(|array| touched(nest, *array, &tile_values(cuts, tile))).collect();
                tasks[worker].push(TileTask { touched, after });
            }
            for (count, tile) in before.iter_mut().zip(step) {
                *count += usize::from(tile.is_some());
            }
        }
        InPlace { arrays, tasks }
    }
}

/// The values of the loop's dimensions in a tile, `start..end`; `cuts[d]` are those of dimension `d` between the cells.
pub fn tile_values(cuts: &[Vec<i64>], tile: &Tile) -> Vec<(i64, i64)> {
    cuts.iter().zip(&tile.cells).map(|(cuts, cells)| (cuts[cells.start], cuts[cells.end])).collect()
}

fn earlier(before: &[usize], me: usize) -> Vec<(Rank, usize)> {
    let others = before.iter().enumerate().filter(|(worker, count)| *worker != me && **count > 0);
    others.map(|(worker, count)| (worker as Rank, *count)).collect()
}

/// Rows go to workers in turn, and each worker goes through a row block by block: step `step` is block `step % blocks` of row
/// `step / blocks` of each worker.
fn row_before(step: usize, me: usize, workers: usize, (blocks, ahead): (usize, usize)) -> Vec<(Rank, usize)> {
    let (turn, block) = (step / blocks, step % blocks);
    let Some(row) = (turn * workers + me).checked_sub(1) else { return Vec::new() };
    let (worker, turn) = (row % workers, row / workers);
    let early = usize::from(mutant::is(Mutant::WavefrontEarly));
    let count = turn * blocks + (block + 1 + ahead - early).min(blocks);
    if worker == me { Vec::new() } else { vec![(worker as Rank, count)] }
}
