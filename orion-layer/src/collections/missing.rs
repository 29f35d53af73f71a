//! Keys and elements that have to be there, and are not: the same words in loops and outside of them.
use super::vector::DistVec;
use super::{DistMap, Key, Merge};
use crate::array::Value;
use crate::context::Context;
use crate::error::Result;
use crate::panics::Missing;
use crate::site::Site;
use std::borrow::Borrow;
use std::fmt::Debug;
use std::hash::Hash;

impl<K: Key, V: Value, M: Merge<V>> DistMap<K, V, M> {
    /// The value at a key that has to be there. Not collective.
    ///
    /// # Errors
    /// [`Error::MissingKey`](crate::Error::MissingKey) with the key, if it is not there; those of [`DistMap::get`].
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
    /// [`Error::MissingKey`](crate::Error::MissingKey) with the index, if it is beyond the end; those of [`DistVec::get`].
    #[track_caller]
    pub fn at(&self, context: &Context<'_>, index: usize) -> Result<T> {
        let site = Site::here();
        let missing = || Missing::element(self.name(), index);
        self.get(context, index)?
            .ok_or_else(|| missing().into_error(site.to_string(), context.rank(), String::new()))
    }
}
