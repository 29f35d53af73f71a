//! Sparse arrays made of others. All calls are collective; nothing moves between workers.
use super::{SparseArray, Value};
use crate::context::Context;
use crate::error::{Error, Result, named};
use crate::site::Site;
use hectare_data::entries::{Entries, Entry};
use std::rc::Rc;

impl<T: Value, const N: usize> SparseArray<T, N> {
    /// A new array of other values at the same keys. Collective.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let ratings = w.entries([10, 10], 10, |k| ([k, k], k as f32))?;
    ///     let centred = ratings.map(w, |[user, _item], rating| rating - user as f32)?;
    ///     assert!(centred.local().iter().all(|entry| entry.value == 0.0));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Diverged`], [`Error::WorkerLost`], [`Error::Core`].
    #[track_caller]
    pub fn map<U: Value>(
        &self,
        context: &mut Context<'_>,
        mut value: impl FnMut([usize; N], &T) -> U,
    ) -> Result<SparseArray<U, N>> {
        self.derive(context, Site::here(), |key, old| Some(value(key, old)))
    }

    /// A new array of the entries that pass, in the same shape. Collective.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let ratings = w.entries([10, 10], 10, |k| ([k, k], k as f32))?;
    ///     let high = ratings.filter(w, |_key, rating| *rating >= 7.0)?;
    ///     assert_eq!((high.len(), high.shape()), (3, [10, 10]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`SparseArray::map`].
    #[track_caller]
    pub fn filter(
        &self,
        context: &mut Context<'_>,
        mut keep: impl FnMut([usize; N], &T) -> bool,
    ) -> Result<SparseArray<T, N>>
    where
        T: Clone,
    {
        self.derive(context, Site::here(), |key, value| keep(key, value).then(|| value.clone()))
    }

    /// A new array of other values at the same keys, or fewer: `value` says what each entry becomes, if
    /// anything. Collective.
    ///
    /// # Errors
    /// Those of [`SparseArray::map`].
    #[track_caller]
    pub fn filter_map<U: Value>(
        &self,
        context: &mut Context<'_>,
        value: impl FnMut([usize; N], &T) -> Option<U>,
    ) -> Result<SparseArray<U, N>> {
        self.derive(context, Site::here(), value)
    }

    /// The same entries with the indices of dimension `dim` renamed by [`Context::permutation`] of `seed`: a
    /// random order of users, say, so that frequent ones are spread over the workers. Arrays of the same extent,
    /// such as ratings to learn from and to test with, are renamed alike by the same seed, on any number of
    /// workers. Collective.
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let ratings = w.entries([10, 5], 10, |k| ([k, 0], k))?.permute(w, 0, 42)?;
    ///     let renamed = w.permutation(10, 42);
    ///     ratings.for_each_local(|[user, _], before| {
    ///         assert_eq!(renamed.apply(*before as u32) as usize, user);
    ///     });
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, [`Error::Invalid`] while [`SparseArray::local`] entries
    /// are held, and those of [`SparseArray::map`].
    #[track_caller]
    pub fn permute(self, context: &mut Context<'_>, dim: usize, seed: u64) -> Result<SparseArray<T, N>> {
        let site = Site::here();
        let SparseArray { name, shape, placed, .. } = self;
        let renamed = if dim >= N {
            Err(Error::Shape { array: name.clone(), what: format!("it has no dimension {dim} of {N}") })
        } else if let Some(placed) = Rc::into_inner(placed.into_inner()) {
            let mut entries = Entries::from_vec(shape, placed.entries)
                .map_err(|error| Error::Shape { array: name.clone(), what: error.to_string() });
            if let Ok(entries) = &mut entries {
                entries.permute(dim, &context.permutation(shape[dim], seed));
            }
            entries
        } else {
            Err(Error::Invalid(format!(
                "{} cannot be permuted while its local entries are held",
                named(&name)
            )))
        };
        let words = context.words_of_permutation(dim, seed);
        context.with_arguments(site, words, |context| {
            let renamed = context.agree_on_same(site, renamed)?;
            Ok(SparseArray::make(context, site, renamed)?.named(&name))
        })
    }

    fn derive<U: Value>(
        &self,
        context: &mut Context<'_>,
        site: Site,
        mut value: impl FnMut([usize; N], &T) -> Option<U>,
    ) -> Result<SparseArray<U, N>> {
        let entry = |entry: &Entry<T, N>| {
            value(entry.key.map(|key| key as usize), &entry.value)
                .map(|value| Entry { key: entry.key, value })
        };
        let mut list: Vec<_> = self.local().iter().filter_map(entry).collect();
        list.shrink_to_fit();
        let wrong = |what: String| Error::Shape { array: self.name.clone(), what };
        let mine = Entries::from_vec(self.shape, list).map_err(|error| wrong(error.to_string()))?;
        SparseArray::make(context, site, mine)
    }
}
