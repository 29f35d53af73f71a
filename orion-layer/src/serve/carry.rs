//! Contributions: published at a clock, merged at the homes of their keys.
use super::blocks::Blocks;
use super::cache::{Cache, RELOCATED, TOUCHED};
use super::carrier::{Carrier, Sending};
use super::homes::Versions;
use super::lookaside::PendingUpdates;
use super::ring::Batch;
use super::state::{Home, State};
use crate::error::Result;
use crate::relax::ring::Sent;
use crate::relax::{Additive, Apply};
use hectare_dsm::{Element, SlotRing, Worker};

/// In a ring: no slice had foreseen the contribution, and the home of the key may hold a value that is newer than the
/// array's.
const MISSED: u32 = 1 << 31;

impl<T: Additive, A: Apply<T>> State<T, A> {
    /// How many keys wait to be published.
    fn waiting(&self) -> usize {
        self.cache.touched.len() + self.pending.len()
    }

    /// Whether a slot of the ring would not take all contributions: more keys than the lists have were used.
    pub(super) fn is_crowded(&self) -> bool {
        self.shared.as_ref().is_some_and(|(_, carrier)| carrier.is_crowded(self.waiting()))
    }

    /// Makes slots so large that they do, when all have applied what is in them; for the passes to come as well.
    pub(super) fn make_room(&mut self, worker: &mut Worker) -> Result<()> {
        let (waiting, keys) = (self.waiting(), self.blocks.keys);
        match &mut self.shared {
            Some((_, carrier)) => carrier.grow(worker, waiting.next_power_of_two().min(keys)),
            None => Ok(()),
        }
    }

    /// The slots for contributions of this worker's, if there are any.
    pub(super) fn slots(&self) -> Option<SlotRing> {
        self.shared.as_ref().map(|(_, carrier)| carrier.slots())
    }

    /// Publishes contributions, those to keys that were not foreseen last. Bytes that go to others.
    pub(super) fn publish(&mut self, worker: &Worker, clock: u64) -> Result<u64> {
        let Some((homes, carrier)) = &mut self.shared else { return Ok(0) };
        let (cache, unit) = (&mut self.cache, self.blocks.unit);
        let mut others = Vec::with_capacity(self.pending.len());
        if !self.pending.is_empty() {
            let users = homes.look(worker)?;
            let home = |key: &u32| (*key, users.home(self.blocks.block(*key)).0);
            others.extend(self.pending.keys().map(home));
        }
        match carrier {
            Carrier::Shared(ring) => {
                let to = cache.touched.iter().map(|slot| cache.homes[*slot as usize] as usize);
                let mut out = ring.publish(worker, clock, to.chain(others.iter().map(|(_, home)| *home)))?;
                let put = |home, key, sums: &_, seen: &_| out.put(home, key, sums, seen);
                empty(cache, &mut self.pending, &others, unit, put);
                Ok(out.bytes)
            }
            Carrier::Sent(Sending { lists, next, .. }) => {
                empty(cache, &mut self.pending, &others, unit, |_, key, sums, seen| {
                    next.elements.push(key & !MISSED);
                    next.updates.extend_from_slice(sums);
                    next.sights.extend_from_slice(seen);
                });
                lists.store(worker, clock, next)?;
                let bytes = next.bytes();
                next.clear();
                Ok(bytes)
            }
        }
    }

    /// Applies what worker `from` contributed in clock `clock` to keys whose home is this worker.
    pub(super) fn apply(
        &mut self,
        worker: &Worker,
        home: &Home<'_, T, A>,
        (from, clock): (usize, u64),
    ) -> Result<()> {
        let (homes, ring) = match &mut self.shared {
            None => return Ok(()),
            Some((homes, Carrier::Shared(ring))) => (homes, ring),
            Some((homes, Carrier::Sent(Sending { lists, keys, .. }))) => {
                let sent = lists.load(worker, (from, clock), keys)?;
                merge_sent(home, keys, &sent, &homes.versions(worker)?, self.blocks);
                return Ok(());
            }
        };
        ring.follow(worker, from)?;
        let batch = ring.batch(worker, from, clock)?;
        if batch.keys.is_empty() && self.cache.dirty.is_empty() {
            return Ok(());
        }
        let versions = homes.versions(worker)?;
        let mut write_misses = 0;
        // Each key comes once in a batch.
        for place in 0..batch.keys.len() {
            match batch.keys.get(place) {
                key if key & MISSED == 0 => self.merge(home, &batch, place, key),
                key => {
                    self.merge_missed(home, &batch, place, key & !MISSED);
                    write_misses += 1;
                }
            }
        }
        // After all elements: who sees the version of a block sees what was done to it.
        let version = versions.next();
        for place in 0..batch.keys.len() {
            versions.set(self.blocks.block(batch.keys.get(place) & !MISSED), version);
        }
        self.write_back(home, &versions);
        if write_misses > 0 {
            self.cache.fetched_at.iter_mut().for_each(Vec::clear);
        }
        versions.tell();
        Ok(())
    }

