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
mod apply;

use super::Control;
use super::lacking::Lacking;
use crate::error::{Error, Result};
use crate::relax::{Board, Consistency, Every, LoopReport, Moved, Pace, SLOTS};
use hectare_dsm::Worker;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The clocks of this worker in one pass.
pub(super) struct Clocks {
    board: Rc<Board>,
    pace: Pace,
    patience: Duration,
    /// Whether any array takes part in clocks.
    ticks: bool,
    /// Whether any array is buffered.
    buffers: bool,
    clock: u64,
    /// How many clocks of each worker this one has applied.
    applied: Vec<u64>,
    /// For [`Every::Staleness`].
    lacking: Option<Lacking>,
    pub(super) report: LoopReport,
}

impl Clocks {
    /// Begins a pass: the arrays are open, and all words are at zero.
    pub(super) fn enter(
        board: Rc<Board>,
        pace: Pace,
        patience: Duration,
        worker: &mut Worker,
        arrays: &mut [&mut dyn Control],
    ) -> Result<Clocks> {
        let mut ticks = false;
        for array in arrays.iter_mut() {
            ticks |= array.enter(worker, &pace)?;
        }
        let buffers = arrays.iter().any(|array| array.treatment().contributes());
        let applied = vec![0; pace.workers];
        let measures = ticks && matches!(pace.relax.every, Every::Staleness(_));
        let lacking = measures.then(|| Lacking::new(buffers));
        let report = LoopReport::default();
        Ok(Clocks { board, pace, patience, ticks, buffers, clock: 0, applied, lacking, report })
    }

    pub(super) fn every(&self) -> Every {
        self.pace.relax.every
    }

    /// Whether a worker that has ended a cell, of `per_cell` iterations in the mean, ends a clock, because reads lack more
    /// than `most` iterations.
    pub(super) fn is_stale(&mut self, worker: &Worker, most: u64, per_cell: f64) -> Result<bool> {
        let Some(lacking) = &mut self.lacking else { return Ok(false) };
        let bound = (self.clock, most, per_cell);
        lacking.is_due(&self.board, worker, &self.pace, bound, &mut self.report)
    }

    /// Ends a clock; `last` says that no more come from this worker.
    pub(super) fn tick(
        &mut self,
        worker: &mut Worker,
        arrays: &mut [&mut dyn Control],
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
        arrays: &mut [&mut dyn Control],
        clock: u64,
    ) -> Result<()> {
        let counts = self.ticks && self.pace.relax.consistency == Consistency::Bsp;
        while counts && self.clock < clock {
            self.tick_once(worker, arrays, false)?;
        }
        Ok(())
    }

    /// What a worker does that waits for a part of an array: applies what others contributed, and ends a clock if another
    /// is ahead, for that one may be waiting.
    pub(super) fn idle(&mut self, worker: &mut Worker, arrays: &mut [&mut dyn Control]) -> Result<()> {
        if !self.ticks {
            return Ok(());
        }
        self.apply(worker, arrays)?;
        for rank in 0..self.pace.workers {
            if self.board.clock(worker, rank)?.0 > self.clock {
                return self.tick_once(worker, arrays, false);
            }
        }
        Ok(())
    }

    fn tick_once(&mut self, worker: &mut Worker, arrays: &mut [&mut dyn Control], last: bool) -> Result<()> {
        if self.buffers {
            self.wait_for_servers(worker, arrays, SLOTS.needed(self.clock))?;
        }
        let since = Instant::now();
        for array in arrays.iter_mut() {
            let moved = array.publish(worker, self.clock)?;
            self.note(moved);
        }
        self.report.moving += since.elapsed();
        self.clock += 1;
        self.report.clocks += 1;
        let cells = self.lacking.as_ref().map_or(0, Lacking::cells);
        self.board.set_clock(worker, self.clock, last, cells)?;
        let bound = self.pace.relax.consistency.bound();
        if last {
            return self.finish(worker, arrays);
        }
        match self.clock.checked_sub(bound).filter(|wanted| *wanted > 0) {
            Some(wanted) => {
                self.wait(worker, arrays, "the others", |clocks, worker| clocks.is_reached(worker, wanted))?;
            }
            None => self.apply(worker, arrays)?,
        }
        let since = Instant::now();
        let published = self.published(worker)?;
        for array in arrays.iter_mut() {
            let moved = array.refresh(worker, &published)?;
            self.note(moved);
        }
        self.report.moving += since.elapsed();
        Ok(())
    }

