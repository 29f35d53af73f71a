//! Placing: entries into the cells of a grid.
use crate::entries::{Entries, Entry};
use crate::random::Stream;
use hectare_dependence::cuts::{BlockWeights, Cuts, PartTable};
use hectare_dependence::histogram::Histogram;
use std::mem;

/// The least number of keys that cuts are chosen by, if there are as many entries.
const SAMPLE: usize = 1 << 18;

/// Bins of the histogram of one dimension.
const BINS: usize = 1 << 14;

/// Blocks of the coarse grid on which the dimensions are balanced together.
const COARSE_BLOCKS: usize = 1 << 17;

/// Entries in the order of the cells that they lie in, cells in row-major order, so that the entries of a cell
/// are one slice. Within a cell they keep the order in which they came.
///
/// ```
/// use hectare_data::{entries::Entries, grid::Grid};
/// use hectare_dependence::cuts::Cuts;
/// let mut entries = Entries::new([4, 4])?;
/// for (key, value) in [([3, 0], 'a'), ([0, 3], 'b'), ([1, 2], 'c'), ([0, 0], 'd')] {
///     entries.push(key, value)?;
/// }
/// let grid = Grid::place(entries, [Cuts::even(4, 2), Cuts::even(4, 2)]);
/// assert_eq!(grid.cell([0, 1]).iter().map(|entry| entry.value).collect::<String>(), "bc");
/// # Ok::<(), hectare_data::entries::EntriesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid<T, const N: usize> {
    list: Vec<Entry<T, N>>,
    /// Cell `c` is `starts[c]..starts[c + 1]`.
    starts: Vec<usize>,
    cuts: [Cuts; N],
}

impl<T, const N: usize> Grid<T, N> {
    /// Places entries into the cells that these cuts make. Values are moved, not copied.
    ///
    /// # Panics
    /// If the cuts are not of the entries' shape, or cut a dimension into more than 65,536 parts.
    pub fn place(entries: Entries<T, N>, cuts: [Cuts; N]) -> Grid<T, N> {
        let extents = cuts.each_ref().map(Cuts::extent);
        assert_eq!(extents, entries.shape(), "the cuts are not of the entries' shape");
        let cells = cuts.iter().map(Cuts::parts).product::<usize>();
        let mut sort = Sort {
            tables: cuts.each_ref().map(Cuts::table),
            buckets: cuts.each_ref().map(|cuts| (0..cuts.parts()).map(|_| Vec::new()).collect()),
            list: Vec::new(),
            starts: Vec::with_capacity(cells + 1),
        };
        sort.starts.push(0);
        sort.place(entries);
        // A data set costs its own size, also if it came in a list with much in reserve.
        sort.list.shrink_to_fit();
        Grid { list: sort.list, starts: sort.starts, cuts }
    }

    /// How each dimension is cut.
    pub fn cuts(&self) -> &[Cuts; N] {
        &self.cuts
    }

    /// The number of cells.
    pub fn cells(&self) -> usize {
        self.starts.len() - 1
    }

    /// The number of a cell, in row-major order.
    ///
    /// # Panics
    /// If a part lies outside the grid.
    pub fn number(&self, parts: [usize; N]) -> usize {
        parts.iter().zip(&self.cuts).fold(0, |number, (&part, cuts)| {
            assert!(part < cuts.parts(), "part {part} of a dimension of {} parts", cuts.parts());
            number * cuts.parts() + part
        })
    }

    /// The entries of a cell.
    ///
    /// # Panics
    /// If a part lies outside the grid.
    pub fn cell(&self, parts: [usize; N]) -> &[Entry<T, N>] {
        self.numbered(self.number(parts))
    }

    /// The entries of the cell with this number.
    ///
    /// # Panics
    /// If there is no such cell.
    pub fn numbered(&self, cell: usize) -> &[Entry<T, N>] {
        &self.list[self.starts[cell]..self.starts[cell + 1]]
    }

    /// The place of each cell's first entry, and at last the number of entries.
    pub fn starts(&self) -> &[usize] {
        &self.starts
    }

    /// The entries of each cell, counted: what [`Rotation::cost`](hectare_dependence::cuts::Rotation::cost) weighs.
    pub fn weights(&self) -> Vec<u64> {
        self.starts.array_windows().map(|[start, end]| (end - start) as u64).collect()
    }

    /// All entries, in the order of the cells.
    pub fn as_slice(&self) -> &[Entry<T, N>] {
        &self.list
    }

    /// The entries and where the cells begin among them.
    pub fn into_parts(self) -> (Vec<Entry<T, N>>, Vec<usize>) {
        (self.list, self.starts)
    }

