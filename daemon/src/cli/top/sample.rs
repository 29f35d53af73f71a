//! The samples of `top`: counters of two snapshots of every job, as rates.
use super::peers::{Agents, PeerSample};
use crate::ask::{Reconnecting, all_jobs, is_there, monitor};
use anyhow::Result;
use hectare_dsm::{AreaSnapshot, Monitor, Snapshot, WorkerSnapshot, WorkerState};
use hectare_wire::{Connection, Error, JobLine, Refusal, RunDir};
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// One line of JSON, or one picture. Rates are `None` in the first, and of what was not there before.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Seconds since 1970.
    pub time_s: f64,
    /// Seconds since the sample before; 0 in the first.
    pub interval_s: f64,
    /// The jobs, in the order of their names.
    pub jobs: Vec<JobSample>,
}

/// A job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JobSample {
    /// Its name.
    pub job: String,
    /// Processes that are members.
    pub members: u32,
    /// Ranks handed out.
    pub ranks: u32,
    /// Members that died without leaving.
    pub member_deaths: u64,
    /// Memory that it takes.
    pub resident_bytes: u64,
    /// Rounds that began.
    pub rounds: u64,
    /// Each second.
    pub rounds_per_s: Option<f64>,
    /// Bytes copied into reader copies.
    pub copied_bytes: u64,
    /// Each second.
    pub bytes_per_s: Option<f64>,
    /// Rounds abandoned because a worker did not come.
    pub abandoned: u64,
    /// Publications postponed.
    pub postponed: u64,
    /// The other hosts that it is on.
    pub peers: Vec<PeerSample>,
    /// Its workers, in the order of their ranks.
    pub workers: Vec<WorkerSample>,
    /// Its areas, the stalest first.
    pub areas: Vec<AreaSample>,
    /// Areas that there are besides.
    pub areas_omitted: usize,
}

/// A worker.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WorkerSample {
    /// Its rank.
    pub rank: u32,
    /// Its process.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// `live`, `straggler`, `changing`, `stopped`, `dead`, or `remote`: on another host.
    pub state: &'static str,
    /// The name of its host, if that is another one. Of its workers, this host knows the lowest clock, and that they are there.
    pub host: Option<String>,
    /// Its clock.
    pub clock: u64,
    /// For how many seconds, as far as this command has looked, its host's clock has been the lowest of all and has not risen, while
    /// a worker of this host that is ahead waits.
    pub stands_s: Option<f64>,
    /// Rounds completed with it.
    pub rounds: u64,
    /// Each second.
    pub rounds_per_s: Option<f64>,
    /// Bytes that it copied into reader copies.
    pub copied_bytes: u64,
    /// Each second.
    pub bytes_per_s: Option<f64>,
    /// How many rounds began since it last came to one.
    pub behind_rounds: u64,
    /// Rounds abandoned because of it.
    pub late: u64,
    /// In how many of the samples since the last sample a round waited for it, from 0 to 1.
    pub waited_for: Option<f64>,
}

/// An area.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AreaSample {
    /// Its name.
    pub name: String,
    /// The rank that owns it; `None` if it can be claimed.
    pub owner: Option<u32>,
    /// Bytes of one copy.
    pub bytes: u64,
    /// The term of the newest published version; `None` without reader copies.
    pub term: Option<u64>,
    /// Its counter.
    pub version: Option<u64>,
    /// Versions published each second.
    pub versions_per_s: Option<f64>,
    /// Seconds since a round last published it or found nothing to publish.
    pub age_s: Option<f64>,
    /// Whether its owner wrote something that is not published.
    pub dirty: bool,
}

/// A job that is watched.
#[derive(Debug)]
struct Watched {
    monitor: Monitor,
    last: Option<(Instant, Snapshot)>,
    /// Looks at who is waited for since the last sample, and how many named each rank.
    samples: u64,
    named: BTreeMap<u32, u64>,
    /// The clock of each worker of another host that holds others up, and since when it has been that.
    standing: BTreeMap<u32, (u64, Instant)>,
}

/// The workers of other hosts that workers of this one wait for, as far as their clocks tell: they have the lowest. A worker that is
/// ahead and works waits for nobody: its consistency lets it. While a round waits for a worker of this host, or one is stopped, perhaps
/// in the middle of a round, nothing is known of the clocks that the others have meanwhile.
pub(crate) fn holding_up(snapshot: &Snapshot) -> impl Iterator<Item = &WorkerSnapshot> {
    let clocks = || snapshot.workers.iter().filter(|worker| worker.state != WorkerState::Dead);
    let lowest = clocks().map(|worker| worker.clock).min().unwrap_or(0);
    let here = |worker: &&WorkerSnapshot| worker.host.is_none() && worker.waits && worker.clock != u64::MAX;
    let ahead = clocks().filter(here).any(|worker| worker.clock > lowest)
        && !snapshot.workers.iter().any(|worker| worker.waited_for || worker.stopped);
    clocks().filter(move |worker| ahead && worker.host.is_some() && worker.clock == lowest)
}

