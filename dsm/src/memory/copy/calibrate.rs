//! Thresholds: sizes of the caches, corrected by two measurements.
//!
//! The first is the crossing of ordinary and non-temporal stores: a buffer of half the last-level cache (at most
//! 16 MiB) is rewritten and copied, rewriting in between so that the source is as warm as a writer leaves it, a few
//! times with either kind of stores, one kind after the other because non-temporal stores push the destination out of
//! the cache. The best time of each counts. Their ratio moves the threshold between the half and 7/8 of the cache and
//! no farther, so that a preempted measurement, a busy neighbour or an odd machine cannot choose an absurd one.
//!
//! The second is the share of dirty lines above which one worker copies everything faster than a list, of an area that
//! the caches do not hold: a few MiB are flushed from the caches, and copied whole and by a list of half of the lines,
//! its decoding included. Processors differ by a factor of two here (0.33 on an EPYC, 0.7 to 0.8 on a Cascade Lake).
//!
//! The other thresholds are not measured at start-up: where lists go around the cache follows from the sizes of the
//! caches, and the share for several workers, who are bound by the bandwidth of memory rather than by its latency, is
//! that of one machine, or that of one worker if this is higher.

use super::kernels::Stores;
use super::sparse::LineBuffer;
use super::{Isa, Kernels, LINE};
use crate::memory::limits::headroom;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const MIB: usize = 1 << 20;

/// Used where the kernel does not tell the size of the second-level cache.
const DEFAULT_L2_BYTES: usize = MIB;

/// Used where the kernel does not tell the size of the last-level cache.
const DEFAULT_LLC_BYTES: usize = 16 * MIB;

/// Longest buffer that is measured; there are two.
const PROBE_BYTES: usize = 16 * MIB;

/// Copies measured per kind of stores, after one that is not.
const REPEATS: usize = 3;

/// When this much time has passed, no further copy is measured.
const TIME_LIMIT: Duration = Duration::from_millis(20);

/// Bytes that are flushed and copied to compare lists with full copies.
const COLD_BYTES: usize = 2 * MIB;

/// Share of dirty lines above which a full copy of a large area is faster: one worker, several.
const SPARSE_TO_FULL: [f32; 2] = [0.33, 0.65];

/// The measured properties of a machine; processes of a job share them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measured {
    /// Bytes of a round from which on dense copies use non-temporal stores.
    pub(super) nt_bytes: usize,
    /// Share of dirty lines above which one worker's full copy is faster.
    pub(super) sparse_to_full: f32,
}

impl Kernels {
    /// The kernels of this process; the first call calibrates them, which takes up to 40 ms and 32 MiB for its length.
    pub(crate) fn get() -> &'static Self {
        Self::get_for(&AtomicU32::new(0))
    }

    /// The kernels of this process, calibrated as `measured` of its job says, or, if that is 0, measured and noted
    /// there: processes of one job calibrate once, and copy the same way. The word says nothing about other memory, so
    /// its accesses are relaxed; one that makes no sense is taken for the nearest that does.
    pub(crate) fn get_for(measured: &AtomicU32) -> &'static Self {
        static KERNELS: OnceLock<Kernels> = OnceLock::new();
        KERNELS.get_or_init(|| {
            let kernels = match measured.load(Ordering::Relaxed) {
                0 => calibrated(Isa::detect()),
                word => as_measured(Isa::detect(), Measured::of_word(word)),
            };
            measured.store(Measured::of(&kernels).to_word(), Ordering::Relaxed);
            tracing::debug!(?kernels, "copy kernels chosen");
            kernels
        })
    }
}

impl Measured {
    pub(super) fn of(kernels: &Kernels) -> Measured {
        Measured { nt_bytes: kernels.nt_bytes, sparse_to_full: kernels.sparse_to_full[0] }
    }

    /// In a word that is not 0: KiB below, the share in percent in the highest byte.
    pub(super) fn to_word(self) -> u32 {
        let (kib, percent) = (self.nt_bytes / 1024, self.sparse_to_full * 100.0);
        (kib as u32 & 0xff_ffff) | (percent.round() as u32 & 0xff) << 24
    }

    pub(super) fn of_word(word: u32) -> Measured {
        Measured { nt_bytes: (word & 0xff_ffff) as usize * 1024, sparse_to_full: (word >> 24) as f32 / 100.0 }
    }
}

/// The kernels of an instruction set with thresholds for this machine.
pub(super) fn calibrated(isa: Isa) -> Kernels {
    let kernels = by_cache_sizes(isa, cache_bytes(2), cache_bytes(3));
    if !isa.has_non_temporal() {
        return kernels;
    }
    let llc = cache_bytes(3).unwrap_or(DEFAULT_LLC_BYTES);
    let probe = (llc / 2).clamp(2 * MIB, PROBE_BYTES);
    let nt_bytes =
        non_temporal_speed(&kernels, probe).map_or(kernels.nt_bytes, |speed| crossing(llc, probe, speed));
    let sparse_to_full = full_copy_share(&kernels).unwrap_or(kernels.sparse_to_full[0]);
    as_measured(isa, Measured { nt_bytes, sparse_to_full })
}

