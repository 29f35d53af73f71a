//! Every kernel of every instruction set that this processor can run, against models that cannot be wrong.

use super::calibrate::{
    Measured, as_measured, by_cache_sizes, calibrated, clamp_share, crossing, parse_size,
};
use super::diff::diff_lines_with;
use super::{Isa, Kernels, LINE, LineBuffer, diff_lines};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MIB: usize = 1 << 20;

/// Bytes that start at a line.
struct Aligned {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Aligned {
    fn new(len: usize, fill: impl Fn(usize) -> u8) -> Self {
        let mut bytes = vec![0; len + LINE];
        let start = bytes.as_ptr().align_offset(LINE);
        bytes[start..start + len].iter_mut().enumerate().for_each(|(i, byte)| *byte = fill(i));
        Self { bytes, start, len }
    }

    /// Source-like content: no two neighbouring lines are equal and no byte is `0xee`.
    fn source(len: usize) -> Self {
        Self::new(len, |i| ((i * 7 + i / LINE * 13) % 0xee) as u8)
    }

    /// Destination-like content that no source has.
    fn untouched(len: usize) -> Self {
        Self::new(len, |_| 0xee)
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    fn as_mut_ptr(&mut self) -> *mut u8 {
        self.as_mut_slice().as_mut_ptr()
    }
}

/// Kernels of one instruction set, with totals on either side of every threshold.
fn every_kernel() -> impl Iterator<Item = (Kernels, usize)> {
    Isa::runnable()
        .into_iter()
        .flat_map(|isa| [0, 2 * MIB, usize::MAX].map(|total| (by_cache_sizes(isa, None, None), total)))
}

/// Random words whose bits are set with the given probability.
fn random_words(count: usize, density: f64, seed: u64) -> Vec<u64> {
    let mut state = seed | 1;
    let mut bit = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) as f64) < density * f64::from(1_u32 << 31)
    };
    (0..count).map(|_| (0..64).fold(0, |word, i| word | u64::from(bit()) << i)).collect()
}

fn naive_lines(words: &[u64], first_line: u32) -> Vec<u32> {
    let lines = (0..words.len() * 64).filter(|&line| words[line / 64] >> (line % 64) & 1 == 1);
    lines.map(|line| first_line + line as u32).collect()
}

/// Decodes through a buffer, flushing whenever it is full.
fn buffered_lines(isa: Isa, words: &[u64], first_line: u32) -> Vec<u32> {
    let (mut buffer, mut all, mut done) = (LineBuffer::with_isa(isa), Vec::new(), 0);
    while done < words.len() {
        let consumed = buffer.decode(&words[done..], first_line + (done * 64) as u32);
        assert!(consumed > 0, "an empty buffer takes at least one word");
        done += consumed;
        assert!(done == words.len() || buffer.is_full());
        all.extend_from_slice(buffer.as_slice());
        buffer.clear();
    }
    all
}

#[test]
fn dense_copies_exactly_the_bytes_asked_for() {
    let lengths = (0..=6 * LINE).chain((40 * LINE - 3)..=(40 * LINE + 3));
    let source = Aligned::source(48 * LINE);
    for len in lengths {
        for (kernels, total) in every_kernel() {
            for shift in [0, 1, LINE] {
                let mut copy = Aligned::untouched(48 * LINE);
                // SAFETY: shift + len is below the length of both buffers, which are distinct.
                unsafe {
                    kernels.copy_dense(copy.as_mut_ptr().add(shift), source.as_slice().as_ptr(), len, total)
                };
                let copy = copy.as_slice();
                let context = format!("{kernels:?}, total {total}, {len} bytes, shifted by {shift}");
                assert_eq!(copy[shift..shift + len], source.as_slice()[..len], "{context}");
                assert!(
                    copy[..shift].iter().chain(&copy[shift + len..]).all(|&byte| byte == 0xee),
                    "{context}"
                );
            }
        }
    }
}

