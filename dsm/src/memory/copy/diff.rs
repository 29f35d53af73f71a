//! Where two copies differ, line by line.

use super::{Isa, LINE, portable};

/// Lines of a block, the unit in which differences are reported.
const BLOCK_LINES: usize = 64;

/// Compares two equally long buffers and calls `visit(block, mask)` for every block of 64 lines that differs, in
/// ascending order: bit `i` of `mask` stands for line `block * 64 + i`.
///
/// Of a last line that `len` cuts short, only the bytes before `len` count.
///
/// # Safety
///
/// `a` and `b` are readable for `len` bytes, and nobody writes them meanwhile.
pub(crate) unsafe fn diff_lines(a: *const u8, b: *const u8, len: usize, visit: impl FnMut(usize, u64)) {
    // SAFETY: the caller's contract, and the instruction set was detected.
    unsafe { diff_lines_with(Isa::detect(), a, b, len, visit) }
}

/// [`diff_lines`] with a given instruction set.
///
/// # Safety
///
/// As for [`diff_lines`]; the processor has the instruction set.
pub(super) unsafe fn diff_lines_with(
    isa: Isa,
    a: *const u8,
    b: *const u8,
    len: usize,
    mut visit: impl FnMut(usize, u64),
) {
    let blocks = len / (BLOCK_LINES * LINE);
    for block in 0..blocks {
        let offset = block * BLOCK_LINES * LINE;
        // SAFETY: the whole block lies before `len`.
        let mask = unsafe {
            let (a, b) = (a.add(offset), b.add(offset));
            match isa {
                #[cfg(target_arch = "x86_64")]
                Isa::Avx512 { .. } => super::avx512::block_mask(a, b),
                #[cfg(target_arch = "x86_64")]
                Isa::Avx2 => super::avx2::block_mask(a, b),
                Isa::Portable => portable::block_mask(a, b),
            }
        };
        if mask != 0 {
            visit(block, mask);
        }
    }

    let offset = blocks * BLOCK_LINES * LINE;
    // SAFETY: what is left of both buffers, shorter than a block.
    let (a, b) = unsafe {
        (
            std::slice::from_raw_parts(a.add(offset), len - offset),
            std::slice::from_raw_parts(b.add(offset), len - offset),
        )
    };
    let lines = a.chunks(LINE).zip(b.chunks(LINE));
    let mask = lines.enumerate().fold(0, |mask, (line, (x, y))| mask | u64::from(x != y) << line);
    if mask != 0 {
        visit(blocks, mask);
    }
}
