//! Steps of which faults are made.
use super::Stage;
use crate::host::until;
use crate::promises::{Promise, Violation};
use crate::system;
use anyhow::{Context, Result};
use hectare_hosts::Fault;
use std::time::Duration;

/// Both directions between all hosts.
pub(crate) fn links(stage: &Stage) -> Vec<(usize, usize)> {
    let hosts = 0..stage.cluster.count();
    let all = hosts.clone().flat_map(|from| hosts.clone().map(move |to| (from, to)));
    all.filter(|(from, to)| from != to).collect()
}

/// A fault on links, for a time that does not end the job.
pub(crate) fn suffer(stage: &mut Stage, faults: &[Fault], time: Duration) -> Result<()> {
    stage.cluster.network.set(faults)?;
    std::thread::sleep(time);
    stage.load()?.check()?;
    Ok(stage.cluster.network.set(&[])?)
}

pub(crate) fn share(stage: &mut Stage, shares: &[f64], fault: fn(usize, usize, f64) -> Fault) -> Result<()> {
    let share = shares[stage.random.below(shares.len())];
    let faults: Vec<Fault> = links(stage).into_iter().map(|(from, to)| fault(from, to, share)).collect();
    let time = stage.brief();
    suffer(stage, &faults, time)
}

/// The one agent of a host.
pub(crate) fn agent(stage: &Stage, host: usize) -> Result<u32> {
    let mut agents = Vec::new();
    until("an agent", || {
        agents = stage.cluster.agents(host).unwrap_or_default();
        !agents.is_empty()
    })
    .map_err(|_| Violation::new(Promise::D, format!("host {host} has no agent")))?;
    // Another may wait for the end of this one: the first works.
    agents.into_iter().min().context("an agent")
}

pub(crate) fn kill_agent(stage: &Stage, host: usize) -> Result<u32> {
    let pid = agent(stage, host)?;
    // It may have ended at this moment.
    let _ = system::signal(pid, libc::SIGKILL);
    Ok(pid)
}

pub(crate) fn followed(stage: &Stage, host: usize, pid: u32) -> Result<()> {
    let other = || stage.cluster.agents(host).is_ok_and(|agents| agents.iter().any(|other| *other != pid));
    until("another agent", other)
        .map(drop)
        .map_err(|_| Violation::new(Promise::D, format!("no agent followed {pid} on host {host}")).into())
}

/// The members of a host have brought the job to a new daemon.
pub(crate) fn back(stage: &Stage, host: usize) -> Result<()> {
    let there = || stage.cluster.jobs(host).is_ok_and(|jobs| jobs.iter().any(|job| job.ranks == stage.ranks));
    until("the members to come back", there).map(drop).map_err(|_| {
        let what = format!("the members of host {host} did not come back: {:?}", stage.cluster.jobs(host));
        Violation::new(Promise::E, what).into()
    })
}
