//! The work of one worker in a pass: its tiles, and the clocks between their cells.
use super::any_loop::AnyLoop;
use super::cells::Cells;
use super::clocks::Clocks;
use super::plan::LoopPlan;
use super::{AnyArrays, LoopArray, PassTrace};
use crate::context::Context;
use crate::error::Result;
use crate::mutant::{self, Mutant};
use crate::relax::{LoopReport, Treatment};
use hectare_dependence::placement::{ArrayPlacement, TilePlan};
use std::ops::Range;
use std::time::Instant;

/// How far a worker is in a pass.
pub(super) struct Progress {
    /// The first tile that was not run.
    pub(super) begun: usize,
    /// By array: whether parts go ahead to where the next pass begins with them.
    pub(super) ahead: Vec<bool>,
    /// If arrays are relaxed.
    pub(super) clocks: Option<Clocks>,
    /// The times.
    pub(super) spent: LoopReport,
}

/// One of this worker's tiles, of whose arrays it has what the tile needs.
struct BegunTile<'t> {
    /// Its number among this worker's.
    number: usize,
    /// Which parts of each array it sees.
    parts: &'t [Range<usize>],
}

/// The rhythm of a worker's clocks.
struct Rhythm {
    serves: bool,
    /// The number of the present interval between clocks.
    interval: usize,
    /// When the last clock ended.
    ticked: Instant,
}

