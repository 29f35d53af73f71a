//! Jobs of the host's daemon: unrelated processes share them by name.
use super::Job;
use crate::api::worker::Worker;
use crate::engine::shared::Link;
use crate::error::{Error, Rank, Result};
use crate::segment::mapping::Segment;
use hectare_wire::{Launch, LaunchError, Member, Membership, Refusal, RunDir};
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// For so long a launched program waits for a daemon that is started again, and between two looks for it.
const RESTARTS_WITHIN: Duration = Duration::from_secs(5);
const LOOKS_EVERY: Duration = Duration::from_millis(20);

impl Job {
    /// Makes this process a member of the job of this name on this host, creating it if there is none. Needs the
    /// daemon, `hectared`; everything else is as with [`Job::embedded`].
    ///
    /// The daemon is found by its run directory: `HECTARE_RUN_DIR`, else `/run/user/UID/hectare`, else
    /// `/tmp/hectare-UID`. It assigns a rank, which the first [`Job::worker`] of this process takes, and one more for
    /// every further worker. If `HECTARE_JOB`, which `hectare run` sets, is `name`, the first rank is the launcher's
    /// ([`Launch`](crate::wire::Launch)), and a daemon that is being started again is waited for, up to five seconds. The job ends when its
    /// last member has left.
    ///
    /// The daemon's death stops nothing: workers continue among themselves, and a further worker takes the lowest
    /// free slot. A thread of this process, which otherwise sleeps, registers the job with the next daemon
    /// ([`Job::membership`]).
    ///
    /// ```no_run
    /// use hectare_dsm::Job;
    /// let job = Job::connect("matrix")?; // instead of Job::embedded()?
    /// let mut worker = job.worker()?;
    /// worker.barrier()?;
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// A program that runs alone, and under `hectare run` as one of several, asks its environment:
    ///
    /// ```
    /// use hectare_dsm::{Job, Worker, wire::Launch};
    /// use std::time::Duration;
    ///
    /// fn train(worker: &mut Worker, size: usize) -> hectare_dsm::Result<()> {
    ///     worker.wait_for_workers(size, Duration::from_secs(60))?;
    ///     // ..
    ///     worker.barrier()
    /// }
    ///
    /// fn main() -> hectare_dsm::Result<()> {
    ///     match Launch::from_environment()? {
    ///         Some(launch) => train(&mut Job::connect(&launch.job)?.worker()?, launch.size as usize)?,
    ///         None => drop(Job::embedded()?.try_run(4, |worker| train(worker, 4))?),
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::Daemon`] with what the daemon or the way to it says (nobody listens, or answers within ten
    /// seconds, another version of the protocol, a quota), [`Error::RankTaken`] if a worker that this daemon
    /// does not know has the launcher's rank, [`Error::LayoutVersion`], [`Error::Os`].
    pub fn connect(name: &str) -> Result<Job> {
        let failed = |source: hectare_wire::Error| Error::Daemon { job: name.into(), source };
        let dir = RunDir::of_user();
        let given = given_rank(name)?;
        let (attached, given) = match attach(&dir, name, given) {
            // This process is a member already, with the rank that it was given: another one will do.
            Err(hectare_wire::Error::Refused(Refusal::RankTaken { pid, .. }))
                if pid == std::process::id() =>
            {
                (Member::attach(&dir, name, None), None)
            }
            other => (other, given),
        };
        let (member, mut first, memory) = attached.map_err(failed)?;
        // A daemon that was started again may not know all members yet: the memory tells who has a rank.
        let job = Job::around(Segment::open(memory)?, false, None);
        let mut taken = Vec::new();
        while let Some(pid) = job.shared.live_process(first) {
            if given == Some(first) {
                return Err(Error::RankTaken { rank: first, pid });
            }
            taken.push(first);
            first = member.rank().map_err(failed)?;
        }
        taken.into_iter().for_each(|rank| member.give_back(rank));
        let link = Link { member, first, choosing: Mutex::new(()) };
        Ok(job.linked(link))
    }

    /// The rank that the daemon assigned to this process when it connected, whether or not a worker has taken it;
    /// `None` for jobs that are not the daemon's.
    pub fn rank(&self) -> Option<Rank> {
        self.shared.link.as_ref().map(|link| link.first)
    }

    /// The state of this process's connection to the daemon, without asking it; `None` for jobs that are not the
    /// daemon's. Reads, writes and rounds continue in every state.
    pub fn membership(&self) -> Option<Membership> {
        self.shared.link.as_ref().map(|link| link.member.state())
    }
}

/// [`Member::attach`]. With a rank that the launcher gave, the daemon was there a moment ago: if it is gone, it is started again.
fn attach(dir: &RunDir, name: &str, given: Option<Rank>) -> hectare_wire::Result<(Member, Rank, OwnedFd)> {
    let since = Instant::now();
    loop {
        match Member::attach(dir, name, given) {
            Err(hectare_wire::Error::NoDaemon { .. } | hectare_wire::Error::Closed)
                if given.is_some() && since.elapsed() < RESTARTS_WITHIN =>
            {
                std::thread::sleep(LOOKS_EVERY);
            }
            attached => return attached,
        }
    }
}

/// The rank that the launcher gave to this process in this job.
fn given_rank(job: &str) -> Result<Option<Rank>> {
    if std::env::var("HECTARE_JOB").is_ok_and(|given| given == job) {
        match Launch::from_environment() {
            Ok(launch) => return Ok(launch.map(|launch| launch.rank)),
            // Somebody set the job alone: any rank will do.
            Err(LaunchError::NoRank) => {}
            Err(error) => return Err(Error::InvalidConfig { what: error.to_string() }),
        }
    }
    Ok(None)
}

impl Link {
    fn failed(&self, source: hectare_wire::Error) -> Error {
        Error::Daemon { job: self.member.job().into(), source }
    }

    /// Whether nobody hands out ranks of this job any more, or not now.
    fn is_alone(&self, error: &hectare_wire::Error) -> bool {
        error.is_absence() || self.member.state() != Membership::Member
    }

    /// Makes the calling thread a worker, with the first rank of this process's that no worker has, or with
    /// one more from the daemon.
    pub(crate) fn worker(&self, job: &Job) -> Result<Worker> {
        job.shared.check_process()?;
        let _choosing = self.choosing.lock().unwrap_or_else(PoisonError::into_inner);
        for rank in self.member.ranks() {
            match Worker::join(&job.shared, Some(rank)) {
                Err(Error::RankTaken { .. }) => {}
                other => return other,
            }
        }
        let mut taken = Vec::new();
        let joined = loop {
            let rank = match self.member.rank() {
                Ok(rank) => rank,
                // The slots in the job's memory tell who is where.
                Err(error) if self.is_alone(&error) => {
                    break Worker::join(&job.shared, None).inspect(|worker| self.member.took(worker.rank()));
                }
                Err(error) => break Err(self.failed(error)),
            };
            match Worker::join(&job.shared, Some(rank)) {
                Err(Error::RankTaken { .. }) => taken.push(rank),
                other => break other,
            }
        };
        taken.into_iter().for_each(|rank| self.member.give_back(rank));
        joined
    }

    /// Makes the calling thread the worker of a rank, which the daemon hands to this process if it has not yet.
    pub(crate) fn worker_at(&self, job: &Job, rank: Rank) -> Result<Worker> {
        job.shared.check_process()?;
        match self.member.rank_at(rank) {
            Err(error) if self.is_alone(&error) => {
                Worker::join(&job.shared, Some(rank)).inspect(|worker| self.member.took(worker.rank()))
            }
            Err(error) => Err(self.failed(error)),
            Ok(()) => Worker::join(&job.shared, Some(rank)),
        }
    }
}
