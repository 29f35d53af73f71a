//! Decoding a bitmap with AVX-512 VBMI2: the positions of the set bits of a word are its mask applied to 0, 1, .. 63.
//!
//! Compressing into a register and storing the whole register is much faster than compressing stores, which are
//! microcoded on some processors; the surplus lanes are overwritten by the next store.

use super::{PIECE_WORDS, SURPLUS};
use std::arch::x86_64::*;

/// 0, 1, .. 63.
static POSITIONS: [u8; 64] = {
    let mut positions = [0; 64];
    let mut k = 0;
    while k < 64 {
        positions[k] = k as u8;
        k += 1;
    }
    positions
};

/// Writes `first_line` + bit index for every set bit of at most [`PIECE_WORDS`] words; returns how many.
///
/// Words with few bits store eight lanes, others sixteen: which comes first is decided for a piece as a whole, so that
/// the branch on the number of bits is predictable at every density.
///
/// # Safety
///
/// `words` has at most `PIECE_WORDS` words, and `out` is writable for 64 entries per word and [`SURPLUS`] more.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,avx512vpopcntdq,popcnt,bmi1,bmi2")]
pub(super) unsafe fn piece(words: &[u64], first_line: u32, out: *mut u32) -> usize {
    debug_assert!(words.len() <= PIECE_WORDS && SURPLUS >= 64);
    // SAFETY: the words are readable; a full piece is loaded as such, any other through masks.
    let (mut nonzero, bits) = unsafe {
        if words.len() == PIECE_WORDS {
            survey::<true>(words.as_ptr(), PIECE_WORDS)
        } else {
            survey::<false>(words.as_ptr(), words.len())
        }
    };
    if nonzero == 0 {
        return 0;
    }
    // SAFETY: the table is as long as the register.
    let positions = unsafe { _mm512_loadu_si512(POSITIONS.as_ptr().cast()) };
    let few = bits < nonzero.count_ones() * 4;

    let mut filled = 0;
    while nonzero != 0 {
        let index = nonzero.trailing_zeros();
        nonzero &= nonzero - 1;
        // SAFETY: a bit of `nonzero` stands for a word that was loaded from the slice.
        let word = unsafe { *words.get_unchecked(index as usize) };
        let base = first_line.wrapping_add(index * 64) as i32;
        let found = _mm512_maskz_compress_epi8(word, positions);
        let count = word.count_ones() as usize;
        // SAFETY: each word before this one filled at most 64 entries, so 64 more fit before the surplus ends.
        unsafe {
            let to = out.add(filled);
            if few && count <= 8 {
                let lanes = _mm256_cvtepu8_epi32(_mm512_castsi512_si128(found));
                _mm256_storeu_si256(to.cast(), _mm256_add_epi32(lanes, _mm256_set1_epi32(base)));
            } else {
                let base = _mm512_set1_epi32(base);
                let widen = |bytes| _mm512_add_epi32(_mm512_cvtepu8_epi32(bytes), base);
                _mm512_storeu_si512(to.cast(), widen(_mm512_castsi512_si128(found)));
                if count > 16 {
                    _mm512_storeu_si512(to.add(16).cast(), widen(_mm512_extracti32x4_epi32::<1>(found)));
                }
                if count > 32 {
                    _mm512_storeu_si512(to.add(32).cast(), widen(_mm512_extracti32x4_epi32::<2>(found)));
                    _mm512_storeu_si512(to.add(48).cast(), widen(_mm512_extracti32x4_epi32::<3>(found)));
                }
            }
        }
        filled += count;
    }
    filled
}

/// Which of at most 64 words are not zero, and how many bits they have set together.
///
/// # Safety
///
/// `words` is readable for `count` words, which are 64 if `FULL` and at most 64 otherwise.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi2,avx512vpopcntdq,popcnt,bmi1,bmi2")]
unsafe fn survey<const FULL: bool>(words: *const u64, count: usize) -> (u64, u32) {
    let mut nonzero = 0;
    let mut bits = _mm512_setzero_si512();
    for first in (0..64).step_by(8) {
        let lanes =
            if FULL { 0xff } else { _bzhi_u32(0xff, count.saturating_sub(first).min(8) as u32) as u8 };
        // SAFETY: the mask keeps the load inside the words, and a masked lane does not fault.
        let group = unsafe { _mm512_maskz_loadu_epi64(lanes, words.wrapping_add(first).cast()) };
        nonzero |= u64::from(_mm512_test_epi64_mask(group, group)) << first;
        bits = _mm512_add_epi64(bits, _mm512_popcnt_epi64(group));
    }
    (nonzero, _mm512_reduce_add_epi64(bits) as u32)
}
