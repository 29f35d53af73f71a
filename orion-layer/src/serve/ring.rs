//! Contributions on their way to the homes of their keys: every worker writes its own into a ring of slots in shared
//! memory, one slot for each clock, sorted by home.
//!
//! As in a buffered array, a slot is written anew when all homes have applied it; what does not fit into one waits for
//! the next, and the executor adds clocks until nothing waits.
use super::boxes::Boxes;
use crate::error::Result;
use crate::relax::{Pace, RING};
use hectare_dsm::{Cells, Element, Worker};

/// A contribution: home, key, what is added to its elements, and what was seen of their states.
pub(super) type Item<'i, T, S> = (usize, u32, &'i [T], &'i [S]);

/// The slots of all workers.
#[derive(Debug)]
pub(super) struct Ring<T: Element, S: Element> {
    name: String,
    /// For each slot: where the contributions to each home begin, and where the last end.
    heads: Boxes<u64>,
    /// How often each worker has made its slots anew, larger.
    generations: Boxes<u64>,
    known: Vec<u64>,
    keys: Boxes<u32>,
    updates: Boxes<T>,
    sights: Option<Boxes<S>>,
    /// Keys that fit into a slot of this worker's.
    pub(super) capacity: usize,
    unit: usize,
    workers: usize,
    me: usize,
}

impl<T: Element, S: Element> Ring<T, S> {
    /// All workers call this, each with a capacity of its own.
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
        Ok(Ring {
            heads: Boxes::make(worker, &format!("{name}/heads"), slots * (workers + 1), workers)?,
            generations: Boxes::make(worker, &format!("{name}/generations"), 1, workers)?,
            known: vec![0; workers],
            keys: Boxes::make(worker, &format!("{first}/keys"), keys, workers)?,
            updates: Boxes::make(worker, &format!("{first}/updates"), elements, workers)?,
            sights: match remembers {
                true => Some(Boxes::make(worker, &format!("{first}/sights"), elements, workers)?),
                false => None,
            },
            capacity,
            unit,
            workers,
            me: worker.rank() as usize,
            name: name.into(),
        })
    }

    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.heads.delete(worker)?;
        self.generations.delete(worker)?;
        self.keys.delete(worker)?;
        self.updates.delete(worker)?;
        self.sights.map_or(Ok(()), |sights| sights.delete(worker))
    }

    /// Makes this worker's slots larger, between passes. To be followed by a barrier, and [`Ring::follow`].
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
        Ok(())
    }

    /// Finds the slots that have been made larger.
    pub(super) fn follow(&mut self, worker: &mut Worker) -> Result<()> {
        for rank in 0..self.workers {
            let generation = self.generations.cells(worker, rank)?.get(0);
            if generation == self.known[rank] {
                continue;
            }
            let name = format!("{}/{generation}", self.name);
            self.keys.attach(worker, &format!("{name}/keys"), rank)?;
            self.updates.attach(worker, &format!("{name}/updates"), rank)?;
            if let Some(sights) = &mut self.sights {
                sights.attach(worker, &format!("{name}/sights"), rank)?;
            }
            self.known[rank] = generation;
        }
        Ok(())
    }

    /// Writes contributions, at most as many as fit, into the slot of clock `clock`. Bytes that go to others.
    pub(super) fn publish<'i>(
        &self,
        worker: &Worker,
        clock: u64,
        items: impl Iterator<Item = Item<'i, T, S>> + Clone,
    ) -> Result<u64>
    where
        T: 'i,
        S: 'i,
    {
        let slot = (clock % RING) as usize;
        let heads = self.heads.cells(worker, self.me)?.part(slot * (self.workers + 1), self.workers + 1);
        let keys = self.keys.cells(worker, self.me)?.part(slot * self.capacity, self.capacity);
        let elements = self.capacity * self.unit;
        let updates = self.updates.cells(worker, self.me)?.part(slot * elements, elements);
        let sights = match &self.sights {
            Some(sights) => Some(sights.cells(worker, self.me)?.part(slot * elements, elements)),
            None => None,
        };
        let mut places = vec![0usize; self.workers + 1];
        items.clone().for_each(|(home, ..)| places[home + 1] += 1);
        (0..self.workers).for_each(|home| places[home + 1] += places[home]);
        for (home, place) in places.iter().enumerate() {
            heads.set(home, *place as u64);
        }
        let foreign = places[self.workers] - (places[self.me + 1] - places[self.me]);
        for (home, key, sums, seen) in items {
            let place = places[home];
            places[home] += 1;
            keys.set(place, key);
            updates.part(place * self.unit, self.unit).store(sums);
            if let Some(sights) = sights {
                sights.part(place * self.unit, self.unit).store(seen);
            }
        }
        let remembered = if self.sights.is_some() { size_of::<S>() } else { 0 };
        Ok((foreign * (4 + self.unit * (size_of::<T>() + remembered))) as u64)
    }

    /// What worker `from` contributed in clock `clock` to keys whose home is this worker: `act` gets the key, what is to
    /// be added, and what was seen.
    pub(super) fn each<'w>(
        &self,
        worker: &'w Worker,
        (from, clock): (usize, u64),
        pace: &Pace,
        mut act: impl FnMut(u32, Cells<'w, T>, Option<Cells<'w, S>>) -> Result<()>,
    ) -> Result<()> {
        let slot = (clock % RING) as usize;
        let heads = self.heads.cells(worker, from)?.part(slot * (self.workers + 1), self.workers + 1);
        let keys = self.keys.cells(worker, from)?;
        let capacity = keys.len() / RING as usize;
        let updates = self.updates.cells(worker, from)?;
        let sights = self.sights.as_ref().map(|sights| sights.cells(worker, from)).transpose()?;
        for place in heads.get(pace.me) as usize..heads.get(pace.me + 1) as usize {
            let place = slot * capacity + place;
            let part = (place * self.unit, self.unit);
            act(
                keys.get(place),
                updates.part(part.0, part.1),
                sights.map(|sights| sights.part(part.0, part.1)),
            )?;
        }
        Ok(())
    }
}
