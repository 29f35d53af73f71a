//! Sparse arrays and data sets: entries with keys, which loops read and run over.
//!
//! Entries live in each worker's own memory, in the order in which a loop runs through them; they are no areas,
//! for nobody writes them and nobody else reads them. When a loop wants them elsewhere they move once; where workers
//! run each other's cells, they are offered to all besides (`shared.rs`).
use super::Value;
use super::exchange::exchange_entries;
use super::wire::fixed_len;
use crate::context::{ArrayNumber, Context, Outcome};
use crate::error::{Error, Result};
use crate::mutant::{self, Mutant};
use crate::site::Site;
use hectare_data::entries::{Entries, EntriesError, Entry};
use hectare_data::grid::Grid;
use hectare_dependence::cuts::{BlockWeights, Cuts, NotCuts, PartTable};
use hectare_dependence::histogram::Histogram;

use crate::contract::{AnySpace, Family, IterationSpace, Of, Visit};
use hectare_dependence::loop_nest::Space;
use std::cell::{OnceCell, RefCell};
use std::marker::PhantomData;
use std::ops::Range;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The finest histogram that is kept of a dimension.
const BINS: usize = 2048;

/// Of how many entries, at least, it is counted in which cells they lie.
const COUNTED: usize = 1 << 20;

/// A sparse n-dimensional array: entries with a key each, spread over the workers. Read-only; a loop runs over
/// its entries, or over some that [`SparseArray::map`] makes of them.
///
/// Costs each worker its own entries and no more: a key of four bytes a dimension, and the value.
#[derive(Debug)]
pub struct SparseArray<T, const N: usize> {
    name: String,
    number: ArrayNumber,
    shape: [usize; N],
    count: usize,
    histograms: Vec<Histogram>,
    counting: Duration,
    placed: RefCell<Rc<PlacedEntries<T, N>>>,
}

/// A worker's entries in the order of the cells of a loop.
#[derive(Debug)]
pub struct PlacedEntries<T, const N: usize> {
    entries: Vec<Entry<T, N>>,
    /// Cell `c` has `starts[c]..starts[c + 1]`.
    starts: Vec<usize>,
    order: Order,
    /// If workers may run cells of others.
    shared: OnceCell<SharedEntries<T, N>>,
    /// How often entries were placed again.
    times: u64,
}

impl<T, const N: usize> PlacedEntries<T, N> {
    fn new(entries: Vec<Entry<T, N>>, starts: Vec<usize>, order: Order) -> PlacedEntries<T, N> {
        PlacedEntries { entries, starts, order, shared: OnceCell::new(), times: 0 }
    }
}

/// The inputs of an arrangement of entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Order {
    cuts: Vec<Vec<i64>>,
    /// Who has each cell.
    owners: Rc<[usize]>,
    /// Whether the entries of a cell go by their keys.
    sorted: bool,
}

impl Order {
    fn is(&self, cuts: &[Vec<i64>], owners: &Rc<[usize]>, sorted: bool) -> bool {
        let same_owners =
            mutant::is(Mutant::StaleEntries) || Rc::ptr_eq(&self.owners, owners) || self.owners == *owners;
        same_owners && self.cuts == cuts && self.sorted == sorted
    }
}

impl<T: Value, const N: usize> SparseArray<T, N> {
    /// Makes an array of the entries that each worker passes; the shape is the greatest that any of them passes.
    /// Collective.
    pub(crate) fn make(
        context: &mut Context<'_>,
        site: Site,
        mine: Entries<T, N>,
    ) -> Result<SparseArray<T, N>> {
        let number = context.number_array();
        let (mut shape, mut count) = ([0; N], 0);
        let said: Vec<u8> = mine.shape().iter().chain([&mine.len()]).flat_map(|n| n.to_le_bytes()).collect();
        context.exchange(site, Outcome::Value(&said), |_, bytes| {
            let word = |at: usize| usize::from_le_bytes(std::array::from_fn(|k| bytes[at * 8 + k]));
            for (dim, extent) in shape.iter_mut().enumerate() {
                *extent = word(dim).max(*extent);
            }
            count += word(N);
            Ok(())
        })?;
        let wrong = |what: String| Error::Shape { array: site.to_string(), what };
        let mine = mine.with_shape(shape).map_err(|error| wrong(error.to_string()))?;
        let since = Instant::now();
        let mut histograms = Vec::with_capacity(N);
        for (dim, extent) in shape.into_iter().enumerate() {
            let width = (extent.div_ceil(BINS)).next_power_of_two();
            let mut own = Histogram::with_width(extent, width);
            own.add_all(mine.iter().map(|entry| entry.key[dim]));
            let mut all = Histogram::with_width(extent, width);
            context.exchange_values(site, &own, |_, other: Histogram| {
                all.merge(&other).map_err(|error| wrong(error.to_string()))
            })?;
            histograms.push(all);
        }
        let counting = since.elapsed();
        let entries = mine.into_vec();
        let starts = vec![0, entries.len()];
        let placed = Rc::new(PlacedEntries::new(entries, starts, Order::default()));
        let name = format!("array {number} ({site})");
        Ok(SparseArray { name, number, shape, count, histograms, counting, placed: RefCell::new(placed) })
    }

