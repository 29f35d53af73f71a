//! The way of contributions: through memory that all workers share, or as areas that are published to other hosts.
use super::blocks::Blocks;
use super::homes::Homes;
use super::ring::Ring;
use crate::error::Result;
use crate::fabric::shown::spans_hosts;
use crate::fabric::with_rest;
use crate::relax::SLOTS;
use crate::relax::ring::{List, Ring as Lists};
use hectare_dsm::{Element, SlotRing, Worker};

/// How contributions come to those who merge them.
#[derive(Debug)]
pub(super) enum Carrier<T: Element, S: Element> {
    /// To the homes of their keys, which write the array in place.
    Shared(Ring<T, S>),
    /// To all, of whom each has a copy.
    Sent(Sending<T, S>),
}

/// Lists of keys that are published to all.
#[derive(Debug)]
pub(super) struct Sending<T: Element, S: Element> {
    pub(super) lists: Lists<T, S>,
    /// That which is published next.
    pub(super) next: List<T, S>,
    /// Room for the keys of one that has come.
    pub(super) keys: Vec<u32>,
}

/// Makes what says who merges what, and the way there, with room for `capacity` keys of this worker's in a clock. All workers call this,
/// and then find what the others have made.
pub(super) fn make<T: Element, S: Element>(
    worker: &mut Worker,
    name: &str,
    blocks: &Blocks,
    (capacity, remembers): (usize, bool),
    workers: usize,
) -> Result<(Homes, Carrier<T, S>)> {
    if spans_hosts(worker) {
        let lists = Lists::make(worker, &format!("{name}/sent"), (blocks.keys, blocks.unit))?;
        let homes = |worker: &mut Worker| Homes::of_copy(worker, name, blocks);
        let (lists, homes) = with_rest(worker, lists, Lists::delete, homes)?;
        let sending = Sending { lists, next: List::new(), keys: Vec::new() };
        return Ok((homes, Carrier::Sent(sending)));
    }
    let homes = Homes::make(worker, name, blocks, workers)?;
    let ring = |worker: &mut Worker| Ring::make(worker, name, (capacity, blocks.unit), remembers, workers);
    let (homes, ring) = with_rest(worker, homes, Homes::delete, ring)?;
    Ok((homes, Carrier::Shared(ring)))
}

impl<T: Element, S: Element> Carrier<T, S> {
    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        match self {
            Carrier::Shared(ring) => ring.delete(worker),
            Carrier::Sent(sending) => sending.lists.delete(worker),
        }
    }

    /// Finds what the others have made.
    pub(super) fn find(&mut self, worker: &mut Worker, workers: usize) -> Result<()> {
        match self {
            Carrier::Shared(ring) => ring.find(worker),
            Carrier::Sent(sending) => sending.lists.find(worker, workers),
        }
    }

    /// Whether that may not be known, beside what [`Homes`] has.
    pub(super) fn is_found(&self) -> bool {
        match self {
            Carrier::Shared(_) => true,
            Carrier::Sent(sending) => sending.lists.is_found(),
        }
    }

    /// Makes room for `capacity` keys in a clock, if there is less.
    pub(super) fn grow(&mut self, worker: &mut Worker, capacity: usize) -> Result<()> {
        match self {
            Carrier::Shared(ring) => ring.grow(worker, capacity),
            // There is room for all.
            Carrier::Sent(_) => Ok(()),
        }
    }

    /// Whether `waiting` keys are more than there is room for.
    pub(super) fn is_crowded(&self, waiting: usize) -> bool {
        match self {
            Carrier::Shared(ring) => waiting > ring.capacity,
            Carrier::Sent(_) => false,
        }
    }

    /// The slots for what this worker contributes.
    pub(super) fn slots(&self) -> SlotRing {
        match self {
            Carrier::Shared(_) => SLOTS,
            Carrier::Sent(sending) => sending.lists.slots(),
        }
    }

    /// Begins a pass.
    pub(super) fn begin(&mut self, worker: &Worker, workers: usize) -> Result<()> {
        match self {
            Carrier::Shared(ring) => (0..workers).try_for_each(|rank| ring.follow(worker, rank)),
            Carrier::Sent(sending) => sending.lists.enter(worker),
        }
    }

    /// Up to which clock the contributions of worker `rank` can be read here.
    pub(super) fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        match self {
            // They are there before the clock is told.
            Carrier::Shared(_) => Ok(u64::MAX),
            Carrier::Sent(sending) => sending.lists.clock_of(worker, rank),
        }
    }
}
