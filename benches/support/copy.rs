//! The plain copies that a sync is measured against: the best of libc's and non-temporal stores, and a
//! ready list of lines.
use std::sync::atomic::{Ordering, fence};

/// A kernel for a dense copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dense {
    Libc,
    NonTemporal,
}

/// # Safety
/// `to` and `from` are 64-byte aligned, have `len` bytes (a multiple of 256) and do not overlap.
pub(crate) unsafe fn dense(kernel: Dense, to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: by the contract above.
    unsafe {
        match kernel {
            Dense::Libc => std::ptr::copy_nonoverlapping(from, to, len),
            #[cfg(target_arch = "x86_64")]
            Dense::NonTemporal if std::is_x86_feature_detected!("avx512f") => x86::dense(to, from, len),
            Dense::NonTemporal => std::ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

/// # Safety
/// Every listed line lies in both buffers, which are 64-byte aligned and do not overlap.
pub(crate) unsafe fn listed(kernel: Dense, to: *mut u8, from: *const u8, lines: &[u32]) {
    // SAFETY: by the contract above.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if kernel == Dense::NonTemporal && std::is_x86_feature_detected!("avx512f") {
            return x86::listed(to, from, lines);
        }
        for line in lines {
            let at = *line as usize * 64;
            std::ptr::copy_nonoverlapping(from.add(at), to.add(at), 64);
        }
        fence(Ordering::Release);
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    #[target_feature(enable = "avx512f")]
    pub(crate) unsafe fn dense(to: *mut u8, from: *const u8, len: usize) {
        // SAFETY: the caller's contract: aligned, `len` bytes, a multiple of 256.
        unsafe {
            let mut at = 0;
            while at < len {
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at + 2048).cast());
                _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(at + 2048 + 128).cast());
                let a = _mm512_load_si512(from.add(at).cast());
                let b = _mm512_load_si512(from.add(at + 64).cast());
                let c = _mm512_load_si512(from.add(at + 128).cast());
                let d = _mm512_load_si512(from.add(at + 192).cast());
                _mm512_stream_si512(to.add(at).cast(), a);
                _mm512_stream_si512(to.add(at + 64).cast(), b);
                _mm512_stream_si512(to.add(at + 128).cast(), c);
                _mm512_stream_si512(to.add(at + 192).cast(), d);
                at += 256;
            }
            _mm_sfence();
        }
    }

    #[target_feature(enable = "avx512f")]
    pub(crate) unsafe fn listed(to: *mut u8, from: *const u8, lines: &[u32]) {
        // SAFETY: the caller's contract: every line lies in both buffers; a prefetch touches nothing.
        unsafe {
            for (index, line) in lines.iter().enumerate() {
                if let Some(ahead) = lines.get(index + 24) {
                    _mm_prefetch::<_MM_HINT_T0>(from.wrapping_add(*ahead as usize * 64).cast());
                }
                let at = *line as usize * 64;
                _mm512_stream_si512(to.add(at).cast(), _mm512_load_si512(from.add(at).cast()));
            }
            _mm_sfence();
        }
    }
}
