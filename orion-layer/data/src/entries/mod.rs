//! The entries that a worker holds of a sparse array or of a data set.
mod entry;

pub use self::entry::Entry;

use crate::random::{Permutation, Stream};
use hectare_dependence::histogram::Histogram;

/// The largest extent of a dimension: keys are `u32`.
const MAX_EXTENT: usize = 1 << 32;

/// Errors of keys of entries and of shapes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntriesError {
    /// An extent, or an index plus one, is above 2^32.
    #[error("dimension {dim} would have extent {extent}: sparse arrays hold indices below 2^32")]
    ExtentTooLarge {
        /// The dimension.
        dim: usize,
        /// Its extent.
        extent: usize,
    },
    /// A key lies outside the shape.
    #[error("the entry at {key:?} lies outside the shape {shape:?}")]
    OutOfShape {
        /// The key.
        key: Vec<usize>,
        /// The shape.
        shape: Vec<usize>,
    },
}

/// Entries of a sparse array with `N` dimensions, in the order in which they came.
///
/// Several entries may have the same key. The values may be of any type; a rating (two keys and an `f32`) takes
/// 12 bytes.
///
/// ```
/// use hectare_data::entries::Entries;
/// let mut ratings = Entries::new([3, 4])?;
/// ratings.push([0, 2], 4.0f32)?;
/// ratings.push([2, 2], 1.0)?;
/// let mut high = ratings.map(|_key, rating| rating / 2.0);
/// high.filter(|_key, rating| *rating > 1.0);
/// assert_eq!(high.iter().map(|entry| entry.key).collect::<Vec<_>>(), [[0, 2]]);
/// # Ok::<(), hectare_data::entries::EntriesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries<T, const N: usize> {
    shape: [usize; N],
    list: Vec<Entry<T, N>>,
}

impl<T, const N: usize> Entries<T, N> {
    /// No entries, in an array of this shape.
    ///
    /// # Errors
    /// [`EntriesError::ExtentTooLarge`].
    pub fn new(shape: [usize; N]) -> Result<Entries<T, N>, EntriesError> {
        Entries::from_vec(shape, Vec::new())
    }

    /// These entries, in an array of this shape.
    ///
    /// # Errors
    /// [`EntriesError`]: an extent is too large, or a key lies outside.
    pub fn from_vec(shape: [usize; N], list: Vec<Entry<T, N>>) -> Result<Entries<T, N>, EntriesError> {
        Entries { shape: [0; N], list }.with_shape(shape)
    }

