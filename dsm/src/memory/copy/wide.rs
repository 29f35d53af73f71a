//! The loops of the kernels with wide registers, once for all their widths.

/// Defines `dense` and `lines` for a processor feature, in a module that has `load` and `store` of a line, in registers that
/// begin as `$zero`.
macro_rules! kernels {
    ($feature:literal, $zero:expr) => {
        /// Lines moved per iteration of the dense loop; more is not faster.
        const UNROLL: usize = 4;

        /// How far ahead of the load the dense loop prefetches its source, in bytes.
        const DENSE_AHEAD: usize = 2048;

        /// Copies `lines` whole lines with non-temporal stores, or ordinary ones unless `NT`. Executes no fence.
        ///
        /// # Safety
        ///
        /// `src` is readable and `dst` writable for `lines * LINE` bytes, they do not overlap, and nobody else touches them.
        /// With `NT`, `dst` is aligned to a line.
        #[target_feature(enable = $feature)]
        pub(super) unsafe fn dense<const NT: bool>(dst: *mut u8, src: *const u8, lines: usize) {
            let whole = lines / UNROLL * UNROLL;
            let mut line = 0;
            while line < whole {
                let mut regs = [$zero; UNROLL];
                for (k, reg) in regs.iter_mut().enumerate() {
                    let offset = (line + k) * LINE;
                    if NT {
                        // A prefetch does not fault, so its address may lie past the end.
                        _mm_prefetch::<_MM_HINT_T0>(src.wrapping_add(offset + DENSE_AHEAD).cast());
                    }
                    // SAFETY: line + k < lines, so the load stays inside the source.
                    *reg = unsafe { load(src.add(offset)) };
                }
                for (k, reg) in regs.iter().enumerate() {
                    // SAFETY: line + k < lines, so the store stays inside the destination, which is aligned if `NT`.
                    unsafe { store::<NT>(dst.add((line + k) * LINE), *reg) };
                }
                line += UNROLL;
            }
            while line < lines {
                // SAFETY: line < lines.
                unsafe { move_line::<NT>(dst, src, line) };
                line += 1;
            }
        }

        /// Copies all listed lines. Executes no fence.
        ///
        /// The sources are prefetched [`AHEAD`] lines before they are read. With ordinary stores so are the destinations, for
        /// writing; a non-temporal store replaces its line whole and is better off without it in the cache.
        ///
        /// # Safety
        ///
        /// As for [`dense`], with every entry of `lines` standing for one line inside both buffers; `dst` need be aligned
        /// only if `NT`.
        #[target_feature(enable = $feature)]
        pub(super) unsafe fn lines<const NT: bool>(dst: *mut u8, src: *const u8, lines: &[u32]) {
            let steady = lines.len().saturating_sub(AHEAD);
            for (now, ahead) in lines[..steady].iter().zip(&lines[lines.len() - steady..]) {
                let offset = *ahead as usize * LINE;
                _mm_prefetch::<_MM_HINT_T0>(src.wrapping_add(offset).cast());
                if !NT {
                    _mm_prefetch::<_MM_HINT_ET0>(dst.wrapping_add(offset).cast());
                }
                // SAFETY: the caller vouches for every listed line.
                unsafe { move_line::<NT>(dst, src, *now as usize) };
            }
            for now in &lines[steady..] {
                // SAFETY: the caller vouches for every listed line.
                unsafe { move_line::<NT>(dst, src, *now as usize) };
            }
        }

        /// Moves one line.
        ///
        /// # Safety
        ///
        /// As for [`lines`], with `line` inside both buffers.
        #[inline]
        #[target_feature(enable = $feature)]
        unsafe fn move_line<const NT: bool>(dst: *mut u8, src: *const u8, line: usize) {
            // SAFETY: the line lies inside both buffers, and `dst` is aligned if `NT`.
            unsafe { store::<NT>(dst.add(line * LINE), load(src.add(line * LINE))) }
        }
    };
}
pub(super) use kernels;
