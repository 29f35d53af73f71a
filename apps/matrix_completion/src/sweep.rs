//! The loop over ratings that every mode runs; modes differ in where they find a row.

use super::data::Rating;
use super::kernel::{Element, Kernel, Pass};

/// How many ratings ahead rows are fetched into the cache. Far enough to cover a miss in the second-level cache,
/// near enough that the lines are still in the first level when their turn comes.
pub const AHEAD: usize = 8;

/// Where the rows of a pair are. `stride` is the kernel's, which the compiler knows.
pub trait Rows<E> {
    /// The rows of a rating's user and item.
    fn pair(&mut self, user: u32, item: u32, stride: usize) -> (&mut [E], &mut [E]);

    /// Asks the cache for both, in the hope that `pair` will be called for them soon.
    fn prefetch(&self, user: u32, item: u32, stride: usize);
}

/// Rows in two ordinary slices.
#[derive(Debug)]
pub struct Slices<'a, E> {
    /// All rows of users.
    pub users: &'a mut [E],
    /// All rows of items.
    pub items: &'a mut [E],
}

impl<E: Element> Rows<E> for Slices<'_, E> {
    #[inline(always)]
    fn pair(&mut self, user: u32, item: u32, stride: usize) -> (&mut [E], &mut [E]) {
        (
            &mut self.users[user as usize * stride..][..stride],
            &mut self.items[item as usize * stride..][..stride],
        )
    }

    #[inline(always)]
    fn prefetch(&self, user: u32, item: u32, stride: usize) {
        prefetch_to_write(self.users.as_ptr(), user, stride);
        prefetch_to_write(self.items.as_ptr(), item, stride);
    }
}

/// One update per rating, in order.
#[derive(Debug)]
pub struct Sweep<'a, R> {
    /// Where the rows are.
    pub rows: &'a mut R,
    /// The ratings to learn from, then those that come after them, which are only prefetched.
    pub ratings: &'a [Rating],
    /// How many of the ratings to learn from.
    pub count: usize,
    /// See [`Training::idle_turns`](super::train::Training::idle_turns).
    pub idle_turns: u32,
}

impl<E: Element, R: Rows<E>> Pass<E> for Sweep<'_, R> {
    type Out = ();

    #[inline(always)]
    fn run<K: Kernel<E>>(self, kernel: K) {
        let stride = kernel.stride();
        for (place, rating) in self.ratings[..self.count].iter().enumerate() {
            if let Some(soon) = self.ratings.get(place + AHEAD) {
                self.rows.prefetch(soon.user, soon.item, stride);
            }
            let (user, item) = self.rows.pair(rating.user, rating.item, stride);
            kernel.update(user, item, E::from_f32(rating.value));
            idle(self.idle_turns);
        }
    }
}

/// Spends the time of `turns` turns of an idle loop.
#[inline(always)]
pub fn idle(turns: u32) {
    for _ in 0..turns {
        std::hint::spin_loop();
    }
}

/// Asks the cache for all lines of a row, to be read. The row may be anywhere: nothing is accessed.
#[inline(always)]
pub fn prefetch<E: Element>(rows: *const E, row: u32, stride: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..stride).step_by(E::LANES) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let address = rows.wrapping_add(row as usize * stride + line);
        // SAFETY: a prefetch is a hint that cannot fault, whatever the address; SSE is part of the target.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (rows, row, stride);
}

/// Asks the cache for all lines of a row, to be written. A line that another core wrote then comes over once, and
/// not first for the read and again for the write: with two workers that makes 15 to 60 per cent.
#[inline(always)]
pub fn prefetch_to_write<E: Element>(rows: *const E, row: u32, stride: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in (0..stride).step_by(E::LANES) {
        let address = rows.wrapping_add(row as usize * stride + line);
        // SAFETY: a hint that cannot fault, whatever the address. The intrinsic for it compiles to the prefetch for
        // reading, unless the whole program is compiled for a newer target; processors that do not know the
        // instruction treat it as no operation.
        unsafe {
            std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly))
        };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (rows, row, stride);
}
