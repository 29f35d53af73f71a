//! Sums that are arrays: a sum for each of so many places.
use super::{Accumulator, Number};
use hectare_dsm::bytemuck;
use std::marker::PhantomData;
use std::ops::Deref;

/// Sums of as many numbers as an array has: `sum histogram: [u64; bins]`. A cell has an array of its own while it runs, and
/// arrays are added up in the fixed tree, element by element.
#[derive(Clone, Copy, Debug)]
pub struct ArraySum<T> {
    len: usize,
    of: PhantomData<T>,
}

impl<T> ArraySum<T> {
    /// So many sums.
    pub const fn new(len: usize) -> ArraySum<T> {
        ArraySum { len, of: PhantomData }
    }

    /// How many sums there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// What is added up by an [`ArraySum`]: in the body of a loop something to add to, after it a slice to read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums<T>(Vec<T>);

impl<T: Number> Sums<T> {
    /// Adds to one of the sums; integers wrap. `sums[place] += x` in a body means this.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline]
    pub fn add(&mut self, place: usize, x: T) {
        let sum = &mut self.0[place];
        *sum = sum.plus(x);
    }

    /// Adds to the sums from `first` on.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline]
    pub fn add_row(&mut self, first: usize, row: &[T]) {
        for (sum, x) in self.0[first..][..row.len()].iter_mut().zip(row) {
            *sum = sum.plus(*x);
        }
    }
}

impl<T> Sums<T> {
    /// The sums.
    pub fn into_vec(self) -> Vec<T> {
        self.0
    }
}

impl<T> Deref for Sums<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T: Number> Accumulator for ArraySum<T> {
    type Value = Sums<T>;

    fn identity(&self) -> Sums<T> {
        Sums(vec![T::default(); self.len])
    }

    fn combine(&self, mut first: Sums<T>, second: Sums<T>) -> Sums<T> {
        first.add_row(0, &second.0);
        first
    }

    fn write(&self, value: &Sums<T>, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(bytemuck::cast_slice(&value.0));
    }

    fn read(&self, bytes: &mut &[u8]) -> Option<Sums<T>> {
        let (head, rest) = bytes.split_at_checked(self.len.checked_mul(size_of::<T>())?)?;
        *bytes = rest;
        Some(Sums(head.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()))
    }
}
