//! Copies of many words between memory that several workers read and write at once and memory of one worker.
//!
//! A copy is as many relaxed atomic accesses as there are words, in any order. The compiler makes one instruction of
//! each, since it may not join atomic accesses; the processor may. On x86-64 with AVX, 16 aligned bytes are moved by one
//! access (Intel, *Software Developer's Manual*, volume 3A, "Guaranteed Atomic Operations"; AMD, *Architecture
//! Programmer's Manual*, volume 2, "Access Atomicity"), and so the words in them are whole. Those moves are written in
//! assembly: the language has no atomic accesses of 16 bytes, and calls it a race if accesses of different sizes meet
//! in the same place. What an assembly block does has to be something that the language could do as well, and
//! moving 16 bytes at once is: it is one of the orders in which the words may be moved one by one.
//!
//! Elsewhere, and under Miri, words are moved one by one.
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

/// A word that is accessed atomically.
pub(crate) trait AtomicWord: Copy {
    /// Reads a word.
    ///
    /// # Safety
    /// `from` is aligned and valid for reads; while this runs the word is accessed by atomics of its size only.
    unsafe fn get(from: *const Self) -> Self;

    /// Writes a word.
    ///
    /// # Safety
    /// As of [`AtomicWord::get`], and valid for writes.
    unsafe fn put(to: *mut Self, value: Self);
}

macro_rules! words {
    ($($word:ty: $atomic:ty),*) => {$(
        impl AtomicWord for $word {
            #[inline(always)]
            unsafe fn get(from: *const $word) -> $word {
                // SAFETY: by contract. Relaxed: there is no order between words.
                unsafe { (*from.cast::<$atomic>()).load(Ordering::Relaxed) }
            }

            #[inline(always)]
            unsafe fn put(to: *mut $word, value: $word) {
                // SAFETY: by contract. Relaxed as above.
                unsafe { (*to.cast::<$atomic>()).store(value, Ordering::Relaxed) }
            }
        }
    )*};
}
words!(u8: AtomicU8, u16: AtomicU16, u32: AtomicU32, u64: AtomicU64);

/// Copies `count` words out of memory that others change.
///
/// # Safety
/// `from` is aligned, and valid for reads of `count` words, which while this runs are accessed by atomics of this size, or
/// by this module's functions for it, only. `to` is aligned, valid for writes, and nobody else's.
#[inline]
pub(crate) unsafe fn load<W: AtomicWord>(from: *const W, to: *mut W, count: usize) {
    let (head, vectors) = split(from, count);
    let middle = head + vectors * (VECTOR / size_of::<W>());
    // SAFETY: all places are below `count`; `from + head` is aligned to 16 bytes.
    unsafe {
        (0..head).for_each(|at| *to.add(at) = W::get(from.add(at)));
        load_vectors(from.add(head).cast(), to.add(head).cast(), vectors);
        (middle..count).for_each(|at| *to.add(at) = W::get(from.add(at)));
    }
}

/// Copies `count` words into memory that others read and change.
///
/// # Safety
/// As of [`load`] the other way around: `to` is what others access.
#[inline]
pub(crate) unsafe fn store<W: AtomicWord>(from: *const W, to: *mut W, count: usize) {
    let (head, vectors) = split(to, count);
    let middle = head + vectors * (VECTOR / size_of::<W>());
    // SAFETY: all places are below `count`; `to + head` is aligned to 16 bytes.
    unsafe {
        (0..head).for_each(|at| W::put(to.add(at), *from.add(at)));
        store_vectors(from.add(head).cast(), to.add(head).cast(), vectors);
        (middle..count).for_each(|at| W::put(to.add(at), *from.add(at)));
    }
}

/// Bytes that are moved by one access.
const VECTOR: usize = 16;

