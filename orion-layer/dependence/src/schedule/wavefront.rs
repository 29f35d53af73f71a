//! Loops whose iterations depend on their neighbours, in rows that follow each other.
use super::kinds::{tile, whole};
use super::{Schedule, ScheduleError, Steps, cells_for};
use crate::analysis::{Dependence, Dependences};
use crate::in_place::Waits;
use crate::loop_nest::{LoopNest, Space};
use crate::mutant::{self, Mutant};

/// A pipelined wavefront (Lamport, 1974; Cytron, 1986): the space is cut into rows along one dimension and into blocks along
/// another. Rows go to the workers in turn, and each row follows the one before it, a number of blocks behind. No
/// barrier is between the diagonals: each tile waits for one tile of the row before.
///
/// The runtime chooses it where nothing else keeps the dependences; as a schedule of one's own it is checked against them.
/// The arrays that the loop writes lie in place on one host; on several, one worker runs all rows.
#[derive(Clone, Debug)]
pub struct Wavefront {
    /// The dimension that is cut into rows.
    pub outer: usize,
    /// The dimension that rows are cut into blocks along.
    pub inner: usize,
    /// Whether a row has one index: where an iteration depends on ones further on in the row before.
    pub by_index: bool,
    /// How much further on.
    pub ahead: usize,
    /// Blocks of a row.
    pub blocks: usize,
}

/// The least work of a block, in nanoseconds, by the cost model: to wait for another worker's costs a tenth of that.
const BLOCK_NS: f64 = 4000.0;
/// The least and the most blocks of a row. Not by the number of workers: cells, in which accumulators are combined, do not depend on
/// it.
const BLOCKS: [usize; 2] = [8, 64];
/// The most tiles. Each has a list of what it touches.
const MOST_TILES: usize = 1 << 17;

impl Wavefront {
    /// The wavefronts that the dependences of a loop allow, whose iterations take `work_ns` nanoseconds in all.
    pub(super) fn all(
        nest: &LoopNest,
        dependences: &Dependences,
        extents: &[usize],
        work_ns: f64,
    ) -> Vec<Wavefront> {
        let dims = nest.dims.len();
        if nest.space != Space::Dense || dependences.is_empty() {
            return Vec::new();
        }
        let pairs = (0..dims).flat_map(|outer| (0..dims).map(move |inner| (outer, inner)));
        let of = |(outer, inner): (usize, usize)| {
            let Reach { by_index, ahead } = Reach::of(dependences, outer, inner)?;
            let rows = if by_index { extents[outer] } else { cells_for(extents[outer], 1, 2) };
            let blocks = (work_ns / rows.max(1) as f64 / BLOCK_NS) as usize;
            // Of many rows, each in fewer blocks.
            let most = (MOST_TILES / rows.max(1)).clamp(BLOCKS[0], BLOCKS[1]);
            let blocks = blocks.clamp(BLOCKS[0], most).min(extents[inner]).max(1);
            Some(Wavefront { outer, inner, by_index, ahead, blocks })
        };
        pairs.filter(|(outer, inner)| outer != inner).filter_map(of).collect()
    }

    /// Refuses more tiles than the runtime makes of its own accord.
    pub(super) fn check_tiles(&self, extents: &[usize], workers: usize) -> Result<(), ScheduleError> {
        let grid = self.grid(extents, workers);
        let (rows, blocks) = (grid[self.outer], grid[self.inner]);
        match rows.saturating_mul(blocks) {
            0..=MOST_TILES => Ok(()),
            _ => Err(ScheduleError::Tiles { rows, blocks, most: MOST_TILES }),
        }
    }

    /// Blocks of the row before that a block has to be behind, beside those that come first in a row.
    fn blocks_ahead(&self, cuts: &[i64]) -> usize {
        let narrowest = cuts.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap_or(1).max(1);
        self.ahead.div_ceil(narrowest as usize).min(cuts.len())
    }