    /// Merges the contribution at `place` into the array.
    #[inline(always)]
    fn merge(&self, home: &Home<'_, T, A>, batch: &Batch<'_, T, A::Snapshot>, place: usize, key: u32) {
        let unit = self.blocks.unit;
        for at in 0..unit {
            let (update, element) = (batch.updates.get(place * unit + at), key as usize * unit + at);
            let seen = batch.seen(place * unit + at);
            let mut value = home.target.get(element);
            home.merge_seen(&mut value, element, update, seen);
            home.target.set(element, value);
        }
    }

    /// Merges a contribution that no slice had foreseen: into the value that this worker holds, if that is newer.
    fn merge_missed(
        &mut self,
        home: &Home<'_, T, A>,
        batch: &Batch<'_, T, A::Snapshot>,
        place: usize,
        key: u32,
    ) {
        let unit = self.blocks.unit;
        let slot = self.slot_of(key as usize);
        let slot = slot.filter(|slot| self.cache.states[*slot] & RELOCATED != 0);
        match slot.filter(|slot| self.cache.states[*slot] & TOUCHED != 0) {
            None => self.merge(home, batch, place, key),
            Some(slot) => {
                for at in 0..unit {
                    let (update, seen) =
                        (batch.updates.get(place * unit + at), batch.seen(place * unit + at));
                    let value = &mut self.cache.values[slot * unit + at];
                    home.merge_seen(value, key as usize * unit + at, update, seen);
                }
                return;
            }
        }
        if let Some(slot) = slot {
            self.cache.forget(slot);
        }
    }

    /// The slot of a key in the cache of the loop that runs.
    pub(super) fn slot_of(&self, key: usize) -> Option<usize> {
        self.table.get(key).map(|slot| *slot as usize).filter(|slot| *slot < self.cache.keys.len())
    }

    /// Writes the keys that are this worker's own and that it has changed to where others may look them up.
    fn write_back(&mut self, home: &Home<'_, T, A>, versions: &Versions<'_>) {
        let (cache, blocks) = (&mut self.cache, self.blocks);
        if cache.dirty.is_empty() {
            return;
        }
        for slot in &cache.dirty {
            let at = *slot as usize;
            let values = &cache.values[at * blocks.unit..][..blocks.unit];
            home.store(cache.keys[at] as usize * blocks.unit, values);
        }
        // Another version than before: who saw that may have seen only some of these elements.
        let version = versions.next();
        for slot in cache.dirty.drain(..) {
            let at = slot as usize;
            versions.set(blocks.block(cache.keys[at]), version);
            cache.versions[at] = version;
            cache.states[at] &= !TOUCHED;
        }
    }
}

/// Calls `put` with all contributions, their homes and keys, those to keys that were not foreseen last, and forgets them.
#[inline(always)]
fn empty<T: Additive, S: Element>(
    cache: &mut Cache<T, S>,
    pending: &mut PendingUpdates<T, S>,
    others: &[(u32, usize)],
    unit: usize,
    mut put: impl FnMut(usize, u32, &[T], &[S]),
) {
    let remembers = size_of::<S>() > 0;
    for slot in cache.touched.drain(..) {
        let at = slot as usize;
        let sums = &mut cache.sums[at * unit..][..unit];
        let seen = if remembers { &cache.seen[at * unit..][..unit] } else { &[] };
        put(cache.homes[at] as usize, cache.keys[at], sums, seen);
        sums.fill(T::default());
        cache.states[at] &= !TOUCHED;
    }
    for (key, home) in others {
        if let Some(update) = pending.remove(key) {
            put(*home, key | MISSED, &update.sums, &update.seen);
        }
    }
}

/// Merges all that a worker of several hosts contributed in a clock into this worker's copy.
fn merge_sent<T: Additive, A: Apply<T>>(
    home: &Home<'_, T, A>,
    keys: &[u32],
    sent: &Sent<'_, T, A::Snapshot>,
    versions: &Versions<'_>,
    blocks: Blocks,
) {
    if keys.is_empty() {
        return;
    }
    for (place, key) in keys.iter().enumerate() {
        for within in 0..blocks.unit {
            let (update, seen) = sent.get(place * blocks.unit + within);
            let element = *key as usize * blocks.unit + within;
            let mut value = home.target.get(element);
            home.merge_seen(&mut value, element, update, seen);
            home.target.set(element, value);
        }
    }
    let version = versions.next();
    keys.iter().for_each(|key| versions.set(blocks.block(*key), version));
    versions.tell();
}
