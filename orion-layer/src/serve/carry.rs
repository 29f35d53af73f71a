//! Contributions: published at a clock, merged at the homes of their keys.
use super::state::{Home, State};
use crate::error::Result;
use crate::relax::{Additive, Apply, Pace};
use hectare_dsm::Worker;
use hectare_dsm::bytemuck::Zeroable;

impl<T: Additive, A: Apply<T>> State<T, A> {
    /// How many keys wait to be published.
    fn waiting(&self) -> usize {
        self.cache.touched.len() + self.extras.len()
    }

    /// Whether a clock would not take all contributions.
    pub(super) fn is_crowded(&self) -> bool {
        self.shared.as_ref().is_some_and(|(_, ring)| self.waiting() > ring.capacity)
    }

    /// Publishes contributions, those to keys that were not foreseen last. Bytes that go to others.
    pub(super) fn publish(&mut self, worker: &Worker, clock: u64) -> Result<u64> {
        let Some((homes, ring)) = &self.shared else { return Ok(0) };
        let (census, cache, unit) = (homes.look(worker)?, &self.cache, self.blocks.unit);
        let seen_of = |slot: usize| if Self::REMEMBERS { &cache.seen[slot * unit..][..unit] } else { &[] };
        let known = cache.touched.iter().map(|slot| {
            let slot = *slot as usize;
            (cache.homes[slot] as usize, cache.keys[slot], &cache.sums[slot * unit..][..unit], seen_of(slot))
        });
        let others = self.extras.iter().map(|(key, extra)| {
            let (home, _) = census.home(self.blocks.block(*key));
            (home, *key, &extra.sums[..], &extra.seen[..])
        });
        let bytes = ring.publish(worker, clock, known.chain(others).take(ring.capacity))?;
        let gone = self.cache.touched.len().min(ring.capacity);
        let more = ring.capacity - gone;
        let cache = &mut self.cache;
        for slot in cache.touched.drain(..gone).map(|slot| slot as usize) {
            cache.sums[slot * unit..][..unit].fill(T::default());
            cache.is_touched[slot] = false;
        }
        for _ in 0..more.min(self.extras.len()) {
            self.extras.pop_first();
        }
        Ok(bytes)
    }

    /// Applies what worker `from` contributed in clock `clock` to keys whose home is this worker.
    pub(super) fn apply(
        &mut self,
        worker: &Worker,
        home: &Home<'_, T, A>,
        (from, clock): (usize, u64),
        pace: &Pace,
    ) -> Result<()> {
        let Some((homes, ring)) = &self.shared else { return Ok(()) };
        let (census, versions) = (homes.look(worker)?, homes.versions(worker)?);
        let (cache, blocks) = (&mut self.cache, self.blocks);
        ring.each(worker, (from, clock), pace, |key, updates, sights| {
            let (block, first) = (blocks.block(key), key as usize * blocks.unit);
            // What goes to a key of this worker's own through a ring was foreseen by no slice.
            let own = match census.home(block) == (pace.me, true) {
                true => cache.find(key),
                false => None,
            };
            for at in 0..blocks.unit {
                let update = updates.get(at);
                if update.is_zero() {
                    continue;
                }
                let seen = sights.map_or_else(A::Seen::zeroed, |sights| sights.get(at));
                let mut state = home.state.map_or_else(A::State::zeroed, |state| state.get(first + at));
                match own {
                    Some(slot) => {
                        let value = &mut cache.values[slot * blocks.unit + at];
                        home.rule.apply(value, &mut state, update, seen);
                    }
                    None => {
                        let mut value = home.target.get(first + at);
                        home.rule.apply(&mut value, &mut state, update, seen);
                        home.target.set(first + at, value);
                    }
                }
                if let Some(all) = home.state {
                    all.set(first + at, state);
                }
            }
            match own {
                Some(slot) if !cache.is_touched[slot] => {
                    cache.is_touched[slot] = true;
                    cache.dirty.push(slot as u32);
                }
                Some(_) => {}
                // After the elements: who sees the version sees them.
                None => versions.publish(block, versions.get(block) + 1),
            }
            Ok(())
        })?;
        self.write_back(worker, home)
    }

    /// Writes the keys that are this worker's own and that it has changed to where others may look them up.
    fn write_back(&mut self, worker: &Worker, home: &Home<'_, T, A>) -> Result<()> {
        let Some((homes, _)) = &self.shared else { return Ok(()) };
        let (versions, cache, blocks) = (homes.versions(worker)?, &mut self.cache, self.blocks);
        for slot in cache.dirty.drain(..).map(|slot| slot as usize) {
            let (key, block) = (cache.keys[slot], blocks.block(cache.keys[slot]));
            let values = &cache.values[slot * blocks.unit..][..blocks.unit];
            home.target.part(key as usize * blocks.unit, blocks.unit).store(values);
            let before = versions.get(block);
            versions.publish(block, before + 1);
            cache.versions[slot] = before + 1;
            cache.is_touched[slot] = false;
            // Nobody else changes the other keys of the block: those that were current are so still.
            let same = |other: &usize| blocks.block(cache.keys[*other]) == block;
            let (below, above) = ((0..slot).rev(), slot + 1..cache.keys.len());
            for other in below.take_while(same).chain(above.take_while(same)) {
                if cache.versions[other] == before {
                    cache.versions[other] = before + 1;
                }
            }
        }
        Ok(())
    }
}
