//! The agent tells this host of the workers of others.
use super::Agent;
use crate::engine::shared::Shared;
use crate::error::{Error, Rank, Result};
use crate::protocol::round::slot_state;

/// How a worker of another host stands to the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoteWorker {
    /// It is there.
    There,
    /// It has not come yet, and is not waited for.
    Absent,
    /// It was there, and has left: nothing can be given to it. It goes on to count for those who wait for workers.
    Left,
    /// It is dead, or its host is.
    Dead,
}

impl Agent {
    /// Says how a worker of another host stands to the job. That it is there counts for those who wait for workers; its clock is
    /// its host's affair.
    ///
    /// ```
    /// use hectare_dsm::agent::RemoteWorker;
    /// use hectare_dsm::{Error, Job};
    /// use std::time::Duration;
    /// let job = Job::builder().hosts(&[1, 2], 0).embedded()?;
    /// let (agent, mut worker) = (job.agent()?, job.worker()?);
    /// agent.set_worker(2, RemoteWorker::There)?;
    /// worker.wait_for_workers(2, Duration::ZERO)?;
    /// assert!(matches!(agent.set_worker(0, RemoteWorker::There), Err(Error::NoSuchWorker { rank: 0 })));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchWorker`] if the rank is not one of another host, [`Error::ForkedChild`].
    pub fn set_worker(&self, rank: Rank, worker: RemoteWorker) -> Result<()> {
        let shared = self.shared_with(rank)?;
        shared.segment.all_seats()[rank as usize].set_state(match worker {
            RemoteWorker::There => slot_state::REMOTE,
            RemoteWorker::Absent => slot_state::ABSENT,
            RemoteWorker::Dead => slot_state::LOST,
            RemoteWorker::Left => slot_state::LEFT,
        });
        Ok(())
    }

    /// A worker of another host has failed, as its launcher says there, or somebody has its rank again
    /// ([`Event::Workers`](super::news::Event::Workers) of that host's agent). Whether its host lives is told by [`Agent::set_worker`].
    ///
    /// ```
    /// use hectare_dsm::agent::RemoteWorker;
    /// use hectare_dsm::{Error, Job, WorkerState};
    /// use std::time::Duration;
    /// let job = Job::builder().hosts(&[1, 2], 0).embedded()?;
    /// let (agent, mut worker) = (job.agent()?, job.worker()?);
    /// agent.set_worker(1, RemoteWorker::There)?;
    /// agent.set_failed(1, true)?;
    /// assert_eq!(job.workers()?[1].state, WorkerState::Dead);
    /// let waited = worker.wait_for_workers(2, Duration::MAX);
    /// assert!(matches!(waited, Err(Error::WorkerFailed { rank: 1 })));
    /// agent.set_failed(1, false)?;
    /// assert_eq!(job.workers()?[1].state, WorkerState::Remote);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchWorker`] if the rank is not one of another host, [`Error::ForkedChild`].
    pub fn set_failed(&self, rank: Rank, failed: bool) -> Result<()> {
        let shared = self.shared_with(rank)?;
        let is_marked = shared.has_failed_elsewhere(rank);
        match failed {
            // Of several, the first that was told is the one to name.
            true if is_marked => {}
            true => shared.note_absent(rank),
            false => shared.set_absent(rank, 0),
        }
        Ok(())
    }

    /// The job, of which the rank is one of another host.
    fn shared_with(&self, rank: Rank) -> Result<&Shared> {
        let shared = &self.desk.shared;
        shared.check_process()?;
        if shared.segment.host_of(rank).is_none() {
            return Err(Error::NoSuchWorker { rank });
        }
        Ok(shared)
    }

    /// The workers of another host have all reached `clock`, and what that covers is published here; `u64::MAX`: none of them
    /// is in the clocks any more. Clocks never go back. The next round takes it up; if workers wait, that is at once.
    ///
    /// ```
    /// use hectare_dsm::Job;
    /// let job = Job::builder().hosts(&[1, 1], 0).embedded()?;
    /// let (agent, mut worker) = (job.agent()?, job.worker()?);
    /// agent.set_clock(1, 1)?;
    /// worker.barrier()?; // does not wait: the other host was faster
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if it is no other host of the job, [`Error::ForkedChild`].
    pub fn set_clock(&self, host: usize, clock: u64) -> Result<()> {
        let shared = &self.desk.shared;
        shared.check_process()?;
        self.check_host(host)?;
        let runtime = self.desk.runtime();
        shared.segment.remote_clocks().tell(host, clock, &runtime.rounds(), &runtime);
        Ok(())
    }

    /// Ends the job on this host, since host `host` has failed: all who wait, now or later, and all who come to a synchronization
    /// point get [`Error::PeerFailed`] with these texts. The first reason stays.
    ///
    /// ```
    /// use hectare_dsm::{Error, Job};
    /// let job = Job::builder().hosts(&[1, 1], 0).embedded()?;
    /// let (agent, mut worker) = (job.agent()?, job.worker()?);
    /// agent.end_job("b (10.0.0.2:7117)", "silent for 30 s")?;
    /// let ended = worker.barrier().unwrap_err();
    /// assert_eq!(ended.to_string(), "the job has ended: host b (10.0.0.2:7117) has failed: silent for 30 s");
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::ForkedChild`].
    pub fn end_job(&self, host: &str, cause: &str) -> Result<()> {
        let shared = &self.desk.shared;
        shared.check_process()?;
        shared.end_job(host, cause);
        Ok(())
    }

    /// Whether a worker of this host waits at this moment for something that may come from another: a clock, a version, an area,
    /// a worker.
    pub fn is_awaited(&self) -> bool {
        self.desk.shared.segment.seats().iter().any(|seat| seat.is_live() && seat.waits())
    }

    /// Names a host of the job, also this one, for errors: its name, and where it is.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] if the job has no such host, [`Error::ForkedChild`].
    pub fn name_host(&self, host: usize, name: &str) -> Result<()> {
        let shared = &self.desk.shared;
        shared.check_process()?;
        let place = shared.segment.host_names().get(host);
        let none = || Error::InvalidConfig { what: format!("host {host} is no host of this job") };
        place.ok_or_else(none)?.set(name);
        Ok(())
    }

    fn check_host(&self, host: usize) -> Result<()> {
        let clocks = self.desk.shared.segment.remote_clocks();
        if host >= clocks.hosts.len() || host == clocks.here {
            return Err(Error::InvalidConfig { what: format!("host {host} is no other host of this job") });
        }
        Ok(())
    }
}
