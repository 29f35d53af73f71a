//! Loops whose written arrays lie in place: one piece each, which all workers write, tile by tile, between each other's elements.
//!
//! The plan says what each tile touches and which tiles come before it. The core checks that and refuses a plan by which two
//! tiles that may run at once touch the same element (`hectare_dsm::tasks`); then it hands out to each tile what the plan
//! says. So a plan that is wrong is an error and no data race.
use super::plan::LoopPlan;
use super::work::{Cells, Progress};
use crate::accumulate::{Accumulators, Tree};
use crate::context::Context;
use crate::contract::{Arrays, IterationSpace, LoopArray, PassTrace};
use crate::error::{Error, Result};
use crate::execute::called::Body;
use hectare_dsm::tasks::{TaskGraph, TaskRun};
use std::sync::Arc;
use std::time::Instant;

/// The arrays of a loop that lie in place.
fn in_place<'a, A: Arrays>(plan: &LoopPlan, arrays: &'a mut A) -> Vec<&'a mut dyn LoopArray> {
    let numbers = plan.choice.placement.in_place.as_ref().map_or(&[][..], |in_place| &in_place.arrays);
    let all = arrays.each().into_iter().enumerate();
    all.filter(|(number, _)| numbers.contains(number)).map(|(_, array)| array).collect()
}

impl Context<'_> {
    /// Opens the arrays that lie in place to the tiles of all workers, unless this worker has failed before. Collective; if there are
    /// none, does nothing, and nobody is told of the failure, which is returned.
    pub(super) fn open_in_place<A: Arrays>(
        &mut self,
        plan: &LoopPlan,
        arrays: &mut A,
        before: Result<()>,
    ) -> Result<Result<()>> {
        if plan.tasks.is_none() {
            return Ok(before);
        }
        self.open_to_tasks(plan, in_place(plan, arrays), before).map(Ok)
    }

    /// Opens arrays in one piece to what all workers run on them. Collective.
    pub(super) fn open_to_tasks(
        &mut self,
        plan: &LoopPlan,
        mut arrays: Vec<&mut dyn LoopArray>,
        before: Result<()>,
    ) -> Result<()> {
        let clock_table = self.clock_table()?;
        let mut open = || arrays.iter_mut().try_for_each(|array| array.open_to_tasks(self.fabric.worker));
        let opened = before.and_then(|()| open());
        let opened = opened.and_then(|()| clock_table.reset(self.fabric.worker));
        self.agree_on(plan.site, opened)
    }

    /// Runs this worker's tiles.
    pub(super) fn work_in_place<S, A, C, F>(
        &mut self,
        cells: &Cells<'_, S, F>,
        tasks: &Arc<TaskGraph>,
        arrays: &mut A,
        tree: &mut Tree<'_, C>,
        progress: &mut Progress,
    ) -> Result<()>
    where
        S: IterationSpace,
        A: Arrays,
        C: Accumulators,
        F: Body<S, A, C>,
    {
        let plan = cells.plan;
        let clock_table = self.clock_table()?;
        let numbers = plan.choice.placement.in_place.as_ref().map_or(&[][..], |in_place| &in_place.arrays);
        let areas: Vec<_> = in_place(plan, arrays).iter().filter_map(|array| array.in_place()).collect();
        // If it ends before all tiles are run, those who wait for them learn that they will not be.
        let mut run = TaskRun::begin(self.fabric.worker, tasks.clone(), &areas)?;
        for (number, tile) in plan.tiles[self.rank() as usize].iter().enumerate() {
            progress.begun = number;
            if !run.is_ready(self.fabric.worker)? {
                let since = Instant::now();
                run.wait::<Error>(self.fabric.worker, |worker| clock_table.check_peers(worker))?;
                progress.spent.wait += since.elapsed();
            }
            let task = run.next(self.fabric.worker)?;
            let since = Instant::now();
            let trace = PassTrace::of_task(&cells.current, &task, numbers);
            let mut views = arrays.views(self.fabric.worker, &tile.parts, trace)?;
            plan.for_each_cell(number, &tile.tile, |cell| cells.run::<A, C>(cell, &mut views, tree));
            drop(views);
            progress.spent.compute += since.elapsed();
            task.end();
            self.fabric.worker.service()?;
        }
        progress.begun = plan.tiles[self.rank() as usize].len();
        Ok(())
    }

    /// Takes back what this worker has opened, when all workers have run their tiles, and lends it.
    pub(super) fn close_in_place<A: Arrays>(&mut self, plan: &LoopPlan, arrays: &mut A) -> Result<()> {
        self.close_to_tasks(in_place(plan, arrays))
    }

    /// Takes back arrays that this worker has opened ([`Context::open_to_tasks`]), when all workers have ended, and lends them.
    pub(super) fn close_to_tasks(&mut self, arrays: Vec<&mut dyn LoopArray>) -> Result<()> {
        arrays.into_iter().try_for_each(|array| {
            array.close(self.fabric.worker)?;
            array.finish_recall(self.fabric.worker)?;
            array.lend(self.fabric.worker)
        })
    }
}
