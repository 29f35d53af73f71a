//! The chunks of a plan, and whose they are.
use super::super::claim;
use super::super::runtime::{Runtime, Scratch};
use crate::area::parts::Parts;
use std::sync::atomic::Ordering;

/// Up to this many bytes the planner copies alone, before anybody else is woken.
pub(super) const ALONE_BYTES: u64 = 2 << 10;
/// Areas up to this size are copied by their owner, in whose cache the lines lie that it has just written:
/// one core copies 1 MiB out of its own cache faster than two that have to pass half of it across.
pub(super) const OWNER_BYTES: u64 = 1 << 20;
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

    pub(super) fn lay_out_chunks(&self, round: u64, me: u32, entries: usize, bytes: u64, scratch: &Scratch) {
        let segment = &self.shared.segment;
        let plan = &segment.header().sync.acting.plan;
        let workers = u64::from(plan.workers.load(Ordering::Relaxed).max(1));
        let alone = workers == 1 || bytes <= ALONE_BYTES;
        let size = if alone {
            u64::MAX
        } else if bytes <= ONE_EACH_BYTES {
            bytes.div_ceil(workers)
        } else {
            bytes.div_ceil(workers * 4).max(MIN_CHUNK_BYTES)
        };
        let chunks = segment.plan_chunks();
        let mut count = 0;
        for entry in 0..entries {
            let planned = &segment.plan_entries()[entry];
            let area = planned.area.load(Ordering::Relaxed) as usize;
            let parts = Parts::of(segment, area);
            let owner = planned.owner.load(Ordering::Relaxed);
            let by_owner = parts.padded_bytes() as u64 <= OWNER_BYTES;
            let one = alone || by_owner;
            let (pieces, unit) =
                if one { (1, 1) } else { self.divide(&parts, scratch.bytes[entry], size, workers) };
            let units = parts.layout.words.div_ceil(unit);
            let pieces = pieces.min((chunks.len() - count - (entries - entry - 1)) as u64);
            for piece in 0..pieces {
                let (first, end) = if pieces == 1 {
                    (0, parts.layout.words)
                } else {
                    let end = (units * (piece + 1) / pieces * unit).min(parts.layout.words);
                    (units * piece / pieces * unit, end)
                };
                let chunk = &chunks[count];
                chunk.entry.store(entry as u32, Ordering::Relaxed);
                chunk.owner.store(owner, Ordering::Relaxed);
                chunk.first.store(first, Ordering::Relaxed);
                chunk.words.store(end.saturating_sub(first), Ordering::Relaxed);
                let claim = match (alone, by_owner) {
                    (true, _) => claim::claimed(round, me),
                    (false, true) => claim::claimed(round, owner),
                    _ => claim::free(round),
                };
                chunk.claim.store(claim, Ordering::Relaxed);
                count += 1;
            }
        }
        plan.chunks.store(count as u32, Ordering::Relaxed);
    }
}
