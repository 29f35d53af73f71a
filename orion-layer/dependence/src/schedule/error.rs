//! Why a schedule is refused.
use crate::in_place::InPlaceError;
use crate::placement::PlacementError;

/// Why a loop cannot run by a schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// Its grid is not one of the loop.
    #[error("the grid {grid:?} does not fit a loop of {extents:?} iterations")]
    Grid {
        /// Cells per dimension.
        grid: Vec<usize>,
        /// Iterations per dimension.
        extents: Vec<usize>,
    },
    /// Bounds that were measured or recorded are none of its blocks.
    #[error("bounds {what}")]
    Bounds {
        /// Which, in words.
        what: String,
    },
    /// It is for another number of workers.
    #[error("step {step} has tiles for {tiles} workers of {workers}")]
    Workers {
        /// The step.
        step: usize,
        /// The workers that it has tiles for.
        tiles: usize,
        /// The workers that there are.
        workers: usize,
    },
    /// A tile has cells that the grid has not.
    #[error("tile {cells:?} lies outside the grid {grid:?}")]
    Outside {
        /// The cells of the tile.
        cells: Vec<std::ops::Range<usize>>,
        /// Cells per dimension.
        grid: Vec<usize>,
    },
    /// A cell is in two tiles.
    #[error("cell {cell:?} would run twice")]
    Twice {
        /// The cell.
        cell: Vec<usize>,
    },
    /// A cell is in no tile.
    #[error("cell {cell:?} of the grid {grid:?} would not run")]
    Missing {
        /// The cell.
        cell: Vec<usize>,
        /// Cells per dimension.
        grid: Vec<usize>,
    },
    /// Iterations that conflict would run at once.
    #[error("in step {step}, workers {} and {} would run conflicting iterations at once: {conflict}", workers[0], workers[1])]
    Conflict {
        /// The step.
        step: usize,
        /// The two workers.
        workers: [usize; 2],
        /// The conflict, in words.
        conflict: String,
    },
    /// The order of an ordered loop would not be kept.
    #[error(
        "the loop is ordered, and iterations that depend on each other would lie in different blocks: {conflict}"
    )]
    Order {
        /// The dependence, in words.
        conflict: String,
    },
    /// The values of accumulators would be combined in another order than that of the loop.
    #[error(
        "the loop is ordered, and what its iterations give is combined in their order: only the outermost variable can be cut"
    )]
    Combined,
    /// A wavefront of the runtime's own has more tiles than it makes. One that the program gives may have as many as it likes.
    #[error(
        "it would have {rows} rows of {blocks} blocks, each of which has a list of what it touches: that is more than {most}. Run the loop \
         over a part of its outer variable at a time"
    )]
    Tiles {
        /// Rows of tiles.
        rows: usize,
        /// Tiles of a row.
        blocks: usize,
        /// The most tiles.
        most: usize,
    },
    /// Its arrays would have to lie in place, and cannot.
    #[error(transparent)]
    InPlace(#[from] InPlaceError),
    /// The arrays of the loop cannot be placed by it.
    #[error(transparent)]
    Placement(#[from] PlacementError),
}
