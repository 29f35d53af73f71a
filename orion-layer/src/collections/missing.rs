//! Keys and elements that have to be there, and are not: the same words in loops and outside of them.
use super::vector::DistVec;
use super::{DistMap, Key, Merge};
use crate::array::Value;
use crate::context::{Context, Site};
use crate::error::{Error, Result};
use hectare_dsm::Rank;
use std::borrow::Borrow;
use std::fmt::Debug;
use std::hash::Hash;

/// What a body asked for and did not find: the executor turns it into [`Error::Missing`].
#[derive(Debug)]
pub(crate) struct Missing {
    collection: String,
    what: String,
}

impl Missing {
    /// A key of a map.
    #[cold]
    pub(super) fn key(map: &str, key: &(impl Debug + ?Sized)) -> Missing {
        Missing { collection: map.into(), what: format!("key {key:?}") }
    }

    /// An element of a vector.
    #[cold]
    pub(super) fn element(vector: &str, index: usize) -> Missing {
        Missing { collection: vector.into(), what: format!("element {index}") }
    }

    /// The error, in the loop or the call at `site`; and in this iteration of the loop, as far as that is known.
    pub(crate) fn into_error(self, site: String, worker: Rank, iteration: String) -> Error {
        let Missing { collection, what } = self;
        Error::Missing { site, collection, what, worker, iteration }
    }

    /// Ends the body.
    #[cold]
    pub(super) fn end_body(self) -> ! {
        // Not a panic with a message: the executor adds what the view does not know.
        std::panic::resume_unwind(Box::new(self))
    }
}

impl<K: Key, V: Value, M: Merge<V>> DistMap<K, V, M> {
    /// The value at a key that has to be there. Not collective.
    ///
    /// # Errors
    /// [`Error::Missing`] with the key, if it is not there; those of [`DistMap::get`].
    #[track_caller]
    pub fn at<Q>(&self, context: &Context<'_>, key: &Q) -> Result<V>
    where
        K: Borrow<Q>,
        Q: Hash + Eq + Debug + ?Sized,
    {
        let site = Site::here();
        let missing = || Missing::key(self.name(), key);
        self.get(context, key)?
            .ok_or_else(|| missing().into_error(site.to_string(), context.rank(), String::new()))
    }
}

impl<T: Value> DistVec<T> {
    /// An element that has to be there. Not collective.
    ///
    /// # Errors
    /// [`Error::Missing`] with the index, if it is beyond the end; those of [`DistVec::get`].
    #[track_caller]
    pub fn at(&self, context: &Context<'_>, index: usize) -> Result<T> {
        let site = Site::here();
        let missing = || Missing::element(self.name(), index);
        self.get(context, index)?
            .ok_or_else(|| missing().into_error(site.to_string(), context.rank(), String::new()))
    }
}
