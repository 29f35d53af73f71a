//! Jobs of the host's daemon: unrelated processes share them by name.
use super::Job;
use crate::error::{Error, Rank, Result};
use crate::memory::segment::Segment;
use crate::worker::Worker;
use hectare_wire::{Connection, Launch, LaunchError, Refusal, Reply, Request, RunDir};
use std::sync::{Mutex, PoisonError};

/// This process's membership in a job of the daemon. As long as it exists, its ranks are handed to nobody
/// else; the daemon takes them back when the process ends, in whatever way.
#[derive(Debug)]
pub(crate) struct Link {
    connection: Connection,
    name: String,
    /// The ranks that the daemon handed out, in the order in which it did.
    ranks: Mutex<Vec<Rank>>,
    first: Rank,
}

impl Job {
    /// Makes this process a member of the job of this name on this host, which is made if there is none. Needs
    /// the daemon, `hectared`; everything else is as with [`Job::embedded`].
    ///
    /// The daemon is found by its run directory: `HECTARE_RUN_DIR`, else `/run/user/UID/hectare`, else
    /// `/tmp/hectare-UID`. It hands out a rank, which the first [`Job::worker`] of this process takes, and
    /// one more for every further worker. Where `HECTARE_JOB` is `name`, which `hectare run` sets, the first
    /// rank is the one that the launcher gave ([`Launch`]). The job goes when its last member has left.
    ///
    /// The daemon's death stops nothing: workers go on among themselves, and a further worker takes the lowest
    /// free slot. Nobody can connect to the job any more.
    ///
    /// ```no_run
    /// use hectare_dsm::Job;
    /// let job = Job::connect("matrix")?; // instead of Job::embedded()?
    /// let mut worker = job.worker()?;
    /// worker.barrier()?;
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Daemon`] with what the daemon or the way to it says (nobody listens, another version of the
    /// protocol, a quota), [`Error::LayoutVersion`], [`Error::Os`].
    pub fn connect(name: &str) -> Result<Job> {
        let failed = |source: hectare_wire::Error| Error::Daemon { job: name.into(), source };
        let connection = Connection::open(&RunDir::of_user()).map_err(failed)?;
        let attach = |rank| connection.ask(&Request::Attach { job: name.into(), rank });
        let given = given_rank(name)?;
        let answer = match attach(given) {
            // This process is a member already, with the rank that it was given: another one will do.
            Err(hectare_wire::Error::Refused(Refusal::RankTaken { pid, .. }))
                if pid == std::process::id() =>
            {
                attach(None)
            }
            other => other,
        };
        let (first, descriptor) = match answer.map_err(failed)? {
            (Reply::Attached { rank, .. }, Some(descriptor)) => (rank, descriptor),
            (other, _) => {
                let what = format!("{other:?} instead of the job's memory");
                return Err(failed(hectare_wire::Error::Answer { what }));
            }
        };
        let link = Link { connection, name: name.into(), ranks: Mutex::new(vec![first]), first };
        Ok(Job::around(Segment::open(descriptor)?, false, Some(link)))
    }

    /// The rank that the daemon handed to this process when it connected, whether or not a worker has taken
    /// it; `None` for jobs that are not the daemon's.
    pub fn rank(&self) -> Option<Rank> {
        self.shared.link.as_ref().map(|link| link.first)
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
    /// Makes the calling thread a worker, with the first rank of this process's that no worker has, or with
    /// one more from the daemon.
    pub(super) fn worker(&self, job: &Job) -> Result<Worker> {
        job.shared.check_process()?;
        let mut ranks = self.ranks.lock().unwrap_or_else(PoisonError::into_inner);
        for &rank in ranks.iter() {
            match Worker::join(job, Some(rank)) {
                Err(Error::RankTaken { .. }) => {}
                other => return other,
            }
        }
        loop {
            let rank = match self.connection.ask(&Request::Rank) {
                Ok((Reply::Rank { rank }, _)) => rank,
                Ok((other, _)) => {
                    let source = hectare_wire::Error::Answer { what: format!("{other:?} instead of a rank") };
                    return Err(Error::Daemon { job: self.name.clone(), source });
                }
                // Nobody hands out ranks any more; the slots in the job's memory tell who is where.
                Err(hectare_wire::Error::Closed) => return Worker::join(job, None),
                Err(source) => return Err(Error::Daemon { job: self.name.clone(), source }),
            };
            ranks.push(rank);
            match Worker::join(job, Some(rank)) {
                Err(Error::RankTaken { .. }) => {}
                other => return other,
            }
        }
    }
}
