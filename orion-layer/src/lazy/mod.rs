//! Pipeline transformations: pipelines over entries that run when their result is requested.
//!
//! `map`, `filter`, `filter_map`, `flat_map` and `rekey` only record the stages. `materialize` runs them: one pass
//! over each worker's entries, in which every entry goes through all stages before the next one, without intermediate
//! arrays. If keys change, the results are then sorted over all workers, and each moves once. After Orion, whose
//! `map` is lazy until `materialize` (Wei et al., EuroSys 2019).
//!
//! ```
//! use hectare_orion::run;
//!
//! let lines = ["b a b", "", "c b", "a"];
//! for workers in 1..4 {
//!     run(workers, |w| {
//!         let text = w.entries([4], 4, |k| ([k], lines[k].to_owned()))?;
//!         // How often each letter occurs: entries get new keys, and those that get the same are added up.
//!         let letters = text
//!             .local()
//!             .lazy()
//!             .filter(|_, line| !line.is_empty())
//!             .flat_map(|_, line| line.split(' ').map(|word| ([(word.as_bytes()[0] - b'a') as usize], 1u32)))
//!             .combine(|a, b| a + b)
//!             .materialize(w)?;
//!         let counts: Vec<u32> = letters.to_vec(w)?.iter().map(|entry| entry.value).collect();
//!         assert_eq!((counts, letters.shape()), (vec![2, 3, 1], [3]));
//!         Ok(())
//!     })?;
//! }
//! # Ok::<(), hectare_orion::Error>(())
//! ```
//!
//! # Order
//! Entries with the same key are combined in the order of their keys in the source (for lines of a file, in the order
//! of the file), and entries that are made from one entry in the order in which they were made. So groups and the
//! results of [`Pipeline::combine`] have the same bits on any number of workers.
//!
//! # When it runs
//! A pipeline runs when `materialize` is called, which is collective, and each time: nothing is cached. Loops and
//! methods that need an array take the result of `materialize`; nothing runs implicitly.
mod duplicates;
mod finish;
pub(crate) mod gather;
mod source;
pub(crate) mod spread;
pub(crate) mod stage;

pub use self::duplicates::{Combine, Duplicates, Group, KeepAll, Reduce, RejectDuplicates, Resolution};
pub use self::source::{Emitter, FromEntries, FromLines};
pub use self::stage::{FilterMap, FlatMap, Map, Origin, Rekey, Stage};

/// A pipeline over entries: a source, stages, and what becomes of entries that get the same key. Made by
/// [`LocalEntries::lazy`](crate::array::LocalEntries::lazy) and [`Context::lazy_text`](crate::Context::lazy_text).
#[derive(Debug)]
#[must_use = "a pipeline does nothing until it is materialized"]
pub struct Pipeline<P, D = RejectDuplicates> {
    pub(crate) pipe: P,
    pub(crate) duplicates: D,
}

impl<P, D> Pipeline<P, D> {
    pub(crate) fn new(pipe: P, duplicates: D) -> Pipeline<P, D> {
        Pipeline { pipe, duplicates }
    }
}

impl<P: Stage> Pipeline<P> {
    fn then<Q: Stage>(self, stage: impl FnOnce(P) -> Q) -> Pipeline<Q> {
        Pipeline::new(stage(self.pipe), RejectDuplicates)
    }

    /// Other values at the same keys.
    pub fn map<V, F: FnMut(&P::Key, P::Value) -> V>(self, value: F) -> Pipeline<Map<P, F>> {
        self.then(|pipe| Map(pipe, value))
    }

    /// The entries that pass.
    pub fn filter(
        self,
        mut keep: impl FnMut(&P::Key, &P::Value) -> bool,
    ) -> Pipeline<impl Stage<Origin = P::Origin, Key = P::Key, Value = P::Value>> {
        self.filter_map(move |key, value| keep(key, &value).then_some(value))
    }

    /// Other values at the same keys, or none.
    pub fn filter_map<V, F: FnMut(&P::Key, P::Value) -> Option<V>>(
        self,
        value: F,
    ) -> Pipeline<FilterMap<P, F>> {
        self.then(|pipe| FilterMap(pipe, value))
    }

    /// Any number of entries with new keys for each entry.
    pub fn flat_map<K, V, I, F>(self, entries: F) -> Pipeline<FlatMap<P, F>>
    where
        I: IntoIterator<Item = (K, V)>,
        F: FnMut(P::Key, P::Value) -> I,
    {
        self.then(|pipe| FlatMap(pipe, entries))
    }

    /// The same values at other keys.
    pub fn rekey<K, F: FnMut(&P::Key, &P::Value) -> K>(self, key: F) -> Pipeline<Rekey<P, F>> {
        self.then(|pipe| Rekey(pipe, key))
    }

    /// The values that have the same new key, as a list of each, in order ([above](self#order)): ratings by user, say.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let ratings = w.entries([3, 4], 6, |k| ([k % 3, (7 * k) % 4], k as f32))?;
    ///     let by_user = ratings
    ///         .local()
    ///         .lazy()
    ///         .map(|[_user, item], stars| (*item, *stars))
    ///         .group_by(|[user, _item], _| [*user])
    ///         .materialize(w)?;
    ///     assert_eq!(by_user.shape(), [3]);
    ///     assert_eq!(by_user.to_vec(w)?[0].value, [(0, 0.0), (1, 3.0)]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    pub fn group_by<K, F: FnMut(&P::Key, &P::Value) -> K>(self, key: F) -> Pipeline<Rekey<P, F>, Group> {
        Pipeline::new(Rekey(self.pipe, key), Group)
    }

    /// Combines the entries that have the same key into one: the first combined with the second, that with the third, and so on,
    /// in order ([above](self#order)). All of them move before they meet; if order is of no importance, see
    /// [`Pipeline::reduce`].
    pub fn combine<F: FnMut(P::Value, P::Value) -> P::Value>(self, combine: F) -> Pipeline<P, Combine<F>> {
        Pipeline::new(self.pipe, Combine(combine))
    }

    /// Combines the entries that have the same key into one, by a function that is exactly associative and commutative (sums of
    /// integers, minima, unions; sums of floats are not): every worker does so with its own first, so that neither
    /// memory nor what moves grows with the number of entries, only with that of different keys.
    ///
    /// ```
    /// hectare_orion::run(3, |w| {
    ///     let ratings = w.entries([30, 40], 600, |k| ([k % 30, k * 7 % 40], 1u64))?;
    ///     let local = ratings.local();
    ///     let popular = local.lazy().map(|_, _| 1u64).rekey(|[_, item], _| [*item]).reduce(|a, b| a + b);
    ///     assert_eq!(popular.materialize(w)?.to_vec(w)?[0].value, 15);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    pub fn reduce<F: FnMut(P::Value, P::Value) -> P::Value>(self, combine: F) -> Pipeline<P, Reduce<F>> {
        Pipeline::new(self.pipe, Reduce(combine))
    }

    /// Lets several entries have one key.
    pub fn keep_all(self) -> Pipeline<P, KeepAll> {
        Pipeline::new(self.pipe, KeepAll)
    }
}

impl<'a, T: Clone + 'a, P: Stage<Value = &'a T>> Pipeline<P> {
    /// Copies of the values.
    pub fn cloned(self) -> Pipeline<impl Stage<Origin = P::Origin, Key = P::Key, Value = T>> {
        self.map(|_, value| value.clone())
    }
}
