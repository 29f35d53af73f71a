//! The entries of a map as an array, in the order of their keys: numbers for words, say.
use super::map::DistMap;
use super::{Key, Merge};
use crate::array::{Entries, SparseArray, Value, wire};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::lazy::gather::Item;
use crate::lazy::spread::{Sortable, spread};
use crate::site::Site;

/// A key of a map on its way.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Coded<K>(pub(super) K);

impl<K: std::fmt::Debug> std::fmt::Debug for Coded<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl<K: Key> Sortable for Coded<K> {
    fn put(&self, bytes: &mut Vec<u8>) -> Result<()> {
        wire::put_any(&self.0, bytes)
    }

    fn take(bytes: &mut &[u8]) -> Result<Self> {
        wire::take(bytes).map(Coded)
    }
}

impl<K: Key, V: Value + Clone, M: Merge<V>> DistMap<K, V, M> {
    /// The entries as a sparse array that loops run over: entry `i` is that with the `i`th key in their order, the same
    /// on any number of workers. Collective.
    ///
    /// ```
    /// use hectare_orion::collections::Sum;
    /// hectare_orion::run(3, |w| {
    ///     let mut counts = w.dist_map::<char, u32, _>(Sum)?;
    ///     let word = w.root(|| "banana").unwrap_or("");
    ///     counts.extend(w, word.chars().map(|letter| (letter, 1)))?;
    ///     let list = counts.to_array(w)?;
    ///     assert_eq!(list.shape(), [3]);
    ///     assert_eq!(list.to_vec(w)?[1].value, ('b', 1));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Entry`] with the key, for values that serde cannot encode or decode; [`Error::Poisoned`],
    /// [`Error::Shape`] for more than 2^32 entries, [`Error::Core`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn to_array(&self, context: &mut Context<'_>) -> Result<SparseArray<(K, V), 1>> {
        let site = Site::here();
        self.check()?;
        let entry =
            |(key, value): (&K, &V)| Item { key: Coded(key.clone()), origin: 0u64, value: value.clone() };
        let items = spread(context, site, &self.name, Ok(self.own.iter().map(entry).collect()))?;
        let (me, mut first) = (context.rank(), 0);
        context.exchange_values(site, &(items.len() as u64), |rank, count: u64| {
            first += if rank < me { count as usize } else { 0 };
            Ok(())
        })?;
        let values = items.into_iter().map(|Item { key, value, .. }| (key.0, value)).collect();
        let mine = Entries::from_rows(first, values);
        let mine = mine.map_err(|error| Error::Shape { array: self.name.clone(), what: error.to_string() });
        let mine = context.agree_on_same(site, mine)?;
        SparseArray::make(context, site, mine)
    }
}
