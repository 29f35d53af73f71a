//! The rows and elements that each iteration of a loop touches.
use std::ops::Range;

/// An element or a row of a written array, by its number among those of all written arrays, and whether it may be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(u32);

impl Key {
    /// The most numbers there are.
    pub const MOST: usize = (u32::MAX >> 1) as usize;

    /// Number `number`, below [`Key::MOST`].
    #[inline(always)]
    pub fn new(number: usize, writes: bool) -> Key {
        Key((number as u32) << 1 | u32::from(writes))
    }

    /// Its number.
    #[inline(always)]
    pub fn number(self) -> usize {
        (self.0 >> 1) as usize
    }

    /// Whether it may be written.
    #[inline(always)]
    pub fn writes(self) -> bool {
        self.0 & 1 != 0
    }
}

/// There are more iterations, rows or accesses than an inspection counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} {1} are more than an inspection counts")]
pub struct TooMany(pub usize, pub &'static str);

/// The keys of every iteration, in the order of the serial program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    starts: Vec<u32>,
    keys: Vec<Key>,
    /// The first number of each array, and the end of the last.
    arrays: Vec<usize>,
}

impl Touched {
    /// No iterations yet, over arrays with these numbers of rows.
    ///
    /// # Errors
    /// If there are too many rows.
    pub fn new(rows: &[usize]) -> Result<Touched, TooMany> {
        let mut arrays = vec![0usize];
        for rows in rows {
            let end = arrays[arrays.len() - 1].saturating_add(*rows);
            arrays.push(end);
        }
        let all = arrays[arrays.len() - 1];
        match all < Key::MOST {
            true => Ok(Touched { starts: vec![0], keys: Vec::new(), arrays }),
            false => Err(TooMany(all, "rows")),
        }
    }

    /// Makes room for `iterations` iterations.
    pub fn reserve(&mut self, iterations: usize) {
        self.starts.reserve(iterations);
        self.keys.reserve(2 * iterations);
    }

    /// Adds a key of the iteration under way.
    #[inline]
    pub fn note(&mut self, key: Key) {
        let begun = self.starts[self.starts.len() - 1] as usize;
        let near = begun.max(self.keys.len().saturating_sub(NEAR));
        match self.keys[near..].iter_mut().find(|known| known.number() == key.number()) {
            Some(known) => known.0 |= key.0 & 1,
            None => self.keys.push(key),
        }
    }

    /// Ends the iteration under way.
    ///
    /// # Errors
    /// If there are too many accesses or iterations.
    #[inline]
    pub fn end_iteration(&mut self) -> Result<(), TooMany> {
        let end = u32::try_from(self.keys.len()).map_err(|_| TooMany(self.keys.len(), "accesses"))?;
        if self.starts.len() >= u32::MAX as usize {
            return Err(TooMany(self.starts.len(), "iterations"));
        }
        self.starts.push(end);
        Ok(())
    }

    /// How many iterations.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The keys of an iteration; the same row may be there twice.
    #[inline(always)]
    pub fn of(&self, iteration: usize) -> &[Key] {
        &self.keys[self.starts[iteration] as usize..self.starts[iteration + 1] as usize]
    }

    /// The weight of an iteration, in rows.
    #[inline(always)]
    pub fn weight(&self, iteration: usize) -> u32 {
        1 + self.starts[iteration + 1] - self.starts[iteration]
    }

    /// The weight of all.
    pub fn total_weight(&self) -> u64 {
        (self.len() + self.keys.len()) as u64
    }

    /// How many accesses, of all iterations.
    pub fn accesses(&self) -> usize {
        self.keys.len()
    }

    /// All accesses.
    pub(super) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// How many rows, of all arrays.
    pub fn rows(&self) -> usize {
        self.arrays[self.arrays.len() - 1]
    }

    /// The numbers of each array's rows.
    pub fn arrays(&self) -> impl Iterator<Item = Range<usize>> {
        self.arrays.windows(2).map(|ends| ends[0]..ends[1])
    }
}

/// The number of keys among which one of the same row is looked for.
const NEAR: usize = 4;
