//! The elements of an array in one piece, for rows and slices of which no part holds the whole.
use super::transfer::copy_box;
use super::window::Window;
use std::cell::OnceCell;

/// A worker's copy of an array that is only read: made when a row or a slice that lies in several parts is first asked
/// for, and forgotten when the array is next written.
#[derive(Debug)]
pub(crate) struct Gathered<T>(OnceCell<Box<[T]>>);

impl<T: Copy> Gathered<T> {
    pub(crate) const fn new() -> Gathered<T> {
        Gathered(OnceCell::new())
    }

    /// Forgets the copy.
    pub(crate) fn forget(&mut self) {
        self.0.take();
    }

    /// The elements of `whole` in row-major order, from parts that together hold all of them.
    pub(super) fn get<'p, const N: usize>(
        &self,
        whole: &Window<N>,
        parts: impl Iterator<Item = (&'p Window<N>, &'p [T])> + Clone,
    ) -> &[T]
    where
        T: 'p,
    {
        self.0.get_or_init(|| {
            let Some(some) = parts.clone().find_map(|(_, data)| data.first()) else { return Box::default() };
            let mut all = vec![*some; whole.len()].into_boxed_slice();
            for (window, data) in parts {
                copy_box(window, data, whole, &mut all);
            }
            all
        })
    }
}
