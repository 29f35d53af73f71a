//! The views of a slice: a served array notes keys, and arrays that the loop changes are out of sight.
use super::cache::NONE;
use crate::contract::Family;
use crate::replica::ElementIndex;
use crate::view::{RowIndex, Window};

/// A served array, to the slice of a body: it notes the keys that it is asked about. For `parallel_for!`.
#[derive(Debug)]
pub struct KeyView<'a, const N: usize> {
    pub(super) window: Window<N>,
    /// One place for each key: whether it has been noted.
    pub(super) table: &'a mut [u32],
    pub(super) named: &'a mut Vec<u32>,
}

/// [`KeyView`]s.
#[derive(Debug)]
pub struct KeyViewFamily<const N: usize>;

impl<const N: usize> Family for KeyViewFamily<N> {
    type Of<'a> = KeyView<'a, N>;
}

impl<const N: usize> KeyView<'_, N> {
    /// The body uses an element. What lies outside of the array is left to the body to find out.
    #[inline]
    pub fn element<I: ElementIndex<N>>(&mut self, index: I) {
        if let Some((key, _)) = key_of(&self.window, index.index()) {
            self.note(key);
        }
    }

    /// The body uses a row.
    #[inline]
    pub fn row<R: RowIndex<N>>(&mut self, row: R) {
        if let Some(key) = self.window.row_place(row) {
            self.note(key);
        }
    }

    #[inline]
    fn note(&mut self, key: usize) {
        if let Some(noted) = self.table.get_mut(key)
            && *noted == NONE
        {
            *noted = 0;
            self.named.push(key as u32);
        }
    }
}

/// The window of the keys of an array: that of the array itself for one dimension, otherwise with one element in each row.
pub(super) fn key_window<const N: usize>(shape: &[usize; N]) -> Window<N> {
    Window::of_box(&std::array::from_fn(|dim| 0..if N > 1 && dim + 1 == N { 1 } else { shape[dim] }))
}

/// The key of an element, and its place within the key; the latter is not checked.
#[inline(always)]
pub(super) fn key_of<const N: usize>(window: &Window<N>, mut index: [usize; N]) -> Option<(usize, usize)> {
    if N == 1 {
        return Some((window.place(index)?, 0));
    }
    let within = std::mem::take(&mut index[N - 1]);
    Some((window.place(index)?, within))
}