/// The kernels with what was measured, here or by another process of the job.
pub(super) fn as_measured(isa: Isa, measured: Measured) -> Kernels {
    let llc = cache_bytes(3);
    let one = clamp_share(measured.sparse_to_full);
    Kernels {
        nt_bytes: clamp_to_cache(llc.unwrap_or(DEFAULT_LLC_BYTES), measured.nt_bytes),
        sparse_to_full: [one, SPARSE_TO_FULL[1].max(one)],
        ..by_cache_sizes(isa, cache_bytes(2), llc)
    }
}

/// A share that some machine may have.
pub(super) fn clamp_share(share: f32) -> f32 {
    if share.is_nan() { SPARSE_TO_FULL[0] } else { share.clamp(0.25, 0.9) }
}

/// Thresholds from the sizes of the second-level and the last-level cache alone.
pub(super) fn by_cache_sizes(isa: Isa, l2: Option<usize>, llc: Option<usize>) -> Kernels {
    let l2 = l2.unwrap_or(DEFAULT_L2_BYTES).clamp(MIB / 4, 4 * MIB);
    let llc = llc.unwrap_or(DEFAULT_LLC_BYTES);
    Kernels {
        isa,
        near_bytes: l2,
        nt_bytes: clamp_to_cache(llc, llc / 4 * 3),
        list_nt_bytes: l2 / 2,
        list_nt_span_bytes: clamp_to_cache(llc, 0) / 4 * 3,
        sparse_to_full: SPARSE_TO_FULL,
    }
}

/// Where the kinds of stores cross: beyond the probe by half, less if non-temporal stores were fast at the probe.
pub(super) fn crossing(llc: usize, probe: usize, non_temporal_speed: f64) -> usize {
    let crossing = probe as f64 * 1.5 / non_temporal_speed.clamp(0.25, 4.0);
    clamp_to_cache(llc, crossing as usize)
}

/// Half to 7/8 of the last-level cache, and between 2 and 64 MiB whatever the kernel says about it.
fn clamp_to_cache(llc: usize, bytes: usize) -> usize {
    let llc = llc.max(2 * MIB);
    bytes.clamp(llc / 2, llc / 8 * 7).clamp(2 * MIB, 64 * MIB)
}

/// Speed of non-temporal stores relative to ordinary ones for a copy of `bytes`; `None` if there is no memory or no
/// time to find out.
fn non_temporal_speed(kernels: &Kernels, bytes: usize) -> Option<f64> {
    let start = Instant::now();
    let probe = Probe::new(2 * bytes)?;
    let mut best = [f64::INFINITY; 2];
    for (best, stores) in best.iter_mut().zip([Stores::Cached, Stores::NonTemporal]) {
        for repeat in 0..=REPEATS {
            // SAFETY: the probe has `2 * bytes` writable bytes, of which the first half is rewritten and then copied
            // to the second, which is aligned to a line.
            unsafe {
                rewrite(probe.start, bytes, repeat as u64);
                let copying = Instant::now();
                kernels.copy_whole(probe.start.add(bytes), probe.start, bytes / LINE, stores);
                if repeat > 0 {
                    *best = best.min(copying.elapsed().as_secs_f64());
                }
            }
            if start.elapsed() > TIME_LIMIT {
                break;
            }
        }
    }
    best.iter().all(|seconds| seconds.is_finite() && *seconds > 0.0).then(|| best[0] / best[1])
}

/// The share of lines whose copying by a list takes as long as a full copy, in memory that no cache holds; `None` if
/// there is no memory or no time to find out, or no way to flush lines.
#[cfg(target_arch = "x86_64")]
fn full_copy_share(kernels: &Kernels) -> Option<f32> {
    let start = Instant::now();
    let probe = Probe::new(2 * COLD_BYTES).filter(|_| can_flush())?;
    let mut lines = LineBuffer::with_isa(kernels.isa);
    let mut best = [f64::INFINITY; 2];
    for repeat in 0..=REPEATS {
        for (best, listed) in best.iter_mut().zip([false, true]) {
            // SAFETY: the probe has `2 * COLD_BYTES` bytes, the second half of which starts at a line; lists name lines
            // of a half; the processor can flush.
            unsafe {
                // The target is not in the caches: it was written around them.
                flush(probe.start, COLD_BYTES);
                let (source, target) = (probe.start, probe.start.add(COLD_BYTES));
                let copying = Instant::now();
                if listed {
                    copy_half(kernels, &mut lines, target, source);
                } else {
                    kernels.copy_whole(target, source, COLD_BYTES / LINE, Stores::NonTemporal);
                }
                if repeat > 0 {
                    *best = best.min(copying.elapsed().as_secs_f64());
                }
            }
        }
        if start.elapsed() > TIME_LIMIT {
            break;
        }
    }
    let [full, half] = best;
    (full.is_finite() && half > 0.0).then(|| (0.5 * full / half) as f32)
}