impl Context<'_> {
    /// Runs this worker's tiles.
    pub(super) fn work(
        &mut self,
        plan: &LoopPlan,
        cells: &Cells<'_>,
        running: &mut dyn AnyLoop<'_>,
        progress: &mut Progress,
    ) -> Result<()> {
        let me = self.rank() as usize;
        let serves = progress.clocks.is_some() && serves(plan, running.arrays());
        let mut rhythm = Rhythm { serves, interval: 0, ticked: Instant::now() };
        let starts = progress.clocks.as_ref().map(|clocks| plan.clocks_before(me, clocks.every()));
        for (number, tile) in plan.tiles[me].iter().enumerate() {
            progress.begun = number;
            if let (Some(clocks), Some(starts)) = (&mut progress.clocks, &starts) {
                clocks.catch_up(self.fabric.worker, &mut relaxed(plan, running.arrays()), starts[number])?;
            }
            let parts = self.take_parts(plan, running.arrays(), tile, progress)?;
            if mutant::is(Mutant::EarlyGive) {
                progress.begun = number + 1;
                self.hand_on(plan, number, running.arrays(), &progress.ahead)?;
            }
            match progress.clocks {
                None => {
                    let begun = BegunTile { number, parts: &parts };
                    self.run_tile(plan, cells, begun, running, &mut progress.spent)?
                }
                Some(_) => {
                    let begun = BegunTile { number, parts: &parts };
                    self.run_tile_by_clocks(plan, cells, begun, running, progress, &mut rhythm)?
                }
            }
            progress.begun = number + 1;
            self.hand_on(plan, number, running.arrays(), &progress.ahead)?;
            if let Some(clocks) = progress.clocks.as_mut().filter(|_| number + 1 < plan.tiles[me].len()) {
                clocks.tick(self.fabric.worker, &mut relaxed(plan, running.arrays()), false)?;
                rhythm.ticked = Instant::now();
            }
            self.fabric.worker.service()?;
        }
        match &mut progress.clocks {
            // Also of a worker without tiles.
            Some(clocks) => clocks.tick(self.fabric.worker, &mut relaxed(plan, running.arrays()), true),
            None => Ok(()),
        }
    }

    /// Waits for the parts that a tile needs, and tells which of each array it sees.
    fn take_parts(
        &mut self,
        plan: &LoopPlan,
        arrays: &mut dyn AnyArrays,
        tile: &TilePlan,
        progress: &mut Progress,
    ) -> Result<Vec<Range<usize>>> {
        let since = Instant::now();
        let mut parts = tile.parts.clone();
        let mut wanted = Vec::new();
        for (number, array) in arrays.each().iter().enumerate().filter(|(_, array)| array.is_written()) {
            if plan.choice.placement.arrays[number] == ArrayPlacement::Whole {
                parts[number] = 0..array.layout().parts();
            }
            wanted.extend(parts[number].clone().map(|part| (number, part)));
        }
        for part in wanted {
            self.take_part(plan, arrays, part, &mut progress.clocks)?;
        }
        progress.spent.wait += since.elapsed();
        Ok(parts)
    }

    /// Runs the cells of a tile, one after the other.
    fn run_tile(
        &mut self,
        plan: &LoopPlan,
        cells: &Cells<'_>,
        BegunTile { number, parts }: BegunTile<'_>,
        running: &mut dyn AnyLoop<'_>,
        spent: &mut LoopReport,
    ) -> Result<()> {
        let tiles = &plan.tiles[self.rank() as usize];
        let since = Instant::now();
        let trace = PassTrace::new(&cells.current).reading(&plan.reads);
        running.run(self.fabric.worker, cells, parts, trace, &mut |run| {
            let mut all = || plan.for_each_cell(number, &tiles[number].tile, &mut *run);
            if !(mutant::is(Mutant::TileOmitted) && number + 1 == tiles.len()) {
                all();
            }
            if mutant::is(Mutant::TileTwice) {
                all();
            }
        })?;
        spent.compute += since.elapsed();
        Ok(())
    }

    /// Runs the cells of a tile, with clocks between them.
    fn run_tile_by_clocks(
        &mut self,
        plan: &LoopPlan,
        cells: &Cells<'_>,
        BegunTile { number, parts }: BegunTile<'_>,
        running: &mut dyn AnyLoop<'_>,
        Progress { clocks, spent, .. }: &mut Progress,
        rhythm: &mut Rhythm,
    ) -> Result<()> {
        let Some(clocks) = clocks else { return Ok(()) };
        let mut list: Vec<Vec<usize>> = Vec::new();
        let tile = &plan.tiles[self.rank() as usize][number].tile;
        plan.for_each_cell(number, tile, |cell| list.push(cell.to_vec()));
        let serves = rhythm.serves;
        let interval = if serves { plan.interval(clocks.every()) } else { 1 };
        let ends_interval = |at: usize| serves && at.is_multiple_of(interval);
        let mut at = 0;
        while at < list.len() {
            if ends_interval(at) {
                self.prefetch(plan, running.arrays(), rhythm.interval, spent)?;
                rhythm.interval += 1;
            }
            let since = Instant::now();
            let trace = PassTrace::new(&cells.current).reading(&plan.reads);
            let mut due = Ok(false);
            running.run(self.fabric.worker, cells, parts, trace, &mut |run| {
                due = loop {
                    run(&list[at]);
                    at += 1;
                    let due = plan.is_due(clocks, self.fabric.worker, at, rhythm.ticked.elapsed());
                    if at == list.len() || !matches!(due, Ok(false)) || ends_interval(at) {
                        break due;
                    }
                };
            })?;
            let due = due?;
            spent.compute += since.elapsed();
            if at < list.len() && due {
                clocks.tick(self.fabric.worker, &mut relaxed(plan, running.arrays()), false)?;
                self.fabric.worker.service()?;
                rhythm.ticked = Instant::now();
            }
        }
        Ok(())
    }

    /// Gives what others need next, after a tile.
    fn hand_on(
        &mut self,
        plan: &LoopPlan,
        number: usize,
        arrays: &mut dyn AnyArrays,
        goes_ahead: &[bool],
    ) -> Result<()> {
        let me = self.rank() as usize;
        let gives = &plan.tiles[me][number].gives;
        let ahead = plan.ahead_after(me, number, goes_ahead);
        let mut all = gives.iter().copied().chain(ahead.map(|one| (one.array, one.part, one.to))).peekable();
        if all.peek().is_none() {
            return Ok(());
        }
        let mut each = arrays.each();
        all.try_for_each(|(array, part, to)| each[array].give(self.fabric.worker, part, to))
    }
}

/// The arrays that the loop relaxes.
pub(super) fn relaxed<'a>(plan: &LoopPlan, arrays: &'a mut dyn AnyArrays) -> Vec<&'a mut dyn LoopArray> {
    let all = arrays.each().into_iter().enumerate();
    all.filter(|(number, _)| plan.nest.relaxed.contains(number)).map(|(_, array)| array).collect()
}

/// Whether any array of the loop is served to it.
pub(super) fn serves(plan: &LoopPlan, arrays: &mut dyn AnyArrays) -> bool {
    relaxed(plan, arrays).iter().any(|array| array.treatment() == Treatment::Served)
}
