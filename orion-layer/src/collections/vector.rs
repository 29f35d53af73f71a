//! Vectors that grow, spread over the workers.
use super::image::{self, Images};
use crate::array::share::share_bytes;
use crate::array::{Layout, Value, wire};
use crate::context::{ArrayNumber, Context};
use crate::error::{Error, Result};
use crate::panics::caught;
use crate::site::Site;
use std::collections::BTreeMap;

/// The number of consecutive elements that one worker has; the next worker has the next ones, and so on around.
pub(super) const BLOCK: u64 = 1024;

/// The worker that has an element, and the element's place there.
pub(super) fn place(index: u64, workers: usize) -> (usize, usize) {
    let (block, workers) = (index / BLOCK, workers as u64);
    ((block % workers) as usize, ((block / workers) * BLOCK + index % BLOCK) as usize)
}

/// How many of `len` elements a worker has.
pub(super) fn count(len: u64, rank: usize, workers: usize) -> u64 {
    let around = BLOCK * workers as u64;
    (len / around) * BLOCK + (len % around).saturating_sub(rank as u64 * BLOCK).min(BLOCK)
}

/// A vector of any serde type, spread over the workers, that grows at its end ([module](super)): loops push to it
/// (`buffer found` in `parallel_for!`, `found.push(x)`) and read it by index (`read found`, `found.get(i)`).
///
/// Pushed elements are appended when the pass ends, those of an `ordered` loop in the order of the serial loop; those of an
/// `unordered` one in the order of its cells, which are the same on up to twelve workers, and within a cell of its iterations.
///
/// ```
/// use hectare_orion::{parallel_for, run};
///
/// for workers in 1..4 {
///     run(workers, |w| {
///         let mut primes = w.dist_vec::<u32>()?;
///         parallel_for!(w, unordered, buffer primes;
///             for n in 2..100 {
///                 if (2..n).all(|d| n % d != 0) {
///                     primes.push(n as u32);
///                 }
///             })?;
///         let gap = parallel_for!(w, unordered, read primes, max gap: u32;
///             for i in 1..25 {
///                 let (before, here) = (primes.get(i - 1).unwrap_or(0), primes.get(i).unwrap_or(0));
///                 gap = gap.max(here - before);
///             })?;
///         assert_eq!((primes.len(), primes.get(w, 4)?, gap), (25, Some(11), 8));
///         Ok(())
///     })?;
/// }
/// # Ok::<(), hectare_orion::Error>(())
/// ```
#[derive(Debug)]
pub struct DistVec<T: Value> {
    pub(super) name: String,
    pub(super) number: ArrayNumber,
    /// The elements of this worker, block by block.
    pub(super) own: Vec<T>,
    pub(super) len: u64,
    pub(super) images: Images,
    pub(super) pushed: Pushed<T>,
    pub(super) poisoned: Option<String>,
    pub(super) layout: Layout,
}

/// The elements that this worker pushed, by cell of the loop.
#[derive(Debug)]
pub(super) struct Pushed<T> {
    pub(super) cells: BTreeMap<u64, Vec<T>>,
    cell: u64,
    open: Vec<T>,
}

impl<T> Pushed<T> {
    pub(super) const NONE: Pushed<T> = Pushed { cells: BTreeMap::new(), cell: 0, open: Vec::new() };

    #[inline]
    pub(super) fn push(&mut self, cell: u64, element: T) {
        if cell != self.cell {
            self.close();
            self.cell = cell;
        }
        self.open.push(element);
    }

    #[cold]
    pub(super) fn close(&mut self) {
        if !self.open.is_empty() {
            self.cells.entry(self.cell).or_default().append(&mut self.open);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Pushed::NONE;
    }
}

impl Context<'_> {
    /// An empty vector. Collective.
    ///
    /// # Errors
    /// [`Error::Core`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn dist_vec<T: Value>(&mut self) -> Result<DistVec<T>> {
        DistVec::make(self, Site::here(), Vec::new(), 0)
    }
}