    /// Puts the entries of each cell into a random order, which depends on the stream, the cell's number and the
    /// order before.
    pub fn shuffle(&mut self, stream: Stream) {
        let mut rest = &mut self.list[..];
        for (cell, [start, end]) in self.starts.array_windows().enumerate() {
            let (entries, after) = rest.split_at_mut(end - start);
            stream.child(cell as u64).shuffle(entries);
            rest = after;
        }
    }
}

/// A radix sort, most significant digit first: one stable pass per dimension into a bucket per part, the later
/// passes within the buckets of the earlier ones, which lie in the cache by then.
struct Sort<T, const N: usize> {
    tables: [PartTable; N],
    /// The buckets of each dimension.
    buckets: [Vec<Vec<Entry<T, N>>>; N],
    list: Vec<Entry<T, N>>,
    starts: Vec<usize>,
}

impl<T, const N: usize> Sort<T, N> {
    fn place(&mut self, entries: Entries<T, N>) {
        let mut counts = vec![0; self.buckets[0].len()];
        entries.iter().for_each(|entry| counts[self.tables[0].find(entry.key[0])] += 1);
        for (bucket, count) in self.buckets[0].iter_mut().zip(counts) {
            bucket.reserve_exact(count);
        }
        // The list is written into the memory that the entries leave.
        let mut list = entries.into_vec();
        self.fill(0, list.drain(..));
        self.list = list;
        self.gather(0);
    }

    /// Distributes entries over the buckets of a dimension.
    fn fill(&mut self, dim: usize, entries: impl Iterator<Item = Entry<T, N>>) {
        let (table, buckets) = (&self.tables[dim], &mut self.buckets[dim]);
        entries.for_each(|entry| buckets[table.find(entry.key[dim])].push(entry));
    }

    /// Takes what is in the buckets of a dimension, sorts it by the further dimensions and appends it.
    fn gather(&mut self, dim: usize) {
        for part in 0..self.buckets[dim].len() {
            if dim + 1 == N {
                self.list.append(&mut self.buckets[dim][part]);
                self.starts.push(self.list.len());
                continue;
            }
            let mut bucket = mem::take(&mut self.buckets[dim][part]);
            self.fill(dim + 1, bucket.drain(..));
            if dim > 0 {
                // Buckets of the first dimension are used once, and their memory is wanted for the list.
                self.buckets[dim][part] = bucket;
            }
            self.gather(dim + 1);
        }
    }
}

impl<T, const N: usize> Entries<T, N> {
    /// Cuts of the dimensions into `parts`, by a sample of these entries, that balance the blocks of
    /// a [`Rotation`](hectare_dependence::cuts::Rotation). Where other workers hold entries too, they have to do these steps
    /// together: [`sample_keys`](Entries::sample_keys), [`Histogram::merge`], [`Cuts::balanced`],
    /// [`BlockWeights::merge`], [`BlockWeights::balance`].
    ///
    /// # Panics
    /// If a number of parts is zero.
    pub fn balanced_cuts(&self, parts: [usize; N], stream: Stream) -> [Cuts; N] {
        let keys = self.sample_keys((self.len() / SAMPLE).max(1), stream);
        let histograms = histograms(self.shape(), &keys);
        let axes = coarse_axes(&histograms, parts);
        let cuts = BlockWeights::count(&axes, keys).balance(&parts);
        cuts.try_into().expect("one per dimension")
    }
}

/// Counts the indices of each dimension, in bins narrow enough to cut at.
pub fn histograms<const N: usize>(shape: [usize; N], keys: &[[u32; N]]) -> [Histogram; N] {
    let mut histograms =
        shape.map(|extent| Histogram::with_width(extent, extent.div_ceil(BINS).next_power_of_two()));
    for (dim, histogram) in histograms.iter_mut().enumerate() {
        histogram.add_all(keys.iter().map(|key| key[dim]));
    }
    histograms
}

