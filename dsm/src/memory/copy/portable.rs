//! Kernels for every processor: the standard library's copy, and compares by words.

use super::LINE;

/// Longest piece handed to the standard library at once.
///
/// Its copy has a threshold of its own for non-temporal stores, which knows the length of the call and not how much is
/// copied in all; pieces stay below it.
const PIECE_LINES: usize = (256 << 10) / LINE;

/// Copies `lines` whole lines with ordinary stores.
///
/// Where both buffers fit in the last-level cache the C library's copy is as fast as any loop of wide loads and stores,
/// or up to 3 % faster.
///
/// # Safety
///
/// `src` is readable and `dst` writable for `lines * LINE` bytes, they do not overlap, and nobody else touches them.
pub(super) unsafe fn dense(dst: *mut u8, src: *const u8, lines: usize) {
    for first in (0..lines).step_by(PIECE_LINES) {
        let (offset, len) = (first * LINE, PIECE_LINES.min(lines - first) * LINE);
        // SAFETY: a piece of what the caller vouches for.
        unsafe { std::ptr::copy_nonoverlapping(src.add(offset), dst.add(offset), len) }
    }
}

/// Copies the listed lines.
///
/// # Safety
///
/// As for [`dense`], with every entry of `lines` standing for one line inside both buffers.
pub(super) unsafe fn lines(dst: *mut u8, src: *const u8, lines: &[u32]) {
    for &line in lines {
        let offset = line as usize * LINE;
        // SAFETY: the caller vouches for every listed line; a constant length compiles to plain loads and stores.
        unsafe { std::ptr::copy_nonoverlapping(src.add(offset), dst.add(offset), LINE) }
    }
}

/// The mask of lines that differ within one block of 64 lines.
///
/// # Safety
///
/// `a` and `b` are readable for `64 * LINE` bytes.
pub(super) unsafe fn block_mask(a: *const u8, b: *const u8) -> u64 {
    let mut mask = 0;
    for line in 0..64 {
        let mut differ = 0;
        for word in (0..LINE).step_by(8) {
            let offset = line * LINE + word;
            // SAFETY: the eight bytes at offset lie inside the block; the reads need no alignment.
            differ |= unsafe {
                a.add(offset).cast::<u64>().read_unaligned() ^ b.add(offset).cast::<u64>().read_unaligned()
            };
        }
        mask |= u64::from(differ != 0) << line;
    }
    mask
}
