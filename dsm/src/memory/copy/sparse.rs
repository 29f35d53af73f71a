//! From a bitmap of dirty lines to a list of them.

use super::{Isa, PIECE_WORDS, SURPLUS};

/// Lines a buffer holds. Large, because each flush costs a fence and a ramp of prefetches.
const CAPACITY: usize = 16 << 10;

/// Below this much room the buffer counts as full: decoding word by word up to the last entry is not worth it.
const RESERVE: usize = 8 * 64;

/// The dirty lines of an area, decoded from its bitmap, in ascending order.
///
/// Made once per worker and reused: it owns 64 KiB.
#[derive(Debug)]
pub(crate) struct LineBuffer {
    entries: Box<[u32]>,
    filled: usize,
    isa: Isa,
}

impl LineBuffer {
    /// An empty buffer.
    pub(crate) fn new() -> Self {
        Self::with_isa(Isa::detect())
    }

    pub(super) fn with_isa(isa: Isa) -> Self {
        Self { entries: vec![0; CAPACITY + SURPLUS].into_boxed_slice(), filled: 0, isa }
    }

    /// Forgets all lines.
    pub(crate) fn clear(&mut self) {
        self.filled = 0;
    }

    /// The lines decoded since the last `clear`.
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.entries[..self.filled]
    }

    /// Whether `decode` would consume nothing before the next `clear`.
    pub(crate) fn is_full(&self) -> bool {
        CAPACITY - self.filled < RESERVE
    }

    /// Appends `first_line` + bit index for each set bit of `words`, in order, and returns how many words it consumed.
    ///
    /// All of them, unless the buffer became full before; then flush it, `clear`, and go on with the rest.
    pub(crate) fn decode(&mut self, words: &[u64], first_line: u32) -> usize {
        let mut done = 0;
        while done < words.len() && !self.is_full() {
            done += self.decode_piece(&words[done..], first_line + (done * 64) as u32);
        }
        done
    }

    /// Decodes as many words as surely fit, at most a piece; the buffer must not be full.
    pub(super) fn decode_piece(&mut self, words: &[u64], first_line: u32) -> usize {
        let fit = words.len().min(PIECE_WORDS).min((CAPACITY - self.filled) / 64);
        let words = &words[..fit];
        debug_assert!(self.filled + fit * 64 <= CAPACITY);
        // SAFETY: `fit` words need at most `fit * 64` entries from `filled` on, which end before the surplus; the
        // instruction set was detected.
        self.filled += unsafe {
            let out = self.entries.as_mut_ptr().add(self.filled);
            match self.isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 { vbmi2: true } => super::avx512_decode::piece(words, first_line, out),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 { vbmi2: false } | Isa::Avx2 => scalar_bmi(words, first_line, out),
                Isa::Portable => scalar(words, first_line, out),
            }
        };
        fit
    }
}

/// [`scalar`] compiled to `tzcnt`, `blsr` and `popcnt`.
///
/// # Safety
///
/// As for [`scalar`].
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "bmi1,popcnt")]
unsafe fn scalar_bmi(words: &[u64], first_line: u32, out: *mut u32) -> usize {
    // SAFETY: the caller's contract is the same.
    unsafe { scalar(words, first_line, out) }
}

/// Writes `first_line` + bit index for every set bit; returns how many.
///
/// Writes four entries at a time, even if fewer bits are left, so that sparse words take no unpredictable branch.
///
/// # Safety
///
/// `out` is writable for 64 entries per word and [`SURPLUS`] more.
#[inline(always)]
unsafe fn scalar(words: &[u64], first_line: u32, out: *mut u32) -> usize {
    let mut filled = 0;
    for (index, &word) in words.iter().enumerate() {
        let base = first_line.wrapping_add(index as u32 * 64);
        let count = word.count_ones() as usize;
        let mut rest = word;
        let mut written = 0;
        while written < count {
            for lane in 0..4 {
                // SAFETY: written + lane <= count + 3 < 64 + SURPLUS entries behind at most 64 per earlier word.
                unsafe { out.add(filled + written + lane).write(base.wrapping_add(rest.trailing_zeros())) };
                rest &= rest.wrapping_sub(1);
            }
            written += 4;
        }
        filled += count;
    }
    filled
}
