//! Where contributions are on their way: a ring of slots in shared memory for each worker, one slot for each clock.
//!
//! A slot has a list: the elements or rows that a worker contributed to in that clock, what it contributed to each, and
//! what it remembers of each. So a clock costs as much as was changed in it, however long the array is.
use super::{MOST_SLOTS, SLOTS};
use crate::error::{Error, Result};
use crate::fabric::shown::spans_hosts;
use crate::fabric::watched::{Reading, Watched};
use crate::fabric::with_rest;
use hectare_dsm::{Element, SlotRing, Worker};

/// The most elements, in all, of rings with more slots than [`SLOTS`].
const MOST_ELEMENTS: usize = 1 << 20;

/// The contributions of a worker in a clock.
#[derive(Debug)]
pub(crate) struct List<T, S> {
    /// Elements, or rows, each once.
    pub(crate) elements: Vec<u32>,
    pub(crate) updates: Vec<T>,
    /// None if nothing is remembered.
    pub(crate) sights: Vec<S>,
}

impl<T, S> List<T, S> {
    pub(crate) const fn new() -> List<T, S> {
        List { elements: Vec::new(), updates: Vec::new(), sights: Vec::new() }
    }

    pub(crate) fn clear(&mut self) {
        self.elements.clear();
        self.updates.clear();
        self.sights.clear();
    }

    pub(crate) fn bytes(&self) -> u64 {
        let bytes =
            [size_of_val(&self.elements[..]), size_of_val(&self.updates[..]), size_of_val(&self.sights[..])];
        bytes.into_iter().sum::<usize>() as u64
    }
}

/// The slots of all workers.
#[derive(Debug)]
pub(crate) struct Ring<T: Element, S: Element> {
    /// How long the list in each slot is, and behind these the clock up to which lists are there.
    lengths: Watched<u64>,
    elements: Watched<u32>,
    updates: Watched<T>,
    sights: Option<Watched<S>>,
    slots: SlotRing,
    /// The longest list.
    most: usize,
    /// How many updates belong to one of its entries: one, or those of a row.
    unit: usize,
}

/// The updates of a list, and what their worker remembered.
#[derive(Debug)]
pub(crate) struct Sent<'a, T: Element, S: Element> {
    first: usize,
    updates: Reading<'a, T>,
    sights: Option<Reading<'a, S>>,
}

impl<T: Element, S: Element> Sent<'_, T, S> {
    /// The one at place `at`, counted by elements.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> (T, S) {
        let sight = self.sights.map_or_else(S::zeroed, |sights| sights.get(self.first + at));
        (self.updates.get(self.first + at), sight)
    }
}

impl<T: Element, S: Element> Ring<T, S> {
    /// Makes the slots of this worker for an array of `len` elements, or rows of `unit`.
    pub(crate) fn make(worker: &mut Worker, set: &str, (len, unit): (usize, usize)) -> Result<Ring<T, S>> {
        if u32::try_from(len).is_err() {
            let what = format!("{len} elements to which loops contribute: at most {}", u32::MAX);
            return Err(Error::Invalid(what));
        }
        let slots = slots_for(spans_hosts(worker), len * unit);
        let all = slots.slots() * len;
        let sights = |worker: &mut Worker| match size_of::<S>() {
            0 => Ok(None),
            _ => Watched::make(worker, set, "sights", all * unit).map(Some),
        };
        let updates = |worker: &mut Worker| {
            let updates = Watched::make(worker, set, "updates", all * unit)?;
            with_rest(worker, updates, Watched::delete, sights)
        };
        let elements = |worker: &mut Worker| {
            let elements = Watched::make(worker, set, "elements", all)?;
            with_rest(worker, elements, Watched::delete, updates)
        };
        let lengths = Watched::make(worker, set, "lengths", slots.slots() + 1)?;
        let (lengths, rest) = with_rest(worker, lengths, Watched::delete, elements)?;
        let (elements, (updates, sights)) = rest;
        Ok(Ring { lengths, elements, updates, sights, slots, most: len, unit })
    }

