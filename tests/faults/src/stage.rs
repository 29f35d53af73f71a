//! The stage of every fault: a host, its daemon, the load, and the accounts of the resources that they hold.
use crate::constants::JOB;
use crate::host::{Daemon, Host, descriptors, until};
use crate::load::Load;
use crate::promises::{Promise, Violation};
use anyhow::{Result, bail};
use hectare_dsm::{Job, Stats, WorkerState};
use hectare_testing::Random;
use hectare_wire::{JobSettings, Request};
use std::time::{Duration, Instant};

/// How long a round of the load waits for those who do not come: the time-out of promise D.
pub(crate) const TIME_LIMIT: Duration = Duration::from_millis(500);

/// The outcome of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every promise held; what showed it.
    Held(String),
    /// It could not be injected here, and why.
    Skipped(String),
}

/// The resources that are held while nothing happens; after every fault they are the same again.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Accounts {
    daemon_descriptors: usize,
    descriptors: Vec<usize>,
    ranks: u32,
    members: u32,
    workers: usize,
    areas: usize,
    free_bytes: u64,
    resident_bytes: u64,
}

/// Where faults are injected.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) host: Host,
    pub(crate) daemon: Option<Daemon>,
    pub(crate) load: Load,
    pub(crate) view: Job,
    pub(crate) random: Random,
    /// Few repetitions, and no judgement of times: for tests on busy machines.
    pub(crate) short: bool,
    /// How long faults that last (54) last.
    pub(crate) lasting: Duration,
    accounts: Accounts,
    /// The longest time in which the survivors of a fault went on.
    pub(crate) slowest: Duration,
}

/// The settings of the load's job.
pub(crate) fn settings() -> JobSettings {
    JobSettings {
        bytes: Some(64 << 20),
        areas: Some(32),
        workers: Some(16),
        round_timeout_ms: Some(TIME_LIMIT.as_millis() as u64),
        ..JobSettings::default()
    }
}

impl Stage {
    pub(crate) fn new(seed: u64, short: bool, lasting: Duration) -> Result<Stage> {
        let host = Host::new()?;
        let daemon = host.daemon("")?;
        host.connect()?.order(&Request::Create { job: JOB.into(), settings: settings(), keep: true })?;
        let load = Load::start(&host, JOB)?;
        let view = host.open(JOB)?;
        let mut accounts = Accounts::of(&host, &daemon, &load, &view)?;
        // The daemon closes the connections that asked a moment later.
        until("the accounts to stand still", || {
            std::thread::sleep(Duration::from_millis(20));
            let Ok(now) = Accounts::of(&host, &daemon, &load, &view) else { return false };
            std::mem::replace(&mut accounts, now.clone()) == now
        })?;
        let random = Random(seed);
        let (slowest, daemon) = (Duration::ZERO, Some(daemon));
        Ok(Stage { host, daemon, load, view, random, short, lasting, accounts, slowest })
    }

    /// A number of repetitions: few for tests, more for campaigns.
    pub(crate) fn times(&self, short: usize, full: usize) -> usize {
        if self.short { short } else { full }
    }

    pub(crate) fn stats(&self) -> Result<Stats> {
        Ok(self.view.stats()?)
    }

    pub(crate) fn daemon(&self) -> Result<&Daemon> {
        match &self.daemon {
            Some(daemon) => Ok(daemon),
            None => bail!("no daemon runs"),
        }
    }

    /// A member of the load.
    pub(crate) fn any(&mut self) -> usize {
        self.random.below(self.load.members.len())
    }

    /// Waits until all members but `except` went on; promise D. In campaigns it is also judged how fast.
    pub(crate) fn survivors_go_on(&mut self, since: Instant, except: &[usize]) -> Result<Duration> {
        let took = self.load.all_go_on(since, except)?;
        self.slowest = self.slowest.max(took);
        let limit = 2 * TIME_LIMIT;
        if !self.short && took > limit {
            let what = format!("the survivors went on after {took:?}, later than {limit:?}");
            return Err(Violation::new(Promise::D, what).into());
        }
        Ok(took)
    }

