//! Jobs that members bring: those of an earlier daemon, and members that come back to this one.
use super::{ClientId, Entry, Registry, members::Gone, quota};
use crate::agent::Agent;
use crate::memory;
use hectare_wire::{Refusal, check_job_name};
use std::os::fd::OwnedFd;
use tracing::warn;

/// The job that a member brings.
#[derive(Debug)]
pub struct BroughtJob {
    /// The name of the job.
    pub job: String,
    /// Its memory.
    pub memory: OwnedFd,
    /// Whether it stays when its last member has left.
    pub keep: bool,
    /// The ranks that the member holds.
    pub ranks: Vec<u32>,
}

/// The result of adopting it.
#[derive(Debug)]
pub struct Adopted {
    /// Whether the daemon did not know the job before.
    pub new: bool,
    /// Ranks that other members hold by now.
    pub missing: Vec<u32>,
    /// Earlier connections that this one replaces.
    pub replaced: Vec<(ClientId, Gone)>,
}

impl Registry {
    /// Makes a client a member of the job that it brings. `is_stale` tells whether another client is an earlier
    /// connection of the same process, which ended: its ranks go to this one.
    ///
    /// # Errors
    /// [`Refusal::UnexpectedRequest`] for members, [`Refusal::InvalidName`], [`Refusal::NotAdopted`] if what was brought
    /// is no memory of a job of this user's, [`Refusal::OtherJob`] if the job of this name has other memory,
    /// [`Refusal::Quota`].
    pub fn adopt(
        &mut self,
        client: ClientId,
        pid: u32,
        brought: BroughtJob,
        is_stale: impl Fn(ClientId) -> bool,
    ) -> Result<Adopted, Refusal> {
        let BroughtJob { job, memory, keep, ranks } = brought;
        let mut memory = Some(memory);
        let adopted = self.take_on(client, pid, &job, &mut memory, keep, ranks, is_stale);
        // Not taken, or known already.
        memory.into_iter().for_each(|memory| self.closer.close(memory));
        adopted
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of what is brought, one of which may stay behind"
    )]
    fn take_on(
        &mut self,
        client: ClientId,
        pid: u32,
        job: &str,
        brought: &mut Option<OwnedFd>,
        keep: bool,
        mut ranks: Vec<u32>,
        is_stale: impl Fn(ClientId) -> bool,
    ) -> Result<Adopted, Refusal> {
        let job = job.to_owned();
        self.not_a_member(client)?;
        check_job_name(&job)?;
        let refuse = |what: String| Refusal::NotAdopted { job: job.clone(), what };
        let checked = brought.as_ref().map(memory::check);
        let about =
            checked.unwrap_or(Err(memory::NotAdopted::Missing)).map_err(|error| refuse(error.to_string()))?;
        if let Some(rank) = ranks.iter().find(|rank| **rank >= about.max_workers) {
            return Err(refuse(format!(
                "rank {rank} is not below {}, the number of its worker slots",
                about.max_workers
            )));
        }
        let new = match self.jobs.get(&job) {
            Some(entry) if entry.identity != about.identity => {
                return Err(Refusal::OtherJob { job });
            }
            Some(_) => false,
            None => {
                self.room_for(about.reserve_bytes, about.max_areas, about.max_workers)?;
                if let Some(memory) = brought.take() {
                    let hosts = self.marks.hosts(&job, about.identity);
                    self.insert(&job, memory, about, keep, hosts);
                    self.follow_agent(&job);
                }
                true
            }
        };
        ranks.sort_unstable();
        ranks.dedup();
        let entry = self.jobs.get_mut(&job).ok_or_else(|| Refusal::NoSuchJob { job: job.clone() })?;
        let stale: Vec<ClientId> = entry.members.iter().copied().filter(|id| is_stale(*id)).collect();
        let mut missing = Vec::new();
        for rank in ranks {
            match entry.ranks.get(&rank) {
                Some(holder) if !stale.contains(holder) => missing.push(rank),
                _ => drop(entry.ranks.insert(rank, client)),
            }
        }
        self.admit(client, pid, &job)?;
        let replaced =
            stale.into_iter().filter_map(|id| self.leave_if_empty(&job, id).map(|gone| (id, gone))).collect();
        Ok(Adopted { new, missing, replaced })
    }

    /// Gives a member a rank that another connection holds, if `is_stale` says that this is an earlier one of the same
    /// process. The earlier connection, if it has no rank left and is no member any more.
    pub fn take_over(
        &mut self,
        client: ClientId,
        rank: u32,
        is_stale: impl Fn(ClientId) -> bool,
    ) -> Option<(ClientId, Gone)> {
        let job = self.job_of(client).ok()?;
        let holder = self.jobs.get_mut(&job)?.ranks.get_mut(&rank).filter(|holder| is_stale(**holder))?;
        let old = std::mem::replace(holder, client);
        self.leave_if_empty(&job, old).map(|gone| (old, gone))
    }

    /// Takes the membership of an earlier connection away that has no rank left.
    fn leave_if_empty(&mut self, job: &str, id: ClientId) -> Option<Gone> {
        let entry = self.jobs.get(job)?;
        let is_empty = !entry.ranks.values().any(|holder| *holder == id);
        is_empty.then(|| self.leave(id, false))?
    }

    /// Supervises the agent of a job that an earlier daemon made, if it has one.
    fn follow_agent(&mut self, job: &str) {
        let Some(hosts) = self.jobs.get(job).and_then(|entry| entry.hosts.clone()) else { return };
        let order = self.order_of(job, hosts);
        let Some(entry) = self.jobs.get_mut(job) else { return };
        let followed = entry.memory.try_clone().and_then(|memory| Agent::adopt(order, memory));
        match followed {
            Ok(agent) => entry.agent = Some(agent),
            Err(error) => warn!(job, %error, "the job's agent is not supervised yet"),
        }
    }

    /// Supervises the agents of jobs for which there was no descriptor or no thread before. To be called often.
    pub fn follow_agents(&mut self) {
        let lacks = |entry: &Entry| entry.agent.is_none() && entry.hosts.is_some();
        let jobs: Vec<String> =
            self.jobs.iter().filter(|(_, entry)| lacks(entry)).map(|(job, _)| job.clone()).collect();
        jobs.iter().for_each(|job| self.follow_agent(job));
    }

    /// Checks a job against the quotas of the daemon.
    pub(super) fn room_for(&self, bytes: u64, areas: u32, workers: u32) -> Result<(), Refusal> {
        let limits = &self.limits;
        quota("jobs", self.jobs.len() as u64 + 1, self.max_jobs as u64, "max_jobs of the daemon")?;
        quota("bytes", bytes, limits.bytes, "limits.bytes of the daemon")?;
        quota("areas", areas.into(), limits.areas.into(), "limits.areas of the daemon")?;
        quota("workers", workers.into(), limits.workers.into(), "limits.workers of the daemon")
    }
}