    /// The name in errors and explanations.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the array a name for errors and explanations.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// The extent of each dimension.
    pub fn shape(&self) -> [usize; N] {
        self.shape
    }

    /// How many entries, on all workers together.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// How many entries have which index in dimension `dim`, in ranges, on all workers together.
    ///
    /// # Panics
    /// If there is no such dimension.
    pub fn histogram(&self, dim: usize) -> &Histogram {
        &self.histograms[dim]
    }

    /// How long counting for the histograms took on this worker, when the array was made.
    pub fn counting_time(&self) -> Duration {
        self.counting
    }

    /// Calls `visit` with each entry that this worker has at present.
    pub fn for_each_local(&self, mut visit: impl FnMut([usize; N], &T)) {
        for entry in &self.placed.borrow().entries {
            visit(entry.key.map(|key| key as usize), &entry.value);
        }
    }
}

mod change;
mod iterate;
mod shared;
mod together;

pub use self::iterate::LocalEntries;
use self::shared::SharedEntries;
pub(crate) use self::shared::withdraw_left;

/// Slices of entries.
#[derive(Debug)]
pub struct EntriesFamily<T, const N: usize>(PhantomData<T>);

impl<T: 'static, const N: usize> Family for EntriesFamily<T, N> {
    type Of<'a> = &'a [Entry<T, N>];
}

impl<T: Value, const N: usize> AnySpace for SparseArray<T, N> {
    fn key(&self) -> u64 {
        self.number.get()
    }

    fn bounds(&self) -> Vec<(i64, i64)> {
        self.shape.iter().map(|extent| (0, *extent as i64)).collect()
    }

    fn kind(&self) -> Space {
        Space::Entries { array: self.name.clone(), count: self.count }
    }

    fn cut(&self, dim: usize, cells: usize) -> Vec<i64> {
        let cuts = Cuts::balanced(&self.histograms[dim], cells);
        cuts.bounds().iter().map(|bound| *bound as i64).collect()
    }

    fn count(&self, dims: &[usize], cuts: &[Vec<i64>]) -> Option<BlockWeights> {
        let axes: Result<Vec<Cuts>, _> = dims.iter().map(|dim| cuts_of(&cuts[*dim])).collect();
        let placed = self.placed.borrow();
        // Weights are to be about right: of very many entries, some are enough.
        let some = placed.entries.iter().step_by((self.count / COUNTED).max(1));
        Some(BlockWeights::count_dims(axes.ok()?, dims, some.map(|entry| entry.key)))
    }

    fn is_shareable(&self) -> bool {
        fixed_len::<T>().is_some()
    }
}

impl<T: Value, const N: usize> IterationSpace for SparseArray<T, N> {
    type Chunks = EntriesFamily<T, N>;
    type Placed = Rc<PlacedEntries<T, N>>;

