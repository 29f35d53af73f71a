//! The clocks of a pass that relaxes arrays.
//!
//! At a clock a worker
//! 1. waits until there is room for its contributions to buffered arrays,
//! 2. publishes what it did, then that it did so (release: who sees the clock sees the changes),
//! 3. applies what others contributed to its share of buffered arrays,
//! 4. waits, and goes on applying, until all others are as far as the bound on staleness demands, and have applied as much,
//! 5. reads what the others did.
//!
//! Under [`Consistency::Bsp`] contributions are applied clock by clock, when all have published one, and by rank; and
//! what is read is what was published for the clock, though some may be ahead. So nothing depends on who is faster.
//!
//! Where arrays have a [`Tail`](crate::contract::Tail), all this is about their heads, and about the whole at one clock of several
//! and at the last. Which clocks these are, is a matter of their numbers alone, and so the same for all workers.
mod apply;

use super::LoopArray;
use super::staleness_meter::StalenessMeter;
use crate::error::{Error, Result};
use crate::relax::{Applied, ClockTable, Consistency, Every, LoopReport, PassParams, SLOTS, Traffic};
use hectare_dsm::{SlotRing, Worker};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The clocks of this worker in one pass.
pub(super) struct Clocks {
    clock_table: Rc<ClockTable>,
    params: PassParams,
    timeout: Duration,
    /// Whether any array takes part in clocks.
    ticks: bool,
    /// Whether any array is buffered.
    buffers: bool,
    /// Where contributions are on their way: of several arrays, the fewest slots.
    slots: SlotRing,
    clock: u64,
    /// How many clocks of each worker this one has applied.
    applied: Vec<u64>,
    /// For [`Every::Staleness`].
    meter: Option<StalenessMeter>,
    pub(super) report: LoopReport,
}

impl Clocks {
    /// Begins a pass: the arrays are open, and all words are at zero.
    pub(super) fn enter(
        clock_table: Rc<ClockTable>,
        params: PassParams,
        timeout: Duration,
        worker: &mut Worker,
        arrays: &mut [&mut dyn LoopArray],
    ) -> Result<Clocks> {
        arrays.iter().try_for_each(|array| array.ask(worker))?;
        let mut ticks = false;
        for array in arrays.iter_mut() {
            ticks |= array.enter(worker, &params)?;
        }
        let buffers = arrays.iter().any(|array| array.treatment().contributes());
        let slots = arrays.iter().filter_map(|array| array.slots()).min_by_key(|slots| slots.slots());
        let slots = slots.unwrap_or(SLOTS);
        let applied = vec![0; params.workers];
        let measures = ticks && matches!(params.relax.every, Every::Staleness(_));
        let meter = measures.then(|| StalenessMeter::new(buffers));
        let report = LoopReport::default();
        Ok(Clocks { clock_table, params, timeout, ticks, buffers, slots, clock: 0, applied, meter, report })
    }

    pub(super) fn every(&self) -> Every {
        self.params.relax.every
    }

    /// Whether a worker that has ended a cell, of `per_cell` iterations in the mean, ends a clock, because reads lack more
    /// than `most` iterations.
    pub(super) fn is_stale(&mut self, worker: &Worker, most: u64, per_cell: f64) -> Result<bool> {
        let Some(meter) = &mut self.meter else { return Ok(false) };
        let bound = (self.clock, most, per_cell);
        meter.is_due(&self.clock_table, worker, &self.params, bound, &mut self.report)
    }

    /// Ends a clock; `last` says that no more come from this worker.
    pub(super) fn tick(
        &mut self,
        worker: &mut Worker,
        arrays: &mut [&mut dyn LoopArray],
        last: bool,
    ) -> Result<()> {
        if !self.ticks {
            return Ok(());
        }
        if arrays.iter().any(|array| array.is_crowded()) {
            self.wait_for_servers(worker, arrays, self.clock)?;
            arrays.iter_mut().try_for_each(|array| array.make_room(worker))?;
        }
        self.tick_once(worker, arrays, last)
    }

    /// Ends clocks, in which nothing happens, until `clock`: that at which all begin a step of the schedule. Where workers
    /// need not be at the same clock, or nobody ticks, there is none to wait for.
    pub(super) fn catch_up(
        &mut self,
        worker: &mut Worker,
        arrays: &mut [&mut dyn LoopArray],
        clock: u64,
    ) -> Result<()> {
        let counts = self.ticks && self.params.relax.consistency == Consistency::Bsp;
        while counts && self.clock < clock {
            self.tick_once(worker, arrays, false)?;
        }
        Ok(())
    }

