//! Workers that will not join: a launcher knows of them, the workers that wait for them do not.
use super::Job;
use crate::error::{Error, Rank, Result};
use std::sync::atomic::Ordering;

impl Job {
    /// For launchers: the process that was to be worker `rank`, or was it, has failed, and nobody comes in its place. Those who
    /// wait for that worker ([`Worker::wait_for_workers`](crate::Worker::wait_for_workers)) learn of it at once, and
    /// not when their time is over. Holds until a worker takes the rank, or [`Job::expect`] takes it back. False,
    /// and nothing is noted, if a worker that lives has the rank.
    ///
    /// Said on the worker's host: the agent tells the others, also when it holds no longer. There, such a worker is
    /// [`WorkerState::Dead`](crate::WorkerState::Dead) meanwhile.
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
    /// [`Error::NoSuchWorker`] for a rank that the job has no room for, [`Error::WorkerElsewhere`] for one of another host,
    /// [`Error::ForkedChild`].
    pub fn note_failure(&self, rank: Rank) -> Result<bool> {
        self.check_rank_here(rank)?;
        let is_taken = || self.shared.live_process(rank).is_some();
        // Before the mark, of which other hosts are told.
        if is_taken() {
            return Ok(false);
        }
        self.shared.note_absent(rank);
        // A worker that took the rank meanwhile has cleared the word, or its seat shows it here.
        let nobody = !is_taken();
        if !nobody {
            self.shared.set_absent(rank, 0);
        }
        Ok(nobody)
    }

    /// For launchers: the process that was to be worker `rank` has ended well, and nobody comes in its place. If no worker has ever had
    /// the rank, those who wait for it learn of that at once, as by [`Job::note_failure`]. True if that was noted.
    ///
    /// ```
    /// use hectare_dsm::Job;
    /// let job = Job::embedded()?;
    /// drop(job.worker_at(1)?);
    /// assert!(!job.note_end(1)? && job.note_end(2)?);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Job::note_failure`].
    pub fn note_end(&self, rank: Rank) -> Result<bool> {
        self.check_rank_here(rank)?;
        // Relaxed: a process that has ended has written it.
        let has_come =
            self.shared.segment.all_seats()[rank as usize].incarnation.load(Ordering::Relaxed) != 0;
        if has_come { Ok(false) } else { self.note_failure(rank) }
    }

    /// Whether the job, which is on several hosts, goes on: after one of them has failed it does not.
    ///
    /// # Errors
    /// [`Error::PeerFailed`], which says which host it was.
    pub fn check_hosts(&self) -> Result<()> {
        self.shared.check_ending()
    }

    /// For launchers: ends the job on this host, since it does not start on host `host`. All who wait, now or later, and all who come to
    /// a synchronization point get [`Error::PeerFailed`] with these texts; the agent ends without a farewell when nobody is in the
    /// job. The first reason stays.
    ///
    /// ```
    /// use hectare_dsm::Job;
    /// let job = Job::builder().hosts(&[1, 1], 0).embedded()?;
    /// job.end("b (10.0.0.2)", "no daemon runs")?;
    /// let ended = job.check_hosts().unwrap_err();
    /// assert_eq!(ended.to_string(), "the job has ended: host b (10.0.0.2) has failed: no daemon runs");
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ForkedChild`].
    pub fn end(&self, host: &str, cause: &str) -> Result<()> {
        self.shared.check_process()?;
        self.shared.end_job(host, cause);
        Ok(())
    }

    /// For launchers: worker `rank` is about to be started, whatever became of an earlier one
    /// ([`Job::note_failure`]).
    ///
    /// # Errors
    /// Those of [`Job::note_failure`].
    pub fn expect(&self, rank: Rank) -> Result<()> {
        self.check_rank_here(rank)?;
        self.shared.set_absent(rank, 0);
        self.shared.segment.workers()[rank as usize].follows.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// For launchers: whether worker `rank` of this host has said that it fails because another one has
    /// ([`Worker::note_consequence`](crate::Worker::note_consequence)), and nobody has taken its rank since: the other is the one to
    /// name. False for ranks that are not of this host.
    pub fn is_consequence(&self, rank: Rank) -> bool {
        // Relaxed: nothing else was written that who reads it needs. A process that has ended has written it.
        self.check_rank_here(rank).is_ok()
            && self.shared.segment.workers()[rank as usize].follows.load(Ordering::Relaxed) != 0
    }

    fn check_rank_here(&self, rank: Rank) -> Result<()> {
        self.shared.check_process()?;
        if self.shared.segment.workers().get(rank as usize).is_none() {
            return Err(Error::NoSuchWorker { rank });
        }
        match self.shared.segment.host_of(rank) {
            Some(_) => Err(self.shared.on_other_host(rank)),
            None => Ok(()),
        }
    }
}
