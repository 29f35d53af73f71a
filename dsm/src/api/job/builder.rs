//! The settings of a job.
use super::Job;
use crate::engine::shared::check_is_asked_for;
use crate::error::{Error, Result};
use crate::memory::clock::nanos;
use crate::segment::layout::Config;
use crate::segment::layout::{STALL_KILL, STALL_PIN, STALL_WAIT};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// The policy for a live worker that stalls in the middle of a round, where it cannot be left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StallPolicy {
    /// The round waits. The default.
    #[default]
    Wait,
    /// After this long, its process is killed, and the round continues without it. If it is a thread of the process that
    /// would have to send the signal, the round waits.
    Kill {
        /// How long a stall may last.
        after: Duration,
    },
    /// After this long, the reader copy that it was writing is pinned, unavailable to readers and writers, until the
    /// worker moves, and its area is published in a later round, with its group. For areas with three reader copies or
    /// more, and groups of such areas; for others, the round waits.
    Pin {
        /// How long a stall may last.
        after: Duration,
    },
}

/// Whether large areas are put on huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HugePages {
    /// Areas of 2 MiB and more are aligned to 2 MiB and collapsed into huge pages when they are created,
    /// where the kernel agrees (about 4 ms per 2 MiB, once). The default.
    #[default]
    Auto,
    /// 4 KiB pages only.
    Never,
}

/// Settings of a job, fixed when it is created.
///
/// ```
/// use hectare_dsm::{Job, StallPolicy};
/// use std::time::Duration;
/// let job = Job::builder()
///     .reserve(1 << 30)
///     .max_workers(16)
///     .round_timeout(Duration::from_millis(50))
///     .stall_policy(StallPolicy::Kill { after: Duration::from_secs(10) })
///     .embedded()?;
/// # let _ = job;
/// # Ok::<(), hectare_dsm::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct JobBuilder {
    reserve: Option<u64>,
    huge_pages: HugePages,
    stall_policy: StallPolicy,
    round_timeout: Duration,
    pin_cores: bool,
    check: bool,
    max_workers: u32,
    max_observers: u32,
    pins_per_observer: u32,
    max_areas: u32,
    min_copies: u32,
    max_name_bytes: u32,
    generations: u32,
    seal_every: u32,
    hosts: Vec<u32>,
    here: usize,
}

impl Default for JobBuilder {
    fn default() -> JobBuilder {
        JobBuilder {
            reserve: None,
            huge_pages: HugePages::Auto,
            stall_policy: StallPolicy::Wait,
            round_timeout: Duration::from_millis(100),
            pin_cores: false,
            check: false,
            max_workers: JobBuilder::DEFAULT_WORKERS,
            max_observers: 64,
            pins_per_observer: 16,
            max_areas: 4096,
            min_copies: 1,
            max_name_bytes: 255,
            generations: 4,
            seal_every: 16,
            hosts: Vec::new(),
            here: 0,
        }
    }
}

impl JobBuilder {
    /// The worker slots of a job that [`JobBuilder::max_workers`] does not set.
    pub const DEFAULT_WORKERS: u32 = 256;
    /// The most worker slots of a job.
    pub const MOST_WORKERS: u32 = 1 << 16;
    /// The most areas of a job.
    pub const MOST_AREAS: u32 = 1 << 22;
    /// The most bytes of address space for areas.
    pub const MOST_BYTES: u64 = 1 << 46;

    /// Address space for areas, in bytes. Memory is taken only for areas that exist. Default: twice the
    /// host's memory.
    pub fn reserve(mut self, bytes: u64) -> Self {
        self.reserve = Some(bytes);
        self
    }

    /// Whether large areas are put on huge pages.
    pub fn huge_pages(mut self, huge_pages: HugePages) -> Self {
        self.huge_pages = huge_pages;
        self
    }

    /// Sets the policy for a live worker that stalls inside a round. Default: the round waits.
    pub fn stall_policy(mut self, policy: StallPolicy) -> Self {
        self.stall_policy = policy;
        self
    }

    /// How long a round waits for workers to arrive before it is abandoned; later rounds do not wait for the missing
    /// workers until they are back. Default: 100 ms.
    pub fn round_timeout(mut self, round_timeout: Duration) -> Self {
        self.round_timeout = round_timeout;
        self
    }

    /// Whether [`Job::run`] pins each worker to its own core, as far as there are cores. Default: no.
    pub fn pin_cores(mut self, pin: bool) -> Self {
        self.pin_cores = pin;
        self
    }

    /// Check mode: before every publication, owners compare their areas with the newest reader copy and
    /// report what differs without having been logged ([`Worker::unlogged_writes`](crate::Worker::unlogged_writes)).
    /// Costs a pass over every area that is due. Default: off.
    ///
    /// `HECTARE_CHECK=1` in the environment does so in every job that a process is in, whoever made it. Then the
    /// synchronization point of a worker with an unlogged write prints and returns [`Error::Unlogged`], after it has
    /// completed.
    pub fn check(mut self, check: bool) -> Self {
        self.check = check;
        self
    }

    /// Worker slots. Default: [`JobBuilder::DEFAULT_WORKERS`].
    pub fn max_workers(mut self, workers: u32) -> Self {
        self.max_workers = workers;
        self
    }

    /// Observer slots. Default: 64.
    pub fn max_observers(mut self, observers: u32) -> Self {
        self.max_observers = observers;
        self
    }

    /// How many versions one observer may hold at a time. Default: 16.
    pub fn pins_per_observer(mut self, pins: u32) -> Self {
        self.pins_per_observer = pins;
        self
    }

    /// Area slots. Default: 4096.
    pub fn max_areas(mut self, areas: u32) -> Self {
        self.max_areas = areas;
        self
    }

