//! Contributions to a buffered array on their way: every worker writes its own into a ring of slots in shared memory,
//! one slot for each clock, and those who are responsible for the elements apply them.
//!
//! A slot is reused when its contributions have been applied by all; until then its worker waits. Who applies them
//! counts the clocks of each worker that it has applied, in order; so each is applied exactly once, also if a bound on
//! delay makes workers wait in the middle of a pass.
//!
//! All that happens at a clock is proportional to what was changed: contributions are lists ([`Ring`]), and what is read is
//! what they name ([`News`]).
use super::beside::Beside;
use super::news::News;
use super::ring::{List, Ring};
use super::touched::Touched;
use super::{Additive, Applied, Apply, PassParams, Traffic};
use crate::contract::Extent;
use crate::error::{Error, Result};
use hectare_dsm::bytemuck::Zeroable;
use hectare_dsm::{Cells, SlotRing, Worker};
use std::ops::Range;

#[cold]
fn unprepared() -> Error {
    Error::Invalid("a buffered array was not prepared".into())
}

/// The state of a buffered array on this worker.
#[derive(Debug)]
pub(super) struct Contributions<T: Additive, A: Apply<T>> {
    ring: Option<Ring<T, A::Snapshot>>,
    /// The array as the body sees it, and the contributions of the body since the last clock.
    pub(super) beside: Beside<T>,
    /// Which elements it contributed to.
    pub(super) touched: Touched,
    extent: Extent,
    /// The elements to which this worker has contributed nothing that is not published: those that a clock merged that has just ended, as
    /// the body does not run again before the next [`Contributions::refresh`]. None in the middle of a clock.
    readable: usize,
    /// The remembered state of when `values` was read.
    seen: Vec<A::Snapshot>,
    /// The elements whose values are not those of the array any more.
    news: News,
    /// The contributions that are published at a clock.
    list: List<T, A::Snapshot>,
}

impl<T: Additive, A: Apply<T>> Contributions<T, A> {
    const REMEMBERS: bool = size_of::<A::Snapshot>() > 0;