impl<T: Value> DistVec<T> {
    /// A vector of `len` elements, of which this worker has these. Collective.
    pub(super) fn make(context: &mut Context<'_>, site: Site, own: Vec<T>, len: u64) -> Result<DistVec<T>> {
        let number = context.number_array();
        let mut vector = DistVec {
            name: format!("vector {number} ({site})"),
            number,
            own,
            len,
            images: Images::default(),
            pushed: Pushed::NONE,
            poisoned: None,
            layout: Layout::even(0, 1, 1),
        };
        vector.publish(context, site)?;
        Ok(vector)
    }

    /// The name in errors and explanations.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the vector a name for errors and explanations.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// How many elements, on all workers together.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// An element, wherever it is; `None` beyond the end. Not collective.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Message`] for a value that serde cannot decode, [`Error::Core`].
    pub fn get(&self, context: &Context<'_>, index: usize) -> Result<Option<T>> {
        self.check()?;
        element(&self.images.read(context.fabric.worker)?, index)
    }

    /// Appends the elements of each worker, by the workers' ranks. Collective.
    ///
    /// ```
    /// hectare_orion::run(3, |w| {
    ///     let mut ranks = w.dist_vec::<u32>()?;
    ///     let rank = w.rank();
    ///     ranks.extend(w, [rank, 10 * rank])?;
    ///     assert_eq!(ranks.to_vec(w)?, [0, 0, 1, 10, 2, 20]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Entry`] with the index, for values that serde cannot encode or decode, and if the iterator panics: the
    /// same on every worker. [`Error::Poisoned`], [`Error::Core`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn extend(&mut self, context: &mut Context<'_>, elements: impl IntoIterator<Item = T>) -> Result<()> {
        let site = Site::here();
        self.check()?;
        let worker = context.rank();
        let pushed = &mut self.pushed;
        let run = || {
            elements.into_iter().for_each(|element| pushed.push(u64::from(worker), element));
            Ok(())
        };
        let contributed = caught((&self.name, worker), run, || "an element to append".into());
        if let Err(error) = context.agree_on_same(site, contributed) {
            self.pushed.clear();
            return Err(error);
        }
        self.settle(context, site)
    }

    /// All elements, on every worker: for small vectors. Collective.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Message`] for values that serde cannot encode or decode, [`Error::Entry`] if it
    /// panics, [`Error::Core`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn to_vec(&self, context: &mut Context<'_>) -> Result<Vec<T>> {
        let (site, size) = (Site::here(), context.size());
        self.check()?;
        let at = (&self.name[..], context.rank());
        let encode = || {
            let mut bytes = Vec::new();
            self.own.iter().try_for_each(|element| wire::put_any(element, &mut bytes))?;
            Ok(bytes)
        };
        let encoded = caught(at, encode, || "an element".into());
        let mut parts = Vec::new();
        // A value may take no bytes at all, so that they have to be counted.
        share_bytes(context, site, encoded, &mut |rank, mut rest| {
            let decode = || (0..count(self.len, rank, size)).map(|_| wire::take(&mut rest)).collect();
            let part: Vec<T> = caught(at, decode, || format!("an element of worker {rank}"))?;
            parts.push(part.into_iter());
            Ok(())
        })?;
        Ok((0..self.len).filter_map(|index| parts[place(index, size).0].next()).collect())
    }

    /// Gives the memory back. Collective. Dropping the vector does not: what it has shown to all lives as long as its job.
    ///
    /// # Errors
    /// [`Error::Core`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn delete(self, context: &mut Context<'_>) -> Result<()> {
        context.barrier()?;
        let deleted = self.images.delete(context.worker());
        context.agree_on(Site::here(), deleted)
    }

    pub(crate) fn check(&self) -> Result<()> {
        match &self.poisoned {
            Some(cause) => Err(Error::Poisoned { array: self.name.clone(), cause: cause.clone() }),
            None => Ok(()),
        }
    }
}

/// Reads an element in the bytes of all workers.
pub(super) fn element<T: Value>(images: &[&[u8]], index: usize) -> Result<Option<T>> {
    let (owner, place) = place(index as u64, images.len());
    image::element(images[owner], place).map(|mut bytes| wire::take(&mut bytes)).transpose()
}