    /// Waits until a member that was killed is seen dead, by the job and by the daemon.
    pub(crate) fn seen_dead(&mut self, before: &Stats, deaths: u64) -> Result<()> {
        let (host, view, deaths_before) = (&self.host, &self.view, before.deaths);
        let counted = until("the death to be counted", || {
            let by_job = view.workers().is_ok() && view.stats().is_ok_and(|now| now.deaths > deaths_before);
            by_job && host.job_line(JOB).is_ok_and(|line| line.deaths > deaths)
        });
        counted.map(drop).map_err(|_| {
            let now = (self.view.stats().map(|stats| stats.deaths), self.deaths());
            Violation::new(Promise::G, format!("deaths before {:?}, now {now:?}", (deaths_before, deaths)))
                .into()
        })
    }

    /// Deaths that the daemon counted in the load's job.
    pub(crate) fn deaths(&self) -> Result<u64> {
        Ok(self.host.job_line(JOB)?.deaths)
    }

    /// Replaces a dead member.
    pub(crate) fn replace(&mut self, index: usize) -> Result<()> {
        self.load.replace(&self.host, index)
    }

    /// After a fault: nobody panicked, and everything that it took came back; promises A to C and E.
    pub(crate) fn all_is_well(&mut self) -> Result<()> {
        self.load.check()?;
        let daemon = self.daemon()?;
        if daemon.log.count("panicked") > 0 {
            return Err(Violation::new(Promise::E, format!("the daemon said: {}", daemon.log.text())).into());
        }
        let mut now = None;
        let back = until("the accounts", || {
            now = Accounts::of(&self.host, daemon, &self.load, &self.view).ok();
            now.as_ref().is_some_and(|now| now.is_back_at(&self.accounts))
        });
        back.map(drop).map_err(|_| {
            let what = format!("held before: {:?}; held now: {now:?}", self.accounts);
            Violation::new(Promise::E, what).into()
        })
    }

    /// Lets the load leave and the daemon end, and looks at what is left.
    pub(crate) fn close(mut self) -> Result<()> {
        self.load.stop()?;
        self.host.connect()?.order(&Request::Remove { job: JOB.into(), force: false })?;
        until("the job to go", || self.host.jobs().is_ok_and(|jobs| jobs.is_empty()))?;
        let Some(daemon) = self.daemon.take() else { bail!("no daemon runs") };
        let (log, status) = (daemon.log.clone(), daemon.terminate()?);
        if !status.success() || log.count("panicked") > 0 {
            bail!("the daemon ended with {status}: {}", log.text());
        }
        if self.host.dir.socket().exists() {
            return Err(Violation::new(Promise::E, "the daemon left its socket").into());
        }
        Ok(())
    }
}

/// Bytes of the job's tables that are touched for the first time by one fault or another.
const TABLES: u64 = 1 << 20;

impl Accounts {
    fn is_back_at(&self, before: &Accounts) -> bool {
        let Accounts { daemon_descriptors, descriptors, resident_bytes, .. } = before.clone();
        // At first, connections may have been on their way out.
        self.daemon_descriptors <= daemon_descriptors
            && self.descriptors.iter().zip(&descriptors).all(|(now, before)| now <= before)
            && self.resident_bytes <= resident_bytes + TABLES
            && *before == Accounts { daemon_descriptors, descriptors, resident_bytes, ..self.clone() }
    }

    fn of(host: &Host, daemon: &Daemon, load: &Load, view: &Job) -> Result<Accounts> {
        let line = host.job_line(JOB)?;
        Ok(Accounts {
            daemon_descriptors: descriptors(daemon.pid()),
            descriptors: load.descriptors(),
            ranks: line.ranks,
            members: line.members,
            // A dead worker's slot is freed by the next one who joins.
            workers: view.workers()?.iter().filter(|info| info.state != WorkerState::Dead).count(),
            areas: view.areas()?.len(),
            free_bytes: view.free_bytes()?,
            resident_bytes: view.resident_bytes()?,
        })
    }
}
