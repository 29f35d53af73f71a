//! Cutting what a round copies into chunks, and whose they are.
use super::super::runtime::{Runtime, Scratch};
use crate::protocol::plan_checks::OTHER_HOST;
use crate::protocol::{claim, division};
use crate::segment::parts::Parts;
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Up to this many bytes the planner copies alone, before anybody else is woken.
pub(crate) const ALONE_BYTES: u64 = 2 << 10;
/// Of areas up to this size the lines lie in the cache of their owner, which has just written them: it copies them
/// alone, or with others as `division` finds.
pub(crate) const OWNER_BYTES: u64 = 1 << 20;
/// Up to this many bytes a round has one chunk per worker.
const ONE_EACH_BYTES: u64 = 1 << 20;
/// A chunk of a larger round, at least.
const MIN_CHUNK_BYTES: u64 = 256 << 10;

impl Runtime<'_> {
    /// Into how many pieces an area is cut of which `bytes` are dirty, and in which unit of log words: whole
    /// words of the upper level where there are enough.
    fn divide(&self, parts: &Parts<'_>, bytes: u64, size: u64, workers: u64) -> (u64, u64) {
        let pieces = bytes.div_ceil(size).clamp(1, 16 * workers);
        let unit = if parts.layout.words >= 64 * pieces { 64 } else { 1 };
        (pieces.min(parts.layout.words.div_ceil(unit)).max(1), unit)
    }

    pub(crate) fn lay_out_chunks(&self, round: u64, me: u32, entries: usize, bytes: u64, scratch: &Scratch) {
        let segment = &self.shared.segment;
        let plan = &segment.header().sync.acting.plan;
        let workers = u64::from(plan.workers.load(Ordering::Relaxed).max(1));
        let alone = workers == 1 || bytes <= ALONE_BYTES;
        let size = if bytes <= ONE_EACH_BYTES {
            bytes.div_ceil(workers)
        } else {
            bytes.div_ceil(workers * 4).max(MIN_CHUNK_BYTES)
        };
        let chunks = segment.plan_chunks();
        let mut count = 0;
        for entry in 0..entries {
            let planned = &segment.plan_entries()[entry];
            let parts = Parts::of(segment, planned.area.load(Ordering::Relaxed) as usize);
            let owner = planned.owner.load(Ordering::Relaxed);
            let words = parts.layout.words;
            let room = (chunks.len() - count - (entries - entry - 1)) as u64;
            let mut add = |range: Range<u64>, claim: u64| {
                let chunk = &chunks[count];
                chunk.entry.store(entry as u32, Ordering::Relaxed);
                chunk.owner.store(owner, Ordering::Relaxed);
                chunk.first.store(range.start, Ordering::Relaxed);
                chunk.words.store(range.end - range.start, Ordering::Relaxed);
                chunk.claim.store(claim, Ordering::Relaxed);
                count += 1;
            };
            if alone {
                add(0..words, claim::claimed(round, me));
            } else if parts.padded_bytes() as u64 <= OWNER_BYTES {
                // The owner's share first, then one for each of the others; whoever has time takes it.
                let share = if room < workers { 0 } else { self.share(&parts, round, workers) };
                let owned = words - share * (workers - 1);
                let claim =
                    if owner == OTHER_HOST { claim::free(round) } else { claim::claimed(round, owner) };
                add(0..owned, claim);
                if share > 0 {
                    (0..workers - 1).for_each(|other| {
                        let first = owned + share * other;
                        add(first..first + share, claim::free(round));
                    });
                }
            } else {
                let (pieces, unit) = self.divide(&parts, scratch.bytes[entry], size, workers);
                let (pieces, units) = (pieces.min(room), words.div_ceil(unit));
                let bound = |piece: u64| (units * piece / pieces * unit).min(words);
                (0..pieces).for_each(|piece| add(bound(piece)..bound(piece + 1), claim::free(round)));
            }
        }
        plan.chunks.store(count as u32, Ordering::Relaxed);
    }

    /// How many log words of a small area each other worker is offered.
    fn share(&self, parts: &Parts<'_>, round: u64, workers: u64) -> u64 {
        // Who has no core is waited for longer than copying takes.
        if (parts.padded_bytes() as u64) < division::LEAST_BYTES || self.shared.is_crowded() {
            return 0;
        }
        self.shared.segment.header().speeds.share(round, parts.layout.words, workers)
    }
}