    fn place(
        &self,
        context: &mut Context<'_>,
        site: Site,
        cuts: &[Vec<i64>],
        owners: &Rc<[usize]>,
        sorted: bool,
    ) -> Result<Rc<PlacedEntries<T, N>>> {
        let present = self.placed.borrow().clone();
        if present.order.is(cuts, owners, sorted) {
            return Ok(present);
        }
        drop(present);
        let grid: Vec<usize> = cuts.iter().map(|cuts| cuts.len() - 1).collect();
        let order = Order { cuts: cuts.to_vec(), owners: owners.clone(), sorted };
        let empty = PlacedEntries::new(Vec::new(), vec![0, 0], Order::default());
        let Some(before) = Rc::into_inner(self.placed.replace(Rc::new(empty))) else {
            return Err(Error::Invalid(format!("{} is placed by a loop inside a loop over it", self.name)));
        };
        if let Some(shared) = before.shared.get() {
            // All have ended the pass in which they ran cells of others.
            shared.withdraw(context)?;
        }
        let tables: Vec<PartTable> =
            cuts.iter().filter_map(|bounds| cuts_of(bounds).ok()).map(|cuts| cuts.table()).collect();
        let cell = |entry: &Entry<T, N>| {
            let parts = tables.iter().zip(entry.key).map(|(table, key)| table.find(key));
            parts.zip(&grid).fold(0, |number, (part, cells)| number * cells + part)
        };
        let name = format!("orion/{}/move/{}", self.number, context.next_number());
        let mut moved =
            exchange_entries(context, site, &name, before.entries, |entry| order.owners[cell(entry)])?;
        let wrong = |error: ArrangeError| Error::Shape { array: self.name.clone(), what: error.to_string() };
        if !before.order.cuts.is_empty() {
            // They come by sender; by the cells where they were, their order is the same for all numbers of workers,
            // as it was at first: a cell was with one worker.
            moved = arrange(self.shape, moved, before.order).map_err(wrong)?.entries;
        }
        let times = before.times + 1;
        let in_order = !sorted && moved.is_sorted_by_key(cell);
        let mut placed = arrange(self.shape, moved, order).map_err(wrong)?;
        if !in_order {
            placed.entries = together::side_by_side(placed.entries)?;
        }
        placed.times = times;
        let placed = Rc::new(placed);
        self.placed.replace(placed.clone());
        Ok(placed)
    }

    #[inline]
    fn chunk<'a>(
        placed: &'a Rc<PlacedEntries<T, N>>,
        _cuts: &[Vec<i64>],
        _cell: &[usize],
        number: usize,
    ) -> Of<'a, EntriesFamily<T, N>> {
        let own = &placed.entries[placed.starts[number]..placed.starts[number + 1]];
        if own.is_empty() { placed.shared.get().map_or(own, |shared| shared.brought(number)) } else { own }
    }

    const LONGEST_PIECE: usize = usize::MAX;

    #[inline(always)]
    fn piece<'a>(
        placed: &'a Rc<PlacedEntries<T, N>>,
        _cuts: &[Vec<i64>],
        range: Range<usize>,
    ) -> Of<'a, EntriesFamily<T, N>> {
        let own = &placed.entries[..];
        let all =
            if own.is_empty() { placed.shared.get().map_or(own, |shared| shared.brought(0)) } else { own };
        &all[range]
    }

    fn times_placed(placed: &Self::Placed) -> u64 {
        placed.times
    }

    fn share(&self, context: &mut Context<'_>, site: Site, placed: &Self::Placed) -> Result<()> {
        if placed.shared.get().is_none() {
            let shared = SharedEntries::offer(context, site, self.number.get(), placed)?;
            placed.shared.get_or_init(|| shared);
        }
        Ok(())
    }

    fn bring(placed: &Self::Placed, context: &mut Context<'_>, from: usize, cells: &[usize]) -> Result<()> {
        placed.shared.get().map_or(Ok(()), |shared| shared.bring(context, from, cells))
    }

    fn one_by_one<'a>(
        placed: &'a Rc<PlacedEntries<T, N>>,
        _cuts: &[Vec<i64>],
        visit: &mut Visit<'_, 'a, EntriesFamily<T, N>>,
    ) {
        for entry in &placed.entries {
            visit(&entry.key.map(i64::from), std::slice::from_ref(entry));
        }
    }
}

/// Why entries cannot be put into the order of cells.
#[derive(Debug, thiserror::Error)]
enum ArrangeError {
    #[error(transparent)]
    Entries(#[from] EntriesError),
    #[error(transparent)]
    Cuts(#[from] NotCuts),
    #[error("{0} dimensions are cut")]
    Dimensions(usize),
}

/// Puts entries into the order of the cells; those of one cell keep theirs, or go by their keys.
fn arrange<T, const N: usize>(
    shape: [usize; N],
    entries: Vec<Entry<T, N>>,
    order: Order,
) -> Result<PlacedEntries<T, N>, ArrangeError> {
    let entries = Entries::from_vec(shape, entries)?;
    let cuts: Vec<Cuts> = order.cuts.iter().map(|bounds| cuts_of(bounds)).collect::<Result<_, _>>()?;
    let cuts = <[Cuts; N]>::try_from(cuts).map_err(|cuts| ArrangeError::Dimensions(cuts.len()))?;
    let (mut entries, starts) = Grid::place(entries, cuts).into_parts();
    if order.sorted {
        for range in starts.windows(2) {
            entries[range[0]..range[1]].sort_by_key(|entry| entry.key);
        }
    }
    Ok(PlacedEntries::new(entries, starts, order))
}

fn cuts_of(bounds: &[i64]) -> Result<Cuts, NotCuts> {
    Cuts::new(bounds.iter().map(|bound| *bound as usize).collect())
}
