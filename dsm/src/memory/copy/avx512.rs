//! Kernels for processors with AVX-512: one load and one store move a whole line.
//!
//! Every function here needs the features its `target_feature` attribute names; `Isa::detect` is the only place that
//! decides whether they are there.

use super::{AHEAD, LINE};
use std::arch::x86_64::*;

super::wide::kernels!("avx512f", _mm512_setzero_si512());

/// The mask of lines that differ within one block of 64 lines.
///
/// # Safety
///
/// `a` and `b` are readable for `64 * LINE` bytes.
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn block_mask(a: *const u8, b: *const u8) -> u64 {
    let mut mask = 0;
    for line in 0..64 {
        // SAFETY: line < 64, so both loads stay inside the block.
        let (x, y) = unsafe { (load(a.add(line * LINE)), load(b.add(line * LINE))) };
        mask |= u64::from(_mm512_cmpneq_epi64_mask(x, y) != 0) << line;
    }
    mask
}

/// Loads one line.
///
/// # Safety
///
/// `src` is readable for a line.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn load(src: *const u8) -> __m512i {
    // SAFETY: readable, by the contract; the load needs no alignment.
    unsafe { _mm512_loadu_si512(src.cast()) }
}

/// Stores one line, around the caches if `NT`.
///
/// # Safety
///
/// `dst` is writable for a line, and aligned to a line if `NT`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn store<const NT: bool>(dst: *mut u8, value: __m512i) {
    if NT {
        // SAFETY: writable and aligned, by the contract.
        unsafe { _mm512_stream_si512(dst.cast(), value) }
    } else {
        // SAFETY: writable, by the contract; an ordinary store needs no alignment.
        unsafe { _mm512_storeu_si512(dst.cast(), value) }
    }
}
