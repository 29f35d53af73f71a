//! The way of contributions: through memory that all workers share, or as areas that are published to other hosts.
use super::blocks::Blocks;
use super::homes::Homes;
use super::ring::Ring;
use super::sent::Sent;
use crate::error::Result;
use crate::fabric::shown::spans_hosts;
use hectare_dsm::{Element, Worker};

/// How contributions come to those who merge them.
#[derive(Debug)]
pub(super) enum Carrier<T: Element, S: Element> {
    /// To the homes of their keys, which write the array in place.
    Shared(Ring<T, S>),
    /// To all, of whom each has a copy.
    Sent(Sent<T, S>),
}

/// Finds out who merges what, and makes the way there, with room for `capacity` keys of this worker's in a clock. All workers call this.
pub(super) fn make<T: Element, S: Element>(
    worker: &mut Worker,
    name: &str,
    blocks: &Blocks,
    (capacity, remembers): (usize, bool),
    workers: usize,
) -> Result<(Homes, Carrier<T, S>)> {
    if spans_hosts(worker) {
        let sent = Sent::meet(worker, name, (blocks.keys, blocks.unit), remembers, workers)?;
        return Ok((Homes::of_copy(worker, name, blocks)?, Carrier::Sent(sent)));
    }
    let homes = Homes::make(worker, name, blocks, workers)?;
    let ring = Ring::make(worker, name, (capacity, blocks.unit), remembers, workers)?;
    Ok((homes, Carrier::Shared(ring)))
}

impl<T: Element, S: Element> Carrier<T, S> {
    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        match self {
            Carrier::Shared(ring) => ring.delete(worker),
            Carrier::Sent(sent) => sent.delete(worker),
        }
    }

    /// Makes room for so many keys in a clock, if there is less.
    pub(super) fn grow(&mut self, worker: &mut Worker, capacity: usize) -> Result<()> {
        match self {
            Carrier::Shared(ring) => ring.grow(worker, capacity),
            // There is room for all.
            Carrier::Sent(_) => Ok(()),
        }
    }

    /// Whether so many keys are more than there is room for.
    pub(super) fn is_crowded(&self, waiting: usize) -> bool {
        match self {
            Carrier::Shared(ring) => waiting > ring.capacity,
            Carrier::Sent(_) => false,
        }
    }

    /// Begins a pass.
    pub(super) fn begin(&mut self, worker: &Worker, workers: usize) -> Result<()> {
        match self {
            Carrier::Shared(ring) => (0..workers).try_for_each(|rank| ring.follow(worker, rank)),
            Carrier::Sent(sent) => sent.begin(worker),
        }
    }

    /// Up to which clock the contributions of worker `rank` can be read here.
    pub(super) fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        match self {
            // They are there before the clock is told.
            Carrier::Shared(_) => Ok(u64::MAX),
            Carrier::Sent(sent) => sent.clock_of(worker, rank),
        }
    }
}
