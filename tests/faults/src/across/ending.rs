//! How an episode ends: everybody leaves, or something happens that a job cannot survive and that everybody has to hear of.
use super::Stage;
use super::cluster::Cluster;
use super::steps::agent;
use super::trouble::all_of;
use crate::host::{until, within};
use crate::promises::{Promise, Violation};
use crate::system;
use anyhow::{Result, ensure};
use std::time::{Duration, Instant};

/// Ways to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// All workers leave.
    Leave,
    /// A worker is killed; the others go on, and leave.
    WorkerKilled,
    /// Everything on a host is killed.
    HostKilled,
    /// A host is cut off for good.
    HostCutOff,
    /// An agent stands still for longer than the time-out, and goes on.
    AgentStopped,
}

impl Ending {
    pub(crate) const ALL: [Ending; 5] =
        [Ending::Leave, Ending::WorkerKilled, Ending::HostKilled, Ending::HostCutOff, Ending::AgentStopped];

    /// Does it, and judges what becomes of the job; how long the others did not know, where there is something to know.
    pub(crate) fn happen(self, stage: &mut Stage) -> Result<Option<Duration>> {
        match self {
            Ending::Leave => leave(stage, &[]).map(|()| None),
            Ending::WorkerKilled => worker_killed(stage).map(|()| None),
            Ending::HostKilled => {
                let host = stage.any_host();
                let since = Instant::now();
                stage.cluster.kill_host(host)?;
                others_hear(stage, host, since).map(Some)
            }
            Ending::HostCutOff => {
                let host = stage.any_host();
                let faults = all_of(stage, host);
                let since = Instant::now();
                stage.cluster.network.set(&faults)?;
                let took = others_hear(stage, host, since)?;
                // It names another, as it cannot know that it is alone.
                hears(stage, host, since)?;
                stage.cluster.network.set(&[])?;
                Ok(Some(took))
            }
            Ending::AgentStopped => {
                let host = stage.any_host();
                let pid = agent(stage, host)?;
                let since = Instant::now();
                system::signal(pid, libc::SIGSTOP)?;
                until("it to stand still", || Cluster::is_stopped(pid))?;
                let took = others_hear(stage, host, since);
                system::signal(pid, libc::SIGCONT)?;
                let took = took?;
                hears(stage, host, Instant::now())?;
                Ok(Some(took))
            }
        }
    }
}

fn leave(stage: &mut Stage, killed: &[usize]) -> Result<()> {
    let limit = stage.timeout();
    let load = stage.load()?;
    load.leave(limit, killed)
}

fn worker_killed(stage: &mut Stage) -> Result<()> {
    let size = stage.load()?.size();
    // The first one tells the others when it ends.
    let rank = 1 + stage.random.below(size - 1);
    let pid = stage.load()?.pid(rank);
    system::signal(pid, libc::SIGKILL)?;
    stage.load()?.wait_for(rank)?;
    let limit = stage.timeout();
    stage.load()?.goes_on(limit, &[rank])?;
    leave(stage, &[rank])
}

/// The workers of all other hosts hear in time that `host` has failed.
fn others_hear(stage: &mut Stage, host: usize, since: Instant) -> Result<Duration> {
    let address = stage.cluster.network.address(host).to_string();
    let limit = stage.timeout();
    let (took, said) = stage.load()?.hear_of_the_end(limit, since, |other| other != host)?;
    for (rank, text) in said {
        let names = text.contains(&format!("host host{host} ")) && text.contains(&address);
        let what = || format!("host {host} ({address}) failed, and rank {rank} heard: {text}");
        ensure!(names, Violation::new(Promise::G, what()));
    }
    Ok(took)
}

fn hears(stage: &mut Stage, host: usize, since: Instant) -> Result<()> {
    let limit = stage.timeout();
    stage.load()?.hear_of_the_end(limit, since, |other| other == host).map(drop)
}

/// Nobody was taken for failed: all have left.
pub(crate) fn nobody_failed(stage: &Stage) -> Result<()> {
    // Of this job, and not of one beside it.
    let port = format!(":{} failed", stage.cluster.agent_address(0).port());
    for host in 0..stage.cluster.count() {
        let said = stage.cluster.said(host);
        if let Some(line) = said.lines().find(|line| line.contains("the job ends") && line.contains(&port)) {
            let what = format!("all have left, and the agent of host {host} took one for failed: {line}");
            return Err(Violation::new(Promise::D, what).into());
        }
    }
    Ok(())
}

/// The job and its agents are gone from every host, and the daemons hold what they held.
pub(crate) fn nothing_is_left(stage: &mut Stage) -> Result<()> {
    stage.sightings += stage.load.take().map_or(0, |load| load.sightings());
    for host in 0..stage.cluster.count() {
        stage.cluster.start_daemon(host)?;
        let limit = stage.timeout();
        let gone = || {
            stage.cluster.jobs(host).is_ok_and(|jobs| jobs.is_empty())
                && stage.cluster.network.processes(host).is_ok_and(|pids| pids.len() == 1)
        };
        within(limit, "the job's end", gone).map_err(|_| {
            let (jobs, agents) = (stage.cluster.jobs(host), stage.cluster.agents(host));
            Violation::new(Promise::E, format!("left on host {host}: jobs {jobs:?}, agents {agents:?}"))
        })?;
        let said = stage.cluster.said(host);
        if said.contains("panicked") {
            return Err(Violation::new(Promise::E, format!("host {host} said: {said}")).into());
        }
    }
    Ok(())
}
