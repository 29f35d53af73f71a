//! The iteration space of a loop.
use super::arrays::{Family, Of};
use crate::context::Context;
use crate::error::Result;
use crate::site::Site;
use hectare_data::entries::Entry;
use hectare_dependence::cuts::BlockWeights;
use hectare_dependence::loop_nest::Space;
use hectare_dependence::schedule::{Tile, for_each_cell};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::rc::Rc;

/// A visitor of single iterations: index and chunk.
pub type Visit<'v, 'a, C> = dyn FnMut(&[i64], Of<'a, C>) + 'v;

/// The iterations of a loop, whatever their type: what planning asks of them.
pub trait AnySpace {
    /// A number that tells this space from others in the same loop; the same on every worker.
    fn key(&self) -> u64;

    /// The values of each dimension, `start..end`.
    fn bounds(&self) -> Vec<(i64, i64)>;

    /// The kind of the space.
    fn kind(&self) -> Space;

    /// Cuts dimension `dim` into `cells` cells of about the same work: `cells + 1` values that do not go down.
    fn cut(&self, dim: usize, cells: usize) -> Vec<i64>;

    /// How many of this worker's iterations lie in each cell along dimensions `dims`; `None` where every point is an
    /// iteration.
    fn count(&self, _dims: &[usize], _cuts: &[Vec<i64>]) -> Option<BlockWeights> {
        None
    }

    /// Whether a worker can run cells of which another has the iterations.
    fn is_shareable(&self) -> bool;
}

/// The iterations of a loop, which can be cut into cells.
pub trait IterationSpace: AnySpace {
    /// The chunk of one cell, for the body.
    type Chunks: Family;

    /// The iterations of this worker, in place.
    type Placed;

    /// Brings what this worker runs to it. Collective. `owners` says which worker runs a cell, by
    /// its number in row-major order.
    ///
    /// # Errors
    /// Those of the exchange between workers.
    fn place(
        &self,
        context: &mut Context<'_>,
        site: Site,
        cuts: &[Vec<i64>],
        owners: &Rc<[usize]>,
        sorted: bool,
    ) -> Result<Self::Placed>;

    /// How often the iterations were placed again: while this stays, they have the same numbers.
    fn times_placed(_placed: &Self::Placed) -> u64 {
        0
    }

    /// Lets others run what was placed at this worker. Collective; does nothing if they may already.
    ///
    /// # Errors
    /// Of memory; the same on all workers.
    fn share(&self, _context: &mut Context<'_>, _site: Site, _placed: &Self::Placed) -> Result<()> {
        Ok(())
    }

    /// Brings iterations of these cells, by their numbers, here, if worker `from` has them and has shared them. They stay for
    /// as long as they are placed so.
    ///
    /// # Errors
    /// When that worker cannot be reached.
    fn bring(
        _placed: &Self::Placed,
        _context: &mut Context<'_>,
        _from: usize,
        _cells: &[usize],
    ) -> Result<()> {
        Ok(())
    }

    /// The iterations of one cell.
    fn chunk<'a>(
        placed: &'a Self::Placed,
        cuts: &[Vec<i64>],
        cell: &[usize],
        number: usize,
    ) -> Of<'a, Self::Chunks>;

    /// The iterations `range` of a space that is placed in one cell, which this worker has or has brought, by their numbers in the
    /// order in which they lie; no more than [`LONGEST_PIECE`](IterationSpace::LONGEST_PIECE).
    fn piece<'a>(placed: &'a Self::Placed, cuts: &[Vec<i64>], range: Range<usize>) -> Of<'a, Self::Chunks>;

    /// How many iterations [`piece`](IterationSpace::piece) gives at most.
    const LONGEST_PIECE: usize;

    /// Calls `visit` with each iteration that this worker has: its index, and a chunk of it alone. `cuts` are those
    /// of [`place`](IterationSpace::place), one cell.
    fn one_by_one<'a>(placed: &'a Self::Placed, cuts: &[Vec<i64>], visit: &mut Visit<'_, 'a, Self::Chunks>);
}

/// Nested loops over ranges of indices, outermost first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges<const D: usize>(pub [Range<usize>; D]);

/// The chunks of a space of ranges.
#[derive(Debug)]
pub struct RangesFamily<const D: usize>;

impl<const D: usize> Family for RangesFamily<D> {
    type Of<'a> = [Range<usize>; D];
}

impl<const D: usize> AnySpace for Ranges<D> {
    fn key(&self) -> u64 {
        let mut hash = FxHasher::default();
        self.0.hash(&mut hash);
        hash.finish()
    }

    fn bounds(&self) -> Vec<(i64, i64)> {
        self.0.iter().map(|range| (range.start as i64, range.end.max(range.start) as i64)).collect()
    }

    fn kind(&self) -> Space {
        Space::Dense
    }

    fn cut(&self, dim: usize, cells: usize) -> Vec<i64> {
        let range = &self.0[dim];
        (0..=cells).map(|cell| (range.start + range.len() * cell / cells) as i64).collect()
    }

    fn is_shareable(&self) -> bool {
        true
    }
}

impl<const D: usize> IterationSpace for Ranges<D> {
    type Chunks = RangesFamily<D>;
    type Placed = ();

    fn place(
        &self,
        _context: &mut Context<'_>,
        _site: Site,
        _cuts: &[Vec<i64>],
        _owners: &Rc<[usize]>,
        _sorted: bool,
    ) -> Result<()> {
        Ok(())
    }

    #[inline]
    fn chunk(_placed: &(), cuts: &[Vec<i64>], cell: &[usize], _number: usize) -> [Range<usize>; D] {
        std::array::from_fn(|dim| cuts[dim][cell[dim]] as usize..cuts[dim][cell[dim] + 1] as usize)
    }

    const LONGEST_PIECE: usize = if D == 1 { usize::MAX } else { 1 };

    #[inline(always)]
    fn piece(_placed: &(), cuts: &[Vec<i64>], range: Range<usize>) -> [Range<usize>; D] {
        let mut rest = range.start;
        let mut piece = std::array::from_fn(|_| 0..0);
        for dim in (0..D).rev() {
            let (start, extent) = (cuts[dim][0] as usize, (cuts[dim][1] - cuts[dim][0]) as usize);
            // Of one dimension there may be several.
            let at = if D == 1 { rest } else { rest % extent };
            piece[dim] = start + at..start + at + range.len();
            rest = if D == 1 { 0 } else { rest / extent };
        }
        piece
    }

    fn one_by_one<'a>(_placed: &'a (), cuts: &[Vec<i64>], visit: &mut Visit<'_, 'a, RangesFamily<D>>) {
        let cells = cuts.iter().map(|cuts| cuts[0] as usize..cuts[1] as usize).collect();
        for_each_cell(&Tile { cells }, |point| {
            let index: Vec<i64> = point.iter().map(|at| *at as i64).collect();
            visit(&index, std::array::from_fn(|dim| point[dim]..point[dim] + 1));
            true
        });
    }
}

/// The key and the value of an entry, as a body sees them.
#[inline(always)]
pub fn entry_parts<T, const N: usize>(entry: &Entry<T, N>) -> ([usize; N], &T) {
    (entry.key.map(|key| key as usize), &entry.value)
}