#[test]
fn lists_copy_their_lines_and_no_others() {
    let lines = 640;
    let source = Aligned::source(lines * LINE);
    for (kernels, total) in every_kernel() {
        for (seed, density) in [0.0, 0.002, 0.03, 0.1, 0.5, 0.95, 1.0].into_iter().enumerate() {
            let list = naive_lines(&random_words(lines / 64, density, seed as u64), 0);
            let mut expected = Aligned::untouched(lines * LINE);
            for &line in &list {
                let bytes = line as usize * LINE..(line as usize + 1) * LINE;
                expected.as_mut_slice()[bytes.clone()].copy_from_slice(&source.as_slice()[bytes]);
            }
            let mut copy = Aligned::untouched(lines * LINE);
            // SAFETY: every listed line lies inside both buffers, which are distinct.
            unsafe {
                kernels.copy_lines(copy.as_mut_ptr(), source.as_slice().as_ptr(), &list, total, usize::MAX)
            };
            assert!(copy.as_slice() == expected.as_slice(), "{kernels:?}, total {total}, density {density}");
        }
    }
}

#[test]
fn lists_of_every_short_length_are_copied_to_unaligned_copies_too() {
    let source = Aligned::source(80 * LINE);
    for (kernels, total) in every_kernel() {
        for len in 0..40 {
            for shift in [0, 8] {
                let list: Vec<u32> = (0..len).map(|i| i * 2).collect();
                let mut copy = Aligned::untouched(81 * LINE);
                // SAFETY: the last line listed is line 78, and both buffers are longer.
                unsafe {
                    let dst = copy.as_mut_ptr().add(shift);
                    kernels.copy_lines(dst, source.as_slice().as_ptr(), &list, total, total);
                }
                for line in 0..80 {
                    let (copy, source) =
                        (&copy.as_slice()[shift..][line * LINE..], &source.as_slice()[line * LINE..]);
                    let listed = line % 2 == 0 && line < 2 * len as usize;
                    assert_eq!(
                        copy[..LINE] == source[..LINE],
                        listed,
                        "{kernels:?}, {len} lines, line {line}"
                    );
                }
            }
        }
    }
}

#[test]
fn decoding_equals_the_model_at_every_density() {
    for isa in Isa::runnable() {
        for (seed, density) in [0.0, 0.001, 0.01, 0.05, 0.1, 0.3, 0.7, 0.99, 1.0].into_iter().enumerate() {
            for count in [0, 1, 7, 8, 63, 64, 65, 300] {
                let words = random_words(count, density, seed as u64 + 99);
                let first_line = 64 * 12_345;
                assert_eq!(
                    buffered_lines(isa, &words, first_line),
                    naive_lines(&words, first_line),
                    "{isa:?}, density {density}, {count} words"
                );
            }
        }
        let all_ones = vec![u64::MAX; 700];
        assert_eq!(buffered_lines(isa, &all_ones, 0), naive_lines(&all_ones, 0), "{isa:?}, all ones");
    }
}

#[test]
fn a_full_buffer_takes_nothing_until_it_is_cleared() {
    for isa in Isa::runnable() {
        let mut buffer = LineBuffer::with_isa(isa);
        let words = vec![u64::MAX; 400];
        let consumed = buffer.decode(&words, 0);
        assert!(consumed < words.len() && buffer.is_full());
        assert_eq!(buffer.as_slice().len(), consumed * 64);
        assert_eq!(buffer.decode(&words, 0), 0);
        buffer.clear();
        assert!(!buffer.is_full() && buffer.as_slice().is_empty());
    }
}

#[test]
fn differences_are_found_in_every_line_and_at_every_length() {
    for isa in Isa::runnable() {
        for len in [0, 1, 63, 64, 65, 4095, 4096, 4097, 9000] {
            let a = Aligned::source(len);
            for at in (0..len).step_by(61).chain(len.checked_sub(1)) {
                let mut b = Aligned::source(len);
                b.as_mut_slice()[at] ^= 0x80;
                let mut found = Vec::new();
                let (a, b) = (a.as_slice().as_ptr(), b.as_slice().as_ptr());
                // SAFETY: both buffers are `len` long.
                unsafe { diff_lines_with(isa, a, b, len, |block, mask| found.push((block, mask))) };
                assert_eq!(found, [(at / 4096, 1 << (at / LINE % 64))], "{isa:?}, {len} bytes, byte {at}");
            }
        }
    }
}

