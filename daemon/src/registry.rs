//! What the daemon knows: its jobs, who is a member of which, and who holds which rank. Nothing of it is read
//! from memory that a client can write.
use crate::config::{Config, Limits};
use crate::memory;
use hectare_wire::{ClientLine, JobLine, JobSettings, Refusal, check_job_name};
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// The daemon's number of a connection; never used twice.
pub type ClientId = u64;

/// Jobs of one page of a listing.
const JOBS_PER_PAGE: usize = 128;
/// Members of one page of a listing, and ranks that are listed of one member.
const CLIENTS_PER_PAGE: usize = 32;
const RANKS_PER_CLIENT: usize = 256;

/// Slots of jobs that do not say otherwise; the defaults of `hectare_dsm::JobBuilder`.
const WORKERS: u32 = 256;
const AREAS: u32 = 4096;

#[derive(Debug)]
struct Entry {
    /// Tells this job from later ones of its name.
    serial: u64,
    memory: OwnedFd,
    max_workers: u32,
    max_areas: u32,
    reserve_bytes: u64,
    made: Instant,
    keep: bool,
    members: BTreeSet<ClientId>,
    ranks: BTreeMap<u32, ClientId>,
    deaths: u64,
}

#[derive(Debug)]
struct Member {
    pid: u32,
    job: String,
    serial: u64,
    since: Instant,
}

/// The jobs of a daemon and their members.
#[derive(Debug)]
pub struct Registry {
    limits: Limits,
    defaults: JobSettings,
    max_jobs: usize,
    jobs: BTreeMap<String, Entry>,
    members: BTreeMap<ClientId, Member>,
    serial: u64,
}

/// What became of a member that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Its job.
    pub job: String,
    /// The ranks that it held.
    pub ranks: Vec<u32>,
    /// Whether the job went with it.
    pub removed: bool,
}

