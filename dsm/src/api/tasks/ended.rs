//! Questions that a worker can still ask about a run that it has ended.
use super::part::{Part, words};
use crate::engine::shared::Shared;
use crate::error::{Error, Rank, Result};
use crate::protocol::tasks::Done;
use std::sync::Arc;

/// A run of tasks or rows that this worker has ended ([`TaskRun::end`](super::run::TaskRun::end),
/// [`RowRun::end`](super::rows::RowRun::end)).
#[derive(Debug)]
pub struct EndedRun {
    shared: Arc<Shared>,
    number: u64,
    workers: usize,
    /// Whether this worker has done all its tasks.
    is_done: bool,
}

impl EndedRun {
    pub(super) fn of(part: Part) -> EndedRun {
        let (shared, is_done) = (part.shared().clone(), part.done() == part.tasks());
        EndedRun { shared, number: part.number(), workers: part.workers(), is_done }
    }

    /// Finds out whether all workers have done all of their tasks: to be called when they have met since they ended the run, in
    /// [`Worker::barrier`](crate::Worker::barrier) for instance, and before they meet again, as none has begun another run by then.
    /// Without this, a worker learns that another has died or left only if it waits for tasks of that one. One that has not done all
    /// its own is told nothing.
    ///
    /// ```
    /// use hectare_dsm::tasks::{RowList, RowPlan, RowRun, Touched};
    /// use hectare_dsm::{AreaSpec, Job};
    /// use std::sync::Arc;
    ///
    /// let job = Job::embedded()?;
    /// let mut worker = job.worker()?;
    /// let owned = worker.create::<f32>(AreaSpec::new("rows").copies(0), 2)?;
    /// let (area, opened) = (owned.area(), owned.open_to_tasks(&worker)?);
    /// let writes = [&[0u32, 1][..]].into_iter().collect::<RowList>();
    /// let touched = Touched { writes, reads: [&[][..]].into_iter().collect() };
    /// let plan = Arc::new(RowPlan::new(vec![2], 1, vec![vec![touched]])?);
    /// let mut run = RowRun::begin(&mut worker, plan, 1, &[area.in_place()])?;
    /// while let Some(batch) = run.next(&mut worker)? {
    ///     batch.rows(&area, 0)?.get_mut(0).unwrap()[0] += 1.0;
    /// }
    /// let ended = run.end(&mut worker)?;
    /// worker.barrier()?;
    /// ended.check_done()?;
    /// opened.close(&mut worker)?.finish(&mut worker)?;
    /// worker.barrier()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::TaskLeft`] with a worker that has died or left before it had done all, for another reason than that another had.
    pub fn check_done(&self) -> Result<()> {
        if !self.is_done {
            return Ok(());
        }
        let unfinished = |rank: Rank| {
            let words = words(&self.shared, rank);
            if words.has_finished(self.number) {
                return None;
            }
            match words.done_in(self.number) {
                Done::Left { because_of: Some(first), .. } => Some(first),
                _ => Some(rank),
            }
        };
        match (0..self.workers as Rank).find_map(unfinished) {
            Some(rank) => Err(Error::TaskLeft { rank }),
            None => Ok(()),
        }
    }
}