/// Axes of the coarse grid on which dimensions are balanced together: up to eight times as many parts as they
/// are to have, fewer if that made too many blocks, each about as heavy as the others.
pub fn coarse_axes<const N: usize>(histograms: &[Histogram; N], parts: [usize; N]) -> [Cuts; N] {
    let blocks = |factor: usize| parts.iter().try_fold(factor.pow(N as u32), |n, &p| n.checked_mul(p));
    let fits = |factor: &usize| blocks(*factor).is_some_and(|blocks| blocks <= COARSE_BLOCKS);
    let factor = (2..=8).rev().find(fits).unwrap_or(1);
    std::array::from_fn(|dim| Cuts::balanced(&histograms[dim], parts[dim] * factor))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_dependence::cuts::Rotation;
    use proptest::prelude::*;

    fn check<const N: usize>(shape: [usize; N], keys: &[[u32; N]], cuts: [Cuts; N]) {
        let list = keys.iter().enumerate().map(|(value, &key)| Entry { key, value: value.to_string() });
        let entries = Entries::from_vec(shape, list.collect()).unwrap();
        let cell_of =
            |key: [u32; N]| -> [usize; N] { std::array::from_fn(|d| cuts[d].find(key[d] as usize)) };
        let mut expected = entries.clone().into_vec();
        expected.sort_by_key(|entry| cell_of(entry.key));
        let grid = Grid::place(entries, cuts.clone());
        assert_eq!(grid.as_slice(), expected);
        assert_eq!(grid.cells(), cuts.iter().map(Cuts::parts).product::<usize>());
        for entry in &expected {
            assert!(grid.cell(cell_of(entry.key)).contains(entry));
        }
        let mut seen = 0;
        for cell in 0..grid.cells() {
            seen += grid.numbered(cell).len();
            assert!(grid.numbered(cell).iter().all(|entry| grid.number(cell_of(entry.key)) == cell));
        }
        assert_eq!(seen, keys.len());
    }

    fn cuts(extent: usize, seed: u64) -> Cuts {
        let stream = Stream::new(seed, "cuts");
        let mut bounds: Vec<usize> =
            (0..1 + stream.below(0, 6)).map(|at| stream.below(at + 1, extent as u64 + 1) as usize).collect();
        bounds[0] = 0;
        bounds.push(extent);
        bounds.sort_unstable();
        Cuts::new(bounds).unwrap()
    }

    proptest! {
        #[test]
        fn placing_is_a_stable_sort_by_cell(
            seed: u64, keys in prop::collection::vec((0u32..9, 0u32..300_000, 0u32..4), 0..60),
        ) {
            let (one, two): (Vec<_>, Vec<_>) = keys.iter().map(|&(i, j, _)| ([j], [i, j])).unzip();
            let three: Vec<_> = keys.iter().map(|&(i, j, k)| [i, j, k]).collect();
            let [i, j, k] = [cuts(9, seed), cuts(300_000, seed ^ 1), cuts(4, seed ^ 2)];
            check([300_000], &one, [j.clone()]);
            check([9, 300_000], &two, [i.clone(), j.clone()]);
            check([9, 300_000, 4], &three, [i, j, k]);
        }
    }

    #[test]
    fn nothing_is_kept_in_reserve() {
        let mut list = Vec::with_capacity(1000);
        list.extend((0..10u32).map(|value| Entry { key: [value], value }));
        let grid = Grid::place(Entries::from_vec([10], list).unwrap(), [Cuts::even(10, 3)]);
        let (list, starts) = grid.into_parts();
        assert_eq!((list.len(), list.capacity(), starts), (10, 10, vec![0, 3, 6, 10]));
    }

    fn some_entries(len: u32) -> Entries<u32, 2> {
        let stream = Stream::new(9, "entries");
        let index = |at, extent: u32| (stream.uniform(at).powi(3) * f64::from(extent)) as u32;
        let entry =
            |at| Entry { key: [index(2 * u64::from(at), 900), index(2 * u64::from(at) + 1, 500)], value: at };
        Entries::from_vec([900, 500], (0..len).map(entry).collect()).unwrap()
    }

    #[test]
    fn cells_are_shuffled_by_seed_within_themselves() {
        let entries = some_entries(5000);
        let grid = Grid::place(entries, [Cuts::even(900, 3), Cuts::even(500, 4)]);
        let shuffled = |seed| {
            let mut grid = grid.clone();
            grid.shuffle(Stream::new(seed, "order"));
            grid
        };
        assert_eq!(shuffled(1), shuffled(1));
        assert_ne!(shuffled(1), shuffled(2));
        for cell in 0..grid.cells() {
            let sorted = |grid: &Grid<u32, 2>| {
                let mut values: Vec<u32> = grid.numbered(cell).iter().map(|entry| entry.value).collect();
                values.sort_unstable();
                values
            };
            assert_eq!(sorted(&shuffled(1)), sorted(&grid));
        }
    }

    #[test]
    fn cuts_by_sample_balance_the_grid() {
        let entries = some_entries(1_000_000);
        let parts = [4, 8];
        let stream = Stream::new(1, "sample");
        let cuts = entries.balanced_cuts(parts, stream);
        assert_eq!(cuts, entries.balanced_cuts(parts, stream));
        let cost = Rotation::new(&parts).cost(&Grid::place(entries, cuts).weights());
        // Equal blocks would make 250,000; the first index of a dimension holds a tenth of the entries.
        assert!(cost < 290_000, "{cost}");
    }
}