    pub(super) fn new() -> Self {
        Contributions {
            ring: None,
            beside: Beside::new(),
            touched: Touched::default(),
            extent: Extent { head: 0, len: 0 },
            readable: 0,
            seen: Vec::new(),
            news: News::default(),
            list: List::new(),
        }
    }

    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.ring.map_or(Ok(()), |ring| ring.delete(worker))
    }

    /// Makes what this worker shows, if that was not done before; whether others have still to be found.
    pub(super) fn make(&mut self, worker: &mut Worker, number: u64, len: usize) -> Result<bool> {
        let ring = match &self.ring {
            Some(ring) => ring,
            None => {
                let set = format!("orion/{number}/buffer");
                self.ring.insert(Ring::make(worker, &set, (len, 1))?)
            }
        };
        Ok(!ring.is_found())
    }

    /// Begins a pass over an array of these elements and helper values.
    pub(super) fn prepare(
        &mut self,
        worker: &mut Worker,
        (extent, has_rows): (Extent, bool),
        params: &PassParams,
    ) -> Result<()> {
        let len = extent.len;
        let ring = self.ring.as_mut().ok_or_else(unprepared)?;
        ring.find(worker, params.workers)?;
        ring.enter(worker)?;
        self.beside.reset(len, has_rows);
        self.touched.reset(len);
        self.seen.resize(if Self::REMEMBERS { len } else { 0 }, A::Snapshot::zeroed());
        self.news.reset(params.workers, extent.head);
        (self.extent, self.readable) = (extent, 0);
        Ok(())
    }

    /// Publishes what this worker contributed by the end of clock `clock`, from 0, to the whole array or to its head.
    pub(super) fn publish(&mut self, worker: &Worker, clock: u64, whole: bool) -> Result<Traffic> {
        let merged = self.extent.merged(whole);
        self.readable = merged.end;
        let Contributions { beside, touched, seen, list, .. } = self;
        list.clear();
        touched.drain(merged.end, |at| {
            let sum = beside.take_sum(at);
            if !sum.is_zero() {
                list.elements.push(at as u32);
                list.updates.push(sum);
                if Self::REMEMBERS {
                    list.sights.push(seen[at]);
                }
            }
        });
        self.ring.as_mut().ok_or_else(unprepared)?.store(worker, clock, list)?;
        Ok(Traffic { bytes: list.bytes(), ..Traffic::default() })
    }

    /// The slots for what this worker contributes.
    pub(super) fn slots(&self) -> Option<SlotRing> {
        self.ring.as_ref().map(Ring::slots)
    }

    /// Up to which clock the contributions of worker `rank` can be read here.
    pub(super) fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        self.ring.as_ref().ok_or_else(unprepared)?.clock_of(worker, rank)
    }

    /// Applies what worker `from` contributed in clock `clock` to this worker's share of the elements; `shares` are those of all.
    /// At a clock it reads at once what comes of it, while that is at hand. Not in the middle of a clock, nor elements that the clock
    /// did not merge: what the body has contributed since the last one goes with what was remembered then.
    pub(super) fn apply(
        &mut self,
        worker: &Worker,
        rule: &A,
        (from, clock): (usize, u64),
        target: Cells<'_, T>,
        state: Option<Cells<'_, A::State>>,
        shares: impl Iterator<Item = Range<usize>> + Clone,
    ) -> Result<()> {
        let Contributions { ring, beside, seen: remembered, news, readable, .. } = self;
        let mut elements = news.room();
        let sent = ring.as_ref().ok_or_else(unprepared)?.load(worker, (from, clock), &mut elements)?;
        let me = worker.rank() as usize;
        let share = shares.clone().nth(me).unwrap_or(0..0);
        let place = |bound: usize| elements.partition_point(|element| (*element as usize) < bound);
        let part = place(share.start)..place(share.end);
        for (at, element) in part.clone().zip(&elements[part]) {
            let ((update, seen), element) = (sent.get(at), *element as usize);
            let mut value = target.get(element);
            let mut helper = state.map_or_else(A::State::zeroed, |state| state.get(element));
            rule.apply(&mut value, &mut helper, update, seen);
            target.set(element, value);
            if let Some(state) = state {
                state.set(element, helper);
            }
            if element < *readable {
                beside.set(element, value);
                if state.is_some() && Self::REMEMBERS {
                    remembered[element] = rule.snapshot(&helper);
                }
            }
        }
        news.add((from, clock), elements, shares, (me, *readable));
        Ok(())
    }

    /// Reads all elements.
    pub(super) fn load(
        &mut self,
        rule: &A,
        target: Cells<'_, T>,
        state: Option<Cells<'_, A::State>>,
    ) -> Traffic {
        let Contributions { beside, seen, .. } = self;
        load(rule, (beside, seen), self.extent.len, target, state.filter(|_| Self::REMEMBERS))
    }

    /// Reads the elements that have changed since they were read, as far as they are known to be `applied`: those of the whole array or
    /// of its head.
    pub(super) fn refresh(
        &mut self,
        rule: &A,
        target: Cells<'_, T>,
        state: Option<Cells<'_, A::State>>,
        (applied, whole): (Applied<'_>, bool),
    ) -> Traffic {
        self.readable = 0;
        let merged = self.extent.merged(whole);
        let Contributions { beside, seen, news, .. } = self;
        let state = state.filter(|_| Self::REMEMBERS);
        let mut traffic = Traffic::default();
        news.read(applied, whole, &mut |elements| {
            let Some(elements) = elements else {
                traffic.bytes += load(rule, (beside, seen), merged.end, target, state).bytes;
                return;
            };
            for element in elements {
                let at = *element as usize;
                beside.set(at, target.get(at));
                if let Some(state) = state {
                    seen[at] = rule.snapshot(&state.get(at));
                }
            }
            traffic.bytes += (elements.len() * (size_of::<T>() + size_of::<A::Snapshot>())) as u64;
        });
        traffic
    }
}

/// Reads the first `count` elements, and what is remembered of their helper values.
fn load<T: Additive, A: Apply<T>>(
    rule: &A,
    (beside, seen): (&mut Beside<T>, &mut [A::Snapshot]),
    count: usize,
    target: Cells<'_, T>,
    state: Option<Cells<'_, A::State>>,
) -> Traffic {
    beside.values().take(count).enumerate().for_each(|(at, value)| *value = target.get(at));
    if let Some(state) = state {
        for (at, seen) in seen.iter_mut().take(count).enumerate() {
            *seen = rule.snapshot(&state.get(at));
        }
    }
    Traffic { bytes: (count * (size_of::<T>() + size_of::<A::Snapshot>())) as u64, ..Traffic::default() }
}
