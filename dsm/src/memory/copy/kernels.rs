//! The choice of a kernel for each copy.

use super::{Isa, LINE, portable};

/// How a dense copy stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stores {
    /// By wide ordinary stores: steadier than the C library's copy while both buffers fit in the second-level cache,
    /// where that loses up to 10 % depending on which physical pages it meets.
    Near,
    /// By the C library's copy, for what fits in the last-level cache.
    Cached,
    /// Around the caches.
    NonTemporal,
}

/// The copy kernels and the thresholds between them, chosen once per process.
#[derive(Debug, Clone)]
pub(crate) struct Kernels {
    pub(super) isa: Isa,
    /// Rounds that copy less than this stay in the second-level cache.
    pub(super) near_bytes: usize,
    /// Rounds that copy at least this much use non-temporal stores for dense copies.
    pub(super) nt_bytes: usize,
    /// Lists use non-temporal stores if the round's lists have at least this many bytes together ..
    pub(super) list_nt_bytes: usize,
    /// .. and are spread over areas of at least this many bytes together.
    pub(super) list_nt_span_bytes: usize,
    /// Share of dirty lines above which a full copy is faster, for one worker and for more.
    pub(super) sparse_to_full: [f32; 2],
}

impl Kernels {
    /// Copies `len` bytes.
    ///
    /// `total` is what all workers of the round copy together: it decides between ordinary and non-temporal stores.
    /// After non-temporal stores a fence orders them before whatever the caller does next.
    ///
    /// # Safety
    ///
    /// `src` is readable and `dst` writable for `len` bytes, they do not overlap, and nobody else writes the one or
    /// touches the other meanwhile.
    pub(crate) unsafe fn copy_dense(&self, dst: *mut u8, src: *const u8, len: usize, total: usize) {
        let lines = len / LINE;
        let stores = match total {
            _ if total >= self.nt_bytes && is_aligned(dst) => Stores::NonTemporal,
            _ if total < self.near_bytes => Stores::Near,
            _ => Stores::Cached,
        };
        // SAFETY: whole lines within `len`, then what is left of it; non-temporal stores only if `dst` is aligned.
        unsafe {
            self.copy_whole(dst, src, lines, stores);
            let done = lines * LINE;
            std::ptr::copy_nonoverlapping(src.add(done), dst.add(done), len - done);
        }
    }

    /// Copies the listed lines (line `i` starts at byte `i * LINE`), best in ascending order.
    ///
    /// `total` is what all workers of the round copy together, `span` the length of the areas that the lines are
    /// scattered over. The span tells whether the destinations are likely in the cache, where ordinary stores are
    /// faster and scale with the workers, or not, where they are up to three times slower than non-temporal ones.
    ///
    /// # Safety
    ///
    /// Every listed line is readable at `src` and writable at `dst`, the buffers do not overlap, and nobody else writes
    /// the one or touches the other meanwhile.
    pub(crate) unsafe fn copy_lines(
        &self,
        dst: *mut u8,
        src: *const u8,
        lines: &[u32],
        total: usize,
        span: usize,
    ) {
        let non_temporal = total >= self.list_nt_bytes && span >= self.list_nt_span_bytes && is_aligned(dst);
        // SAFETY: the caller vouches for every listed line, and the instruction set was detected.
        unsafe {
            match (self.isa, non_temporal) {
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512 { .. }, true) => super::avx512::lines::<true>(dst, src, lines),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512 { .. }, false) => super::avx512::lines::<false>(dst, src, lines),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, true) => super::avx2::lines::<true>(dst, src, lines),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, false) => super::avx2::lines::<false>(dst, src, lines),
                (Isa::Portable, _) => return portable::lines(dst, src, lines),
            }
        }
        self.fence(non_temporal);
    }

    /// The share of dirty lines above which copying everything is faster than copying them, for areas that the caches
    /// do not hold. (Smaller areas are better copied selectively up to higher shares.)
    pub(crate) fn full_copy_fraction(&self, workers: usize) -> f32 {
        self.sparse_to_full[usize::from(workers > 1)]
    }

    /// Copies whole lines by one kind of stores, and fences non-temporal ones.
    ///
    /// # Safety
    ///
    /// As for [`Self::copy_dense`] with `lines * LINE` bytes; `dst` is aligned to a line for [`Stores::NonTemporal`].
    pub(super) unsafe fn copy_whole(&self, dst: *mut u8, src: *const u8, lines: usize, stores: Stores) {
        // SAFETY: the caller's contract, and the instruction set was detected.
        unsafe {
            match (self.isa, stores) {
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512 { .. }, Stores::NonTemporal) => super::avx512::dense::<true>(dst, src, lines),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, Stores::NonTemporal) => super::avx2::dense::<true>(dst, src, lines),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx512 { .. }, Stores::Near) => super::avx512::dense::<false>(dst, src, lines),
                #[cfg(target_arch = "x86_64")]
                (Isa::Avx2, Stores::Near) => super::avx2::dense::<false>(dst, src, lines),
                _ => portable::dense(dst, src, lines),
            }
        }
        self.fence(stores == Stores::NonTemporal);
    }

    /// Orders non-temporal stores, which no release store waits for, before everything that follows.
    fn fence(&self, non_temporal: bool) {
        #[cfg(target_arch = "x86_64")]
        if non_temporal {
            // SAFETY: every x86-64 processor has the instruction.
            unsafe { std::arch::x86_64::_mm_sfence() };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = non_temporal;
    }
}

/// Whether non-temporal stores of whole lines may go to `dst`.
fn is_aligned(dst: *const u8) -> bool {
    dst.addr().is_multiple_of(LINE)
}
