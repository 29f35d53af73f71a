//! Contributions to a buffered array on their way: every worker writes its own into a ring of slots in shared memory,
//! one slot for each clock, and those who are responsible for the elements apply them.
//!
//! A slot is written anew when its contributions have been applied by all; until then its worker waits. Who applies them
//! counts the clocks of each worker that it has applied, in order; so each is applied exactly once, also if a bound on
//! delay makes workers wait in the middle of a pass.
use super::{Additive, Apply, PassParams, SLOTS, Traffic};
use crate::error::{Error, Result};
use crate::fabric::shown::spans_hosts;
use crate::fabric::watched::{Reading, Watched};
use hectare_dsm::bytemuck::Zeroable;
use hectare_dsm::{Cells, Element, Worker};
use std::ops::Range;

/// The slots of all workers.
#[derive(Debug)]
struct Ring<T: Element> {
    slots: Watched<T>,
    /// Elements of a slot.
    len: usize,
}

impl<T: Element> Ring<T> {
    fn meet(worker: &mut Worker, (set, name): (&str, &str), len: usize, workers: usize) -> Result<Ring<T>> {
        Ok(Ring { slots: Watched::meet(worker, set, name, SLOTS.slots() * len, workers)?, len })
    }

    /// What worker `rank` shows, and where the slot of a clock begins.
    fn slot<'a>(&'a self, worker: &'a Worker, rank: usize, clock: u64) -> Result<(Reading<'a, T>, usize)> {
        Ok((self.slots.of(worker, rank)?, SLOTS.slot(clock) * self.len))
    }

    fn store(&mut self, worker: &Worker, clock: u64, from: &[T]) -> Result<()> {
        self.slots.write(worker)?.store(SLOTS.slot(clock) * self.len, from)
    }
}

#[cold]
fn unprepared() -> Error {
    Error::Invalid("a buffered array was not prepared".into())
}

/// The state of a buffered array on this worker.
#[derive(Debug)]
pub(super) struct Contributions<T: Additive, A: Apply<T>> {
    updates: Option<Ring<T>>,
    sights: Option<Ring<A::Seen>>,
    /// On several hosts: up to which clock the others are there, of which the clock itself may come before.
    clocks: Option<Watched<u64>>,
    /// The array as the body sees it.
    pub(super) values: Vec<T>,
    /// The contributions of the body since the last clock.
    pub(super) sums: Vec<T>,
    /// The remembered state of when `values` was read.
    seen: Vec<A::Seen>,
}

impl<T: Additive, A: Apply<T>> Contributions<T, A> {
    const REMEMBERS: bool = size_of::<A::Seen>() > 0;

    pub(super) fn new() -> Self {
        Contributions {
            updates: None,
            sights: None,
            clocks: None,
            values: Vec::new(),
            sums: Vec::new(),
            seen: Vec::new(),
        }
    }

    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        if let Some(ring) = self.updates {
            ring.slots.delete(worker)?;
        }
        if let Some(ring) = self.sights {
            ring.slots.delete(worker)?;
        }
        if let Some(clocks) = self.clocks {
            clocks.delete(worker)?;
        }
        Ok(())
    }

    /// Begins a pass.
    pub(super) fn enter(
        &mut self,
        worker: &mut Worker,
        number: u64,
        len: usize,
        params: &PassParams,
    ) -> Result<()> {
        if self.updates.is_none() {
            let set = format!("orion/{number}/buffer");
            self.updates = Some(Ring::meet(worker, (&set, "updates"), len, params.workers)?);
            if Self::REMEMBERS {
                self.sights = Some(Ring::meet(worker, (&set, "sights"), len, params.workers)?);
            }
            if spans_hosts(worker) {
                self.clocks = Some(Watched::meet(worker, &set, "clocks", 1, params.workers)?);
            }
        }
        if let Some(clocks) = &mut self.clocks {
            clocks.write(worker)?.store(0, &[0])?;
        }
        self.values.resize(len, T::default());
        self.sums.clear();
        self.sums.resize(len, T::default());
        self.seen.resize(if Self::REMEMBERS { len } else { 0 }, A::Seen::zeroed());
        Ok(())
    }

    /// Publishes what this worker contributed in clock `clock`, from 0.
    pub(super) fn publish(&mut self, worker: &Worker, clock: u64) -> Result<Traffic> {
        let mut traffic = Traffic { bytes: size_of_val(&self.sums[..]) as u64, ..Traffic::default() };
        self.updates.as_mut().ok_or_else(unprepared)?.store(worker, clock, &self.sums)?;
        if let Some(sights) = &mut self.sights {
            sights.store(worker, clock, &self.seen)?;
            traffic.bytes += size_of_val(&self.seen[..]) as u64;
        }
        if let Some(clocks) = &mut self.clocks {
            clocks.write(worker)?.store(0, &[clock + 1])?;
        }
        self.sums.fill(T::default());
        Ok(traffic)
    }

    /// Up to which clock the contributions of worker `rank` can be read here.
    pub(super) fn clock_of(&self, worker: &Worker, rank: usize) -> Result<u64> {
        // On one host, they are there before the clock is told.
        self.clocks.as_ref().map_or(Ok(u64::MAX), |clocks| Ok(clocks.of(worker, rank)?.get(0)))
    }

    /// Applies what worker `from` contributed in clock `clock` to a share of the elements.
    pub(super) fn apply(
        &self,
        worker: &Worker,
        rule: &A,
        (from, clock): (usize, u64),
        target: Cells<'_, T>,
        state: Option<Cells<'_, A::State>>,
        share: Range<usize>,
    ) -> Result<()> {
        let (updates, slot) = self.updates.as_ref().ok_or_else(unprepared)?.slot(worker, from, clock)?;
        let sights = self.sights.as_ref().map(|ring| ring.slot(worker, from, clock)).transpose()?;
        for at in share {
            let update = updates.get(slot + at);
            if update.is_zero() {
                continue;
            }
            let seen = sights.map_or_else(A::Seen::zeroed, |(sights, slot)| sights.get(slot + at));
            let mut element = target.get(at);
            let mut helper = state.map_or_else(A::State::zeroed, |state| state.get(at));
            rule.apply(&mut element, &mut helper, update, seen);
            target.set(at, element);
            if let Some(state) = state {
                state.set(at, helper);
            }
        }
        Ok(())
    }

    /// Reads the elements.
    pub(super) fn refresh(
        &mut self,
        rule: &A,
        target: Cells<'_, T>,
        state: Option<Cells<'_, A::State>>,
    ) -> Traffic {
        target.load(&mut self.values);
        let mut bytes = size_of_val(&self.values[..]) as u64;
        if let Some(state) = state.filter(|_| Self::REMEMBERS) {
            for (at, seen) in self.seen.iter_mut().enumerate() {
                *seen = rule.see(&state.get(at));
            }
            bytes += size_of_val(&self.seen[..]) as u64;
        }
        Traffic { bytes, ..Traffic::default() }
    }
}
