//! Whole runs of bitmap words at a time: count, merge and clear, vectorized for this processor.
//!
//! The words are atomics because their writers change in time, but only one thread touches them at a time:
//! these functions are for moments when the protocol says who that is.
use super::isa::Isa;
use std::sync::atomic::AtomicU64;

macro_rules! for_each_isa {
    ($(#[$doc:meta])* $name:ident => $body:ident($($arg:ident: $type:ty),*) -> $result:ty) => {
        $(#[$doc])*
        pub(crate) unsafe fn $name($($arg: $type),*) -> $result {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vpopcntdq,popcnt")]
                unsafe fn with_avx512($($arg: $type),*) -> $result {
                    // SAFETY: the caller's contract.
                    unsafe { $body($($arg),*) }
                }
                #[target_feature(enable = "avx2,popcnt")]
                unsafe fn with_avx2($($arg: $type),*) -> $result {
                    // SAFETY: the caller's contract.
                    unsafe { $body($($arg),*) }
                }
                match Isa::detect() {
                    // SAFETY: the processor has the instructions.
                    Isa::Avx512 { vbmi2: true } => return unsafe { with_avx512($($arg),*) },
                    // SAFETY: the processor has the instructions.
                    Isa::Avx512 { vbmi2: false } | Isa::Avx2 => return unsafe { with_avx2($($arg),*) },
                    Isa::Portable => {}
                }
            }
            // SAFETY: the caller's contract.
            unsafe { $body($($arg),*) }
        }
    };
}

for_each_isa! {
    /// How many bits are set.
    ///
    /// # Safety
    /// Nobody writes the words meanwhile.
    count => count_body(words: &[AtomicU64]) -> usize
}

for_each_isa! {
    /// Copies `log` to `out`, ORs it into `into` (unless that is empty), and counts its bits.
    ///
    /// # Safety
    /// Nobody else writes `log` or touches `into` meanwhile. `out` is as long as `log`, and so is `into`
    /// unless it is empty.
    gather => gather_body(log: &[AtomicU64], into: &[AtomicU64], out: &mut [u64]) -> usize
}

#[inline(always)]
unsafe fn count_body(words: &[AtomicU64]) -> usize {
    // SAFETY: an atomic has the layout of its integer, and nobody writes these now.
    let words = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u64>(), words.len()) };
    words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>() as usize
}

#[inline(always)]
unsafe fn gather_body(log: &[AtomicU64], into: &[AtomicU64], out: &mut [u64]) -> usize {
    assert!(out.len() == log.len() && (into.is_empty() || into.len() == log.len()));
    // SAFETY: as in `count_body`; `into` is this thread's alone, and an atomic may be written through its
    // shared reference.
    let (log, into) = unsafe {
        (
            std::slice::from_raw_parts(log.as_ptr().cast::<u64>(), log.len()),
            std::slice::from_raw_parts_mut(into.as_ptr().cast::<u64>().cast_mut(), into.len()),
        )
    };
    let mut bits = 0u64;
    for (out, log) in out.iter_mut().zip(log) {
        *out = *log;
        bits += u64::from(log.count_ones());
    }
    for (into, log) in into.iter_mut().zip(log) {
        *into |= *log;
    }
    bits as usize
}

/// Clears words.
///
/// # Safety
/// Nobody else touches the words meanwhile.
pub(crate) unsafe fn clear(words: &[AtomicU64]) {
    // SAFETY: zero bytes are zero words; they may be written through the shared reference of an atomic.
    unsafe { std::ptr::write_bytes(words.as_ptr().cast::<u64>().cast_mut(), 0, words.len()) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering;

    #[test]
    fn merges_and_counts_every_length() {
        let word = |index: u64| (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        for len in 0..70usize {
            let log: Vec<AtomicU64> = (0..len as u64).map(|index| AtomicU64::new(word(index))).collect();
            let into: Vec<AtomicU64> =
                (0..len as u64).map(|index| AtomicU64::new(word(index + 99))).collect();
            let mut out = vec![0; len];
            let expected: u32 = (0..len as u64).map(|index| word(index).count_ones()).sum();
            // SAFETY: this thread alone has the words.
            unsafe {
                assert_eq!(gather(&log, &into, &mut out), expected as usize);
                assert_eq!(gather(&log, &[], &mut out), expected as usize);
                assert_eq!(count(&log), expected as usize);
            }
            for index in 0..len {
                assert_eq!(out[index], word(index as u64));
                assert_eq!(into[index].load(Ordering::Relaxed), word(index as u64) | word(index as u64 + 99));
            }
            // SAFETY: as above.
            unsafe { clear(&log) };
            assert!(log.iter().all(|word| word.load(Ordering::Relaxed) == 0));
        }
    }
}
