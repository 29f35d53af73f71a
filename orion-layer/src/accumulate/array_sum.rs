//! Sums that are arrays: a sum for each of their elements.
use super::{Accumulator, Number};
use hectare_dsm::bytemuck;
use std::cell::RefCell;
use std::ops::Deref;

/// Sums of as many numbers as an array has: `sum histogram: [u64; bins]`.
///
/// Of floats, each cell has an array of its own while it runs, and arrays are added up in the fixed tree, element by element. Of
/// integers, whose sums are the same in any order, all cells of a worker add to one array, which the tree gets at the end.
#[derive(Debug)]
pub struct ArraySum<T> {
    len: usize,
    /// The partial sums of this worker's cells, between two of them.
    aside: RefCell<Option<Vec<T>>>,
}

impl<T> ArraySum<T> {
    /// `len` sums.
    pub const fn new(len: usize) -> ArraySum<T> {
        ArraySum { len, aside: RefCell::new(None) }
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

/// The array of an [`ArraySum`]: in the body of a loop something to add to, after it a slice to read.
///
/// It may be empty where all sums are zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sums<T>(Vec<T>);

/// Some of the sums, for a function that a body calls.
#[derive(Debug)]
pub struct SumsView<'a, T>(&'a mut [T]);

impl<T: Number> SumsView<'_, T> {
    /// Adds to one of them.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline(always)]
    pub fn add(&mut self, place: usize, x: T) {
        let sum = &mut self.0[place];
        *sum = sum.plus(x);
    }

    /// Adds to those from `first` on.
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

impl<T: Number> Sums<T> {
    /// Adds to one of the sums; integers wrap. `sums[place] += x` in a body means this.
    ///
    /// # Panics
    /// If there is no such place.
    #[inline]
    pub fn add(&mut self, place: usize, x: T) {
        SumsView(&mut self.0).add(place, x);
    }

    /// Adds to the sums from `first` on.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline]
    pub fn add_row(&mut self, first: usize, row: &[T]) {
        SumsView(&mut self.0).add_row(first, row);
    }

    /// `len` sums from `first` on, to add to: what a body hands to a function.
    ///
    /// # Panics
    /// If there are not as many.
    #[inline]
    pub fn view(&mut self, first: usize, len: usize) -> SumsView<'_, T> {
        SumsView(&mut self.0[first..][..len])
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

    const COMMUTES: bool = true;

    fn identity(&self) -> Sums<T> {
        Sums(self.aside.take().unwrap_or_else(|| vec![T::default(); self.len]))
    }

    fn combine(&self, mut first: Sums<T>, second: Sums<T>) -> Sums<T> {
        if first.0.is_empty() {
            return second;
        }
        first.add_row(0, &second.0);
        first
    }

    fn set_aside(&self, value: &mut Sums<T>) {
        if T::IS_EXACT {
            let mut sum = std::mem::take(value);
            // A body that is written by hand may begin with zeros of its own.
            if let Some(aside) = self.aside.take() {
                sum = self.combine(Sums(aside), sum);
            }
            *self.aside.borrow_mut() = Some(sum.0);
        }
    }

    fn take_back(&self, value: &mut Sums<T>) {
        match self.aside.take() {
            Some(aside) => *value = self.combine(Sums(aside), std::mem::take(value)),
            None if value.0.is_empty() => *value = self.identity(),
            None => {}
        }
    }

    fn write(&self, value: &Sums<T>, bytes: &mut Vec<u8>) {
        bytes.push(u8::from(!value.0.is_empty()));
        bytes.extend_from_slice(bytemuck::cast_slice(&value.0));
    }

    fn read(&self, bytes: &mut &[u8]) -> Option<Sums<T>> {
        let (is_there, rest) = bytes.split_first()?;
        let len = if *is_there == 0 { 0 } else { self.len.checked_mul(size_of::<T>())? };
        let (head, rest) = rest.split_at_checked(len)?;
        *bytes = rest;
        Some(Sums(head.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()))
    }
}
