//! Contributions between workers of several hosts: each publishes its own, and all apply those of all, each to a copy of the array.
//!
//! What crosses is what the loop contributed to, not the array: keys and sums, into a slot for each clock. Slots, their lengths and
//! the clock up to which they hold are of one group, so whoever reads a clock reads what belongs to it.
use crate::error::Result;
use crate::fabric::watched::{Reading, Watched};
use crate::relax::SLOTS;
use hectare_dsm::{Element, Worker};

/// What a worker contributed in one clock: each key comes once.
#[derive(Debug)]
pub(super) struct Sent<T: Element, S: Element> {
    /// For each slot how many keys are in it; then how many clocks of the worker's can be read.
    heads: Watched<u64>,
    keys: Slots<u32>,
    updates: Slots<T>,
    sights: Option<Slots<S>>,
    /// What is published next.
    next: Gathered<T, S>,
}

#[derive(Debug)]
struct Slots<T: Element> {
    areas: Watched<T>,
    /// Elements of a slot.
    len: usize,
}

impl<T: Element> Slots<T> {
    fn meet(worker: &mut Worker, (set, name): (&str, &str), len: usize, workers: usize) -> Result<Slots<T>> {
        Ok(Slots { areas: Watched::meet(worker, set, name, SLOTS.slots() * len, workers)?, len })
    }

    fn store(&mut self, worker: &Worker, clock: u64, from: &[T]) -> Result<()> {
        self.areas.write(worker)?.store(SLOTS.slot(clock) * self.len, from)
    }

    /// What worker `rank` shows, and where the slot of a clock begins.
    fn slot<'a>(&'a self, worker: &'a Worker, rank: usize, clock: u64) -> Result<(Reading<'a, T>, usize)> {
        Ok((self.areas.of(worker, rank)?, SLOTS.slot(clock) * self.len))
    }
}

#[derive(Debug)]
struct Gathered<T, S> {
    keys: Vec<u32>,
    updates: Vec<T>,
    sights: Vec<S>,
}

impl<T: Element, S: Element> Sent<T, S> {
    /// The place of the clock in `heads`.
    const CLOCK: usize = SLOTS.slots();

    /// All workers call this. A slot has room for as many keys as the array has.
    pub(super) fn meet(
        worker: &mut Worker,
        name: &str,
        (keys, unit): (usize, usize),
        remembers: bool,
        workers: usize,
    ) -> Result<Sent<T, S>> {
        let set = &format!("{name}/sent");
        let keys = keys.max(1);
        Ok(Sent {
            heads: Watched::meet(worker, set, "heads", Self::CLOCK + 1, workers)?,
            keys: Slots::meet(worker, (set, "keys"), keys, workers)?,
            updates: Slots::meet(worker, (set, "updates"), keys * unit, workers)?,
            sights: match remembers {
                true => Some(Slots::meet(worker, (set, "sights"), keys * unit, workers)?),
                false => None,
            },
            next: Gathered { keys: Vec::new(), updates: Vec::new(), sights: Vec::new() },
        })
    }

    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.heads.delete(worker)?;
        self.keys.areas.delete(worker)?;
        self.updates.areas.delete(worker)?;
        self.sights.map_or(Ok(()), |sights| sights.areas.delete(worker))
    }

    /// Begins a pass, before a barrier.
    pub(super) fn begin(&mut self, worker: &Worker) -> Result<()> {
        self.heads.write(worker)?.store(Self::CLOCK, &[0])
    }

    /// Adds a contribution to what is published next.
    #[inline]
    pub(super) fn put(&mut self, key: u32, sums: &[T], seen: &[S]) {
        self.next.keys.push(key);
        self.next.updates.extend_from_slice(sums);
        self.next.sights.extend_from_slice(seen);
    }

    /// Publishes what was put as the contributions of clock `clock`, from 0. Their bytes.
    pub(super) fn publish(&mut self, worker: &Worker, clock: u64) -> Result<u64> {
        let Gathered { keys, updates, sights } = &mut self.next;
        let mut bytes = size_of_val(&keys[..]) + size_of_val(&updates[..]);
        self.keys.store(worker, clock, keys)?;
        self.updates.store(worker, clock, updates)?;
        if let Some(slots) = &mut self.sights {
            slots.store(worker, clock, sights)?;
            bytes += size_of_val(&sights[..]);
        }
        let mut heads = self.heads.write(worker)?;
        heads.store(SLOTS.slot(clock), &[keys.len() as u64])?;
        heads.store(Self::CLOCK, &[clock + 1])?;
        keys.clear();
        updates.clear();
        sights.clear();
        Ok(bytes as u64)
    }

    /// Up to which clock the contributions of worker `rank` can be read here.
    pub(super) fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        Ok(self.heads.of(worker, rank)?.get(Self::CLOCK))
    }

    /// What worker `from` contributed in clock `clock`.
    pub(super) fn batch<'a>(
        &'a self,
        worker: &'a Worker,
        from: usize,
        clock: u64,
    ) -> Result<SentBatch<'a, T, S>> {
        Ok(SentBatch {
            len: self.heads.of(worker, from)?.get(SLOTS.slot(clock)) as usize,
            keys: self.keys.slot(worker, from, clock)?,
            updates: self.updates.slot(worker, from, clock)?,
            sights: self.sights.as_ref().map(|slots| slots.slot(worker, from, clock)).transpose()?,
        })
    }
}

/// What a worker contributed in one clock.
#[derive(Debug)]
pub(super) struct SentBatch<'a, T: Element, S: Element> {
    /// How many keys.
    pub(super) len: usize,
    keys: (Reading<'a, u32>, usize),
    updates: (Reading<'a, T>, usize),
    sights: Option<(Reading<'a, S>, usize)>,
}

impl<T: Element, S: Element> SentBatch<'_, T, S> {
    #[inline]
    pub(super) fn key(&self, place: usize) -> u32 {
        self.keys.0.get(self.keys.1 + place)
    }

    /// What is added to an element, counted from the first of the first key.
    #[inline]
    pub(super) fn update(&self, at: usize) -> T {
        self.updates.0.get(self.updates.1 + at)
    }

    /// The remembered state of it.
    #[inline]
    pub(super) fn seen(&self, at: usize) -> S {
        self.sights.map_or_else(S::zeroed, |(sights, first)| sights.get(first + at))
    }
}
