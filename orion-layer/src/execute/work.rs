//! The work of one worker in a pass: its tiles, and the clocks between their cells.
use super::clocks::Clocks;
use super::plan::LoopPlan;
use super::prefetch_plan::serves;
use super::{Arrays, IterationSpace, LoopArray, Of, PassTrace};
use crate::accumulate::{Accumulators, Tree};
use crate::context::Context;
use crate::error::Result;
use crate::mutant::{self, Mutant};
use crate::panics::unwound::end_iterations;
use crate::relax::LoopReport;
use hectare_dependence::placement::{ArrayPlacement, TilePlan};
use hectare_dependence::schedule::cell_number;
use std::cell::Cell;
use std::time::Instant;

impl Context<'_> {
    /// Runs this worker's tiles. `begun` counts them, `spent` gets the times.
    pub(super) fn work<S, A, C, F>(
        &mut self,
        placed: &S::Placed,
        plan: &LoopPlan,
        arrays: &mut A,
        tree: &mut Tree<'_, C>,
        (begun, clocks, spent): (&mut usize, &mut Option<Clocks>, &mut LoopReport),
        body: F,
    ) -> Result<()>
    where
        S: IterationSpace,
        A: Arrays,
        C: Accumulators,
        F: for<'a, 'b> Fn(Of<'a, S::Chunks>, &'b mut Of<'a, A::Views>) -> C::Values,
    {
        let choice = &plan.choice;
        let current = Cell::new(0);
        let tiles = &plan.tiles[self.rank() as usize];
        let mut taken = Vec::new();
        let serves = clocks.is_some() && serves(plan, arrays);
        let (mut interval, mut ticked) = (0, Instant::now());
        let starts = clocks.as_ref().map(|clocks| plan.clocks_before(self.rank() as usize, clocks.every()));
        for (number, tile) in tiles.iter().enumerate() {
            *begun = number;
            let mut parts = tile.parts.clone();
            if let (Some(clocks), Some(starts)) = (clocks.as_mut(), &starts) {
                clocks.catch_up(self.fabric.worker, &mut relaxed(plan, arrays), starts[number])?;
            }
            let since = Instant::now();
            for (number, array) in arrays.each().iter().enumerate().filter(|(_, array)| array.is_written()) {
                if choice.placement.arrays[number] == ArrayPlacement::Whole {
                    parts[number] = 0..array.layout().parts();
                }
                taken.extend(parts[number].clone().map(|part| (number, part)));
            }
            for part in taken.drain(..) {
                self.take_part(plan, arrays, part, clocks)?;
            }
            spent.wait += since.elapsed();
            if mutant::is(Mutant::EarlyGive) {
                *begun = number + 1;
                self.hand_on(tile, arrays)?;
            }
            let since = Instant::now();
            let mut views = arrays.views(self.fabric.worker, &parts, PassTrace(None, &current))?;
            let Some(clocks) = clocks else {
                if !(mutant::is(Mutant::TileOmitted) && number + 1 == tiles.len()) {
                    plan.for_each_cell(number, &tile.tile, |cell| {
                        run_cell::<S, A, C, F>(placed, (plan, &current), cell, &mut views, tree, &body)
                    });
                }
                if mutant::is(Mutant::TileTwice) {
                    plan.for_each_cell(number, &tile.tile, |cell| {
                        run_cell::<S, A, C, F>(placed, (plan, &current), cell, &mut views, tree, &body)
                    });
                }
                drop(views);
                spent.compute += since.elapsed();
                *begun = number + 1;
                self.hand_on(tile, arrays)?;
                self.fabric.worker.service()?;
                continue;
            };
            drop(views);
            let mut cells: Vec<Vec<usize>> = Vec::new();
            plan.for_each_cell(number, &tile.tile, |cell| cells.push(cell.to_vec()));
            let mut at = 0;
            while at < cells.len() {
                if serves && at % plan.interval(clocks.every()) == 0 {
                    self.prefetch(plan, arrays, interval, spent)?;
                    interval += 1;
                }
                let since = Instant::now();
                let mut views = arrays.views(self.fabric.worker, &parts, PassTrace(None, &current))?;
                let due = loop {
                    run_cell::<S, A, C, F>(placed, (plan, &current), &cells[at], &mut views, tree, &body);
                    at += 1;
                    let due = plan.is_due(clocks, self.fabric.worker, at, ticked.elapsed())?;
                    if at == cells.len() || due || serves && at % plan.interval(clocks.every()) == 0 {
                        break due;
                    }
                };
                drop(views);
                spent.compute += since.elapsed();
                if at < cells.len() && due {
                    clocks.tick(self.fabric.worker, &mut relaxed(plan, arrays), false)?;
                    self.fabric.worker.service()?;
                    ticked = Instant::now();
                }
            }
            *begun = number + 1;
            self.hand_on(tile, arrays)?;
            if number + 1 < tiles.len() {
                clocks.tick(self.fabric.worker, &mut relaxed(plan, arrays), false)?;
                ticked = Instant::now();
            }
            self.fabric.worker.service()?;
        }
        match clocks {
            // Also of a worker without tiles.
            Some(clocks) => clocks.tick(self.fabric.worker, &mut relaxed(plan, arrays), true),
            None => Ok(()),
        }
    }

    /// Gives what others need next, after a tile.
    fn hand_on<A: Arrays>(&mut self, tile: &TilePlan, arrays: &mut A) -> Result<()> {
        if tile.gives.is_empty() {
            return Ok(());
        }
        let mut each = arrays.each();
        tile.gives.iter().try_for_each(|(array, part, to)| each[*array].give(self.fabric.worker, *part, *to))
    }
}

/// The arrays that the loop relaxes.
pub(super) fn relaxed<'a, A: Arrays>(plan: &LoopPlan, arrays: &'a mut A) -> Vec<&'a mut dyn LoopArray> {
    let all = arrays.each().into_iter().enumerate();
    all.filter(|(number, _)| plan.nest.relaxed.contains(number)).map(|(_, array)| array).collect()
}

/// Runs the iterations of one cell, and notes what they add to the accumulators.
#[inline(always)]
fn run_cell<'a, S, A, C, F>(
    placed: &'a S::Placed,
    (plan, current): (&'a LoopPlan, &Cell<usize>),
    cell: &[usize],
    views: &mut Of<'a, A::Views>,
    tree: &mut Tree<'_, C>,
    body: &F,
) where
    S: IterationSpace,
    A: Arrays,
    C: Accumulators,
    F: for<'x, 'y> Fn(Of<'x, S::Chunks>, &'y mut Of<'x, A::Views>) -> C::Values,
{
    let number = cell_number(&plan.choice.grid, cell);
    current.set(number);
    let values = body(S::chunk(placed, &plan.choice.cuts, cell, number), views);
    end_iterations();
    if number + 1 < plan.cells || !mutant::is(Mutant::LostPartial) {
        tree.add(number, values);
    }
}
