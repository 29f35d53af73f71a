//! The map outside of loops.
use super::image::Images;
use super::pending::Pending;
use super::{Append, Key, Merge};
use crate::array::share::share_bytes;
use crate::array::{Layout, Value, wire};
use crate::context::{ArrayNumber, Context};
use crate::error::{Error, Result};
use crate::panics::{caught, caught_merging};
use crate::site::Site;
use std::borrow::Borrow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::hash::Hash;

/// A map from keys to values, spread over the workers ([module](super)), with a rule for contributions to keys that
/// are there.
#[derive(Debug)]
pub struct DistMap<K: Key, V: Value, M> {
    pub(super) name: String,
    pub(super) number: ArrayNumber,
    /// The entries of this worker.
    pub(super) own: BTreeMap<K, V>,
    pub(super) count: usize,
    pub(super) images: Images,
    pub(super) pending: Pending<K, V>,
    pub(super) rule: M,
    pub(super) poisoned: Option<String>,
    /// For loops: one part, which is never handed over.
    pub(super) layout: Layout,
}

/// A map from keys to lists of values, in the order of the loop that contributed them, loop by loop.
///
/// ```
/// use hectare_orion::{parallel_for, run};
///
/// for workers in 1..4 {
///     run(workers, |w| {
///         let ratings = w.entries([4, 3], 7, |k| ([k % 4, k % 3], k as f32))?;
///         let mut films = w.dist_multi_map::<u32, (u32, f32)>()?;
///         parallel_for!(w, unordered, buffer films;
///             for ((user, film), stars) in ratings {
///                 films.add(&(film as u32), (user as u32, *stars));
///             })?;
///         assert_eq!(films.get(w, &2)?, Some(vec![(1, 5.0), (2, 2.0)]));
///         Ok(())
///     })?;
/// }
/// # Ok::<(), hectare_orion::Error>(())
/// ```
pub type DistMultiMap<K, V> = DistMap<K, Vec<V>, Append>;

impl Context<'_> {
    /// An empty map, to which contributions are merged by `rule`. Collective.
    ///
    /// # Errors
    /// [`Error::Core`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn dist_map<K: Key, V: Value, M: Merge<V>>(&mut self, rule: M) -> Result<DistMap<K, V, M>> {
        DistMap::make(self, Site::here(), BTreeMap::new(), rule)
    }

    /// An empty map from keys to lists of values. Collective.
    ///
    /// # Errors
    /// Those of [`Context::dist_map`].
    #[track_caller]
    pub fn dist_multi_map<K: Key, V: Value>(&mut self) -> Result<DistMultiMap<K, V>> {
        DistMap::make(self, Site::here(), BTreeMap::new(), Append)
    }
}

impl<K: Key, V: Value, M: Merge<V>> DistMap<K, V, M> {
    /// A map of these entries, which are with the workers that own their keys. Collective.
    pub(super) fn make(
        context: &mut Context<'_>,
        site: Site,
        own: BTreeMap<K, V>,
        rule: M,
    ) -> Result<DistMap<K, V, M>> {
        let number = context.number_array();
        let mut map = DistMap {
            name: format!("map {number} ({site})"),
            number,
            own,
            count: 0,
            images: Images::default(),
            pending: Pending::new(context.rank() as usize, context.size()),
            rule,
            poisoned: None,
            layout: Layout::even(0, 1, 1),
        };
        map.publish(context, site)?;
        Ok(map)
    }

    /// The name in errors and explanations.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives the map a name for errors and explanations.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    /// How many keys, on all workers together.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The rule for contributions.
    pub fn rule(&self) -> &M {
        &self.rule
    }

    /// The entries that this worker has, by key.
    pub fn local(&self) -> &BTreeMap<K, V> {
        &self.own
    }

