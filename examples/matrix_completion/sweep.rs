//! The loop over ratings that every mode runs; modes differ in where they find a row.

use super::data::Rating;
use super::element::Element;
use super::kernel::{Kernel, Pass};
use super::model::Model;

/// How many ratings ahead rows are fetched into the cache. Far enough to cover a miss in the second-level cache,
/// near enough that the lines are still in the first level when their turn comes.
pub const AHEAD: usize = 8;

/// Where the rows of a pair are.
pub trait Rows<E> {
    /// The rows of a rating's user and item.
    fn pair(&mut self, user: u32, item: u32) -> (&mut [E], &mut [E]);

    /// Asks the cache for both, in the hope that `pair` will be called for them soon.
    fn prefetch(&self, user: u32, item: u32);
}

impl<E: Element> Rows<E> for Model<E> {
    #[inline(always)]
    fn pair(&mut self, user: u32, item: u32) -> (&mut [E], &mut [E]) {
        (self.users.row_mut(user as usize), self.items.row_mut(item as usize))
    }

    #[inline(always)]
    fn prefetch(&self, user: u32, item: u32) {
        let stride = self.layout().stride;
        prefetch(self.users.as_slice().as_ptr().wrapping_add(user as usize * stride), stride);
        prefetch(self.items.as_slice().as_ptr().wrapping_add(item as usize * stride), stride);
    }
}

/// One update per rating, in order.
#[derive(Debug)]
pub struct Sweep<'a, R> {
    /// Where the rows are.
    pub rows: &'a mut R,
    /// What to learn from.
    pub ratings: &'a [Rating],
    /// What comes afterwards, if that is known: only prefetched.
    pub next: &'a [Rating],
}

impl<E: Element, R: Rows<E>> Pass<E> for Sweep<'_, R> {
    type Out = ();

    #[inline(always)]
    fn run<K: Kernel<E>>(self, kernel: K) {
        let soon = self.ratings.iter().chain(self.next).skip(AHEAD);
        // Two loops: one with something to fetch ahead, and the rest.
        let mut now = self.ratings.iter();
        for (soon, rating) in soon.zip(&mut now) {
            self.rows.prefetch(soon.user, soon.item);
            let (user, item) = self.rows.pair(rating.user, rating.item);
            kernel.update(user, item, E::from_f32(rating.value));
        }
        for rating in now {
            let (user, item) = self.rows.pair(rating.user, rating.item);
            kernel.update(user, item, E::from_f32(rating.value));
        }
    }
}

/// Asks the cache for all lines of a row, which may be anywhere: nothing is read.
#[inline(always)]
pub fn prefetch<E: Element>(row: *const E, length: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..length).step_by(E::LANES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch is a hint that cannot fault, whatever the address; SSE is part of the target.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(row.wrapping_add(line).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (row, length);
}
