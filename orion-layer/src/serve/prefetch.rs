//! Fetching the keys of a stretch.
use super::cache::{NONE, RELOCATED};
use super::state::{Home, State};
use crate::error::Result;
use crate::relax::{Additive, Apply};
use hectare_dsm::Worker;

impl<T: Additive, A: Apply<T>> State<T, A> {
    /// Fetches the keys of a stretch that have changed since they were fetched last, in ascending order, and maps them.
    pub(super) fn prefetch(&mut self, worker: &Worker, home: &Home<'_, T, A>, stretch: usize) -> Result<()> {
        self.unmap();
        self.looked.clear();
        let Some((homes, _)) = &self.shared else { return Ok(()) };
        let (versions, blocks, unit) = (homes.versions(worker)?, self.blocks, self.blocks.unit);
        let cache = &mut self.cache;
        self.mapped = Some(stretch);
        let (mut fetched, mut hits) = (0u64, 0u64);
        let own = cache.lists.get(stretch).map_or(&[][..], |list| list);
        for slot in cache.standing.iter().chain(own).copied() {
            let at = slot as usize;
            let key = cache.keys[at];
            let mark = if cache.relocated[at] { RELOCATED } else { 0 };
            self.table[key as usize] = slot | mark;
            // Before the elements: those of a later version may come with an earlier one, and are then fetched again.
            let version = versions.observe(blocks.block(key));
            // What is relocated, changed and not written back is newer here.
            if version == cache.versions[at] || cache.relocated[at] && cache.is_touched[at] {
                hits += 1;
                continue;
            }
            cache.versions[at] = version;
            let first = key as usize * unit;
            home.target.part(first, unit).load(&mut cache.values[at * unit..][..unit]);
            if Self::REMEMBERS {
                home.see(first, &mut cache.seen[at * unit..][..unit]);
            }
            fetched += 1;
        }
        let remembered = if Self::REMEMBERS { size_of::<A::Seen>() } else { 0 };
        self.tally.fetched += fetched;
        self.tally.hits += hits;
        self.tally.bytes += fetched * (unit * (size_of::<T>() + remembered)) as u64;
        Ok(())
    }

    /// Takes the keys of the last stretch out of the table.
    pub(super) fn unmap(&mut self) {
        let cache = &self.cache;
        if let Some(stretch) = self.mapped.take() {
            for slot in cache.slots_of(stretch).chain(self.late.drain(..)) {
                self.table[cache.keys[slot as usize] as usize] = NONE;
            }
        }
    }
}