    /// The value at a key, wherever it is. Not collective.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Message`] for a value that serde cannot decode, [`Error::Core`].
    pub fn get<Q>(&self, context: &Context<'_>, key: &Q) -> Result<Option<V>>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ?Sized,
    {
        self.check()?;
        self.images.look_up::<K, V, Q>(context.fabric.worker, key)
    }

    /// Contributes entries, each worker its own: merged by the rule in the order of the workers' ranks, and each
    /// worker's in its order. Collective.
    ///
    /// ```
    /// use hectare_orion::collections::Last;
    /// hectare_orion::run(2, |w| {
    ///     let mut settings = w.dist_map::<String, u32, _>(Last)?;
    ///     // Worker 0 alone has something to say.
    ///     let said = w.root(|| ("passes".to_owned(), 20));
    ///     settings.extend(w, said)?;
    ///     assert_eq!(settings.get(w, "passes")?, Some(20));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Entry`] with the key, the same on every worker, for values that serde cannot encode or decode, and if the
    /// iterator panics; [`Error::RulePanicked`], the same on every worker, if the rule does. [`Error::Poisoned`], [`Error::Core`], [`Error::Diverged`], [`Error::WorkerLost`].
    /// After an error in the midst of merging, the map refuses every use.
    #[track_caller]
    pub fn extend(
        &mut self,
        context: &mut Context<'_>,
        entries: impl IntoIterator<Item = (K, M::Part)>,
    ) -> Result<()> {
        let site = Site::here();
        self.check()?;
        let (worker, cell) = (context.rank(), u64::from(context.rank()));
        let (name, pending, rule) = (&self.name, &mut self.pending, &self.rule);
        let run = || {
            entries.into_iter().for_each(|(key, part)| pending.add::<K, M>(name, cell, rule, &key, part));
            Ok(())
        };
        let contributed = caught_merging(site, (name, worker), run, || "a contribution".into());
        if let Err(error) = context.agree_on_same(site, contributed) {
            self.pending.clear();
            return Err(error);
        }
        self.settle(context, site)
    }

    /// Keeps the entries that pass; `keep` must not depend on the worker. Collective.
    ///
    /// # Errors
    /// Those of [`DistMap::extend`]; [`Error::Entry`] with the key if `keep` panics.
    #[track_caller]
    pub fn retain(
        &mut self,
        context: &mut Context<'_>,
        mut keep: impl FnMut(&K, &mut V) -> bool,
    ) -> Result<()> {
        let site = Site::here();
        self.check()?;
        let worker = context.rank();
        let current = RefCell::new(None);
        let (entries, at) = (self.own.iter_mut(), &current);
        let run = move || {
            let mut dropped = Vec::new();
            for (key, value) in entries {
                at.replace(Some(key));
                if !keep(key, value) {
                    dropped.push(key.clone());
                }
            }
            Ok(dropped)
        };
        let named = || current.borrow().map_or_else(String::new, |key| format!("{key:?}"));
        let dropped = caught((&self.name, worker), run, named);
        match context.agree_on_same(site, dropped) {
            Ok(dropped) => dropped.iter().for_each(|key| drop(self.own.remove(key))),
            Err(error) => {
                self.poisoned = Some(error.to_string());
                return Err(error);
            }
        }
        self.publish(context, site)
    }

    /// All entries, on every worker, in the order of their keys: for small maps. Collective.
    ///
    /// # Errors
    /// [`Error::Poisoned`], [`Error::Message`] for values that serde cannot encode or decode, [`Error::Entry`] if it
    /// panics, [`Error::Core`], [`Error::Diverged`], [`Error::WorkerLost`].
    #[track_caller]
    pub fn to_vec(&self, context: &mut Context<'_>) -> Result<Vec<(K, V)>> {
        let site = Site::here();
        self.check()?;
        // They are counted, for an entry may take no bytes at all.
        let at = (&self.name[..], context.rank());
        let encode = || {
            let mut bytes = Vec::new();
            wire::put_any(&(self.own.len() as u64), &mut bytes)?;
            for (key, value) in &self.own {
                wire::put_any(key, &mut bytes)?;
                wire::put_any(value, &mut bytes)?;
            }
            Ok(bytes)
        };
        let encoded = caught(at, encode, || "an entry".into());
        let mut all: Vec<(K, V)> = Vec::with_capacity(self.count);
        share_bytes(context, site, encoded, &mut |rank, mut rest| {
            let decode = || {
                for _ in 0..wire::take::<u64>(&mut rest)? {
                    all.push((wire::take(&mut rest)?, wire::take(&mut rest)?));
                }
                Ok(())
            };
            caught(at, decode, || format!("an entry of worker {rank}"))
        })?;
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(all)
    }

    /// Gives the memory back. Collective. Dropping the map does not: what it has shown to all lives as long as its job.
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