/// Looks at jobs.
#[derive(Debug)]
pub(super) struct Sampler {
    daemon: Reconnecting,
    agents: Agents,
    /// The job to look at; all if there is none.
    job: Option<String>,
    watched: BTreeMap<String, (u64, Watched)>,
    last: Option<Instant>,
    most_areas: usize,
}

impl Sampler {
    pub(super) fn new(dir: &RunDir, daemon: Reconnecting, job: Option<String>, most_areas: usize) -> Sampler {
        Sampler { daemon, agents: Agents::new(dir), job, watched: BTreeMap::new(), last: None, most_areas }
    }

    /// Looks at everything; the rates are those since the last call. `None` while there is no daemon.
    pub(super) fn sample(&mut self) -> Result<Option<Sample>> {
        let now = Instant::now();
        let Sampler { daemon, job, watched, most_areas, .. } = self;
        let jobs = daemon.ask(|connection| {
            let lines = lines(connection, job.as_deref())?;
            watched.retain(|job, _| lines.iter().any(|line| line.job == *job));
            let ticks = lines
                .iter()
                .filter_map(|line| sample_job(connection, watched, line, now, *most_areas).transpose());
            ticks.collect::<Result<Vec<_>>>()
        })?;
        let Some(mut jobs) = jobs else { return Ok(None) };
        self.agents.retain(|job| jobs.iter().any(|it| it.job == job));
        for job in &mut jobs {
            job.peers = self.agents.peers(&job.job, now);
        }
        let interval_s = self.last.map_or(0.0, |last| now.duration_since(last).as_secs_f64());
        self.last = Some(now);
        let time_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        Ok(Some(Sample { time_s, interval_s, jobs }))
    }

    /// Looks at who is waited for, in between.
    pub(super) fn sample_waits(&mut self) {
        for (_, watched) in self.watched.values_mut() {
            if let Ok(ranks) = watched.monitor.waited_for() {
                watched.samples += 1;
                for rank in ranks {
                    *watched.named.entry(rank).or_default() += 1;
                }
            }
        }
    }
}

/// The jobs, or the one that is asked for.
fn lines(connection: &Connection, job: Option<&str>) -> Result<Vec<JobLine>> {
    let all = all_jobs(connection)?;
    let Some(job) = job else { return Ok(all) };
    let of = |all: Vec<JobLine>| all.into_iter().filter(|line| line.job == job).collect::<Vec<_>>();
    let lines = of(all);
    if !lines.is_empty() {
        return Ok(lines);
    }
    // A daemon that is new waits for those who bring the job before it says that there is none.
    let lines = if is_there(connection, job)? { of(all_jobs(connection)?) } else { Vec::new() };
    if lines.is_empty() {
        Err(Error::Refused(Refusal::NoSuchJob { job: job.into() }).into())
    } else {
        Ok(lines)
    }
}

/// `None` if the job went since it was listed.
fn sample_job(
    connection: &Connection,
    watched: &mut BTreeMap<String, (u64, Watched)>,
    line: &JobLine,
    now: Instant,
    most_areas: usize,
) -> Result<Option<JobSample>> {
    // A job that is younger than the one that is watched is another one of its name, or the daemon is.
    let known = watched.get(&line.job).is_some_and(|(age_s, _)| *age_s <= line.age_s);
    if !known {
        let monitor = match monitor(connection, &line.job) {
            Ok(monitor) => monitor,
            Err(error) => {
                return match error.downcast_ref() {
                    Some(Error::Refused(Refusal::NoSuchJob { .. })) => Ok(None),
                    _ => Err(error),
                };
            }
        };
        let new =
            Watched { monitor, last: None, samples: 0, named: BTreeMap::new(), standing: BTreeMap::new() };
        watched.insert(line.job.clone(), (line.age_s, new));
    }
    let Some((age_s, watched)) = watched.get_mut(&line.job) else { return Ok(None) };
    *age_s = line.age_s;
    let snapshot = watched.monitor.snapshot(most_areas)?;
    let mut standing = BTreeMap::new();
    for worker in holding_up(&snapshot) {
        let known = watched.standing.get(&worker.rank).filter(|(clock, _)| *clock == worker.clock);
        standing.insert(worker.rank, known.copied().unwrap_or((worker.clock, now)));
    }
    watched.standing = standing;
    let sample = job_sample(line, &snapshot, now, watched);
    (watched.samples, watched.last) = (0, Some((now, snapshot)));
    watched.named.clear();
    Ok(Some(sample))
}

