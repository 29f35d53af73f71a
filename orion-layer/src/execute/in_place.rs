//! Loops whose written arrays lie in place: one piece each, which all workers write, tile by tile, between each other's elements.
//!
//! The plan says what each tile touches and which tiles come before it. The core checks that and refuses a plan by which two
//! tiles that may run at once touch the same element (`hectare_dsm::tasks`); then it hands out to each tile what the plan
//! says. So a plan that is wrong is an error and no data race.
use super::cells::Cells;
use super::plan::LoopPlan;
use super::work::Progress;
use crate::context::{Context, Outcome};
use crate::contract::{AnyArrays, LoopArray, PassTrace};
use crate::error::{Error, Result};
use crate::execute::any_loop::AnyLoop;
use crate::site::Site;
use hectare_dsm::Rank;
use hectare_dsm::tasks::{TaskGraph, TaskRun};
use std::sync::Arc;
use std::time::Instant;

/// The arrays of a loop that lie in place.
fn in_place<'a>(plan: &LoopPlan, arrays: &'a mut dyn AnyArrays) -> Vec<&'a mut dyn LoopArray> {
    let numbers = plan.choice.placement.in_place.as_ref().map_or(&[][..], |in_place| &in_place.arrays);
    let all = arrays.each().into_iter().enumerate();
    all.filter(|(number, _)| numbers.contains(number)).map(|(_, array)| array).collect()
}

/// Why a worker does not wait for the others any more.
enum Alone {
    Failed(Error),
    /// One of them is at another place of the program.
    Elsewhere,
}

impl From<hectare_dsm::Error> for Alone {
    fn from(error: hectare_dsm::Error) -> Alone {
        Alone::Failed(error.into())
    }
}

impl Context<'_> {
    /// Whether all that the loop writes was left open to tasks: then no worker has to meet the others before it begins its tiles. The
    /// same on every worker.
    pub(super) fn is_left_open(&self, plan: &LoopPlan, arrays: &[&mut dyn LoopArray]) -> bool {
        plan.tasks.is_some()
            && !self.has_to_meet
            && arrays.iter().all(|array| !array.is_written() || array.rests_open())
    }

    /// Leaves them open when all workers have run their tiles: what comes next is most often another such loop.
    pub(super) fn leave_open(&mut self, plan: &LoopPlan, arrays: &mut dyn AnyArrays) {
        if plan.tasks.is_some() {
            in_place(plan, arrays).into_iter().for_each(|array| array.leave_open());
        }
    }

    /// Opens the arrays that lie in place to the tiles of all workers, unless this worker has failed before, and begins the run of its
    /// tiles. Collective. All know of an outer error; an inner one is of this worker alone, who has to tell the others.
    pub(super) fn open_and_begin(
        &mut self,
        plan: &LoopPlan,
        tasks: &Arc<TaskGraph>,
        arrays: &mut dyn AnyArrays,
        before: Result<()>,
    ) -> Result<Result<TaskRun>> {
        self.open_to_tasks(plan, in_place(plan, arrays), before)?;
        Ok(self.begin_run(plan, tasks, arrays))
    }

    /// The same where they lie open already ([`Context::is_left_open`]): nobody has met, so it is found out whether all come.
    pub(super) fn begin_open(
        &mut self,
        plan: &LoopPlan,
        tasks: &Arc<TaskGraph>,
        arrays: &mut dyn AnyArrays,
    ) -> Result<Result<TaskRun>> {
        match self.begin_run(plan, tasks, arrays) {
            Ok(run) => self.all_begin(plan.site, run),
            Err(error) => self.stands_alone(plan.site, error),
        }
    }

    fn begin_run(
        &mut self,
        plan: &LoopPlan,
        tasks: &Arc<TaskGraph>,
        arrays: &mut dyn AnyArrays,
    ) -> Result<TaskRun> {
        let mut arrays = in_place(plan, arrays);
        let mut runs: Vec<_> = arrays.iter_mut().filter_map(|array| array.runs()).collect();
        Ok(TaskRun::begin_next(self.fabric.worker, tasks.clone(), &mut runs)?)
    }

    /// Waits until all workers have begun the run, of whom none has said yet that it came to this loop. If one is at another place of
    /// the program, or in another loop over arrays that lie open, the exchange says which.
    fn all_begin(&mut self, site: Site, run: TaskRun) -> Result<Result<TaskRun>> {
        let clock_table = self.clock_table(site)?;
        let (calls, fingerprint) = (self.sequence(), self.fingerprint());
        clock_table.set_loop(self.fabric.worker, calls, fingerprint)?;
        let (worker, others) = self.about_to_wait();
        let met = run.wait_for_all(worker, |worker| {
            clock_table.check_peers(worker).map_err(Alone::Failed)?;
            for rank in 0..others.size() {
                // Who has begun the run may be at its end. Looked at in this order: it has begun before it posts that frame.
                let is_elsewhere = others.has_gone_on(worker, rank) && !run.has_begun(rank as Rank);
                let is_in_another = clock_table.is_in_another_loop(worker, rank, calls, fingerprint);
                if is_elsewhere || is_in_another.map_err(Alone::Failed)? {
                    return Err(Alone::Elsewhere);
                }
            }
            Ok(())
        });
        match met {
            Ok(()) => Ok(Ok(run)),
            Err(Alone::Failed(error)) => Ok(Err(error)),
            Err(Alone::Elsewhere) => {
                drop(run);
                let what = "another worker has not found the loop's arrays open".into();
                self.stands_alone(site, hectare_dsm::Error::Tasks { rank: self.rank(), what }.into())
            }
        }
    }

    /// Finds out by an exchange who is elsewhere, as the others do who wait for this worker; if nobody is, it has failed by itself.
    fn stands_alone<R>(&mut self, site: Site, error: Error) -> Result<Result<R>> {
        self.exchange(site, Outcome::Value(&[]), |_, _| Ok(()))?;
        Ok(Err(error))
    }

    /// Opens arrays in one piece to what all workers run on them. Collective.
    pub(super) fn open_to_tasks(
        &mut self,
        plan: &LoopPlan,
        mut arrays: Vec<&mut dyn LoopArray>,
        before: Result<()>,
    ) -> Result<()> {
        let clock_table = self.clock_table(plan.site)?;
        let mut open = || arrays.iter_mut().try_for_each(|array| array.open_to_tasks(self.fabric.worker));
        let opened = before.and_then(|()| open());
        let opened = opened.and_then(|()| clock_table.reset(self.fabric.worker));
        self.agree_on(plan.site, opened)?;
        self.has_to_meet = false;
        Ok(())
    }

    /// Runs this worker's tiles.
    pub(super) fn work_in_place(
        &mut self,
        plan: &LoopPlan,
        cells: &Cells<'_>,
        mut run: TaskRun,
        running: &mut dyn AnyLoop<'_>,
        progress: &mut Progress,
    ) -> Result<()> {
        let clock_table = self.clock_table(plan.site)?;
        let numbers = plan.choice.placement.in_place.as_ref().map_or(&[][..], |in_place| &in_place.arrays);
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
            running.run(self.fabric.worker, cells, &tile.parts, trace, &mut |run| {
                plan.for_each_cell(number, &tile.tile, run);
            })?;
            progress.spent.compute += since.elapsed();
            task.end();
            self.fabric.worker.service()?;
        }
        progress.begun = plan.tiles[self.rank() as usize].len();
        Ok(())
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
