//! The contributions of a worker to a map since the pass began.
use super::{Key, Merge, hash, owner};
use crate::array::{Value, wire};
use crate::error::{Error, Result};
use crate::panics::merging_at;
use std::any::type_name;
use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// Contributions of one cell of a loop to a key, merged.
#[derive(Debug)]
pub(super) struct Part<K, V> {
    pub(super) cell: u64,
    pub(super) key: K,
    pub(super) value: V,
}

/// The contributions of a worker: of the cell under way as values, of those before in parcels for whoever has the keys.
#[derive(Debug)]
pub(super) struct Pending<K, V> {
    cell: u64,
    open: HashMap<K, V>,
    kept: Vec<Part<K, V>>,
    parcels: Vec<Vec<u8>>,
    failed: Option<(K, String)>,
    me: usize,
}

impl<K: Key, V: Value> Pending<K, V> {
    pub(super) fn new(me: usize, workers: usize) -> Pending<K, V> {
        let parcels = vec![Vec::new(); workers];
        Pending { cell: 0, open: HashMap::new(), kept: Vec::new(), parcels, failed: None, me }
    }

    /// Whether there is nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
            && self.kept.is_empty()
            && self.failed.is_none()
            && self.parcels.iter().all(Vec::is_empty)
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        *self = Pending::new(self.me, self.parcels.len());
    }

    /// Contributes in a cell, to the map of this name.
    #[inline]
    pub(super) fn add<Q, M>(&mut self, map: &str, cell: u64, rule: &M, key: &Q, part: M::Part)
    where
        K: Borrow<Q>,
        Q: Hash + Eq + ToOwned<Owned = K> + ?Sized,
        M: Merge<V>,
    {
        if cell != self.cell {
            self.close();
            self.cell = cell;
        }
        let shown = || format!("{:?}", key.to_owned());
        match self.open.get_mut(key) {
            Some(value) => merging_at(map, type_name::<M>(), shown, || rule.add(value, part)),
            None => {
                let first = merging_at(map, type_name::<M>(), shown, || rule.first(part));
                self.open.insert(key.to_owned(), first);
            }
        }
    }

    /// Ends a cell.
    #[cold]
    fn close(&mut self) {
        let Pending { cell, open, kept, parcels, failed, me } = self;
        for (key, value) in open.drain() {
            let to = owner(hash(&key), parcels.len());
            if to == *me {
                kept.push(Part { cell: *cell, key, value });
            } else if failed.is_none() {
                let parcel = &mut parcels[to];
                parcel.extend_from_slice(&cell.to_le_bytes());
                let put = wire::put_any(&key, parcel).and_then(|()| wire::put_any(&value, parcel));
                *failed = put.err().map(|error| (key, error.to_string()));
            }
        }
    }

    /// Whether nothing is left to do but to send it. An error that is remembered has the key.
    pub(super) fn finish(&mut self) -> Result<(), (K, String)> {
        self.close();
        self.failed.take().map_or(Ok(()), Err)
    }

    /// The parcels for each worker, and this worker's own.
    #[allow(clippy::type_complexity)]
    pub(super) fn take(&mut self) -> (Vec<Vec<u8>>, Vec<Part<K, V>>) {
        let size = self.parcels.len();
        let parcels = std::mem::replace(&mut self.parcels, vec![Vec::new(); size]);
        (parcels, std::mem::take(&mut self.kept))
    }
}

/// Reads a parcel.
pub(super) fn unpack<K: Key, V: Value>(mut parcel: &[u8], parts: &mut Vec<Part<K, V>>) -> Result<()> {
    let cut_off = || Error::Message("decoded: a contribution is cut off".into());
    while let Some((cell, rest)) = parcel.split_first_chunk::<8>() {
        parcel = rest;
        let key: K = wire::take(&mut parcel)?;
        let value = wire::take(&mut parcel)
            .map_err(|error| Error::Message(format!("decoded: the value at {key:?}: {error}")))?;
        parts.push(Part { cell: u64::from_le_bytes(*cell), key, value });
    }
    if parcel.is_empty() { Ok(()) } else { Err(cut_off()) }
}