    /// For a worker that waits for a part of an array: applies what others contributed, and ends a clock if another
    /// is ahead, for that one may be waiting.
    pub(super) fn idle(&mut self, worker: &mut Worker, arrays: &mut [&mut dyn LoopArray]) -> Result<()> {
        if !self.ticks {
            return Ok(());
        }
        self.apply(worker, arrays)?;
        for rank in 0..self.params.workers {
            if self.clock_of(worker, arrays, rank)?.0 > self.clock {
                return self.tick_once(worker, arrays, false);
            }
        }
        Ok(())
    }

    /// The same for a part that is on its way from another host.
    pub(super) fn wait_for_part(
        &mut self,
        worker: &mut Worker,
        arrays: &mut [&mut dyn LoopArray],
    ) -> Result<()> {
        match self.every().is_planned() && self.params.relax.consistency == Consistency::Bsp {
            true => self.apply(worker, arrays),
            false => self.idle(worker, arrays),
        }
    }

    fn tick_once(
        &mut self,
        worker: &mut Worker,
        arrays: &mut [&mut dyn LoopArray],
        last: bool,
    ) -> Result<()> {
        if self.buffers {
            self.wait_for_servers(worker, arrays, self.slots.needed(self.clock))?;
        }
        let since = Instant::now();
        let whole = last || self.params.relax.tail.is_due(self.clock);
        for array in arrays.iter_mut() {
            let traffic = array.publish(worker, self.clock, whole)?;
            self.note(traffic);
        }
        self.report.moving += since.elapsed();
        self.clock += 1;
        self.report.clocks += 1;
        let cells = self.meter.as_ref().map_or(0, StalenessMeter::cells);
        self.clock_table.set_clock(worker, self.clock, last, cells)?;
        if self.clock_table.is_published() {
            worker.sync()?;
        }
        let bound = self.params.relax.consistency.bound();
        if last {
            return self.finish(worker, arrays);
        }
        match self.clock.checked_sub(bound).filter(|wanted| *wanted > 0) {
            Some(wanted) => {
                self.wait(worker, arrays, ("the others", 0), |clocks, worker, arrays| {
                    clocks.is_reached(worker, arrays, wanted)
                })?;
            }
            None => self.apply(worker, arrays)?,
        }
        let since = Instant::now();
        let (published, applied) = self.published(worker, arrays)?;
        for array in arrays.iter_mut() {
            let applied = Applied::new(&applied, self.params.workers);
            let traffic = array.refresh(worker, &published, applied, whole)?;
            self.note(traffic);
        }
        self.report.moving += since.elapsed();
        Ok(())
    }

    /// Waits until all have applied `needed` clocks of this worker's, so that what was published for these may go.
    fn wait_for_servers(
        &mut self,
        worker: &mut Worker,
        arrays: &mut [&mut dyn LoopArray],
        needed: u64,
    ) -> Result<()> {
        self.wait(worker, arrays, ("room for contributions", needed), |clocks, worker, _arrays| {
            clocks.all(|server| Ok(clocks.clock_table.applied(worker, server, clocks.params.me)? >= needed))
        })
    }

    /// Waits until all have published all that they have, and all of it is applied; then the arrays hold it.
    fn finish(&mut self, worker: &mut Worker, arrays: &mut [&mut dyn LoopArray]) -> Result<()> {
        self.wait(worker, arrays, ("the others to end their passes", 0), |clocks, worker, arrays| {
            let done = clocks.all(|rank| Ok(clocks.clock_of(worker, arrays, rank)?.1))?;
            Ok(done && clocks.is_reached(worker, arrays, u64::MAX)?)
        })?;
        let mut published = Vec::with_capacity(self.params.workers);
        for rank in 0..self.params.workers {
            published.push(self.clock_of(worker, arrays, rank)?.0);
        }
        let since = Instant::now();
        arrays.iter_mut().try_for_each(|array| array.fold(worker, &published))?;
        self.report.moving += since.elapsed();
        Ok(())
    }

