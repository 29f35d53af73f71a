//! Contributions on their way to the homes of their keys: every worker writes its own into a ring of slots in shared
//! memory, one slot for each clock, sorted by home.
//!
//! As in a buffered array, a slot is reused when all homes have applied it. There is room for the keys that lists
//! have; where a body uses more, its worker makes larger slots when all homes have applied what is in its present ones,
//! and the homes find these when they see the next clock.
use super::worker_areas::WorkerAreas;
use crate::error::Result;
use crate::fabric::with_rest;
use crate::relax::{RING, SLOTS};
use hectare_dsm::{Cells, Element, Worker};

/// The slots of all workers.
#[derive(Debug)]
pub(super) struct Ring<T: Element, S: Element> {
    name: String,
    /// For each slot: where the contributions to each home begin, and where the last end.
    heads: WorkerAreas<u64>,
    /// How often each worker has replaced its slots by larger ones.
    generations: WorkerAreas<u64>,
    known: Vec<u64>,
    keys: WorkerAreas<u32>,
    updates: WorkerAreas<T>,
    sights: Option<WorkerAreas<S>>,
    /// Keys that fit into a slot of this worker's.
    pub(super) capacity: usize,
    unit: usize,
    workers: usize,
    me: usize,
}

impl<T: Element, S: Element> Ring<T, S> {
    /// All workers call this, each with a capacity of its own, and then [`Ring::find`].
    pub(super) fn make(
        worker: &mut Worker,
        name: &str,
        (capacity, unit): (usize, usize),
        remembers: bool,
        workers: usize,
    ) -> Result<Ring<T, S>> {
        let slots = RING as usize;
        let (keys, elements) = (slots * capacity, slots * capacity * unit);
        let first = format!("{name}/0");
        let sights = |worker: &mut Worker| match remembers {
            true => WorkerAreas::make(worker, &format!("{first}/sights"), elements, workers).map(Some),
            false => Ok(None),
        };
        let updates = |worker: &mut Worker| {
            let updates = WorkerAreas::make(worker, &format!("{first}/updates"), elements, workers)?;
            with_rest(worker, updates, WorkerAreas::delete, sights)
        };
        let keys = |worker: &mut Worker| {
            let keys = WorkerAreas::make(worker, &format!("{first}/keys"), keys, workers)?;
            with_rest(worker, keys, WorkerAreas::delete, updates)
        };
        let generations = |worker: &mut Worker| {
            let generations = WorkerAreas::make(worker, &format!("{name}/generations"), 1, workers)?;
            with_rest(worker, generations, WorkerAreas::delete, keys)
        };
        let heads = WorkerAreas::make(worker, &format!("{name}/heads"), slots * (workers + 1), workers)?;
        let (heads, rest) = with_rest(worker, heads, WorkerAreas::delete, generations)?;
        let (generations, (keys, (updates, sights))) = rest;
        Ok(Ring {
            heads,
            generations,
            known: vec![0; workers],
            keys,
            updates,
            sights,
            capacity,
            unit,
            workers,
            me: worker.rank() as usize,
            name: name.into(),
        })
    }

