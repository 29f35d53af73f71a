//! Kernels for x86-64 processors with AVX2 and without AVX-512: two loads and two stores move a line.

use super::{AHEAD, LINE};
use std::arch::x86_64::*;

super::wide::kernels!("avx2", (_mm256_setzero_si256(), _mm256_setzero_si256()));

/// The mask of lines that differ within one block of 64 lines.
///
/// # Safety
///
/// `a` and `b` are readable for `64 * LINE` bytes.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn block_mask(a: *const u8, b: *const u8) -> u64 {
    let mut mask = 0;
    for line in 0..64 {
        // SAFETY: line < 64, so both loads stay inside the block.
        let ((x0, x1), (y0, y1)) = unsafe { (load(a.add(line * LINE)), load(b.add(line * LINE))) };
        let differ = _mm256_or_si256(_mm256_xor_si256(x0, y0), _mm256_xor_si256(x1, y1));
        mask |= u64::from(_mm256_testz_si256(differ, differ) == 0) << line;
    }
    mask
}

/// Loads one line.
///
/// # Safety
///
/// `src` is readable for a line.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(src: *const u8) -> (__m256i, __m256i) {
    // SAFETY: both halves lie inside the line.
    unsafe { (_mm256_loadu_si256(src.cast()), _mm256_loadu_si256(src.add(LINE / 2).cast())) }
}

/// Stores one line, around the caches if `NT`.
///
/// # Safety
///
/// `dst` is writable for a line, and aligned to a line if `NT`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn store<const NT: bool>(dst: *mut u8, value: (__m256i, __m256i)) {
    // SAFETY: both halves lie inside the line, which is aligned for the non-temporal stores, by the contract.
    unsafe {
        let (low, high) = (dst.cast(), dst.add(LINE / 2).cast());
        if NT {
            _mm256_stream_si256(low, value.0);
            _mm256_stream_si256(high, value.1);
        } else {
            _mm256_storeu_si256(low, value.0);
            _mm256_storeu_si256(high, value.1);
        }
    }
}