    /// Waits until all have applied `needed` clocks of this worker's, so that what was published for these may go.
    fn wait_for_servers(
        &mut self,
        worker: &mut Worker,
        arrays: &mut [&mut dyn Control],
        needed: u64,
    ) -> Result<()> {
        self.wait(worker, arrays, "room for contributions", |clocks, worker| {
            clocks.all(|server| Ok(clocks.board.applied(worker, server, clocks.pace.me)? >= needed))
        })
    }

    /// Waits until all have published all that they have, and all of it is applied; then the arrays hold it.
    fn finish(&mut self, worker: &mut Worker, arrays: &mut [&mut dyn Control]) -> Result<()> {
        self.wait(worker, arrays, "the others to end their passes", |clocks, worker| {
            let done = clocks.all(|rank| Ok(clocks.board.clock(worker, rank)?.1))?;
            Ok(done && clocks.is_reached(worker, u64::MAX)?)
        })?;
        let mut published = Vec::with_capacity(self.pace.workers);
        for rank in 0..self.pace.workers {
            published.push(self.board.clock(worker, rank)?.0);
        }
        let since = Instant::now();
        arrays.iter_mut().try_for_each(|array| array.fold(worker, &published))?;
        self.report.moving += since.elapsed();
        Ok(())
    }

    fn all(&self, mut holds: impl FnMut(usize) -> Result<bool>) -> Result<bool> {
        for rank in 0..self.pace.workers {
            if !holds(rank)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all have published `wanted` clocks, or all that they will, and these are applied everywhere.
    fn is_reached(&self, worker: &Worker, wanted: u64) -> Result<bool> {
        self.all(|rank| {
            let (clock, done) = self.board.clock(worker, rank)?;
            let wanted = wanted.min(if done { clock } else { u64::MAX });
            if clock < wanted {
                return Ok(false);
            }
            if !self.buffers {
                return Ok(true);
            }
            self.all(|server| Ok(self.board.applied(worker, server, rank)? >= wanted))
        })
    }

    /// What is to be read of each worker now; notes how stale that is.
    fn published(&mut self, worker: &Worker) -> Result<Vec<u64>> {
        let mut published = Vec::with_capacity(self.pace.workers);
        for rank in 0..self.pace.workers {
            let (mut clock, done) = self.board.clock(worker, rank)?;
            if self.pace.relax.consistency == Consistency::Bsp {
                // Who is ahead has published more, in the other slot.
                clock = clock.min(self.clock);
            }
            let mut seen = clock;
            for server in (0..self.pace.workers).filter(|_| self.buffers) {
                seen = seen.min(self.board.applied(worker, server, rank)?);
            }
            if rank != self.pace.me && !done {
                self.report.staleness.note(self.clock.saturating_sub(seen));
            }
            if let Some(lacking) = &self.lacking {
                lacking.note_merged(&self.board, worker, rank, seen)?;
            }
            published.push(clock);
        }
        Ok(published)
    }

    fn note(&mut self, moved: Moved) {
        self.report.bytes += moved.bytes;
        if moved.measured {
            self.report.drift_looks += 1;
            self.report.drift += moved.change / moved.size.max(moved.change).max(f64::MIN_POSITIVE);
        }
    }

    /// Waits until `is_done`, and applies what comes meanwhile.
    fn wait(
        &mut self,
        worker: &mut Worker,
        arrays: &mut [&mut dyn Control],
        what: &str,
        is_done: impl Fn(&Clocks, &Worker) -> Result<bool>,
    ) -> Result<()> {
        let (since, applying) = (Instant::now(), self.report.apply);
        let (board, own, patience) = (self.board.clone(), self.clock, self.patience);
        let what = || format!("{what} at clock {own} of a relaxed loop");
        let behind = |worker: &Worker, rank: usize| {
            let (clock, done) = board.clock(worker, rank)?;
            Ok::<_, Error>(!done && clock < own)
        };
        board.wait(worker, patience, what, behind, |worker| {
            self.apply(worker, arrays)?;
            is_done(self, worker)
        })?;
        self.report.wait += since.elapsed().saturating_sub(self.report.apply - applying);
        Ok(())
    }
}
