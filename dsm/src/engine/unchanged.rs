//! Lines that were written with the values they had: they are left out when an area goes to another host.
use crate::engine::area_core::AreaCore;
use crate::memory::copy::diff_lines;
use crate::segment::layout::LINE;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// The number of words of the log that are looked at first, spread over the area, to see whether some lines are unchanged.
const SAMPLED: usize = 16;
/// All marked lines are looked at if at least one in this many of the first ones is unchanged.
const WORTH_IT: u32 = 8;

/// Takes back the marks of lines that are equal in the newest reader copy, if enough of a sample are. (Rows are mostly logged as a
/// whole, where programs change a single element.)
///
/// To be called by the owner, outside of rounds.
pub(crate) fn forget_unchanged(core: &AreaCore) {
    let log = core.log();
    if core.layout.copies == 0 || !log.dirty.is_set() {
        return;
    }
    let marked = || {
        let upper = log.level1.iter().map(|word| word.load(Ordering::Relaxed)).enumerate();
        upper.filter(|(_, bits)| *bits != 0).flat_map(|(index, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 != 0).map(move |bit| index * 64 + bit)
        })
    };
    let step = marked().count() / SAMPLED + 1;
    let (lines, equal) = marked().step_by(step).fold((0, 0), |(lines, equal), word| {
        let bits = log.level0[word].load(Ordering::Relaxed);
        (lines + bits.count_ones(), equal + (bits & !changed(core, word, bits)).count_ones())
    });
    if equal * WORTH_IT < lines.max(1) {
        return;
    }
    for word in marked() {
        log.keep(word, |bits| changed(core, word, bits));
    }
}

/// Those of the marked lines of a word of the log that differ from the newest reader copy.
fn changed(core: &AreaCore, word: usize, marked: u64) -> u64 {
    let (mut left, mut changed) = (marked, 0);
    while left != 0 {
        let first = left.trailing_zeros() as usize;
        let count = (left >> first).trailing_ones() as usize;
        left &= !bits(first..first + count);
        let start = word * 64;
        changed_lines(core, start + first..start + first + count, |lines| {
            changed |= bits(lines.start - start..lines.end - start);
        });
    }
    changed
}

/// The bits of a range, which is not empty, of a word.
fn bits(range: Range<usize>) -> u64 {
    (u64::MAX >> (64 - range.len())) << range.start
}

/// Calls `visit` with runs of those lines in which the writer copy differs from the newest reader copy; lines that the area does not have
/// are passed over.
///
/// To be called by the owner, outside of rounds.
pub(crate) fn changed_lines(core: &AreaCore, lines: Range<usize>, mut visit: impl FnMut(Range<usize>)) {
    let parts = core.parts();
    let end = lines.end.min(core.layout.lines as usize);
    if lines.start >= end {
        return;
    }
    let (writer, reader) = (parts.writer(), parts.reader(parts.current()));
    let start = lines.start * LINE as usize;
    let len = (end - lines.start) * LINE as usize;
    // SAFETY: both copies have all lines of the area. The caller owns it and stands outside of rounds, so nobody writes the writer copy;
    // and no round that could write the reader copy plans this area without its owner's arrival.
    unsafe {
        diff_lines(writer.add(start), reader.add(start), len, |block, mut mask| {
            while mask != 0 {
                let low = mask.trailing_zeros() as usize;
                let run = (mask >> low).trailing_ones() as usize;
                let line = lines.start + block * 64 + low;
                visit(line..line + run);
                mask &= !bits(low..low + run);
            }
        });
    }
}
