//! The daemon's knowledge: its jobs, who is a member of which, and who holds which rank. Nothing of it is read
//! from memory that a client can write.
mod adopt;
mod lists;
mod marks;
mod members;
mod returning;

use crate::agent::Agent;
use crate::closer::Closer;
use crate::config::{Config, Limits};
use crate::key_file;
use crate::memory;
pub use adopt::{Adopted, BroughtJob};
use hectare_agent::{DpdkPort, Order, RdmaDevice};
use hectare_wire::{JobHosts, JobSettings, Refusal, RunDir, TransportChoice, check_job_name};
use marks::Marks;
pub use members::Gone;
use members::Member;
use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};
use tracing::info;

/// The daemon's number of a connection; never used twice.
pub type ClientId = u64;

/// Slots of jobs that do not say otherwise; the defaults of `hectare_dsm::JobBuilder`.
const WORKERS: u32 = hectare_dsm::JobBuilder::DEFAULT_WORKERS;
const AREAS: u32 = 4096;

#[derive(Debug)]
struct Entry {
    /// Tells this job from later ones of its name.
    serial: u64,
    memory: OwnedFd,
    identity: memory::Identity,
    max_workers: u32,
    max_areas: u32,
    reserve_bytes: u64,
    made: Instant,
    keep: bool,
    members: BTreeSet<ClientId>,
    ranks: BTreeMap<u32, ClientId>,
    deaths: u64,
    /// Who stands in for the other hosts, if the job is on several.
    agent: Option<Agent>,
    /// Which those are.
    hosts: Option<JobHosts>,
    /// Whether its mark could be made.
    is_marked: bool,
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
    run_dir: RunDir,
    marks: Marks,
    closer: Closer,
    /// How long a job that nobody has joined stays; for ever if it is zero.
    join_within: Duration,
    /// The port of DPDK of agents, if they may have one.
    dpdk: Option<DpdkPort>,
    /// The RDMA device of agents, if they may have one.
    rdma: Option<RdmaDevice>,
    /// Names of jobs of an earlier daemon that nobody brought yet.
    awaited: BTreeSet<String>,
    /// Those whose members did not come in time, and whose agents lived then: their marks are there.
    late: BTreeSet<String>,
    since: Instant,
}

impl Registry {
    /// Without jobs.
    pub fn new(config: &Config) -> Registry {
        Registry::with_closer(config, Closer::default())
    }

    /// The same with who closes descriptors.
    pub(crate) fn with_closer(config: &Config, closer: Closer) -> Registry {
        let (marks, awaited) = Marks::of(config.run_dir());
        Registry {
            limits: config.limits.clone(),
            defaults: config.defaults.clone(),
            max_jobs: config.max_jobs,
            jobs: BTreeMap::new(),
            members: BTreeMap::new(),
            serial: 0,
            awaited,
            late: BTreeSet::new(),
            run_dir: config.run_dir(),
            marks,
            closer,
            join_within: Duration::from_secs(config.join_within_s),
            dpdk: config.dpdk.clone(),
            rdma: config.rdma.clone(),
            since: Instant::now(),
        }
    }

    /// Takes other limits and defaults. They are for what comes; jobs that are there stay as they are.
    pub fn configure(&mut self, config: &Config) {
        self.limits = config.limits.clone();
        self.defaults = config.defaults.clone();
        self.max_jobs = config.max_jobs;
        self.join_within = Duration::from_secs(config.join_within_s);
        self.dpdk = config.dpdk.clone();
        self.rdma = config.rdma.clone();
    }

    /// Forgets the jobs that nobody has joined in time, but for those that are kept; their names.
    pub fn drop_unjoined(&mut self) -> Vec<String> {
        // A job that had a member went with its last one.
        let over = |entry: &Entry| {
            entry.members.is_empty() && !entry.keep && entry.made.elapsed() >= self.join_within
        };
        if self.join_within.is_zero() {
            return Vec::new();
        }
        let names: Vec<String> =
            self.jobs.iter().filter(|(_, entry)| over(entry)).map(|(job, _)| job.clone()).collect();
        names.iter().for_each(|job| drop(self.forget(job)));
        names
    }

    /// Marks all jobs, in a run directory that was recreated.
    pub fn mark_all(&mut self) {
        self.marks.renew();
        for (job, entry) in &mut self.jobs {
            entry.is_marked = self.marks.set(job, entry.identity, entry.hosts.as_ref());
        }
    }

    /// Marks jobs that could not be marked before, as on a full disc. To be called often.
    pub fn mark_missing(&mut self) {
        for (job, entry) in self.jobs.iter_mut().filter(|(_, entry)| !entry.is_marked) {
            if self.marks.mark(job, entry.identity, entry.hosts.as_ref()).is_ok() {
                info!(job, "the job is marked now");
                entry.is_marked = true;
            }
        }
    }

    /// Whether there is a job of this name.
    pub fn has(&self, job: &str) -> bool {
        self.jobs.contains_key(job)
    }

    /// Makes a job.
    ///
    /// # Errors
    /// [`Refusal::InvalidName`], [`Refusal::JobExists`], [`Refusal::Quota`], [`Refusal::NotCreated`].
    pub fn create(&mut self, job: &str, settings: JobSettings, keep: bool) -> Result<(), Refusal> {
        self.make(job, settings, keep, None)
    }

