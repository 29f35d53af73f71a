//! Memory that is either one worker's own or read and written by several at once.
use super::cells::Cells;
use crate::segment::element::Element;

/// Elements that nobody else can reach, or [`Cells`] that others may read and write at the same time, behind one
/// interface: code that copies elements out and in need not know which, and may read them in place where that is sound.
///
/// It is changed through `&mut self` only, and is not cloned, so that the borrow of a slice rules out a change.
///
/// ```
/// # use hectare_dsm::{Cells, OwnOrShared};
/// let mut numbers = [1.0f32, 2.0];
/// let mut own = OwnOrShared::own(&mut numbers);
/// own.set(1, 5.0);
/// assert_eq!(own.as_slice(), Some(&[1.0, 5.0][..]));
/// let shared = OwnOrShared::shared(Cells::from_mut(&mut numbers));
/// assert_eq!((shared.as_slice(), shared.get(1)), (None, 5.0));
/// ```
#[derive(Debug)]
pub struct OwnOrShared<'a, T> {
    cells: Cells<'a, T>,
    /// Whether the cells were made here, of elements that are borrowed mutably; no copy of them leaves this type.
    own: bool,
}

impl<'a, T: Element> OwnOrShared<'a, T> {
    /// Elements that nobody else can reach while this exists.
    #[inline]
    pub fn own(elements: &'a mut [T]) -> OwnOrShared<'a, T> {
        OwnOrShared { cells: Cells::from_mut(elements), own: true }
    }

    /// Elements that others may read and write.
    #[inline]
    pub fn shared(cells: Cells<'a, T>) -> OwnOrShared<'a, T> {
        OwnOrShared { cells, own: false }
    }

    /// How many elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The elements, if nobody else can reach them.
    #[inline]
    pub fn as_slice(&self) -> Option<&[T]> {
        // SAFETY: `own` says that these elements are borrowed mutably for `'a`, which outlives `self`, and that this is the
        // only value by which they are reached. It changes them through `&mut self` only, which the slice's borrow of
        // `self` rules out. A null slice does not occur: the start is that of a slice.
        self.own.then(|| unsafe { std::slice::from_raw_parts(self.cells.as_ptr(), self.cells.len()) })
    }

    /// The elements, to be changed in place, if nobody else can reach them.
    #[inline]
    pub fn as_mut_slice(&mut self) -> Option<&mut [T]> {
        // SAFETY: as in `as_slice`; the slice borrows `self` mutably.
        self.own.then(|| unsafe {
            std::slice::from_raw_parts_mut(self.cells.as_ptr().cast_mut(), self.cells.len())
        })
    }

    /// The first `len` elements.
    ///
    /// # Panics
    /// If there are fewer than `len`.
    #[inline]
    pub fn truncated(self, len: usize) -> OwnOrShared<'a, T> {
        OwnOrShared { cells: self.cells.part(0, len), own: self.own }
    }

    /// An element, as it is at this moment; `None` outside.
    #[inline(always)]
    pub fn try_get(&self, index: usize) -> Option<T> {
        self.cells.try_get(index)
    }

    /// Writes an element; `false` outside.
    #[inline(always)]
    pub fn try_set(&mut self, index: usize, value: T) -> bool {
        self.cells.try_set(index, value)
    }

    /// An element, as it is at this moment.
    ///
    /// # Panics
    /// If there is none at `index`.
    #[inline(always)]
    pub fn get(&self, index: usize) -> T {
        self.cells.get(index)
    }

    /// Writes an element.
    ///
    /// # Panics
    /// If there is none at `index`.
    #[inline(always)]
    pub fn set(&mut self, index: usize, value: T) {
        self.cells.set(index, value);
    }

    /// Copies the elements from `first` on out.
    ///
    /// # Panics
    /// If there are not as many as `to` has room for.
    #[inline]
    pub fn load(&self, first: usize, to: &mut [T]) {
        let cells = self.cells.part(first, to.len());
        match self.as_slice() {
            Some(own) => to.copy_from_slice(&own[first..first + to.len()]),
            None => cells.load(to),
        }
    }

    /// Copies elements in, from `first` on.
    ///
    /// # Panics
    /// If there is no room for all of them.
    #[inline]
    pub fn store(&mut self, first: usize, from: &[T]) {
        let cells = self.cells.part(first, from.len());
        match self.as_mut_slice() {
            Some(own) => own[first..first + from.len()].copy_from_slice(from),
            None => cells.store(from),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_elements_are_read_in_place_and_shared_ones_are_not() {
        let mut numbers = [1u32, 2, 3, 4];
        let mut own = OwnOrShared::own(&mut numbers);
        own.store(1, &[20, 30]);
        assert!(own.try_set(0, 10) && !own.try_set(4, 0));
        assert_eq!(own.as_slice(), Some(&[10, 20, 30, 4][..]));
        own.as_mut_slice().unwrap()[3] = 5;
        let mut own = own.truncated(2);
        own.as_mut_slice().unwrap()[1] += 1;
        assert_eq!((own.as_slice(), own.try_get(2)), (Some(&[10, 21][..]), None));
        let cells = Cells::from_mut(&mut numbers);
        let mut shared = OwnOrShared::shared(cells);
        cells.set(3, 40);
        shared.set(0, 11);
        let mut room = [0; 3];
        shared.load(1, &mut room);
        assert!(shared.as_mut_slice().is_none());
        assert_eq!((shared.as_slice(), room, cells.get(0)), (None, [21, 30, 40], 11));
        assert_eq!(OwnOrShared::<u64>::own(&mut []).as_slice(), Some(&[][..]));
    }

    #[test]
    #[should_panic(expected = "elements 3..5 of 4 cells")]
    fn elements_outside() {
        OwnOrShared::own(&mut [1u8, 2, 3, 4]).store(3, &[0, 0]);
    }
}