/// How many of these words come before the first that is aligned to 16 bytes, and how many times 16 bytes follow; none
/// where the processor does not promise that they are moved at once.
#[inline(always)]
fn split<W>(shared: *const W, count: usize) -> (usize, usize) {
    if !moves_vectors() {
        return (0, 0);
    }
    let head = ((shared as usize).wrapping_neg() % VECTOR / size_of::<W>()).min(count);
    (head, (count - head) * size_of::<W>() / VECTOR)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn moves_vectors() -> bool {
    std::is_x86_feature_detected!("avx")
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn moves_vectors() -> bool {
    false
}

/// `$four` moves 64 bytes, `$one` 16; `$from` and `$to` go on.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! move_vectors {
    ($from:ident, $to:ident, $count:ident, $get:literal, $put:literal) => {{
        let (mut from, mut to): (*const u8, *mut u8) = ($from, $to);
        for _ in 0..$count / 4 {
            // SAFETY: by contract, of 64 bytes. To the language these are relaxed atomic accesses, see above.
            unsafe {
                std::arch::asm!(
                    concat!($get, " {a}, xmmword ptr [{from}]"),
                    concat!($get, " {b}, xmmword ptr [{from} + 16]"),
                    concat!($get, " {c}, xmmword ptr [{from} + 32]"),
                    concat!($get, " {d}, xmmword ptr [{from} + 48]"),
                    concat!($put, " xmmword ptr [{to}], {a}"),
                    concat!($put, " xmmword ptr [{to} + 16], {b}"),
                    concat!($put, " xmmword ptr [{to} + 32], {c}"),
                    concat!($put, " xmmword ptr [{to} + 48], {d}"),
                    from = in(reg) from, to = in(reg) to,
                    a = out(xmm_reg) _, b = out(xmm_reg) _, c = out(xmm_reg) _, d = out(xmm_reg) _,
                    options(nostack, preserves_flags)
                );
                (from, to) = (from.add(4 * VECTOR), to.add(4 * VECTOR));
            }
        }
        for _ in 0..$count % 4 {
            // SAFETY: as above, of 16 bytes.
            unsafe {
                std::arch::asm!(
                    concat!($get, " {a}, xmmword ptr [{from}]"),
                    concat!($put, " xmmword ptr [{to}], {a}"),
                    from = in(reg) from, to = in(reg) to, a = out(xmm_reg) _,
                    options(nostack, preserves_flags)
                );
                (from, to) = (from.add(VECTOR), to.add(VECTOR));
            }
        }
    }};
}

/// # Safety
/// As of [`load`], of `count` times 16 bytes; `from` is aligned to 16 bytes, and the processor has AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn load_vectors(from: *const u8, to: *mut u8, count: usize) {
    move_vectors!(from, to, count, "vmovaps", "vmovups");
}

/// # Safety
/// As of [`store`], of `count` times 16 bytes; `to` is aligned to 16 bytes, and the processor has AVX.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn store_vectors(from: *const u8, to: *mut u8, count: usize) {
    move_vectors!(from, to, count, "vmovups", "vmovaps");
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
unsafe fn load_vectors(_from: *const u8, _to: *mut u8, count: usize) {
    debug_assert_eq!(count, 0);
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
unsafe fn store_vectors(_from: *const u8, _to: *mut u8, count: usize) {
    debug_assert_eq!(count, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_place<W: AtomicWord + PartialEq + std::fmt::Debug>(word: impl Fn(usize) -> W) {
        let values: Vec<W> = (0..100).map(&word).collect();
        let other = word(200);
        for start in 0..20 {
            for count in 0..80 {
                let (mut shared, mut own) = (vec![other; 120], vec![other; 120]);
                // SAFETY: both lie in vectors of this function.
                unsafe { store(values.as_ptr(), shared.as_mut_ptr().add(start), count) };
                assert_eq!(&shared[start..start + count], &values[..count], "{start} {count}");
                let around = shared[..start].iter().chain(&shared[start + count..]);
                assert!(around.into_iter().all(|word| *word == other), "{start} {count}");
                // SAFETY: as above.
                unsafe { load(shared.as_ptr().add(start), own.as_mut_ptr().add(1), count) };
                assert_eq!(&own[1..1 + count], &values[..count], "{start} {count}");
                assert!((own[0], own[1 + count]) == (other, other), "{start} {count}");
            }
        }
    }

    #[test]
    fn words_of_every_size_from_every_alignment() {
        every_place(|at| at as u8);
        every_place(|at| at as u16 * 257);
        every_place(|at| at as u32 * 0x0101_0101);
        every_place(|at| at as u64 * 0x0101_0101_0101_0101);
    }
}
