//! Faults of a job on several hosts: daemons, agents and workers in network namespaces on one switch.
//!
//! A campaign is a row of episodes, each with a seed of its own: a job, faults that it has to survive, and an end. Workers write
//! areas whose content is known, and look at those of all hosts: whole versions (A), groups together (A), turns as far apart as
//! barriers and clocks allow (A), nothing that goes back (B). After each fault everybody has to see something new of everybody
//! (D), at rest all see the same (F), and at the end nothing is left (E).
mod clocks;
mod cluster;
mod ending;
mod load;
mod outsiders;
mod path;
mod program;
mod steps;
mod traitor;
mod trouble;

pub(crate) use program::play;

use crate::report::Outcome;
use anyhow::{Context, Result};
use cluster::{Cluster, NoNetwork};
use ending::{Ending, nobody_failed, nothing_is_left};
use hectare_testing::Random;
use load::Load;
use program::Style;
use std::time::{Duration, Instant};
use trouble::{TROUBLES, Trouble};

/// Who is silent for so long has failed.
const SILENCE: Duration = Duration::from_secs(6);

/// The options of a campaign.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) hosts: usize,
    pub(crate) seed: u64,
    pub(crate) minutes: f64,
    pub(crate) short: bool,
    /// Faults by number, each of which every episode has; without, it has some.
    pub(crate) only: Vec<u8>,
}

/// The faults that a job has to survive, by number; one of them is always there.
pub(crate) fn list() -> impl Iterator<Item = (u8, &'static str)> {
    let always = [(41, "hosts whose clocks differ (in every episode)")];
    TROUBLES.iter().map(|trouble| (trouble.number, trouble.name)).chain(always)
}

/// Where the faults of an episode happen.
#[derive(Debug)]
struct Stage {
    // First, as its processes run on the hosts.
    load: Option<Load>,
    cluster: Cluster,
    random: Random,
    /// Ranks of each host.
    ranks: u32,
    short: bool,
    slowest: Duration,
    sightings: u64,
}

impl Stage {
    fn load(&mut self) -> Result<&mut Load> {
        self.load.as_mut().context("no job runs")
    }

    fn any_host(&mut self) -> usize {
        self.random.below(self.cluster.count())
    }

    fn times(&self, short: usize, full: usize) -> usize {
        if self.short { short } else { full }
    }

    /// A time that ends no job.
    fn brief(&mut self) -> Duration {
        let most = if self.short { 600 } else { 2000 };
        Duration::from_millis(100 + self.random.below(most) as u64)
    }

    /// How long anything may take that has to happen: twice the time-out.
    fn timeout(&self) -> Duration {
        SILENCE * 2
    }

    /// Everybody sees something new of everybody.
    fn goes_on(&mut self) -> Result<()> {
        let limit = self.timeout();
        let took = self.load()?.goes_on(limit, &[])?;
        self.slowest = self.slowest.max(took);
        Ok(())
    }
}

/// Plays episodes until the time is over, or a promise is broken.
pub(crate) fn campaign(plan: &Plan) -> Result<Outcome> {
    let cluster = match Cluster::new(plan.hosts, &mut Random(plan.seed)) {
        Ok(cluster) => cluster,
        Err(error) if error.downcast_ref::<NoNetwork>().is_some() => {
            println!("skipped: {error:#}");
            return Ok(Outcome::Skipped);
        }
        Err(error) => return Err(error),
    };
    let began = Instant::now();
    let random = Random(0);
    let (slowest, short) = (Duration::ZERO, plan.short);
    let mut stage = Stage { load: None, cluster, random, ranks: 1, short, slowest, sightings: 0 };
    let mut troubles = 0;
    for seed in plan.seed.. {
        let since = Instant::now();
        let mut notes = Vec::new();
        let done = episode(&mut stage, plan, seed, &mut notes);
        let took = since.elapsed().as_secs_f64();
        println!("seed {seed}: {:.1} s: {}", took, notes.join("; "));
        if let Err(error) = done {
            println!("broken: {error:#}");
            for host in 0..plan.hosts {
                println!("--- host {host} said:\n{}", stage.cluster.said(host));
            }
            let short = if plan.short { " --short" } else { "" };
            println!("to repeat: faults --hosts {} --seed {seed}{short}", plan.hosts);
            return Ok(Outcome::Broken);
        }
        troubles += notes.len() - 2;
        if began.elapsed().as_secs_f64() >= plan.minutes * 60.0 {
            println!(
                "{} episodes with {troubles} faults held; everybody saw something new of everybody {:.0?} after a fault at most; {} \
                 sightings of versions judged",
                seed - plan.seed + 1,
                stage.slowest,
                stage.sightings
            );
            break;
        }
    }
    Ok(Outcome::Held)
}

/// The plan of an episode.
fn chosen(stage: &mut Stage, only: &[u8]) -> Vec<&'static Trouble> {
    if !only.is_empty() {
        return TROUBLES.iter().filter(|trouble| only.contains(&trouble.number)).collect();
    }
    let count = 1 + stage.random.below(stage.times(3, 6));
    (0..count).map(|_| &TROUBLES[stage.random.below(TROUBLES.len())]).collect()
}

fn episode(stage: &mut Stage, plan: &Plan, seed: u64, notes: &mut Vec<String>) -> Result<()> {
    stage.random = Random(seed ^ 0x05ee_d0f5);
    stage.cluster.forget_logs();
    let style = Style::ALL[stage.random.below(Style::ALL.len())];
    let ending = Ending::ALL[stage.random.below(Ending::ALL.len())];
    stage.ranks = 1 + stage.random.below(2) as u32;
    notes.push(format!("{} with {} ranks a host", style.name(), stage.ranks));
    // The job's unique name is no part of what a seed repeats.
    let unique = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos();
    let silence_ms = SILENCE.as_millis() as u64;
    let job = stage.cluster.make_job(stage.ranks, silence_ms, unique.to_le_bytes())?;
    let loose = ending == Ending::WorkerKilled;
    stage.load = Some(Load::start(&stage.cluster, &job, stage.ranks, style, loose)?);
    for trouble in chosen(stage, &plan.only) {
        let (name, since) = (trouble.name, Instant::now());
        notes.push(format!("{} {name}", trouble.number));
        (trouble.happen)(stage).with_context(|| name)?;
        // On a busy machine, a fault may last longer than it was to: the tools that end it take their time.
        let lasted = since.elapsed().as_secs_f64();
        stage.goes_on().with_context(|| format!("after {name}, which lasted {lasted:.1} s"))?;
        if let Some(note) = notes.last_mut() {
            *note += &format!(" {:.1} s", since.elapsed().as_secs_f64());
        }
        if style == Style::Free {
            stage.load()?.order("hold")?;
            stage.load()?.comes_to_rest(Duration::from_secs(5)).with_context(|| format!("after {name}"))?;
            stage.load()?.order("go on")?;
        }
    }
    notes.push(format!("{ending:?}"));
    let took = ending.happen(stage).with_context(|| format!("{ending:?}"))?;
    if let (Some(took), Some(note)) = (took, notes.last_mut()) {
        *note += &format!(", known after {:.1} s", took.as_secs_f64());
    }
    let since = Instant::now();
    nothing_is_left(stage)?;
    if let Some(note) = notes.last_mut() {
        *note += &format!(", gone after {:.1} s", since.elapsed().as_secs_f64());
    }
    match ending {
        Ending::Leave | Ending::WorkerKilled => nobody_failed(stage),
        _ => Ok(()),
    }
}
