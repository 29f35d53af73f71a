//! `hectare check`: what prevents a job from making progress, or may do so.
use super::output::json;
use super::peers::{ANSWER, trouble};
use super::top::sample::holding_up;
use super::{Found, output};
use crate::ask::{monitor, open, standing_of};
use anyhow::Result;
use hectare_dsm::{AreaSnapshot, Job, Snapshot, WorkerInfo, WorkerSnapshot, WorkerState};
use hectare_wire::{AgentConnection, Connection, RunDir};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// How long a worker has to be waited for, or to wait, to be a finding.
const LONG_WAIT: Duration = Duration::from_secs(1);

/// After how many of its intervals an area that has something to publish is stale.
const STALE: u32 = 10;

pub(super) fn check(dir: &RunDir, connection: &Connection, name: &str, as_json: bool) -> Result<()> {
    let job = open(connection, name)?;
    let (workers, stats) = (job.workers()?, job.stats()?);
    let monitor = monitor(connection, name)?;
    let snapshot = monitor.snapshot(usize::MAX)?;
    let mut findings: Vec<_> = workers.iter().filter_map(|worker| state_of(worker, &snapshot)).collect();
    findings.extend(unheard(dir, &job, name));
    if stats.unlogged_lines > 0 {
        findings.push(format!("{} lines were written without being logged", stats.unlogged_lines));
    }
    if snapshot.waits || snapshot.workers.iter().any(|worker| worker.waits) {
        // Rounds, and workers, wait a little all the time. What does not end is a finding.
        std::thread::sleep(LONG_WAIT);
        let later = monitor.snapshot(usize::MAX)?;
        findings.extend(clocks_that_stand(name, &snapshot, &later));
        findings.extend(waiting(name, &snapshot, &later));
        findings.extend(late_for_rounds(&snapshot, &later));
    }
    findings.extend(snapshot.areas.iter().filter_map(stale));
    for area in job.areas()?.iter().filter(|area| area.owner.is_none() && !area.remote) {
        findings.push(format!("area {:?} has no owner: it can be claimed", area.name));
    }
    if as_json {
        json(&json!({ "job": name, "healthy": findings.is_empty(), "findings": findings }))?;
    } else if findings.is_empty() {
        output::print(format!("job {name}: {} workers, nothing found\n", workers.len()).as_bytes())?;
    } else {
        output::print(format!("{}\n", findings.join("\n")).as_bytes())?;
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err(Found(format!("job {name}: 1 finding")).into()),
        count => Err(Found(format!("job {name}: {count} findings")).into()),
    }
}

/// The fault of a worker, apart from what it has to do with others.
fn state_of(worker: &WorkerInfo, snapshot: &Snapshot) -> Option<String> {
    let WorkerInfo { rank, pid, .. } = worker;
    let is_stopped = snapshot.workers.iter().any(|seen| seen.rank == *rank && seen.stopped);
    Some(match worker.state {
        _ if is_stopped => format!(
            "worker {rank} (process {pid}) is stopped, by a signal or a debugger: `kill -CONT {pid}` lets it go on"
        ),
        WorkerState::Dead if *pid == 0 => format!("worker {rank}, on another host, is dead"),
        WorkerState::Dead => format!("worker {rank} (process {pid}) is dead: claim its areas"),
        WorkerState::Straggler => {
            let last = worker.last_round;
            format!("worker {rank} (process {pid}) does not come to rounds since round {last}")
        }
        _ => return None,
    })
}

/// The other hosts that this one hears nothing of, as its agent says, or that there is no agent to ask.
fn unheard(dir: &RunDir, job: &Job, name: &str) -> Vec<String> {
    if job.hosts().len() < 2 {
        return Vec::new();
    }
    let standing = match AgentConnection::open(dir, name, Some(ANSWER)) {
        Ok(Some(agent)) => standing_of(&agent).map_err(|error| error.to_string()),
        Ok(None) => Err("there is none".into()),
        Err(error) => Err(error.to_string()),
    };
    match standing {
        Ok(standing) => standing.peers.iter().filter_map(trouble).collect(),
        Err(why) => vec![format!(
            "the agent of this host, which sends areas to other hosts, does not answer ({why}): see the log of hectared"
        )],
    }
}

/// Hosts whose workers have had the same lowest clock for long, while workers of this one wait for it.
fn clocks_that_stand(name: &str, before: &Snapshot, later: &Snapshot) -> Vec<String> {
    let stands = |snapshot: &Snapshot| {
        let of = |worker: &WorkerSnapshot| Some((worker.host.clone()?, worker.clock));
        holding_up(snapshot).filter_map(of).collect::<BTreeSet<_>>()
    };
    let both = stands(before).intersection(&stands(later)).cloned().collect::<Vec<_>>();
    let finding = |(host, clock): &(String, u64)| {
        format!(
            "workers of this host wait for host {host}, whose clock stands at {clock} for more than {LONG_WAIT:?}: \
             a worker there is stopped, or does not come to a synchronization point; `hectare check {name}` there says which"
        )
    };
    both.iter().map(finding).collect()
}

/// Workers of this host that wait for another one, and for no clock, while nothing happens in the job.
fn waiting(name: &str, before: &Snapshot, later: &Snapshot) -> Vec<String> {
    let progress = |snapshot: &Snapshot| {
        let areas = snapshot.areas.iter().map(|area| (area.name.clone(), area.owner, area.version));
        (snapshot.round, areas.collect::<Vec<_>>())
    };
    let waits = |snapshot: &Snapshot| {
        let held_up = snapshot.workers.iter().filter(|worker| worker.waits && worker.clock != u64::MAX);
        held_up.map(|worker| (worker.rank, worker.pid, worker.clock)).collect::<BTreeSet<_>>()
    };
    // Then that is why, or may be.
    let is_named = holding_up(before).next().is_some()
        || later.workers.iter().any(|worker| worker.stopped || worker.waited_for);
    if is_named || progress(before) != progress(later) {
        return Vec::new();
    }
    let both = waits(before).intersection(&waits(later)).copied().collect::<Vec<_>>();
    let hosts: BTreeSet<_> = later.workers.iter().filter_map(|worker| worker.host.clone()).collect();
    let hosts = hosts.into_iter().collect::<Vec<_>>().join(", ");
    let finding = |(rank, pid, _): &(u32, u32, u64)| {
        format!(
            "worker {rank} (process {pid}) waits for more than {LONG_WAIT:?} for a worker of another host, and not for its \
             clock: as for an area that it is to give, or a version; `hectare check {name}` there says whether one is \
             stopped (hosts: {hosts})"
        )
    };
    both.iter().map(finding).collect()
}

/// Workers of this host for whom a round has waited for long.
fn late_for_rounds(before: &Snapshot, later: &Snapshot) -> Vec<String> {
    if !before.waits || !later.waits || later.round != before.round {
        return Vec::new();
    }
    let late = later.workers.iter().filter(|worker| worker.waited_for && !worker.stopped);
    let finding = |worker: &WorkerSnapshot| {
        format!(
            "round {} waits for worker {} (process {}) for more than {LONG_WAIT:?}: it is stopped, or does not come to a \
             synchronization point",
            later.round, worker.rank, worker.pid
        )
    };
    late.map(finding).collect()
}

/// An area that is not published as often as it is to be.
fn stale(area: &AreaSnapshot) -> Option<String> {
    let (interval, age) = (area.interval?, area.age?);
    (area.dirty && age > STALE * interval).then(|| {
        let age_s = age.as_secs_f64();
        format!("area {:?} is to be published every {interval:?} and was not for {age_s:.3} s", area.name)
    })
}