impl Registry {
    /// Without jobs.
    pub fn new(config: &Config) -> Registry {
        Registry {
            limits: config.limits.clone(),
            defaults: config.defaults.clone(),
            max_jobs: config.max_jobs,
            jobs: BTreeMap::new(),
            members: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Whether there is a job of this name.
    pub fn has(&self, job: &str) -> bool {
        self.jobs.contains_key(job)
    }

    /// Makes a job.
    ///
    /// # Errors
    /// [`Refusal::InvalidName`], [`Refusal::JobExists`], [`Refusal::Quota`], [`Refusal::NotMade`].
    pub fn create(&mut self, job: &str, settings: JobSettings, keep: bool) -> Result<(), Refusal> {
        check_job_name(job)?;
        if self.has(job) {
            return Err(Refusal::JobExists { job: job.into() });
        }
        quota("jobs", self.jobs.len() as u64 + 1, self.max_jobs as u64, "max_jobs of the daemon")?;
        let settings = settings.or(&self.defaults);
        let (workers, areas) = (settings.workers.unwrap_or(WORKERS), settings.areas.unwrap_or(AREAS));
        quota("bytes", settings.bytes.unwrap_or(0), self.limits.bytes, "limits.bytes of the daemon")?;
        quota("areas", areas.into(), self.limits.areas.into(), "limits.areas of the daemon")?;
        quota("workers", workers.into(), self.limits.workers.into(), "limits.workers of the daemon")?;
        let made = memory::make(&settings);
        let memory = made.map_err(|error| Refusal::NotMade { job: job.into(), what: error.to_string() })?;
        let reserve_bytes = settings
            .bytes
            .unwrap_or_else(|| rustix::fs::fstat(&memory).map_or(0, |stat| stat.st_size as u64));
        self.serial += 1;
        let entry = Entry {
            serial: self.serial,
            memory,
            max_workers: workers,
            max_areas: areas,
            reserve_bytes,
            made: Instant::now(),
            keep,
            members: BTreeSet::new(),
            ranks: BTreeMap::new(),
            deaths: 0,
        };
        self.jobs.insert(job.into(), entry);
        Ok(())
    }

    /// Makes a client a member of a job, which is made if there is none. Returns the rank and whether the job
    /// was made.
    ///
    /// # Errors
    /// [`Refusal::OutOfTurn`] for members, [`Refusal::RankTaken`], [`Refusal::Quota`], and those of
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
                    self.jobs.remove(job);
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
    /// [`Refusal::OutOfTurn`] for members, and those of [`Registry::create`].
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

    fn not_a_member(&self, client: ClientId) -> Result<(), Refusal> {
        self.members.get(&client).map_or(Ok(()), |member| {
            Err(Refusal::OutOfTurn { what: format!("this connection is a member of {:?}", member.job) })
        })
    }

    fn admit(&mut self, client: ClientId, pid: u32, job: &str) -> Result<(), Refusal> {
        let entry = self.entry(job)?;
        entry.members.insert(client);
        let member = Member { pid, job: job.into(), serial: entry.serial, since: Instant::now() };
        self.members.insert(client, member);
        Ok(())
    }

    /// One more rank for a member.
    ///
    /// # Errors
    /// [`Refusal::OutOfTurn`] for clients that are no members, [`Refusal::NoSuchJob`] if the job was removed,
    /// [`Refusal::Quota`].
    pub fn rank(&mut self, client: ClientId) -> Result<u32, Refusal> {
        let Some(member) = self.members.get(&client) else {
            return Err(Refusal::OutOfTurn { what: "this connection is no member of a job".into() });
        };
        let (job, serial) = (member.job.clone(), member.serial);
        if self.jobs.get(&job).is_none_or(|entry| entry.serial != serial) {
            return Err(Refusal::NoSuchJob { job });
        }
        let rank = self.free_rank(&job, None)?;
        self.entry(&job)?.ranks.insert(rank, client);
        Ok(rank)
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

    fn entry(&mut self, job: &str) -> Result<&mut Entry, Refusal> {
        self.jobs.get_mut(job).ok_or_else(|| Refusal::NoSuchJob { job: job.into() })
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
            self.jobs.remove(&gone.job);
        }
        Some(gone)
    }

    /// Forgets a job. Members, which there are only if `force`, keep its memory.
    ///
    /// # Errors
    /// [`Refusal::NoSuchJob`], [`Refusal::JobInUse`].
    pub fn remove(&mut self, job: &str, force: bool) -> Result<(), Refusal> {
        let members = self.entry(job)?.members.len() as u32;
        if members > 0 && !force {
            return Err(Refusal::JobInUse { job: job.into(), members });
        }
        self.jobs.remove(job);
        Ok(())
    }

    /// The descriptor of a job's memory.
    ///
    /// # Errors
    /// [`Refusal::NoSuchJob`].
    pub fn memory(&self, job: &str) -> Result<BorrowedFd<'_>, Refusal> {
        let entry = self.jobs.get(job).ok_or_else(|| Refusal::NoSuchJob { job: job.into() })?;
        Ok(entry.memory.as_fd())
    }

    /// A page of jobs, and whether there are more.
    pub fn jobs_after(&self, after: &str) -> (Vec<JobLine>, bool) {
        use std::ops::Bound;
        let mut rest = self.jobs.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let line = |(name, entry): (&String, &Entry)| JobLine {
            job: name.clone(),
            members: entry.members.len() as u32,
            ranks: entry.ranks.len() as u32,
            max_workers: entry.max_workers,
            max_areas: entry.max_areas,
            reserve_bytes: entry.reserve_bytes,
            resident_bytes: memory::resident_bytes(&entry.memory),
            age_s: entry.made.elapsed().as_secs(),
            keep: entry.keep,
            deaths: entry.deaths,
        };
        let page = rest.by_ref().take(JOBS_PER_PAGE).map(line).collect();
        (page, rest.next().is_some())
    }

    /// A page of members, and whether there are more.
    pub fn clients_after(&self, after: ClientId) -> (Vec<ClientLine>, bool) {
        let mut rest = self.members.range(after.saturating_add(1)..);
        let line = |(&id, member): (&ClientId, &Member)| {
            let entry = self.jobs.get(&member.job).filter(|entry| entry.serial == member.serial);
            let held = entry.into_iter().flat_map(|entry| &entry.ranks).filter(|(_, holder)| **holder == id);
            let ranks: Vec<u32> = held.map(|(rank, _)| *rank).collect();
            ClientLine {
                id,
                pid: member.pid,
                job: member.job.clone(),
                held: ranks.len() as u32,
                ranks: ranks.into_iter().take(RANKS_PER_CLIENT).collect(),
                age_s: member.since.elapsed().as_secs(),
            }
        };
        let page = rest.by_ref().take(CLIENTS_PER_PAGE).map(line).collect();
        (page, rest.next().is_some())
    }
}

fn quota(what: &str, asked: u64, limit: u64, by: &str) -> Result<(), Refusal> {
    let refused = || Refusal::Quota { what: what.into(), asked, limit, by: by.into() };
    if asked > limit { Err(refused()) } else { Ok(()) }
}
