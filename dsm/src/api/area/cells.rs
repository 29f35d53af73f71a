//! Memory that several workers read and write at once: element by element, by relaxed atomics.
//!
//! HogWild! programs (Recht et al., 2011) use plain loads and stores, which the languages of today leave undefined. Here they
//! are defined: an element is read and written in words of its alignment (8 bytes at most), each of
//! them whole. On x86-64 and on ARM such a load or store is the same instruction as a plain one.
use super::copy;
use crate::protocol::words;
use crate::segment::element::Element;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Elements that others may read and write at the same time.
///
/// There are no references to them: elements are copied out and in. An element of one word (any number of up to 8
/// bytes) is never torn; of one that has several words, each word is whole. There is no order between elements, and
/// of two workers that read, change and write one element at once, one change is lost.
///
/// ```
/// # use hectare_dsm::Cells;
/// let mut numbers = [1.0f32, 2.0];
/// let cells = Cells::from_mut(&mut numbers);
/// cells.set(1, cells.get(0) + 2.0);
/// assert_eq!(cells.get(1), 3.0);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Cells<'a, T> {
    start: *mut T,
    len: usize,
    memory: PhantomData<&'a T>,
}

macro_rules! by_words {
    ($start:expr, $value:ident, $atomic:ident of $word_type:ty, |$word:ident, $part:ident| $act:expr) => {{
        let $part = $value.cast::<$word_type>();
        let words = size_of::<T>() / size_of::<$atomic>();
        for at in 0..words {
            // SAFETY: the element lies in memory that all access by atomics of this size only (`Cells::new`), and is
            // aligned to at least a word; the value has as many words.
            let ($word, $part) = unsafe { (&*$start.cast::<$atomic>().add(at), $part.add(at)) };
            $act
        }
    }};
}

/// `act` on the words of an element and of a value; words are as large as the element's alignment lets them be.
macro_rules! each_word {
    ($start:expr, $value:ident, |$word:ident, $part:ident| $act:expr) => {
        match align_of::<T>() {
            1 => by_words!($start, $value, AtomicU8 of u8, |$word, $part| $act),
            2 => by_words!($start, $value, AtomicU16 of u16, |$word, $part| $act),
            4 => by_words!($start, $value, AtomicU32 of u32, |$word, $part| $act),
            _ => by_words!($start, $value, AtomicU64 of u64, |$word, $part| $act),
        }
    };
}

/// `act` with the type of the words of an element, and how many it has.
macro_rules! all_words {
    (|$word:ident, $words:ident| $act:expr) => {
        match align_of::<T>() {
            1 => all_words!(@ u8, $word, $words, $act),
            2 => all_words!(@ u16, $word, $words, $act),
            4 => all_words!(@ u32, $word, $words, $act),
            _ => all_words!(@ u64, $word, $words, $act),
        }
    };
    (@ $of:ty, $word:ident, $words:ident, $act:expr) => {{
        type $word = $of;
        let $words = size_of::<T>() / size_of::<$of>();
        $act
    }};
}

