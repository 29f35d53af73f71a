//! A pass in batches.
use super::super::any_loop::AnyLoop;
use super::super::body::guarded;
use super::super::inspection::{Batched, Found};
use super::super::plan::LoopPlan;
use super::Context;
use crate::context::Outcome;
use crate::contract::{AnyArrays, Layout, LoopArray, PassTrace};
use crate::error::{Error, Result};
use crate::relax::LoopReport;
use hectare_dsm::tasks::RowRun;
use rustc_hash::FxHasher;
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::time::Instant;

fn written(arrays: &mut dyn AnyArrays) -> Vec<&mut dyn LoopArray> {
    arrays.each().into_iter().filter(|array| array.is_written()).collect()
}

impl Found {
    /// How it runs in batches, if it does.
    pub(in super::super) fn batched(&self) -> Option<&Batched> {
        match self {
            Found::Serial => None,
            Found::Batched(batched) => Some(batched),
        }
    }

    /// A number for what workers do.
    pub(in super::super) fn digest(&self, fingerprint: u64) -> u64 {
        let mut hash = FxHasher::default();
        (fingerprint, self.batched().map(|batched| batched.rows.digest())).hash(&mut hash);
        hash.finish()
    }
}

impl Context<'_> {
    /// Runs a pass of a loop that was inspected. Collective.
    pub(in super::super) fn pass_in_batches(
        &mut self,
        running: &mut dyn AnyLoop<'_>,
        plan: &LoopPlan,
        batched: &Batched,
    ) -> Result<()> {
        let (head, me) = (running.head(), self.rank());
        self.lay_in_place(plan, running.arrays())?;
        let since = Instant::now();
        let cells = if plan.accumulates { batched.group_count } else { 1 };
        running.begin_sums(cells);
        let worked = guarded(&plan.nest, me, || self.work_in_batches(running, plan, batched));
        let waited = Instant::now();
        if worked.is_ok() {
            // Whoever is not here yet may still write. One who has failed says so here, and calls once, as this does.
            if let Err(error) = self.exchange(head.site, Outcome::Value(&[]), |_, _| Ok(())) {
                running.arrays().each().iter_mut().for_each(|array| array.poison(&error.to_string()));
                return Err(error);
            }
        }
        let took = since.elapsed();
        let ended = worked
            .map_err(unforeseen)
            .and_then(|spent| self.close_to_tasks(written(running.arrays())).map(|()| spent));
        let mut spent = match ended {
            Ok(spent) => spent,
            Err(error) => {
                self.tell_failed();
                running.arrays().each().iter_mut().for_each(|array| array.poison(&error.to_string()));
                return Err(self.fail(head.site, error));
            }
        };
        self.combine(running, plan, [took, spent.compute])?;
        spent.wait += waited.elapsed();
        plan.note(head.relax, &spent, None);
        Ok(())
    }

    /// Brings every written array into one piece, and opens it to all workers.
    fn lay_in_place(&mut self, plan: &LoopPlan, arrays: &mut dyn AnyArrays) -> Result<()> {
        for (array, described) in arrays.each().into_iter().zip(&plan.nest.arrays) {
            if array.is_written() && array.layout().parts() > 1 {
                let whole =
                    Layout { dim: 0, bounds: vec![0, described.shape[0]], owners: vec![plan.only_worker()] };
                array.rearrange(self, plan.site, &whole)?;
            }
        }
        // Whoever is not here yet may still read what the last loop left.
        self.exchange(plan.site, Outcome::Value(&[]), |_, _| Ok(()))?;
        let mut each = written(arrays);
        let recalled = each.iter_mut().try_for_each(|array| array.recall(self.fabric.worker));
        self.agree_on(plan.site, recalled)?;
        let recalled = each.iter_mut().try_for_each(|array| array.finish_recall(self.fabric.worker));
        self.open_to_tasks(plan, each, recalled)
    }

    /// Runs this worker's batches; what time that took.
    fn work_in_batches(
        &mut self,
        running: &mut dyn AnyLoop<'_>,
        plan: &LoopPlan,
        batched: &Batched,
    ) -> Result<LoopReport> {
        let arrays = running.arrays();
        let all = arrays.each().into_iter().enumerate();
        let numbers: Vec<usize> =
            all.filter(|(_, array)| array.is_written()).map(|(number, _)| number).collect();
        let areas: Vec<_> = written(arrays).iter().filter_map(|array| array.in_place()).collect();
        let (cell, parts) = (Cell::new(0), vec![0..0; plan.nest.arrays.len()]);
        let (marks, cuts) = (&batched.marks, &plan.choice.cuts);
        let mut groups = batched.groups.iter();
        // If it ends before all batches are run, those who wait for them learn that they will not be.
        let mut run = RowRun::begin(self.fabric.worker, batched.rows.clone(), 1, &areas)?;
        plan.read_bytes.borrow_mut().set(plan.nest.arrays.len(), &run.bytes_between_hosts());
        let (mut spent, mut since) = (LoopReport::default(), Instant::now());
        while let Some(batch) = run.next(self.fabric.worker)? {
            let begun = Instant::now();
            spent.wait += begun - since;
            let trace = PassTrace::of_rows(&cell, &batch, &numbers, marks);
            let range = batched.of(batch.number());
            let list = (&batched.iterations[..], &cuts[..]);
            running.run_lists(batch.worker(), list, &parts, trace, &mut |run| {
                if !plan.accumulates {
                    return run(None, range.clone());
                }
                let mut start = range.start;
                while start < range.end
                    && let Some(&(group, end)) = groups.next()
                {
                    cell.set(group);
                    run(Some(group), start..end);
                    start = end;
                }
            })?;
            since = Instant::now();
            spent.compute += since - begun;
        }
        // On several hosts, what others wrote is here from now on.
        run.end(self.fabric.worker)?;
        spent.wait += since.elapsed();
        Ok(spent)
    }
}

/// An access that the slice did not name is the fault of subscripts that change.
fn unforeseen(error: Error) -> Error {
    match error {
        Error::OutOfBounds { loop_name, array, index, what, worker, iteration }
            if what.starts_with("not with this worker") =>
        {
            let what = "which the loop's inspection did not foresee: a subscript has another value when it is computed \
                        again; compute subscripts into an array before the loop, or run it with `schedule = Serial`";
            Error::OutOfBounds { loop_name, array, index, what: what.into(), worker, iteration }
        }
        other => other,
    }
}