#[test]
fn bytes_behind_the_length_do_not_differ() {
    let (a, mut b) = (Aligned::source(4096), Aligned::source(4096));
    b.as_mut_slice()[100] ^= 1;
    // SAFETY: both buffers are longer than 100 bytes.
    unsafe {
        diff_lines(a.as_slice().as_ptr(), b.as_slice().as_ptr(), 100, |block, _| panic!("block {block}"))
    };
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_differences_equal_the_model(changes in prop::collection::vec(0..20_000_usize, 0..200), len in 0..20_000_usize) {
        let a = Aligned::source(len);
        for isa in Isa::runnable() {
            let mut b = Aligned::source(len);
            let mut expected = BTreeMap::<usize, u64>::new();
            for &at in changes.iter().filter(|&&at| at < len) {
                b.as_mut_slice()[at] = 0xee;
                *expected.entry(at / 4096).or_default() |= 1 << (at / LINE % 64);
            }
            let mut found = Vec::new();
            // SAFETY: both buffers are `len` long.
            unsafe {
                diff_lines_with(isa, a.as_slice().as_ptr(), b.as_slice().as_ptr(), len, |block, mask| found.push((block, mask)));
            }
            prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        }
    }

    #[test]
    fn random_words_decode_as_the_model_does(words in prop::collection::vec(any::<u64>(), 0..600), first_line in 0..1_u32 << 30) {
        for isa in Isa::runnable() {
            prop_assert_eq!(buffered_lines(isa, &words, first_line), naive_lines(&words, first_line));
        }
    }

    #[test]
    fn thresholds_stay_sane_whatever_was_measured(llc in 0..1_usize << 40, l2 in 0..1_usize << 30, speed in 0.0..1e9_f64) {
        let kernels = by_cache_sizes(Isa::Portable, Some(l2), Some(llc));
        prop_assert!((2 * MIB..=64 * MIB).contains(&kernels.nt_bytes));
        prop_assert!((2 * MIB..=64 * MIB).contains(&crossing(llc, 16 * MIB, speed)));
        prop_assert!((MIB / 8..=2 * MIB).contains(&kernels.list_nt_bytes));
        prop_assert!((2 * MIB..=64 * MIB).contains(&crossing(llc >> 20, 2 * MIB, speed)));
        prop_assert!((MIB..=48 * MIB).contains(&kernels.list_nt_span_bytes));
        prop_assert!((0.25..=0.9).contains(&clamp_share(speed as f32)) && clamp_share(f32::NAN) >= 0.25);
    }
}

#[test]
fn faster_non_temporal_stores_lower_the_threshold() {
    let (llc, probe) = (32 * MIB, 16 * MIB);
    assert_eq!(crossing(llc, probe, 1.0), 24 * MIB);
    assert!(crossing(llc, probe, 1.2) < 24 * MIB && crossing(llc, probe, 0.9) > 24 * MIB);
    assert_eq!((crossing(llc, probe, 100.0), crossing(llc, probe, 0.0)), (16 * MIB, 28 * MIB));
}

#[test]
fn the_kernels_of_this_process_are_chosen_once() {
    let kernels = Kernels::get();
    assert!(std::ptr::eq(kernels, Kernels::get()));
    let [one, more] = [kernels.full_copy_fraction(1), kernels.full_copy_fraction(2)];
    assert!(0.0 < one && one <= more && more < 1.0);
    assert_eq!(kernels.full_copy_fraction(16), more);
}

#[test]
fn sizes_are_read_as_sysfs_prints_them() {
    assert_eq!(parse_size("32768K"), Some(32 * MIB));
    assert_eq!(parse_size("2M"), Some(2 * MIB));
    assert_eq!(parse_size("512"), Some(512));
    assert_eq!(parse_size("large"), None);
    assert_eq!(parse_size(""), None);
}

#[test]
fn what_another_process_measured_is_taken_within_reason() {
    let isa = Isa::detect();
    let measured = calibrated(isa);
    let word = Measured::of(&measured).to_word();
    assert_ne!(word, 0);
    let taken = as_measured(isa, Measured::of_word(word));
    assert_eq!((taken.nt_bytes, taken.near_bytes), (measured.nt_bytes, measured.near_bytes));
    let [one, more] = [0, 1].map(|at| (taken.sparse_to_full[at] - measured.sparse_to_full[at]).abs());
    assert!(one <= 0.005 && more <= 0.005, "{taken:?} {measured:?}");
    for absurd in [1, 0x00ff_ffff, 0xff00_0000, u32::MAX] {
        let taken = as_measured(isa, Measured::of_word(absurd));
        assert!((2 << 20..=64 << 20).contains(&taken.nt_bytes), "{taken:?}");
        assert!(taken.sparse_to_full.iter().all(|share| (0.25..=0.9).contains(share)), "{taken:?}");
    }
}
