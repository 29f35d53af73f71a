//! Workers that will not come: what a launcher knows and those who wait for them do not.
use super::Job;
use crate::error::{Error, Rank, Result};
use std::sync::atomic::Ordering;

impl Job {
    /// For launchers: the process that was to be worker `rank`, or was it, has failed, and nobody comes in its place. Those who
    /// wait for that worker ([`Worker::wait_for_workers`](crate::Worker::wait_for_workers)) learn of it at once, and
    /// not when their time is over. Holds until a worker takes the rank, or [`Job::expect`] takes it back. False,
    /// and nothing is noted, if a worker of this host that lives has the rank. Of one on another host, whose memory is not here, the
    /// launcher's word counts: it is [`WorkerState::Dead`](crate::WorkerState::Dead) from then on.
    ///
    /// ```
    /// use hectare_dsm::{Error, Job};
    /// use std::time::Duration;
    /// let job = Job::embedded()?;
    /// let mut worker = job.worker()?;
    /// assert!(!job.note_failure(0)? && job.note_failure(2)? && job.note_failure(1)?);
    /// let waited = worker.wait_for_workers(3, Duration::MAX);
    /// assert!(matches!(waited, Err(Error::WorkerFailed { rank: 2 }))); // the first that failed
    /// job.expect(1)?;
    /// assert!(matches!(worker.wait_for_workers(2, Duration::ZERO), Err(Error::TimedOut { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchWorker`] for a rank that the job has no room for, [`Error::ForkedChild`].
    pub fn note_failure(&self, rank: Rank) -> Result<bool> {
        let marks = self.shared.segment.workers().iter().map(|record| record.absent.load(Ordering::Relaxed));
        // The first is the one to name: others may have failed because of it.
        let order = marks.max().unwrap_or(0).saturating_add(1);
        self.set_absent(rank, order)?;
        // A worker that took the rank meanwhile has cleared the word, or its seat shows it here.
        let nobody = self.shared.segment.host_of(rank).is_some() || self.shared.live_process(rank).is_none();
        if !nobody {
            self.set_absent(rank, 0)?;
        }
        Ok(nobody)
    }

    /// Whether the job, which is on several hosts, goes on: after one of them has failed it does not.
    ///
    /// # Errors
    /// [`Error::PeerFailed`], which says which host it was.
    pub fn check_hosts(&self) -> Result<()> {
        self.shared.check_ending()
    }

    /// For launchers: worker `rank` is about to be started, whatever became of an earlier one
    /// ([`Job::note_failure`]).
    ///
    /// # Errors
    /// Those of [`Job::note_failure`].
    pub fn expect(&self, rank: Rank) -> Result<()> {
        self.set_absent(rank, 0)
    }

    fn set_absent(&self, rank: Rank, order: u32) -> Result<()> {
        self.shared.check_process()?;
        let record = self.shared.segment.workers().get(rank as usize).ok_or(Error::NoSuchWorker { rank })?;
        // SeqCst: before the look at the seat; pairs with the joiner, which clears this after its seat's state.
        record.absent.store(order, Ordering::SeqCst);
        Ok(())
    }
}
