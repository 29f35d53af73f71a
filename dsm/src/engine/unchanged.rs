//! Lines that were written and are as they were: what goes to another host goes without them.
use crate::engine::area_core::AreaCore;
use crate::memory::copy::diff_lines;
use crate::segment::layout::LINE;
use std::sync::atomic::Ordering;

/// So many words of the log, spread over the area, are looked at first, to see whether some lines are unchanged.
const SAMPLED: usize = 16;
/// It pays to look at all marked lines if one of so many is unchanged.
const WORTH_IT: u32 = 8;

/// Takes back the marks of lines that are equal in the newest reader copy, if of some of them enough are. Rows are logged as a whole
/// mostly, and programs change an element.
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
    let parts = core.parts();
    let (writer, reader) = (parts.writer(), parts.reader(parts.current()));
    let (mut left, mut changed) = (marked, 0);
    while left != 0 {
        let first = left.trailing_zeros();
        let count = (left >> first).trailing_ones();
        let run = (u64::MAX >> (64 - count)) << first;
        left &= !run;
        let start = (word * 64 + first as usize) * LINE as usize;
        // SAFETY: both copies have all lines that are marked. The caller owns the area and stands outside of rounds, so nobody writes
        // the writer copy; and no round that could write the reader copy plans this area without its owner's arrival.
        unsafe {
            let (writer, reader) = (writer.add(start), reader.add(start));
            // At most 64 lines: one block.
            diff_lines(writer, reader, count as usize * LINE as usize, |_, mask| changed |= mask << first);
        }
    }
    changed
}