    /// The rule by which tiles wait for others; `cuts[d]` are the values of loop dimension `d` between the cells.
    pub(super) fn waits(&self, cuts: &[Vec<i64>]) -> Waits {
        let inner = &cuts[self.inner];
        Waits::Rows { blocks: inner.len() - 1, ahead: self.blocks_ahead(inner) }
    }

    /// How much longer all takes on `workers` workers than if nobody waited: the last worker of a turn begins when those before it
    /// are far enough, and a row that is too short does not reach the next turn.
    pub(super) fn slowdown(&self, cuts: &[Vec<i64>], workers: usize) -> f64 {
        let (rows, blocks) = (cuts[self.outer].len() - 1, cuts[self.inner].len() - 1);
        let turns = rows.div_ceil(workers).max(1);
        let behind = 1 + self.blocks_ahead(&cuts[self.inner]);
        let length = blocks.max(workers * behind) * (turns - 1) + blocks + (workers - 1) * behind;
        length as f64 * workers as f64 / (rows * blocks).max(1) as f64
    }

    /// Refuses dependences that the order of rows and blocks does not keep.
    pub(super) fn check(
        &self,
        nest: &LoopNest,
        dependences: &Dependences,
        cuts: &[Vec<i64>],
    ) -> Result<(), ScheduleError> {
        let highest = cuts[self.outer].windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(1);
        let keeps = |dependence: &Dependence| {
            let [outer, inner] = [self.outer, self.inner].map(|dim| dependence.extents[dim].0);
            let (Some(rows), Some(along)) = (outer, inner.map(skewed)) else { return false };
            // From an earlier row, or from the same one and not further on; and not from further on than rows are behind.
            rows >= 0 && (along >= 0 || rows >= highest && along.unsigned_abs() as usize <= self.ahead)
        };
        match dependences.list.iter().find(|dependence| !keeps(dependence)) {
            None => Ok(()),
            Some(broken) => {
                Err(ScheduleError::Order { conflict: dependences.describe_conflict(nest, broken) })
            }
        }
    }
}

/// How far dependences reach along the rows of a wavefront.
struct Reach {
    by_index: bool,
    ahead: usize,
}

impl Reach {
    /// `None` if a dependence reaches back in rows, or further on in its own.
    fn of(dependences: &Dependences, outer: usize, inner: usize) -> Option<Reach> {
        let mut reach = Reach { by_index: false, ahead: 0 };
        for dependence in &dependences.list {
            let (rows, along) = (dependence.extents[outer].0?, skewed(dependence.extents[inner].0?));
            if rows < 0 || along < 0 && rows == 0 {
                return None;
            }
            if along < 0 {
                reach.by_index = true;
                reach.ahead = reach.ahead.max(along.unsigned_abs() as usize);
            }
        }
        Some(reach)
    }
}

/// The least distance along rows, of which those that point forward in the row before need rows of one index.
fn skewed(along: i64) -> i64 {
    if mutant::is(Mutant::SkewSign) { -along } else { along }
}

impl Schedule for Wavefront {
    fn name(&self) -> String {
        format!("wavefront over dimensions {} and {}", self.outer, self.inner)
    }

    fn wavefront(&self) -> Option<&Wavefront> {
        Some(self)
    }

    fn grid(&self, extents: &[usize], workers: usize) -> Vec<usize> {
        let mut grid = vec![1; extents.len()];
        if self.outer.max(self.inner) >= extents.len() || self.outer == self.inner {
            // Not of this loop: a grid without dimensions is refused.
            return Vec::new();
        }
        grid[self.outer] = if self.by_index {
            extents[self.outer].max(1)
        } else {
            cells_for(extents[self.outer], workers, 2)
        };
        grid[self.inner] = self.blocks.min(extents[self.inner]).max(1);
        grid
    }

