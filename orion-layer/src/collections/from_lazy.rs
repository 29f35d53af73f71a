//! The ends of pipelines whose keys are of any kind: maps.
use super::list::Coded;
use super::map::DistMap;
use super::{Key, Merge, hash, owner};
use crate::array::Value;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::lazy::gather::{gather, meet};
use crate::lazy::spread::scatter;
use crate::lazy::{Duplicates, Pipeline, Stage};
use crate::site::Site;
use hectare_dsm::Rank;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

impl<P, D> Pipeline<P, D>
where
    P: Stage<Key: Key, Value: Value>,
    D: Duplicates<P::Value, Out: Value>,
{
    /// Runs the pipeline and makes a map of its results; `rule` is for later contributions. Collective.
    ///
    /// ```
    /// use hectare_orion::collections::{Append, Sum};
    ///
    /// hectare_orion::run(2, |w| {
    ///     let lines = ["the cat", "the mat"];
    ///     let text = w.entries([2], 2, |k| ([k], lines[k].to_owned()))?;
    ///     let local = text.local();
    ///     let words = || local.lazy().flat_map(|[line], text| text.split(' ').map(move |word| (word.to_owned(), line)));
    ///     let counts = words().map(|_, _| 1u64).reduce(|a, b| a + b).to_map(w, Sum)?;
    ///     assert_eq!(counts.get(w, "the")?, Some(2));
    ///     // Who mentions a word: a multimap.
    ///     let index = words().group_by(|word, _| word.clone()).to_map(w, Append)?;
    ///     assert_eq!(index.get(w, "the")?, Some(vec![0, 1]));
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Pipeline::materialize`]; [`Error::Entry`] also for several values of a key that the pipeline keeps
    /// ([`Pipeline::keep_all`]).
    #[track_caller]
    pub fn to_map<M: Merge<D::Out>>(
        self,
        context: &mut Context<'_>,
        rule: M,
    ) -> Result<DistMap<P::Key, D::Out, M>> {
        let site = Site::here();
        let Pipeline { pipe, mut duplicates } = self;
        let (name, worker, size) = (pipe.name(), context.rank(), context.size());
        let items = gather(pipe, worker, (&mut duplicates, true), |key| Ok(Coded(key)));
        let items = scatter(context, site, &name, items, |key| owner(hash(&key.0), size))?;
        let met = meet((&name, worker), items, duplicates).and_then(|items| one_each((&name, worker), items));
        let own = context.agree_on_same(site, met)?;
        DistMap::make(context, site, own, rule)
    }
}

/// A map has one value for a key, also if the pipeline keeps several.
fn one_each<K: Key, V>((array, worker): (&str, Rank), items: Vec<(Coded<K>, V)>) -> Result<BTreeMap<K, V>> {
    let mut own = BTreeMap::new();
    for (Coded(key), value) in items {
        match own.entry(key) {
            Entry::Vacant(free) => drop(free.insert(value)),
            Entry::Occupied(taken) => {
                let what = "a map has one value for a key, and the pipeline keeps all: say what becomes of them by \
                            `combine`, `reduce` or `group_by`";
                let (array, key) = (array.to_owned(), format!("{:?}", taken.key()));
                return Err(Error::Entry { array, worker, key, what: what.into() });
            }
        }
    }
    Ok(own)
}
