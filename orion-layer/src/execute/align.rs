//! Clocks beside hand-overs: workers that wait for each other at clocks, and for parts of rotated arrays.
//!
//! Who waits for a part waits for a worker that may be waiting at a clock, perhaps for the first. Two things keep that from
//! standing still. Under [`Consistency::Bsp`](crate::relax::Consistency::Bsp), where the plan says at the ends of which
//! cells clocks end, all workers begin a step of the schedule at the same clock: those with fewer cells in the step
//! before end a few clocks more, in which nothing happens. So the bits do not depend on who is faster. And whoever waits
//! for a part still applies what others contribute, and ends a clock whenever another is ahead
//! ([`Clocks::idle`](super::clocks::Clocks::idle)).
//!
//! A part that comes from another host is on its way when its taker begins the step, and not there. Nobody ends clocks for it where all
//! begin steps together: those that it would be ended for wait at their next clock, and take part in rounds, by which it comes.
use super::AnyArrays;
use super::clocks::Clocks;
use super::plan::LoopPlan;
use super::work::relaxed;
use crate::context::Context;
use crate::error::Result;
use crate::relax::Every;
use std::time::Duration;

/// How long a worker waits for a part before it looks at clocks again.
const PAUSE: Duration = Duration::from_micros(50);
/// The same of a part that may come from another host, whose giver may have failed.
const LONG_PAUSE: Duration = Duration::from_millis(2);

impl LoopPlan {
    /// The clock at which all workers begin each tile of worker `rank`; zeros if that is not planned.
    pub(super) fn clocks_before(&self, rank: usize, every: Every) -> Vec<u64> {
        if !every.is_planned() {
            return vec![0; self.tiles[rank].len()];
        }
        let mut own_cells = vec![0; self.workers()];
        self.owners.iter().for_each(|owner| own_cells[*owner] += 1);
        let mut clock = 0;
        let mut before = Vec::with_capacity(self.tiles[rank].len());
        for step in &self.choice.steps {
            if step.get(rank).is_some_and(Option::is_some) {
                before.push(clock);
            }
            let ends = step.iter().zip(&own_cells).filter_map(|(tile, own)| {
                let cells: usize = tile.as_ref()?.cells.iter().map(|range| range.len()).product();
                // Those within the tile, and that after it.
                Some(cells.saturating_sub(1) / self.interval_of(*own, every) + 1)
            });
            clock += ends.max().unwrap_or(0) as u64;
        }
        before
    }
}

impl Context<'_> {
    /// Waits for a part of array `number`, unless this worker holds it; clocks go on meanwhile.
    pub(super) fn take_part(
        &mut self,
        plan: &LoopPlan,
        arrays: &mut dyn AnyArrays,
        (number, part): (usize, usize),
        clocks: &mut Option<Clocks>,
    ) -> Result<()> {
        if self.fabric.spans_hosts() {
            return self.take_part_from_afar(plan, arrays, (number, part), clocks);
        }
        let Some(clocks) = clocks else { return arrays.each()[number].take(self.fabric.worker, part) };
        while !arrays.each()[number].take_within(self.fabric.worker, part, PAUSE)? {
            clocks.idle(self.fabric.worker, &mut relaxed(plan, arrays))?;
        }
        Ok(())
    }

    /// The same on several hosts: who fails lets go of nothing that is seen there, and says so by the clock table.
    fn take_part_from_afar(
        &mut self,
        plan: &LoopPlan,
        arrays: &mut dyn AnyArrays,
        (number, part): (usize, usize),
        clocks: &mut Option<Clocks>,
    ) -> Result<()> {
        let clock_table = self.clock_table(plan.site)?;
        let pause = if clocks.is_some() { PAUSE } else { LONG_PAUSE };
        while !arrays.each()[number].take_within(self.fabric.worker, part, pause)? {
            clock_table.check_peers(self.fabric.worker)?;
            if let Some(clocks) = clocks.as_mut() {
                clocks.wait_for_part(self.fabric.worker, &mut relaxed(plan, arrays))?;
            }
        }
        Ok(())
    }
}