    /// The same entries in an array of another shape.
    ///
    /// # Errors
    /// [`EntriesError`]: an extent is too large, or a key lies outside.
    pub fn with_shape(mut self, shape: [usize; N]) -> Result<Entries<T, N>, EntriesError> {
        if let Some(dim) = (0..N).find(|&dim| shape[dim] > MAX_EXTENT) {
            return Err(EntriesError::ExtentTooLarge { dim, extent: shape[dim] });
        }
        let inside = |entry: &Entry<T, N>| (0..N).all(|dim| (entry.key[dim] as usize) < shape[dim]);
        if let Some(entry) = self.list.iter().find(|entry| !inside(entry)) {
            let key = entry.key.map(|index| index as usize).to_vec();
            return Err(EntriesError::OutOfShape { key, shape: shape.to_vec() });
        }
        self.shape = shape;
        Ok(self)
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// [`EntriesError::OutOfShape`].
    pub fn push(&mut self, key: [usize; N], value: T) -> Result<(), EntriesError> {
        if (0..N).any(|dim| key[dim] >= self.shape[dim]) {
            return Err(EntriesError::OutOfShape { key: key.to_vec(), shape: self.shape.to_vec() });
        }
        self.list.push(Entry { key: key.map(|index| index as u32), value });
        Ok(())
    }

    /// Adds an entry, and makes the shape larger where the key lies outside.
    ///
    /// # Errors
    /// [`EntriesError::ExtentTooLarge`].
    #[inline]
    pub fn push_growing(&mut self, key: [usize; N], value: T) -> Result<(), EntriesError> {
        if let Some(dim) = (0..N).find(|&dim| key[dim] >= MAX_EXTENT) {
            return Err(EntriesError::ExtentTooLarge { dim, extent: key[dim].saturating_add(1) });
        }
        for (extent, index) in self.shape.iter_mut().zip(key) {
            *extent = (*extent).max(index + 1);
        }
        self.list.push(Entry { key: key.map(|index| index as u32), value });
        Ok(())
    }

    /// Gives back the memory that is in reserve for more entries.
    pub fn shrink_to_fit(&mut self) {
        self.list.shrink_to_fit();
    }

    /// The extents of the dimensions.
    pub fn shape(&self) -> [usize; N] {
        self.shape
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The entries.
    pub fn as_slice(&self) -> &[Entry<T, N>] {
        &self.list
    }

    /// The entries, in order.
    pub fn iter(&self) -> std::slice::Iter<'_, Entry<T, N>> {
        self.list.iter()
    }

    /// The values, to be changed in place.
    pub fn values_mut(&mut self) -> impl ExactSizeIterator<Item = &mut T> {
        self.list.iter_mut().map(|entry| &mut entry.value)
    }

    /// The entries without the shape.
    pub fn into_vec(self) -> Vec<Entry<T, N>> {
        self.list
    }

    /// The same keys with other values.
    pub fn map<U>(self, mut f: impl FnMut([u32; N], T) -> U) -> Entries<U, N> {
        let entry = |Entry { key, value }| Entry { key, value: f(key, value) };
        Entries { shape: self.shape, list: self.list.into_iter().map(entry).collect() }
    }

    /// Keeps the entries that pass.
    pub fn filter(&mut self, mut keep: impl FnMut([u32; N], &T) -> bool) {
        self.list.retain(|entry| keep(entry.key, &entry.value));
    }

    /// Counts the indices of dimension `dim` in at most `bins` bins.
    ///
    /// # Panics
    /// If there is no such dimension, or `bins` is zero.
    pub fn histogram(&self, dim: usize, bins: usize) -> Histogram {
        let mut histogram = Histogram::new(self.shape[dim], bins);
        histogram.add_all(self.list.iter().map(|entry| entry.key[dim]));
        histogram
    }

    /// The key of one entry out of every `every`, drawn at random from each run of `every`, so that data with a
    /// period are sampled fairly. The same for every call with the same entries and `stream`.
    ///
    /// # Panics
    /// If `every` is zero.
    pub fn sample_keys(&self, every: usize, stream: Stream) -> Vec<[u32; N]> {
        if every == 1 {
            return self.list.iter().map(|entry| entry.key).collect();
        }
        let draw = |(number, run): (usize, &[Entry<T, N>])| {
            run[stream.below(number as u64, run.len() as u64) as usize].key
        };
        self.list.chunks(every).enumerate().map(draw).collect()
    }

    /// Renames the indices of dimension `dim`.
    ///
    /// # Panics
    /// If there is no such dimension, or the permutation is not of its extent.
    pub fn permute(&mut self, dim: usize, permutation: &Permutation) {
        assert_eq!(permutation.len(), self.shape[dim], "the permutation is not of dimension {dim}'s extent");
        if self.list.len() / 2 > permutation.len() {
            let table = permutation.table();
            self.list.iter_mut().for_each(|entry| entry.key[dim] = table[entry.key[dim] as usize]);
        } else {
            self.list.iter_mut().for_each(|entry| entry.key[dim] = permutation.apply(entry.key[dim]));
        }
    }

    /// Sorts by key, the last index running fastest, for ordered loops. Entries with the same key keep their
    /// order.
    pub fn sort(&mut self) {
        self.list.sort_by_key(|entry| entry.key);
    }

    /// Whether the keys ascend; equal neighbours are allowed.
    pub fn is_sorted(&self) -> bool {
        self.list.is_sorted_by_key(|entry| entry.key)
    }
}

impl<T> Entries<T, 1> {
    /// Values of consecutive rows, the first of which is `first_row`.
    ///
    /// # Errors
    /// [`EntriesError::ExtentTooLarge`].
    pub fn from_rows(first_row: usize, values: Vec<T>) -> Result<Entries<T, 1>, EntriesError> {
        let end = first_row.saturating_add(values.len());
        if end > MAX_EXTENT {
            return Err(EntriesError::ExtentTooLarge { dim: 0, extent: end });
        }
        let entry = |(row, value)| Entry { key: [row as u32], value };
        Ok(Entries { shape: [end], list: (first_row..).zip(values).map(entry).collect() })
    }
}

impl<'a, T, const N: usize> IntoIterator for &'a Entries<T, N> {
    type Item = &'a Entry<T, N>;
    type IntoIter = std::slice::Iter<'a, Entry<T, N>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T, const N: usize> IntoIterator for Entries<T, N> {
    type Item = Entry<T, N>;
    type IntoIter = std::vec::IntoIter<Entry<T, N>>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests;
