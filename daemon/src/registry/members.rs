//! Members of jobs and the ranks that they hold.
use super::{ClientId, Registry, quota};
use hectare_wire::{JobSettings, Refusal};
use std::time::Instant;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) pid: u32,
    pub(super) job: String,
    pub(super) serial: u64,
    pub(super) since: Instant,
}

/// The fate of a member that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Its job.
    pub job: String,
    /// The ranks that it held.
    pub ranks: Vec<u32>,
    /// Whether the job was removed with it.
    pub removed: bool,
}

impl Registry {
    /// Makes a client a member of a job, which is made if there is none. Returns the rank and whether the job
    /// was made.
    ///
    /// # Errors
    /// [`Refusal::UnexpectedRequest`] for members, [`Refusal::RankTaken`], [`Refusal::Quota`], and those of
    /// [`Registry::create`].
    pub fn attach(
        &mut self,
        client: ClientId,
        pid: u32,
        job: &str,
        rank: Option<u32>,
    ) -> Result<(u32, bool), Refusal> {
        self.not_a_member(client)?;
        let created = !self.has(job);
        if created {
            self.create(job, JobSettings::default(), false)?;
        }
        let rank = match self.free_rank(job, rank) {
            Ok(rank) => rank,
            Err(refusal) => {
                if created {
                    self.forget(job);
                }
                return Err(refusal);
            }
        };
        self.entry(job)?.ranks.insert(rank, client);
        self.admit(client, pid, job)?;
        Ok((rank, created))
    }

    /// Makes a client a member of a job without a rank; the job is made if there is none.
    ///
    /// # Errors
    /// [`Refusal::UnexpectedRequest`] for members, and those of [`Registry::create`].
    pub fn hold(&mut self, client: ClientId, pid: u32, job: &str) -> Result<(), Refusal> {
        self.not_a_member(client)?;
        if !self.has(job) {
            self.create(job, JobSettings::default(), false)?;
        }
        self.admit(client, pid, job)
    }

    /// Whether a client is a member of a job, be it one that was removed.
    pub fn is_member(&self, client: ClientId) -> bool {
        self.members.contains_key(&client)
    }

    pub(super) fn not_a_member(&self, client: ClientId) -> Result<(), Refusal> {
        self.members.get(&client).map_or(Ok(()), |member| {
            Err(Refusal::UnexpectedRequest {
                what: format!("this connection is a member of {:?}", member.job),
            })
        })
    }

    pub(super) fn admit(&mut self, client: ClientId, pid: u32, job: &str) -> Result<(), Refusal> {
        let entry = self.entry(job)?;
        entry.members.insert(client);
        let member = Member { pid, job: job.into(), serial: entry.serial, since: Instant::now() };
        self.members.insert(client, member);
        Ok(())
    }

    /// One more rank for a member: the one asked for, or the lowest that is free. One that it holds already is
    /// granted again.
    ///
    /// # Errors
    /// [`Refusal::UnexpectedRequest`] for clients that are no members, [`Refusal::NoSuchJob`] if the job was removed,
    /// [`Refusal::RankTaken`], [`Refusal::Quota`].
    pub fn rank(&mut self, client: ClientId, wanted: Option<u32>) -> Result<u32, Refusal> {
        let job = self.job_of(client)?;
        let entry = self.entry(&job)?;
        if let Some(rank) = wanted.filter(|rank| entry.ranks.get(rank) == Some(&client)) {
            return Ok(rank);
        }
        let rank = self.free_rank(&job, wanted)?;
        self.entry(&job)?.ranks.insert(rank, client);
        Ok(rank)
    }

    /// Takes a rank back that a member does not want; nothing if it does not hold it.
    ///
    /// # Errors
    /// [`Refusal::UnexpectedRequest`] for clients that are no members, [`Refusal::NoSuchJob`] if the job was removed.
    pub fn give_back(&mut self, client: ClientId, rank: u32) -> Result<(), Refusal> {
        let job = self.job_of(client)?;
        let entry = self.entry(&job)?;
        if entry.ranks.get(&rank) == Some(&client) {
            entry.ranks.remove(&rank);
        }
        Ok(())
    }

    /// The job of a member, if it is there.
    pub(super) fn job_of(&self, client: ClientId) -> Result<String, Refusal> {
        let Some(member) = self.members.get(&client) else {
            return Err(Refusal::UnexpectedRequest { what: "this connection is no member of a job".into() });
        };
        let job = member.job.clone();
        if self.jobs.get(&job).is_none_or(|entry| entry.serial != member.serial) {
            return Err(Refusal::NoSuchJob { job });
        }
        Ok(job)
    }

    fn free_rank(&self, job: &str, wanted: Option<u32>) -> Result<u32, Refusal> {
        let entry = self.jobs.get(job).ok_or_else(|| Refusal::NoSuchJob { job: job.into() })?;
        let max = u64::from(entry.max_workers);
        let rank = match wanted {
            Some(rank) => rank,
            // The holders go up: the first gap is the first place where rank and position differ.
            None => (0u32..)
                .zip(entry.ranks.keys())
                .find(|(free, held)| free != *held)
                .map_or(entry.ranks.len() as u32, |(free, _)| free),
        };
        quota("workers", u64::from(rank) + 1, max, &format!("the settings of job {job:?}"))?;
        match entry.ranks.get(&rank) {
            Some(holder) => {
                let pid = self.members.get(holder).map_or(0, |member| member.pid);
                Err(Refusal::RankTaken { job: job.into(), rank, pid })
            }
            None => Ok(rank),
        }
    }

    /// Takes a client's membership away, with its ranks, and its job if that was the last member of a job
    /// that does not stay. `None` for clients that are no members.
    pub fn leave(&mut self, client: ClientId, died: bool) -> Option<Gone> {
        let member = self.members.remove(&client)?;
        let mut gone = Gone { job: member.job, ranks: Vec::new(), removed: false };
        let entry = self.jobs.get_mut(&gone.job).filter(|entry| entry.serial == member.serial);
        let Some(entry) = entry else { return Some(gone) };
        gone.ranks =
            entry.ranks.extract_if(.., |_, holder| *holder == client).map(|(rank, _)| rank).collect();
        entry.members.remove(&client);
        entry.deaths += u64::from(died);
        gone.removed = entry.members.is_empty() && !entry.keep;
        if gone.removed {
            self.forget(&gone.job);
        }
        Some(gone)
    }
}
