//! Slices: what a loop over served arrays will use, found out before it runs.
use super::called::{KeySlice, Slice};
use super::plan::LoopPlan;
use super::work::relaxed;
use super::{Arrays, IterationSpace, SlicePieces};
use crate::context::Context;
use crate::contract::KeyNotes;
use crate::error::Result;
use crate::relax::{Every, LoopReport};
use hectare_dependence::schedule::cell_number;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

impl Context<'_> {
    /// Makes the lists of keys that each interval of this worker's uses, unless they are known, and tells the others which
    /// blocks the loop uses here.
    pub(super) fn plan_prefetch<S, A, K>(
        &mut self,
        placed: &S::Placed,
        plan: &LoopPlan,
        every: Every,
        arrays: &mut A,
        slice: Slice<'_, K>,
        spent: &mut LoopReport,
    ) -> Result<()>
    where
        S: IterationSpace,
        A: Arrays,
        K: KeySlice<S, A>,
    {
        let since = Instant::now();
        let basis = match slice.keys {
            Some(_) => slice.basis.map(|basis| with_versions(basis, arrays)),
            // There are no lists but what is intended by hand.
            None => Some(0),
        };
        let mut known = true;
        for_each_served(plan, arrays, |served| {
            known &= served.knows(plan.number, basis);
            Ok(())
        })?;
        if !known {
            if let Some(keys) = slice.keys {
                for interval in self.intervals(plan, every) {
                    let named = {
                        let mut views = arrays.keys(self.fabric.worker, KeyNotes::NONE)?;
                        // A slice may fail under conditions that it does not know, where the body does not. Then
                        // the body looks keys up, and if it fails too, says so.
                        let run = || {
                            for cell in &interval {
                                let number = cell_number(&plan.choice.grid, cell);
                                let chunk = S::chunk(placed, &plan.choice.cuts, cell, number);
                                keys(SlicePieces::one(chunk), &mut views);
                            }
                        };
                        catch_unwind(AssertUnwindSafe(run)).is_ok()
                    };
                    for_each_served(plan, arrays, |served| {
                        served.end_list(named);
                        Ok(())
                    })?;
                }
            }
            for_each_served(plan, arrays, |served| {
                served.end_lists(plan.number, basis);
                Ok(())
            })?;
        }
        let workers = self.size();
        for_each_served(plan, arrays, |served| served.announce(self.fabric.worker, plan.number, workers))?;
        spent.serving.slicing += since.elapsed();
        spent.moving += since.elapsed();
        Ok(())
    }

    /// Fetches the keys of an interval, by its number among those of this worker.
    pub(super) fn prefetch<A: Arrays>(
        &mut self,
        plan: &LoopPlan,
        arrays: &mut A,
        interval: usize,
        spent: &mut LoopReport,
    ) -> Result<()> {
        let since = Instant::now();
        for_each_served(plan, arrays, |served| served.prefetch(self.fabric.worker, interval))?;
        spent.serving.fetching += since.elapsed();
        spent.moving += since.elapsed();
        Ok(())
    }

    /// The cells of this worker's, in the order in which it runs them, from one clock to the next.
    fn intervals(&self, plan: &LoopPlan, every: Every) -> Vec<Vec<Vec<usize>>> {
        let mut intervals = Vec::new();
        for (number, tile) in plan.tiles[self.rank() as usize].iter().enumerate() {
            let mut cells: Vec<Vec<usize>> = Vec::new();
            plan.for_each_cell(number, &tile.tile, |cell| cells.push(cell.to_vec()));
            intervals.extend(cells.chunks(plan.interval(every)).map(<[_]>::to_vec));
        }
        intervals
    }
}

/// Takes what served arrays have counted.
pub(super) fn take_tallies<A: Arrays>(plan: &LoopPlan, arrays: &mut A, spent: &mut LoopReport) {
    for array in relaxed(plan, arrays) {
        if let Some(served) = array.serves() {
            let tally = served.take_tally();
            spent.bytes += tally.bytes;
            spent.serving.merge(&tally);
        }
    }
}

fn for_each_served<A: Arrays>(
    plan: &LoopPlan,
    arrays: &mut A,
    mut act: impl FnMut(&mut dyn crate::serve::Serves) -> Result<()>,
) -> Result<()> {
    for array in relaxed(plan, arrays) {
        if let Some(served) = array.serves() {
            act(served)?;
        }
    }
    Ok(())
}

/// With the versions of the arrays that the loop reads.
pub(super) fn with_versions<A: Arrays>(basis: impl Hash, arrays: &mut A) -> u64 {
    let mut hash = FxHasher::default();
    basis.hash(&mut hash);
    for array in arrays.each() {
        (if array.is_written() { 0 } else { array.version() }).hash(&mut hash);
    }
    hash.finish()
}
