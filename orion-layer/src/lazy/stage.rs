//! The stages of a pipeline. Each hands its entries on to the next by a call, so that the compiler makes one loop of
//! them and no entry is kept between two stages.
use crate::error::Result;
use std::cell::Cell;
use std::fmt::Debug;

/// The place in the source from which an entry of a pipeline comes: it orders entries that get the same key.
pub trait Origin: Copy + Ord + Debug + 'static {
    /// Appends it to a message.
    #[doc(hidden)]
    fn put(&self, bytes: &mut Vec<u8>);
    /// Takes it off the front of a message.
    #[doc(hidden)]
    fn take(bytes: &mut &[u8]) -> Option<Self>;
}

/// Keys of sparse arrays.
impl<const N: usize> Origin for [u32; N] {
    fn put(&self, bytes: &mut Vec<u8>) {
        self.iter().for_each(|index| bytes.extend_from_slice(&index.to_le_bytes()));
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(4 * N)?;
        *bytes = rest;
        let words = head.as_chunks::<4>().0;
        Some(std::array::from_fn(|dim| u32::from_le_bytes(words[dim])))
    }
}

/// Bytes of files.
impl Origin for u64 {
    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.to_le_bytes());
    }

    fn take(bytes: &mut &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u64::from_le_bytes(*head))
    }
}

/// A source of entries, or a stage that makes others of them.
pub trait Stage: Sized {
    /// Where entries come from.
    type Origin: Origin;
    /// The key of an entry: indices for an array, anything else for a map.
    type Key;
    /// The value of an entry.
    type Value;

    /// Calls `sink` with every entry of this worker's, in the order of the source; `at` says at any time which entry of
    /// the source is under way.
    ///
    /// # Errors
    /// Those of `sink`, and those of reading files.
    fn drive(
        self,
        at: &Cell<Option<Self::Origin>>,
        sink: impl FnMut(Self::Origin, Self::Key, Self::Value) -> Result<()>,
    ) -> Result<()>;

    /// The source's name in errors.
    fn name(&self) -> String;

    /// The extents of the source, if the keys are still those of the source.
    fn shape(&self) -> Option<Vec<usize>>;
}

/// Entries that get other values.
#[derive(Debug)]
pub struct Map<P, F>(pub(super) P, pub(super) F);

impl<P: Stage, V, F: FnMut(&P::Key, P::Value) -> V> Stage for Map<P, F> {
    type Origin = P::Origin;
    type Key = P::Key;
    type Value = V;

    fn drive(
        self,
        at: &Cell<Option<P::Origin>>,
        mut sink: impl FnMut(P::Origin, P::Key, V) -> Result<()>,
    ) -> Result<()> {
        let Map(before, mut value) = self;
        before.drive(at, |origin, key, old| {
            let new = value(&key, old);
            sink(origin, key, new)
        })
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn shape(&self) -> Option<Vec<usize>> {
        self.0.shape()
    }
}

/// Entries that get other values, or are left out.
#[derive(Debug)]
pub struct FilterMap<P, F>(pub(super) P, pub(super) F);

impl<P: Stage, V, F: FnMut(&P::Key, P::Value) -> Option<V>> Stage for FilterMap<P, F> {
    type Origin = P::Origin;
    type Key = P::Key;
    type Value = V;

    fn drive(
        self,
        at: &Cell<Option<P::Origin>>,
        mut sink: impl FnMut(P::Origin, P::Key, V) -> Result<()>,
    ) -> Result<()> {
        let FilterMap(before, mut value) = self;
        before.drive(at, |origin, key, old| match value(&key, old) {
            Some(new) => sink(origin, key, new),
            None => Ok(()),
        })
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn shape(&self) -> Option<Vec<usize>> {
        self.0.shape()
    }
}

/// Entries that become any number of entries with other keys.
#[derive(Debug)]
pub struct FlatMap<P, F>(pub(super) P, pub(super) F);

impl<P, K, V, I, F> Stage for FlatMap<P, F>
where
    P: Stage,
    I: IntoIterator<Item = (K, V)>,
    F: FnMut(P::Key, P::Value) -> I,
{
    type Origin = P::Origin;
    type Key = K;
    type Value = V;

    fn drive(
        self,
        at: &Cell<Option<P::Origin>>,
        mut sink: impl FnMut(P::Origin, K, V) -> Result<()>,
    ) -> Result<()> {
        let FlatMap(before, mut entries) = self;
        before.drive(at, |origin, key, value| {
            entries(key, value).into_iter().try_for_each(|(key, value)| sink(origin, key, value))
        })
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn shape(&self) -> Option<Vec<usize>> {
        None
    }
}

/// Entries that get another key.
#[derive(Debug)]
pub struct Rekey<P, F>(pub(super) P, pub(super) F);

impl<P: Stage, K, F: FnMut(&P::Key, &P::Value) -> K> Stage for Rekey<P, F> {
    type Origin = P::Origin;
    type Key = K;
    type Value = P::Value;

    fn drive(
        self,
        at: &Cell<Option<P::Origin>>,
        mut sink: impl FnMut(P::Origin, K, P::Value) -> Result<()>,
    ) -> Result<()> {
        let Rekey(before, mut key) = self;
        before.drive(at, |origin, old, value| {
            let new = key(&old, &value);
            sink(origin, new, value)
        })
    }

    fn name(&self) -> String {
        self.0.name()
    }

    fn shape(&self) -> Option<Vec<usize>> {
        None
    }
}
