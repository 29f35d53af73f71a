//! What the daemon knows: its jobs, who is a member of which, and who holds which rank. Nothing of it is read
//! from memory that a client can write.
mod lists;
mod members;

use crate::config::{Config, Limits};
use crate::memory;
use hectare_wire::{JobSettings, Refusal, check_job_name};
pub use members::Gone;
use members::Member;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

/// The daemon's number of a connection; never used twice.
pub type ClientId = u64;

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

    fn entry(&mut self, job: &str) -> Result<&mut Entry, Refusal> {
        self.jobs.get_mut(job).ok_or_else(|| Refusal::NoSuchJob { job: job.into() })
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
}

fn quota(what: &str, asked: u64, limit: u64, by: &str) -> Result<(), Refusal> {
    let refused = || Refusal::Quota { what: what.into(), asked, limit, by: by.into() };
    if asked > limit { Err(refused()) } else { Ok(()) }
}