    /// How many clocks of a worker can be read here, and whether these are all.
    fn clock_of(&self, worker: &Worker, arrays: &[&mut dyn LoopArray], rank: usize) -> Result<(u64, bool)> {
        let (told, done) = self.clock_table.clock(worker, rank)?;
        let mut clock = told;
        for array in arrays {
            clock = clock.min(array.clock_of(worker, rank)?);
        }
        Ok((clock, done && clock == told))
    }

    fn all(&self, mut holds: impl FnMut(usize) -> Result<bool>) -> Result<bool> {
        for rank in 0..self.params.workers {
            if !holds(rank)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all have published `wanted` clocks, or all that they will, and these are applied to all that this worker reads.
    fn is_reached(&self, worker: &Worker, arrays: &[&mut dyn LoopArray], wanted: u64) -> Result<bool> {
        self.all(|rank| {
            let (clock, done) = self.clock_of(worker, arrays, rank)?;
            let wanted = wanted.min(if done { clock } else { u64::MAX });
            if clock < wanted {
                return Ok(false);
            }
            if !self.buffers {
                return Ok(true);
            }
            self.all(|server| Ok(self.applied_by(worker, server, rank)? >= wanted))
        })
    }

    /// How many clocks of worker `rank` are applied by `server` where this worker reads. On several hosts it reads a copy of its own,
    /// and what others have applied to theirs matters to the room for contributions alone.
    fn applied_by(&self, worker: &Worker, server: usize, rank: usize) -> Result<u64> {
        match self.clock_table.is_published() {
            true => Ok(self.applied[rank]),
            false => self.clock_table.applied(worker, server, rank),
        }
    }

    /// The clock of each worker that is to be read now, and what is applied ([`Applied`]); notes how stale it is.
    fn published(&mut self, worker: &Worker, arrays: &[&mut dyn LoopArray]) -> Result<(Vec<u64>, Vec<u64>)> {
        let mut published = Vec::with_capacity(self.params.workers);
        let servers = if self.buffers { self.params.workers } else { 0 };
        let mut applied = vec![0; servers * self.params.workers];
        for rank in 0..self.params.workers {
            let (mut clock, done) = self.clock_of(worker, arrays, rank)?;
            if self.params.relax.consistency == Consistency::Bsp {
                // Who is ahead has published more, in the other slot.
                clock = clock.min(self.clock);
            }
            let mut seen = clock;
            for server in 0..servers {
                let clock = self.applied_by(worker, server, rank)?;
                applied[server * self.params.workers + rank] = clock;
                seen = seen.min(clock);
            }
            if rank != self.params.me && !done {
                self.report.staleness.note(self.clock.saturating_sub(seen));
            }
            if let Some(meter) = &self.meter {
                meter.note_merged(&self.clock_table, worker, rank, seen)?;
            }
            published.push(clock);
        }
        Ok((published, applied))
    }

    fn note(&mut self, traffic: Traffic) {
        self.report.bytes += traffic.bytes;
        if traffic.measured {
            self.report.drift_samples += 1;
            self.report.drift += traffic.change / traffic.size.max(traffic.change).max(f64::MIN_POSITIVE);
        }
    }

    /// Waits for `what` until `is_done`, and applies what comes meanwhile. Others may be why it does not come: who is behind, or has
    /// applied fewer than `needed` clocks of this worker's.
    fn wait(
        &mut self,
        worker: &mut Worker,
        arrays: &mut [&mut dyn LoopArray],
        (what, needed): (&str, u64),
        is_done: impl Fn(&Clocks, &Worker, &[&mut dyn LoopArray]) -> Result<bool>,
    ) -> Result<()> {
        let (since, applying) = (Instant::now(), self.report.apply);
        let (clock_table, own, timeout) = (self.clock_table.clone(), self.clock, self.timeout);
        let me = self.params.me;
        let what = || format!("{what} at clock {own} of a relaxed loop");
        let behind = |worker: &Worker, rank: usize| {
            let (clock, done) = clock_table.clock(worker, rank)?;
            Ok::<_, Error>(!done && clock < own || clock_table.applied(worker, rank, me)? < needed)
        };
        clock_table.wait(worker, timeout, what, behind, |worker| {
            self.apply(worker, arrays)?;
            is_done(self, worker, arrays)
        })?;
        self.report.wait += since.elapsed().saturating_sub(self.report.apply - applying);
        Ok(())
    }
}