/// Whether the processor flushes lines without waiting for each (CLFLUSHOPT: leaf 7, EBX, bit 23).
#[cfg(target_arch = "x86_64")]
fn can_flush() -> bool {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    __cpuid(0).eax >= 7 && __cpuid_count(7, 0).ebx >> 23 & 1 != 0
}

/// Writes memory back and takes it out of the caches.
///
/// # Safety
///
/// `start` is readable for `bytes`, and [`can_flush`] says so.
#[cfg(target_arch = "x86_64")]
unsafe fn flush(start: *const u8, bytes: usize) {
    for line in 0..bytes / LINE {
        let address = start.wrapping_add(line * LINE);
        // SAFETY: flushing changes no value; the instruction exists by the contract, and the line is readable.
        unsafe { std::arch::asm!("clflushopt [{}]", in(reg) address, options(nostack, preserves_flags)) };
    }
    // SAFETY: every x86-64 processor has the fence, which waits for the flushes.
    unsafe { std::arch::x86_64::_mm_mfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn full_copy_share(_: &Kernels) -> Option<f32> {
    None
}

/// Copies about half of the lines, in no pattern that a prefetcher learns, as a round does: from bits to lists to lines.
///
/// # Safety
///
/// `source` is readable and `target` writable for [`COLD_BYTES`] from a line on; they do not overlap.
#[cfg(target_arch = "x86_64")]
unsafe fn copy_half(kernels: &Kernels, lines: &mut LineBuffer, target: *mut u8, source: *const u8) {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let bits: [u64; COLD_BYTES / LINE / 64] = std::array::from_fn(|_| {
        // xorshift64 (Marsaglia, 2003).
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    });
    let mut done = 0;
    while done < bits.len() {
        done += lines.decode(&bits[done..], (done * 64) as u32);
        // SAFETY: the caller's contract; there is a bit for each line of the two.
        unsafe { kernels.copy_lines(target, source, lines.as_slice(), usize::MAX, usize::MAX) };
        lines.clear();
    }
}

/// Writes something new to every word.
///
/// # Safety
///
/// `start` is aligned to a word and writable for `bytes`.
unsafe fn rewrite(start: *mut u8, bytes: usize, salt: u64) {
    // SAFETY: the caller's contract.
    let words = unsafe { std::slice::from_raw_parts_mut(start.cast::<u64>(), bytes / size_of::<u64>()) };
    for (index, word) in words.iter_mut().enumerate() {
        *word = salt.wrapping_mul(0x9e37_79b9).wrapping_add(index as u64);
    }
    std::hint::black_box(words);
}

/// Private memory to measure in, in huge pages where the host gives them.
struct Probe {
    start: *mut u8,
    bytes: usize,
}

impl Probe {
    /// Maps and populates memory, or answers `None`, also where taking it could end the process.
    fn new(bytes: usize) -> Option<Self> {
        if headroom().ok()?.free < bytes as u64 {
            return None;
        }
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh private mapping at an address of the kernel's choice.
        let start = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, access, MapFlags::PRIVATE) }.ok()?;
        let probe = Self { start: start.cast(), bytes };
        // SAFETY: advice on a mapping that this value owns; the first call may fail without harm.
        let populated = unsafe {
            let _ = madvise(start, bytes, Advice::LinuxHugepage);
            madvise(start, bytes, Advice::LinuxPopulateWrite).is_ok()
        };
        populated.then_some(probe)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        // SAFETY: the mapping belongs to this value and nothing refers to it any more.
        let _ = unsafe { munmap(self.start.cast(), self.bytes) };
    }
}

/// Size of the unified or data cache of a level, as the kernel tells it for the first processor.
fn cache_bytes(level: u32) -> Option<usize> {
    (0..8).find_map(|index| {
        let read = |file: &str| {
            std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{file}")).ok()
        };
        let matches = read("level")?.trim().parse() == Ok(level) && read("type")?.trim() != "Instruction";
        if matches { parse_size(read("size")?.trim()) } else { None }
    })
}

/// A size as sysfs prints it: digits and a unit.
pub(super) fn parse_size(text: &str) -> Option<usize> {
    let (digits, unit) = match text.strip_suffix(['K', 'M', 'G']) {
        Some(digits) => (digits, &text[digits.len()..]),
        None => (text, ""),
    };
    let shift = match unit {
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => 0,
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}
