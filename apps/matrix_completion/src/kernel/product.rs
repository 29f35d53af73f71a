//! The product of two rows with the vector instructions of x86-64.
//!
//! The portable form in `mod.rs` is the definition; these compute the same bits as it does with fused
//! multiply-add. They are written out because the compiler takes the sum of the lanes at the end apart into
//! scalars and drags the whole loop along, which costs a fifth of the speed.

use std::arch::x86_64::*;

macro_rules! product {
    ($avx512:ident, $avx2:ident, $type:ident, $lanes:literal,
     $zero512:ident, $load512:ident, $fma512:ident, $sum512:ident,
     $zero256:ident, $load256:ident, $fma256:ident, $add256:ident, $sum256:ident) => {
        /// With 512-bit vectors. Elements after the last whole line are left out.
        ///
        /// # Safety
        /// The machine must have these instructions.
        #[inline]
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,fma")]
        pub fn $avx512(p: &[$type], q: &[$type]) -> $type {
            let mut lanes = $zero512();
            for (p, q) in p.as_chunks::<$lanes>().0.iter().zip(q.as_chunks::<$lanes>().0) {
                // SAFETY: both are arrays of 64 bytes, and the load takes any alignment.
                let (p, q) = unsafe { ($load512(p.as_ptr()), $load512(q.as_ptr())) };
                lanes = $fma512(p, q, lanes);
            }
            $sum512(lanes)
        }

        /// With 256-bit vectors, two for a line. Elements after the last whole line are left out.
        ///
        /// # Safety
        /// The machine must have these instructions.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub fn $avx2(p: &[$type], q: &[$type]) -> $type {
            let (mut low, mut high) = ($zero256(), $zero256());
            for (p, q) in p.as_chunks::<$lanes>().0.iter().zip(q.as_chunks::<$lanes>().0) {
                let ([p_low, p_high], [q_low, q_high]) = (halves(p), halves(q));
                // SAFETY: all four are arrays of 32 bytes, and the load takes any alignment.
                unsafe {
                    low = $fma256($load256(p_low), $load256(q_low), low);
                    high = $fma256($load256(p_high), $load256(q_high), high);
                }
            }
            $sum256($add256(low, high))
        }
    };
}

product!(
    f32_avx512,
    f32_avx2,
    f32,
    16,
    _mm512_setzero_ps,
    _mm512_loadu_ps,
    _mm512_fmadd_ps,
    sum_16,
    _mm256_setzero_ps,
    _mm256_loadu_ps,
    _mm256_fmadd_ps,
    _mm256_add_ps,
    sum_8
);
product!(
    f64_avx512,
    f64_avx2,
    f64,
    8,
    _mm512_setzero_pd,
    _mm512_loadu_pd,
    _mm512_fmadd_pd,
    sum_8_wide,
    _mm256_setzero_pd,
    _mm256_loadu_pd,
    _mm256_fmadd_pd,
    _mm256_add_pd,
    sum_4_wide
);

/// Where the two halves of a line begin.
#[inline(always)]
fn halves<E>(line: &[E]) -> [*const E; 2] {
    let (low, high) = line.split_at(line.len() / 2);
    [low.as_ptr(), high.as_ptr()]
}

// Sums of lanes: halves are added until one lane is left.

#[inline]
#[target_feature(enable = "avx512f,avx512dq")]
fn sum_16(lanes: __m512) -> f32 {
    sum_8(_mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps::<1>(lanes)))
}

#[inline]
#[target_feature(enable = "avx")]
fn sum_8(lanes: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps::<1>(lanes));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

#[inline]
#[target_feature(enable = "avx512f")]
fn sum_8_wide(lanes: __m512d) -> f64 {
    sum_4_wide(_mm256_add_pd(_mm512_castpd512_pd256(lanes), _mm512_extractf64x4_pd::<1>(lanes)))
}

#[inline]
#[target_feature(enable = "avx")]
fn sum_4_wide(lanes: __m256d) -> f64 {
    let two = _mm_add_pd(_mm256_castpd256_pd128(lanes), _mm256_extractf128_pd::<1>(lanes));
    _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
}