    /// Makes this host's part of a job on several, and starts its agent.
    ///
    /// # Errors
    /// Those of [`Registry::create`], [`Refusal::Hosts`].
    pub fn create_on_hosts(
        &mut self,
        job: &str,
        settings: JobSettings,
        keep: bool,
        hosts: JobHosts,
    ) -> Result<(), Refusal> {
        hosts.check(job)?;
        let refused = |what: String| Refusal::Hosts { job: job.into(), what };
        key_file::load(hosts.key_file.as_ref()).map_err(|error| refused(error.to_string()))?;
        let (port, own) = (self.port_of(&hosts), hosts.own());
        if own.dpdk != port.as_ref().map(|port| port.address) {
            let has = self.dpdk.as_ref().map_or("none".to_owned(), |port| format!("one at {}", port.address));
            let told = own.dpdk.map_or("none".to_owned(), |ip| ip.to_string());
            return Err(refused(format!(
                "it has {told} as the address of this host's DPDK port, and hectared was started with {has}: its configuration was \
                 changed since, or `hectare run` reads another one"
            )));
        }
        self.make(job, settings, keep, Some(&hosts))?;
        let started = self
            .memory(job)?
            .try_clone_to_owned()
            .and_then(|memory| Agent::start(self.order_of(job, hosts), memory))
            .map_err(|error| refused(format!("its agent cannot be started: {error}")));
        match started {
            Ok(agent) => self.entry(job)?.agent = Some(agent),
            Err(refusal) => {
                self.forget(job);
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// The settings of such a job's agent.
    fn order_of(&self, job: &str, hosts: JobHosts) -> Order {
        let (run_dir, dpdk) = (self.run_dir.path().to_owned(), self.port_of(&hosts));
        let rdma = match hosts.transport {
            TransportChoice::Udp | TransportChoice::Dpdk => None,
            TransportChoice::Auto => self.rdma.clone(),
            TransportChoice::Rdma => Some(self.rdma.clone().unwrap_or_default()),
        };
        Order { job: job.into(), hosts, run_dir, dpdk, rdma, is_last_try: false }
    }

    /// The port of the agent of such a job.
    fn port_of(&self, hosts: &JobHosts) -> Option<DpdkPort> {
        self.dpdk.clone().filter(|_| hosts.own().dpdk.is_some())
    }

    fn make(
        &mut self,
        job: &str,
        settings: JobSettings,
        keep: bool,
        hosts: Option<&JobHosts>,
    ) -> Result<(), Refusal> {
        check_job_name(job)?;
        if self.has(job) {
            return Err(Refusal::JobExists { job: job.into() });
        }
        let mut settings = settings.or(&self.defaults);
        // Who does not say how many gets the default, up to the limit.
        let workers = *settings.workers.get_or_insert(WORKERS.min(self.limits.workers));
        let areas = *settings.areas.get_or_insert(AREAS.min(self.limits.areas));
        self.room_for(settings.bytes.unwrap_or(0), areas, workers)?;
        if let Some(hosts) = hosts {
            let ranks = hosts.hosts.iter().map(|host| u64::from(host.ranks)).sum();
            quota("workers", ranks, workers.into(), "defaults.workers of hectared's configuration")?;
        }
        let failed = |what: String| Refusal::NotCreated { job: job.into(), what };
        let make = |settings: &JobSettings| {
            let memory = memory::make(settings, hosts).map_err(|error| failed(error.to_string()))?;
            memory::check(&memory).map(|about| (memory, about)).map_err(|error| failed(error.to_string()))
        };
        let (mut memory, mut about) = make(&settings)?;
        if about.reserve_bytes > self.limits.bytes {
            // Who does not say how much gets what the host has, up to the limit.
            settings.bytes = Some(self.limits.bytes);
            (memory, about) = make(&settings)?;
        }
        self.insert(job, memory, about, keep, hosts.cloned());
        Ok(())
    }

    fn insert(
        &mut self,
        job: &str,
        memory: OwnedFd,
        about: memory::About,
        keep: bool,
        hosts: Option<JobHosts>,
    ) {
        self.serial += 1;
        let entry = Entry {
            serial: self.serial,
            memory,
            identity: about.identity,
            max_workers: about.max_workers,
            max_areas: about.max_areas,
            reserve_bytes: about.reserve_bytes,
            made: Instant::now(),
            keep,
            members: BTreeSet::new(),
            ranks: BTreeMap::new(),
            deaths: 0,
            agent: None,
            is_marked: self.marks.set(job, about.identity, hosts.as_ref()),
            hosts,
        };
        self.jobs.insert(job.into(), entry);
        self.awaited.remove(job);
        // The mark is that of this one from now on.
        self.late.remove(job);
    }

    /// Forgets a job; who its members were.
    fn forget(&mut self, job: &str) -> Option<BTreeSet<ClientId>> {
        self.marks.unset(job);
        let entry = self.jobs.remove(job)?;
        // The last descriptor of much memory takes long to close.
        self.closer.close(entry.memory);
        Some(entry.members)
    }

    fn entry(&mut self, job: &str) -> Result<&mut Entry, Refusal> {
        self.jobs.get_mut(job).ok_or_else(|| Refusal::NoSuchJob { job: job.into() })
    }

    /// Forgets a job. Members, which there are only if `force`, keep its memory; they are returned.
    ///
    /// # Errors
    /// [`Refusal::NoSuchJob`], [`Refusal::JobInUse`].
    pub fn remove(&mut self, job: &str, force: bool) -> Result<BTreeSet<ClientId>, Refusal> {
        let members = self.entry(job)?.members.len() as u32;
        if members > 0 && !force {
            return Err(Refusal::JobInUse { job: job.into(), members });
        }
        Ok(self.forget(job).unwrap_or_default())
    }

    /// Whether the job of a member stays when its last member has left.
    pub fn is_kept(&self, client: ClientId) -> bool {
        let member = self.members.get(&client);
        let entry = member.and_then(|member| Some((member, self.jobs.get(&member.job)?)));
        entry.is_some_and(|(member, entry)| entry.serial == member.serial && entry.keep)
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