    /// Finds what the others have made.
    pub(super) fn find(&mut self, worker: &mut Worker) -> Result<()> {
        self.heads.find(worker)?;
        self.generations.find(worker)?;
        self.keys.find(worker)?;
        self.updates.find(worker)?;
        self.sights.as_mut().map_or(Ok(()), |sights| sights.find(worker))
    }

    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.heads.delete(worker)?;
        self.generations.delete(worker)?;
        self.keys.delete(worker)?;
        self.updates.delete(worker)?;
        self.sights.map_or(Ok(()), |sights| sights.delete(worker))
    }

    /// Makes this worker's slots larger, while there is nothing in them that others have still to apply. Others find them
    /// by [`Ring::follow`], after a barrier or a clock.
    pub(super) fn grow(&mut self, worker: &mut Worker, capacity: usize) -> Result<()> {
        if capacity <= self.capacity {
            return Ok(());
        }
        let generation = self.generations.cells(worker, self.me)?.get(0) + 1;
        let (keys, elements) = (RING as usize * capacity, RING as usize * capacity * self.unit);
        let name = format!("{}/{generation}", self.name);
        self.keys.renew(worker, &format!("{name}/keys"), keys)?;
        self.updates.renew(worker, &format!("{name}/updates"), elements)?;
        if let Some(sights) = &mut self.sights {
            sights.renew(worker, &format!("{name}/sights"), elements)?;
        }
        self.generations.cells(worker, self.me)?.set(0, generation);
        self.capacity = capacity;
        self.follow(worker, self.me)
    }

    /// Finds the slots of a worker that it has made larger. It does so before it tells the clock whose contributions are
    /// in them: who has seen that (acquire) sees the generation, too.
    pub(super) fn follow(&mut self, worker: &Worker, rank: usize) -> Result<()> {
        let generation = self.generations.cells(worker, rank)?.get(0);
        if generation == self.known[rank] {
            return Ok(());
        }
        let name = format!("{}/{generation}", self.name);
        self.keys.attach(worker, &format!("{name}/keys"), rank)?;
        self.updates.attach(worker, &format!("{name}/updates"), rank)?;
        if let Some(sights) = &mut self.sights {
            sights.attach(worker, &format!("{name}/sights"), rank)?;
        }
        self.known[rank] = generation;
        Ok(())
    }

    /// Begins to write contributions into the slot of clock `clock`: no more than [`Ring::capacity`], to these homes.
    pub(super) fn publish<'w>(
        &self,
        worker: &'w Worker,
        clock: u64,
        homes: impl Iterator<Item = usize>,
    ) -> Result<Out<'w, T, S>> {
        let slot = SLOTS.slot(clock);
        let heads = self.heads.cells(worker, self.me)?.part(slot * (self.workers + 1), self.workers + 1);
        let mut next = vec![0usize; self.workers + 1];
        homes.for_each(|home| next[home + 1] += 1);
        (0..self.workers).for_each(|home| next[home + 1] += next[home]);
        for (home, place) in next.iter().enumerate() {
            heads.set(home, *place as u64);
        }
        let foreign = next[self.workers] - (next[self.me + 1] - next[self.me]);
        let remembered = if self.sights.is_some() { size_of::<S>() } else { 0 };
        let elements = self.capacity * self.unit;
        Ok(Out {
            next,
            keys: self.keys.cells(worker, self.me)?.part(slot * self.capacity, self.capacity),
            updates: self.updates.cells(worker, self.me)?.part(slot * elements, elements),
            sights: match &self.sights {
                Some(sights) => Some(sights.cells(worker, self.me)?.part(slot * elements, elements)),
                None => None,
            },
            unit: self.unit,
            bytes: (foreign * (4 + self.unit * (size_of::<T>() + remembered))) as u64,
        })
    }

    /// The contributions of worker `from` in clock `clock` to keys whose home is this worker.
    pub(super) fn batch<'w>(&self, worker: &'w Worker, from: usize, clock: u64) -> Result<Batch<'w, T, S>> {
        let slot = SLOTS.slot(clock);
        let heads = self.heads.cells(worker, from)?.part(slot * (self.workers + 1), self.workers + 1);
        let (first, end) = (heads.get(self.me) as usize, heads.get(self.me + 1) as usize);
        let (keys, count, unit) = (self.keys.cells(worker, from)?, end - first, self.unit);
        let first = slot * (keys.len() / RING as usize) + first;
        Ok(Batch {
            keys: keys.part(first, count),
            updates: self.updates.cells(worker, from)?.part(first * unit, count * unit),
            sights: match &self.sights {
                Some(sights) => Some(sights.cells(worker, from)?.part(first * unit, count * unit)),
                None => None,
            },
        })
    }
}

/// A slot of this worker's, to be written.
#[derive(Debug)]
pub(super) struct Out<'w, T: Element, S: Element> {
    /// For each home, where the next contribution goes.
    next: Vec<usize>,
    keys: Cells<'w, u32>,
    updates: Cells<'w, T>,
    sights: Option<Cells<'w, S>>,
    unit: usize,
    /// Bytes that go to other workers.
    pub(super) bytes: u64,
}

impl<T: Element, S: Element> Out<'_, T, S> {
    /// Writes a contribution: home, key, what is added to its elements, and what was seen of their states.
    #[inline(always)]
    pub(super) fn put(&mut self, home: usize, key: u32, sums: &[T], seen: &[S]) {
        let place = self.next[home];
        self.next[home] += 1;
        self.keys.set(place, key);
        match sums {
            [sum] => self.updates.set(place, *sum),
            sums => self.updates.part(place * self.unit, self.unit).store(sums),
        }
        if let Some(sights) = self.sights {
            sights.part(place * self.unit, self.unit).store(seen);
        }
    }
}

/// Contributions to be merged: each key comes once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Batch<'w, T, S> {
    pub(super) keys: Cells<'w, u32>,
    /// For each element of each key, what is to be added.
    pub(super) updates: Cells<'w, T>,
    sights: Option<Cells<'w, S>>,
}

impl<T: Element, S: Element> Batch<'_, T, S> {
    /// The remembered state of an element.
    #[inline]
    pub(super) fn seen(&self, at: usize) -> S {
        self.sights.map_or_else(S::zeroed, |sights| sights.get(at))
    }
}