    /// Finds those of the others.
    pub(crate) fn find(&mut self, worker: &mut Worker, workers: usize) -> Result<()> {
        self.lengths.find(worker, workers)?;
        self.elements.find(worker, workers)?;
        self.updates.find(worker, workers)?;
        self.sights.as_mut().map_or(Ok(()), |sights| sights.find(worker, workers))
    }

    /// Whether those of the others are known.
    pub(crate) fn is_found(&self) -> bool {
        self.lengths.is_found()
    }

    pub(crate) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.lengths.delete(worker)?;
        self.elements.delete(worker)?;
        self.updates.delete(worker)?;
        self.sights.map_or(Ok(()), |sights| sights.delete(worker))
    }

    /// The slots of each worker.
    pub(crate) fn slots(&self) -> SlotRing {
        self.slots
    }

    /// Begins a pass.
    pub(crate) fn enter(&mut self, worker: &Worker) -> Result<()> {
        self.lengths.write(worker)?.store(self.slots.slots(), &[0])
    }

    /// Shows the list of clock `clock`.
    pub(crate) fn store(&mut self, worker: &Worker, clock: u64, list: &List<T, S>) -> Result<()> {
        let slot = self.slots.slot(clock);
        let first = slot * self.most;
        self.elements.write(worker)?.store(first, &list.elements)?;
        self.updates.write(worker)?.store(first * self.unit, &list.updates)?;
        if let Some(sights) = &mut self.sights {
            sights.write(worker)?.store(first * self.unit, &list.sights)?;
        }
        let mut lengths = self.lengths.write(worker)?;
        lengths.store(slot, &[list.elements.len() as u64])?;
        lengths.store(self.slots.slots(), &[clock + 1])
    }

    /// Up to which clock the lists of worker `rank` can be read here.
    pub(crate) fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        match self.lengths.is_published() {
            true => Ok(self.lengths.of(worker, rank)?.get(self.slots.slots())),
            // Before the clock is told.
            false => Ok(u64::MAX),
        }
    }

    /// Reads into `elements` to which ones worker `rank` contributed in clock `clock`; returns the contributions.
    pub(crate) fn load<'a>(
        &'a self,
        worker: &'a Worker,
        (rank, clock): (usize, u64),
        elements: &mut Vec<u32>,
    ) -> Result<Sent<'a, T, S>> {
        let slot = self.slots.slot(clock);
        let first = slot * self.most;
        let length = self.lengths.of(worker, rank)?.get(slot) as usize;
        elements.resize(length.min(self.most), 0);
        self.elements.of(worker, rank)?.load(first, elements);
        let updates = self.updates.of(worker, rank)?;
        let sights = self.sights.as_ref().map(|sights| sights.of(worker, rank)).transpose()?;
        Ok(Sent { first: first * self.unit, updates, sights })
    }
}

/// Slots for lists of `len` elements at most: as many as need little memory, where what is in them goes a long way.
fn slots_for(spans_hosts: bool, len: usize) -> SlotRing {
    let most = if spans_hosts { MOST_SLOTS.slots() } else { SLOTS.slots() };
    let slots = (MOST_ELEMENTS / len.max(1)).clamp(SLOTS.slots(), most);
    SlotRing::new(slots as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_more_slots_where_they_go_a_long_way_and_lists_are_short() {
        assert_eq!(slots_for(false, 100), SLOTS);
        assert_eq!(slots_for(true, 0), MOST_SLOTS);
        assert_eq!(slots_for(true, 50_000), MOST_SLOTS);
        assert_eq!(slots_for(true, MOST_ELEMENTS / 8), SlotRing::new(8));
        assert_eq!(slots_for(true, MOST_ELEMENTS), SLOTS);
    }
}