    fn steps(&self, grid: &[usize], workers: usize) -> Steps {
        let (rows, blocks) = (grid[self.outer], grid[self.inner]);
        let one = |step: usize, worker: usize| {
            let (row, block) = (step / blocks * workers + worker, step % blocks);
            let mut cells = whole(grid);
            cells[self.outer] = row.min(rows)..(row + 1).min(rows);
            cells[self.inner] = block..block + 1;
            tile(cells)
        };
        let steps = rows.div_ceil(workers) * blocks;
        (0..steps).map(|step| (0..workers).map(|worker| one(step, worker)).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::analyze;
    use crate::in_place::{CheckTasks, InPlace, InPlaceError};
    use crate::isl;
    use crate::loop_nest::{Access, Mode, NamedArray, Order};
    use crate::schedule::{Team, Uncut, Verdict, choose};
    use serde_json::json;

    /// `rows` sweeps over `len` elements, which relax them in place.
    fn sweeps(rows: usize, len: usize) -> LoopNest {
        let dims = isl::variables(&json!([[0, rows], [1, len - 1]]), "i");
        let mut nest = LoopNest::new("relax", Order::Ordered, Space::Dense, dims);
        nest.arrays.push(NamedArray { name: "a".into(), shape: vec![len], element_bytes: 8 });
        for (constant, mode) in [(0, Mode::Update), (-1, Mode::Read), (1, Mode::Read)] {
            let subscripts = isl::subscripts(&json!([[constant, 0, 1]]));
            nest.accesses.push(Access { array: 0, subscripts, mode, text: "a".into(), line: 0 });
        }
        nest
    }

    /// The blocks of a row of their wavefront; `None` if it has too many tiles.
    fn blocks(rows: usize, len: usize) -> Option<usize> {
        let nest = sweeps(rows, len);
        let (extents, work_ns) = ([rows, len - 2], 5.0 * (rows * len) as f64);
        let found = Wavefront::all(&nest, &analyze(&nest), &extents, work_ns);
        let along = found.into_iter().find(|found| found.outer == 0).unwrap();
        assert!(along.by_index);
        along.check_tiles(&extents, 2).ok().map(|()| along.blocks)
    }

    /// A loop that is serial since its tiles would be too many is told so.
    #[test]
    fn too_many_rows_are_a_reason() {
        let nest = sweeps(MOST_TILES / 8 + 1, 1000);
        let dependences = analyze(&nest);
        let refuse = |_: &LoopNest, _: &InPlace| Err(InPlaceError { what: "no task is checked here".into() });
        let team = Team { uncut: Some(Uncut::InPlace(CheckTasks(&refuse))), ..Team::of_one_host(2, false) };
        let cut = |dim: usize, cells: usize| {
            let (first, last) = nest.dims[dim].bounds.unwrap();
            (0..=cells).map(|cell| first + (last - first) * cell as i64 / cells as i64).collect()
        };
        let choice = choose(&nest, &dependences, None, &cut, team).unwrap();
        assert_eq!(choice.chosen(), "serial");
        let said = choice.candidates.iter().find(|one| one.name.starts_with("wavefront: ")).unwrap();
        let why = "it would have 16385 rows of 8 blocks, ";
        assert!(matches!(&said.verdict, Verdict::Refused(said) if said.starts_with(why)), "{said:?}");
    }

    #[test]
    fn many_rows_have_fewer_blocks_each() {
        assert_eq!(blocks(100, 100_000), Some(64));
        assert_eq!(blocks(2048, 100_000), Some(64));
        assert_eq!(blocks(2049, 100_000), Some(63));
        assert_eq!(blocks(4000, 100_000), Some(32));
        assert_eq!(blocks(MOST_TILES / 8, 100_000), Some(8));
        assert_eq!(blocks(MOST_TILES / 8 + 1, 100_000), None, "too many tiles");
        // By the work in a row, where that allows fewer.
        assert_eq!(blocks(4000, 8000), Some(10));
    }
}