impl<'a, T: Element> Cells<'a, T> {
    /// # Safety
    /// `start` is the beginning of `len` elements, which for `'a` are accessed through `Cells` of elements of this
    /// size and alignment only.
    #[inline]
    pub(crate) unsafe fn new(start: *mut T, len: usize) -> Cells<'a, T> {
        Cells { start, len, memory: PhantomData }
    }

    /// Elements that nobody else can reach while the cells exist.
    #[inline]
    pub fn from_mut(elements: &'a mut [T]) -> Cells<'a, T> {
        // SAFETY: the elements are borrowed mutably for `'a`.
        unsafe { Cells::new(elements.as_mut_ptr(), elements.len()) }
    }

    /// How many elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the elements begin.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *const T {
        self.start
    }

    /// An element, as it is at this moment; `None` outside.
    #[inline(always)]
    pub fn try_get(&self, index: usize) -> Option<T> {
        if index >= self.len {
            return None;
        }
        // SAFETY: the index is below the length.
        let start = unsafe { self.start.add(index) };
        let mut value = MaybeUninit::<T>::uninit();
        let out = value.as_mut_ptr();
        // SAFETY: `write` to a word of `value`. Relaxed: there is no order between elements.
        each_word!(start, out, |word, part| unsafe { std::ptr::write(part, word.load(Ordering::Relaxed)) });
        // SAFETY: all its words were written, and any bytes are a value of an `Element`.
        Some(unsafe { value.assume_init() })
    }

    /// Writes an element; `false` outside.
    #[inline(always)]
    pub fn try_set(&self, index: usize, value: T) -> bool {
        if index >= self.len {
            return false;
        }
        // SAFETY: the index is below the length.
        let start = unsafe { self.start.add(index) };
        let from = std::ptr::from_ref(&value).cast_mut();
        // SAFETY: `read` of a word of `value`, which is plain old data without padding. Relaxed as above.
        each_word!(start, from, |word, part| word.store(unsafe { std::ptr::read(part) }, Ordering::Relaxed));
        true
    }

    /// An element, as it is at this moment.
    ///
    /// # Panics
    /// If there is none at `index`.
    #[inline(always)]
    pub fn get(&self, index: usize) -> T {
        match self.try_get(index) {
            Some(value) => value,
            None => outside(index, 1, self.len),
        }
    }

    /// Writes an element.
    ///
    /// # Panics
    /// If there is none at `index`.
    #[inline(always)]
    pub fn set(&self, index: usize, value: T) {
        if !self.try_set(index, value) {
            outside(index, 1, self.len)
        }
    }

    /// The elements `first..first + count`.
    ///
    /// # Panics
    /// If they are not all there.
    #[inline]
    pub fn part(&self, first: usize, count: usize) -> Cells<'a, T> {
        if first > self.len || count > self.len - first {
            outside(first, count, self.len)
        }
        Cells { start: self.start.wrapping_add(first), len: count, memory: PhantomData }
    }

    /// Copies the elements out, 16 bytes at once where the processor keeps those together.
    ///
    /// # Panics
    /// If `to` has another length.
    #[inline]
    pub fn load(&self, to: &mut [T]) {
        assert_eq!(to.len(), self.len, "elements copied out of cells");
        // SAFETY: the cells are `len` elements, which others access by words of this size only (`Cells::new`); `to` is
        // borrowed mutably and as long, and any bytes are a value of an `Element`.
        all_words!(|Word, words| unsafe {
            copy::load(self.start.cast::<Word>(), to.as_mut_ptr().cast::<Word>(), words * self.len)
        });
    }

    /// Copies elements in, 16 bytes at once where the processor keeps those together.
    ///
    /// # Panics
    /// If `from` has another length.
    #[inline]
    pub fn store(&self, from: &[T]) {
        assert_eq!(from.len(), self.len, "elements copied into cells");
        // SAFETY: as in `load`; `from` is borrowed, and plain old data without padding.
        all_words!(|Word, words| unsafe {
            copy::store(from.as_ptr().cast::<Word>(), self.start.cast::<Word>(), words * self.len)
        });
    }
}

impl Cells<'_, u64> {
    #[inline]
    pub(crate) fn word(&self, index: usize) -> &AtomicU64 {
        if index >= self.len {
            outside(index, 1, self.len)
        }
        // SAFETY: it lies in memory that all access by atomics of this size only (`Cells::new`).
        unsafe { &*self.start.add(index).cast::<AtomicU64>() }
    }

    /// An element; what was written before the [`publish`](Cells::publish) that it comes from is seen from here on.
    ///
    /// # Panics
    /// If there is none at `index`.
    #[inline]
    pub fn observe(&self, index: usize) -> u64 {
        words::observe(self.word(index))
    }

    /// Writes an element after all that this worker wrote before.
    ///
    /// # Panics
    /// If there is none at `index`.
    #[inline]
    pub fn publish(&self, index: usize, value: u64) {
        words::publish(self.word(index), value);
    }
}

#[cold]
#[inline(never)]
fn outside(first: usize, count: usize, len: usize) -> ! {
    panic!("elements {first}..{} of {len} cells", first.wrapping_add(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C)]
    struct Pair {
        key: u32,
        value: f32,
    }

    fn round_trip<T: Element + PartialEq + std::fmt::Debug>(values: &[T]) {
        let mut memory = vec![T::zeroed(); values.len()];
        let cells = Cells::from_mut(&mut memory);
        cells.store(values);
        let mut read = vec![T::zeroed(); values.len()];
        cells.load(&mut read);
        assert_eq!(read, values);
        assert_eq!((cells.try_get(values.len()), cells.try_set(values.len(), values[0])), (None, false));
        assert_eq!(cells.part(1, values.len() - 1).get(0), values[1]);
        assert_eq!(memory, values);
    }

    #[test]
    fn elements_of_every_alignment() {
        round_trip(&[1u8, 2, 255]);
        round_trip(&[1u16, 2, 65535]);
        round_trip(&[1.5f32, -0.0, 3.0]);
        round_trip(&[1.5f64, f64::MAX, 3.0]);
        round_trip(&[1u128, u128::MAX, 3]);
        round_trip(&[Pair { key: 1, value: 2.0 }, Pair { key: u32::MAX, value: -1.0 }]);
        round_trip(&[[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    }

    #[test]
    #[should_panic(expected = "elements 2..4 of 3 cells")]
    fn a_part_outside() {
        Cells::from_mut(&mut [1u32, 2, 3]).part(2, 2);
    }
}
