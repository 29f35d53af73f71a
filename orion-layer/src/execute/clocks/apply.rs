//! Applying what workers contributed to buffered and served arrays: clock by clock under [`Consistency::Bsp`], else as it
//! comes.
use super::{Clocks, LoopArray};
use crate::error::Result;
use crate::relax::Consistency;
use hectare_dsm::Worker;
use std::time::Instant;

impl Clocks {
    /// Applies what has been published.
    pub(super) fn apply(&mut self, worker: &Worker, arrays: &mut [&mut dyn LoopArray]) -> Result<()> {
        if !self.buffers {
            return Ok(());
        }
        match self.params.relax.consistency {
            Consistency::Bsp => while self.apply_clock(worker, arrays)? {},
            _ => {
                for rank in 0..self.params.workers {
                    while self.applied[rank] < self.clock_of(worker, arrays, rank)?.0 {
                        self.apply_one(worker, arrays, rank)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Applies the next clock of all who have one, if it is known who has.
    fn apply_clock(&mut self, worker: &Worker, arrays: &mut [&mut dyn LoopArray]) -> Result<bool> {
        let next = self.applied.iter().copied().max().unwrap_or(0);
        let is_behind = self.applied.iter().any(|clocks| *clocks < next);
        debug_assert!(!is_behind || self.params.workers > 1);
        let mut ready = Vec::new();
        for rank in 0..self.params.workers {
            let (clock, done) = self.clock_of(worker, arrays, rank)?;
            match (clock > next, done) {
                (true, _) => ready.push(rank),
                (false, true) => {}
                (false, false) => return Ok(false),
            }
        }
        for rank in &ready {
            self.apply_one(worker, arrays, *rank)?;
        }
        Ok(!ready.is_empty())
    }

    fn apply_one(&mut self, worker: &Worker, arrays: &mut [&mut dyn LoopArray], rank: usize) -> Result<()> {
        let since = Instant::now();
        let clock = self.applied[rank];
        arrays.iter_mut().try_for_each(|array| array.apply(worker, rank, clock))?;
        self.applied[rank] = clock + 1;
        self.clock_table.set_applied(worker, rank, clock + 1)?;
        self.report.apply += since.elapsed();
        Ok(())
    }
}
