//! Copy kernels of the internal sync: writer copy to reader copy, inside one shared mapping.
//!
//! Three questions decide how fast a copy is, and [`Kernels`] answers them once per process:
//!
//! - **Which instructions?** AVX-512 moves a line with one load and one store, AVX2 with two; anything else, and dense
//!   copies through the last-level cache, use the C library's copy. See [`Isa`].
//! - **Through the caches or around them?** While source and destination fit in the last-level cache, ordinary stores
//!   are nearly twice as fast, scale with the workers and leave the destination warm for its readers. Beyond that they
//!   also read every line that they are about to overwrite; non-temporal stores do not.
//! - **Lines or everything?** Above some share of dirty lines, skipping the others costs more than it saves.
//!
//! # Contract
//!
//! The two copies do not overlap and each starts at a line (in practice at a page). While a kernel runs, nobody reads
//! the destination and nobody writes the source: the round sees to that. Memory is padded to whole lines, so that a
//! line may be copied whole even where an area ends inside it.

mod calibrate;
mod diff;
mod isa;
mod kernels;
mod portable;
mod sparse;
#[cfg(test)]
mod tests;
pub(crate) mod words;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx512_decode;
#[cfg(target_arch = "x86_64")]
mod wide;

pub(crate) use diff::diff_lines;
pub(crate) use isa::Isa;
pub(crate) use kernels::Kernels;
pub(crate) use sparse::LineBuffer;

/// Words of a bitmap that are decoded at a time: the largest number whose non-zero words one 64-bit mask can name.
const PIECE_WORDS: usize = 64;

/// Entries behind the capacity of a list of lines that wide stores may spill into.
const SURPLUS: usize = 64;

/// Bytes of a line, the unit of the write log and of everything that is copied selectively.
pub(crate) const LINE: usize = super::LINE as usize;

/// Lines that the copying of a list prefetches ahead.
#[cfg(target_arch = "x86_64")]
const AHEAD: usize = 24;
