//! Fetching the keys of an interval.
use super::cache::{NEVER, RELOCATED, TOUCHED, fetched_for};
use super::homes::Versions;
use super::state::{Home, State};
use crate::error::Result;
use crate::relax::{Additive, Apply};
use hectare_dsm::Worker;

/// Slots whose versions are compared in one go, before the values of those that have changed are copied: so the
/// processor has many loads under way at once.
const BATCH: usize = 64;

impl<T: Additive, A: Apply<T>> State<T, A> {
    /// Fetches the keys of an interval that have changed since they were fetched last.
    pub(super) fn prefetch(&mut self, worker: &Worker, home: &Home<'_, T, A>, interval: usize) -> Result<()> {
        self.lookaside.clear();
        self.interval = interval as u32;
        let Some((homes, _)) = &self.shared else { return Ok(()) };
        // Before the versions: what changes meanwhile is found to have changed the next time.
        let (changes, versions) = (homes.changes(worker)?, homes.versions(worker)?);
        let cache = &mut self.cache;
        let own = cache.lists.get_mut(interval).map(std::mem::take).unwrap_or_default();
        let standing = cache.standing;
        let keys = standing as usize + own.len();
        if cache.fetched_at.get(interval).is_some_and(|at| *at == changes) {
            let states = &mut cache.states;
            let slots = (0..standing).chain(own.iter().copied());
            slots
                .for_each(|slot| states[slot as usize] = fetched_for(interval as u32, states[slot as usize]));
            self.tally.hits += keys as u64;
        } else {
            let mut batch = [0; BATCH];
            let mut fetched = 0;
            for first in (0..standing).step_by(BATCH) {
                let count = (standing - first).min(BATCH as u32);
                (0..count).for_each(|at| batch[at as usize] = first + at);
                fetched += self.fetch(&versions, home, &batch[..count as usize]);
            }
            for slots in own.chunks(BATCH) {
                fetched += self.fetch(&versions, home, slots);
            }
            let remembered = if Self::REMEMBERS { size_of::<A::Snapshot>() } else { 0 };
            self.tally.fetched += fetched as u64;
            self.tally.hits += (keys - fetched) as u64;
            self.tally.bytes += (fetched * self.blocks.unit * (size_of::<T>() + remembered)) as u64;
        }
        let cache = &mut self.cache;
        if let (Some(list), Some(at)) = (cache.lists.get_mut(interval), cache.fetched_at.get_mut(interval)) {
            (*list, *at) = (own, changes);
        }
        Ok(())
    }

    /// Fetches those of some slots that have changed, [`BATCH`] at most; all are then fetched for the present interval.
    /// How many have changed.
    #[inline]
    fn fetch(&mut self, versions: &Versions<'_>, home: &Home<'_, T, A>, slots: &[u32]) -> usize {
        let (cache, blocks, interval) = (&mut self.cache, self.blocks, self.interval);
        let (mut changed, mut count) = ([0u32; BATCH], 0);
        for slot in slots {
            let at = *slot as usize;
            let state = cache.states[at];
            cache.states[at] = fetched_for(interval, state);
            let key = cache.keys[at];
            let (known, version) = (cache.versions[at], versions.of(blocks.block(key)));
            cache.versions[at] = version;
            changed[count] = *slot;
            // Nobody else changes what is relocated to this worker.
            let has_changed = if state & RELOCATED == 0 { known != version } else { known == NEVER };
            count += usize::from(has_changed);
        }
        for slot in &changed[..count] {
            self.copy(home, *slot as usize);
        }
        count
    }

    /// Copies the value of a slot.
    #[inline]
    fn copy(&mut self, home: &Home<'_, T, A>, at: usize) {
        let (cache, unit) = (&mut self.cache, self.blocks.unit);
        let first = cache.keys[at] as usize * unit;
        match unit {
            1 => cache.values[at] = home.target.get(first),
            _ => home.target.part(first, unit).load(&mut cache.values[at * unit..][..unit]),
        }
        // Unpublished contributions go with the state that was seen when the first of them was computed.
        if Self::REMEMBERS && cache.states[at] & TOUCHED == 0 {
            home.snapshot(first, &mut cache.seen[at * unit..][..unit]);
        }
    }
}
