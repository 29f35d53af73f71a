//! Slices: what a loop over served arrays will use, found out before it runs.
use super::AnyArrays;
use super::any_loop::AnyLoop;
use super::cells::Cells;
use super::plan::LoopPlan;
use super::work::relaxed;
use crate::context::Context;
use crate::error::Result;
use crate::relax::{Every, LoopReport};
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};
use std::time::Instant;

impl Context<'_> {
    /// Makes the lists of keys that each interval of this worker's uses, unless they are known, and tells the others which
    /// blocks the loop uses here.
    pub(super) fn plan_prefetch(
        &mut self,
        running: &mut dyn AnyLoop<'_>,
        plan: &LoopPlan,
        every: Every,
        spent: &mut LoopReport,
    ) -> Result<()> {
        let since = Instant::now();
        let slice_basis = running.slice_basis();
        let basis = match slice_basis {
            Some(basis) => basis.map(|basis| with_versions(basis, running.arrays())),
            // There are no lists but what is intended by hand.
            None => Some(0),
        };
        let mut known = true;
        for_each_served(plan, running.arrays(), &mut |served| {
            known &= served.knows(plan.number, basis);
            Ok(())
        })?;
        if !known {
            if slice_basis.is_some() {
                for interval in self.intervals(plan, every) {
                    // A slice may fail under conditions that it does not know, where the body does not. Then the body looks keys up, and if
                    // it fails too, says so.
                    let cells = Cells::new(&plan.choice, None);
                    let named = running.slice_cells(self.fabric.worker, &cells, &interval)?;
                    for_each_served(plan, running.arrays(), &mut |served| {
                        served.end_list(named);
                        Ok(())
                    })?;
                }
            }
            for_each_served(plan, running.arrays(), &mut |served| {
                served.end_lists(plan.number, basis);
                Ok(())
            })?;
        }
        let workers = self.size();
        for_each_served(plan, running.arrays(), &mut |served| {
            served.announce(self.fabric.worker, plan.number, workers)
        })?;
        spent.serving.slicing += since.elapsed();
        spent.moving += since.elapsed();
        Ok(())
    }

    /// Fetches the keys of an interval, by its number among those of this worker.
    pub(super) fn prefetch(
        &mut self,
        plan: &LoopPlan,
        arrays: &mut dyn AnyArrays,
        interval: usize,
        spent: &mut LoopReport,
    ) -> Result<()> {
        let since = Instant::now();
        for_each_served(plan, arrays, &mut |served| served.prefetch(self.fabric.worker, interval))?;
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
pub(super) fn take_tallies(plan: &LoopPlan, arrays: &mut dyn AnyArrays, spent: &mut LoopReport) {
    for array in relaxed(plan, arrays) {
        if let Some(served) = array.serves() {
            let tally = served.take_tally();
            spent.bytes += tally.bytes;
            spent.serving.merge(&tally);
        }
    }
}

fn for_each_served(
    plan: &LoopPlan,
    arrays: &mut dyn AnyArrays,
    act: &mut dyn FnMut(&mut dyn crate::serve::Serves) -> Result<()>,
) -> Result<()> {
    for array in relaxed(plan, arrays) {
        if let Some(served) = array.serves() {
            act(served)?;
        }
    }
    Ok(())
}

/// With the versions of the arrays that the loop reads.
pub(super) fn with_versions(basis: impl Hash, arrays: &mut dyn AnyArrays) -> u64 {
    let mut hash = FxHasher::default();
    basis.hash(&mut hash);
    for array in arrays.each() {
        (if array.is_written() { 0 } else { array.version() }).hash(&mut hash);
    }
    hash.finish()
}