fn job_sample(line: &JobLine, snapshot: &Snapshot, now: Instant, watched: &Watched) -> JobSample {
    let before = watched.last.as_ref().map(|(_, snapshot)| snapshot);
    let seconds = watched.last.as_ref().map_or(0.0, |(then, _)| now.duration_since(*then).as_secs_f64());
    let rate = |now: u64, then: Option<u64>| {
        let rise = then.map(|then| now.saturating_sub(then) as f64);
        rise.filter(|_| seconds > 0.0).map(|rise| rise / seconds)
    };
    let standing = |rank: u32| {
        let since = watched.standing.get(&rank).map(|(_, since)| now.duration_since(*since).as_secs_f64());
        since.filter(|seconds| *seconds > 0.0)
    };
    let worker = |worker: &WorkerSnapshot| {
        let then = before.and_then(|snapshot| snapshot.workers.iter().find(|then| then.rank == worker.rank));
        let named = watched.named.get(&worker.rank).copied().unwrap_or(0);
        WorkerSample {
            rank: worker.rank,
            pid: worker.pid,
            tid: worker.tid,
            state: if worker.stopped { "stopped" } else { state_name(worker.state) },
            host: worker.host.as_deref().map(|host| host.split(" (").next().unwrap_or(host).to_owned()),
            clock: worker.clock,
            stands_s: standing(worker.rank),
            rounds: worker.rounds,
            rounds_per_s: rate(worker.rounds, then.map(|then| then.rounds)),
            copied_bytes: worker.copied_bytes,
            bytes_per_s: rate(worker.copied_bytes, then.map(|then| then.copied_bytes)),
            // The round that comes next is nobody's yet.
            // Those of other hosts come to rounds of their own.
            behind_rounds: match worker.host {
                Some(_) => 0,
                None => snapshot
                    .round
                    .saturating_sub(u64::from(!snapshot.waits))
                    .saturating_sub(worker.last_round),
            },
            late: worker.late,
            waited_for: (watched.samples > 0).then(|| named as f64 / watched.samples as f64),
        }
    };
    let area = |area: &AreaSnapshot| {
        let then = before.and_then(|snapshot| snapshot.areas.iter().find(|then| then.name == area.name));
        let counter = |area: &AreaSnapshot| area.version.map(|version| version.counter);
        AreaSample {
            name: area.name.clone(),
            owner: area.owner,
            bytes: area.bytes,
            term: area.version.map(|version| version.term),
            version: counter(area),
            versions_per_s: counter(area).and_then(|now| rate(now, then.and_then(counter))),
            age_s: area.age.map(|age| age.as_secs_f64()),
            dirty: area.dirty,
        }
    };
    let mut areas: Vec<AreaSample> = snapshot.areas.iter().map(area).collect();
    areas.sort_by(staler);
    let (stats, then) = (&snapshot.stats, before.map(|snapshot| snapshot.stats));
    JobSample {
        job: line.job.clone(),
        members: line.members,
        ranks: line.ranks,
        member_deaths: line.deaths,
        resident_bytes: line.resident_bytes,
        rounds: stats.rounds,
        rounds_per_s: rate(stats.rounds, then.map(|then| then.rounds)),
        copied_bytes: stats.copied_bytes,
        bytes_per_s: rate(stats.copied_bytes, then.map(|then| then.copied_bytes)),
        abandoned: stats.abandoned,
        postponed: stats.postponed,
        peers: Vec::new(),
        workers: snapshot.workers.iter().map(worker).collect(),
        areas,
        areas_omitted: snapshot.areas_omitted,
    }
}

/// Which of two areas comes first: those with something to publish, and of them the oldest.
pub(super) fn staler(a: &AreaSample, b: &AreaSample) -> Ordering {
    let by_age = b.age_s.partial_cmp(&a.age_s).unwrap_or(Ordering::Equal);
    b.dirty.cmp(&a.dirty).then(by_age)
}

/// The state of a worker as it is printed.
pub(crate) fn state_name(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Live => "live",
        WorkerState::Straggler => "straggler",
        WorkerState::Changing => "changing",
        WorkerState::Dead => "dead",
        WorkerState::Remote => "remote",
        _ => "unknown",
    }
}