    /// The longest name of an area or group, in bytes. Default: 255.
    pub fn max_name_bytes(mut self, bytes: u32) -> Self {
        self.max_name_bytes = bytes;
        self
    }

    /// How many generations of logs an area keeps, at least 3, and after how many publications one is
    /// sealed. Default: 4 and 16.
    pub fn generations(mut self, count: u32, seal_every: u32) -> Self {
        self.generations = count;
        self.seal_every = seal_every;
        self
    }

    /// The hosts of a job that is on several, by how many ranks each has: host 0 those from 0 on, host 1 the next
    /// ones, and so on. This is the part of the job on host `here`. Workers of other hosts are there when this host's
    /// agent says so ([`Agent::set_worker`](crate::agent::Agent::set_worker)).
    ///
    /// ```
    /// use hectare_dsm::Job;
    /// let job = Job::builder().hosts(&[4, 2], 1).embedded()?;
    /// assert_eq!((job.host(), job.hosts()), (1, vec![0..4, 4..6]));
    /// assert_eq!(job.worker()?.rank(), 4);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    pub fn hosts(mut self, ranks: &[u32], here: usize) -> Self {
        self.hosts = ranks.to_vec();
        self.here = here;
        self
    }

    /// The fewest reader copies of areas that have any, at most 64; those that ask for fewer get this many. Default: 1.
    /// A job on several hosts needs 3: one that is sent, the newest, and one to publish into. Copies of an area
    /// beyond those that it asked for have no memory, and are not used, before
    /// [`Agent::complete`](crate::agent::Agent::complete); but those of small areas, of up to 64 KiB with all that
    /// belongs to them, have.
    pub fn min_copies(mut self, copies: u32) -> Self {
        self.min_copies = copies;
        self
    }

    /// Creates the job inside this program.
    ///
    /// # Errors
    /// [`Error::InvalidConfig`] for invalid settings, [`Error::ProcessLimit`] if limits of this process forbid such a
    /// mapping or file, [`Error::Os`] if the system refuses.
    pub fn embedded(self) -> Result<Job> {
        let (pin_cores, hosts) = (self.pin_cores, self.hosts.clone());
        Job::make(self.config()?, &hosts, pin_cores)
    }

    /// Creates the memory of a job for other processes, which join by [`Job::from_descriptor`]; this one does not
    /// join.
    ///
    /// # Errors
    /// Those of [`JobBuilder::embedded`].
    pub fn memory(self) -> Result<OwnedFd> {
        self.embedded()?.duplicate()
    }

    fn config(self) -> Result<Config> {
        let bad = |what: String| Err(Error::InvalidConfig { what });
        let limits = [
            ("max_workers", self.max_workers, 1, JobBuilder::MOST_WORKERS),
            ("max_observers", self.max_observers, 0, 1 << 16),
            ("pins_per_observer", self.pins_per_observer, 1, 1 << 16),
            ("max_areas", self.max_areas, 1, JobBuilder::MOST_AREAS),
            ("min_copies", self.min_copies, 1, 64),
            ("max_name_bytes", self.max_name_bytes, 1, 4096),
            ("generations", self.generations, 3, 64),
            ("seal_every", self.seal_every, 1, u32::MAX),
        ];
        for (name, value, low, high) in limits {
            if !(low..=high).contains(&value) {
                return bad(format!("{name} is {value}, it must be from {low} to {high}"));
            }
        }
        if self.round_timeout.is_zero() {
            return bad("round_timeout is zero: every round would be abandoned".into());
        }
        if let StallPolicy::Kill { after } | StallPolicy::Pin { after } = self.stall_policy
            && after.is_zero()
        {
            return bad("stall_policy acts after no time: every worker would count as stalled".into());
        }
        if !self.hosts.is_empty() {
            if self.here >= self.hosts.len() || self.hosts.len() > 1 << 16 {
                return bad(format!("there is no host {} of {}", self.here, self.hosts.len()));
            }
            let ranks = self.hosts.iter().map(|ranks| u64::from(*ranks)).sum::<u64>();
            if ranks > u64::from(self.max_workers) {
                return bad(format!("the hosts have {ranks} ranks, and max_workers is {}", self.max_workers));
            }
        }
        let reserve_bytes = self.reserve.unwrap_or_else(|| host_memory().saturating_mul(2));
        if reserve_bytes == 0 || reserve_bytes > JobBuilder::MOST_BYTES {
            return bad(format!("reserve is {reserve_bytes} bytes, it must be from 1 to 2^46"));
        }
        let (stall_policy, stall_after) = match self.stall_policy {
            StallPolicy::Wait => (STALL_WAIT, Duration::ZERO),
            StallPolicy::Kill { after } => (STALL_KILL, after),
            StallPolicy::Pin { after } => (STALL_PIN, after),
        };
        Ok(Config {
            reserve_bytes,
            round_timeout_ns: nanos(self.round_timeout),
            stall_after_ns: nanos(stall_after),
            max_workers: self.max_workers,
            max_observers: self.max_observers,
            pins_per_observer: self.pins_per_observer,
            max_areas: self.max_areas,
            max_name_bytes: self.max_name_bytes,
            generations: self.generations,
            seal_every: self.seal_every,
            stall_policy,
            huge_pages: u32::from(self.huge_pages == HugePages::Auto),
            check: u32::from(self.check || check_is_asked_for()),
            hosts: self.hosts.len() as u32,
            here: self.here as u32,
            min_copies: self.min_copies,
            _spare: 0,
        })
    }
}

/// Bytes of memory that the host has; 16 GiB if it does not say.
fn host_memory() -> u64 {
    // SAFETY: plain system calls.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    if pages > 0 && size > 0 { pages as u64 * size as u64 } else { 16 << 30 }
}
