//! Looking at the entries of a sparse array outside of loops.
use super::{PlacedEntries, SparseArray, Value};
use crate::array::share::share_bytes;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_data::entries::Entry;
use std::ops::Deref;
use std::rc::Rc;

/// The entries that one worker has of a sparse array, as a slice.
#[derive(Debug)]
pub struct LocalEntries<T, const N: usize> {
    placed: Rc<PlacedEntries<T, N>>,
    pub(crate) name: String,
    pub(crate) shape: [usize; N],
}

impl<T, const N: usize> Deref for LocalEntries<T, N> {
    type Target = [Entry<T, N>];

    fn deref(&self) -> &[Entry<T, N>] {
        &self.placed.entries
    }
}

impl<T: Value, const N: usize> SparseArray<T, N> {
    /// The entries that this worker has at present. While they are held, no loop can move them: one
    /// that has to gets [`Error::Invalid`].
    ///
    /// ```
    /// hectare_orion::run(2, |w| {
    ///     let diagonal = w.entries([10, 10], 10, |k| ([k, k], k as f32))?;
    ///     let sum: f32 = diagonal.local().iter().map(|entry| entry.value).sum();
    ///     assert_eq!(w.all_reduce(sum, |a, b| a + b)?, 45.0);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    pub fn local(&self) -> LocalEntries<T, N> {
        LocalEntries { placed: self.placed.borrow().clone(), name: self.name.clone(), shape: self.shape }
    }

    /// All entries, on every worker, in the order of their keys: for small arrays. Collective.
    ///
    /// # Errors
    /// [`Error::Message`] for values that serde cannot encode, [`Error::Diverged`], [`Error::WorkerLost`],
    /// [`Error::Core`].
    #[track_caller]
    pub fn to_vec(&self, context: &mut Context<'_>) -> Result<Vec<Entry<T, N>>> {
        let site = Site::here();
        let decoded = |error| Error::Message(format!("decoded: {error}"));
        let mut bytes = Ok(Vec::new());
        for entry in self.local().iter() {
            bytes = bytes.and_then(|bytes| postcard::to_extend(entry, bytes));
        }
        let bytes = bytes.map_err(|error| Error::Message(format!("encoded: {error}")));
        let mut all = Vec::with_capacity(self.count);
        share_bytes(context, site, bytes, &mut |_, mut rest| {
            while !rest.is_empty() {
                let (entry, after) = postcard::take_from_bytes::<Entry<T, N>>(rest).map_err(decoded)?;
                all.push(entry);
                rest = after;
            }
            Ok(())
        })?;
        all.sort_by_key(|entry| entry.key);
        Ok(all)
    }
}
