//! Inspecting jobs: the daemon says who is in them, and their memory what they do.
use super::output::{bytes, json, table};
use super::top::sample::state_name;
use crate::ask::{all_clients, all_jobs, answer, monitor, open};
use anyhow::Result;
use hectare_dsm::WorkerInfo;
use hectare_wire::{ClientLine, Connection, JobLine, Reply, Request};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) fn ping(connection: &Connection, as_json: bool) -> Result<()> {
    match connection.ask(&Request::Ping)?.0 {
        Reply::Pong { pid, release, age_s } if as_json => {
            json(&json!({ "pid": pid, "release": release, "age_s": age_s }))
        }
        Reply::Pong { pid, release, age_s } => {
            table(["PID", "RELEASE", "AGE/s"], vec![[pid.to_string(), release, age_s.to_string()]])
        }
        other => answer(&other),
    }
}

pub(super) fn jobs(connection: &Connection, as_json: bool) -> Result<()> {
    let jobs = all_jobs(connection)?;
    if as_json {
        return json(&jobs);
    }
    let line = |job: JobLine| {
        [
            job.job,
            job.members.to_string(),
            format!("{}/{}", job.ranks, job.max_workers),
            bytes(job.resident_bytes),
            bytes(job.reserve_bytes),
            job.deaths.to_string(),
            job.age_s.to_string(),
            if job.keep { "yes" } else { "no" }.into(),
        ]
    };
    let head = ["JOB", "MEMBERS", "RANKS", "MEMORY", "QUOTA", "DEATHS", "AGE/s", "KEEP"];
    table(head, jobs.into_iter().map(line).collect())
}

#[derive(Serialize)]
struct Process {
    pid: u32,
    job: String,
    ranks: Vec<u32>,
    age_s: u64,
    workers: Vec<WorkerLine>,
}

#[derive(Serialize)]
struct WorkerLine {
    rank: u32,
    tid: u32,
    state: &'static str,
    last_round: u64,
    clock: u64,
}

pub(super) fn ps(connection: &Connection, job: Option<&str>, as_json: bool) -> Result<()> {
    let mut workers: BTreeMap<String, Vec<WorkerInfo>> = BTreeMap::new();
    let mut processes = Vec::new();
    if let Some(job) = job {
        workers.insert(job.into(), open(connection, job)?.workers()?);
    }
    for client in all_clients(connection)? {
        if job.is_some_and(|job| job != client.job) {
            continue;
        }
        if !workers.contains_key(&client.job) {
            // A job may have gone since it was listed; then there is nothing to say of its workers.
            let there = open(connection, &client.job).and_then(|job| Ok(job.workers()?)).unwrap_or_default();
            workers.insert(client.job.clone(), there);
        }
        let line = |info: &WorkerInfo| WorkerLine {
            rank: info.rank,
            tid: info.tid,
            state: state_name(info.state),
            last_round: info.last_round,
            clock: info.clock,
        };
        let own = workers[&client.job].iter().filter(|info| info.pid == client.pid).map(line).collect();
        let ClientLine { pid, job, ranks, age_s, .. } = client;
        processes.push(Process { pid, job, ranks, age_s, workers: own });
    }
    if as_json {
        return json(&processes);
    }
    // By ranks; those that only hold the job come last.
    let place = |process: &Process| {
        let first = process.ranks.iter().min().copied();
        (process.job.clone(), first.is_none(), first, process.pid)
    };
    processes.sort_by_key(place);
    let mut lines = Vec::new();
    for process in processes {
        let (job, pid, age) = (process.job, process.pid.to_string(), process.age_s.to_string());
        let line = |rank: String, state: String, round: String, clock: String| {
            [job.clone(), rank, pid.clone(), state, round, clock, age.clone()]
        };
        let none = || "-".to_owned();
        for &rank in &process.ranks {
            lines.push(match process.workers.iter().find(|worker| worker.rank == rank) {
                Some(worker) => line(
                    rank.to_string(),
                    worker.state.to_owned(),
                    worker.last_round.to_string(),
                    worker.clock.to_string(),
                ),
                None => line(rank.to_string(), "no worker".into(), none(), none()),
            });
        }
        if process.ranks.is_empty() {
            lines.push(line(none(), "holds".into(), none(), none()));
        }
    }
    table(["JOB", "RANK", "PID", "STATE", "ROUND", "CLOCK", "AGE/s"], lines)
}

pub(super) fn areas(connection: &Connection, job: &str, as_json: bool) -> Result<()> {
    let snapshot = monitor(connection, job)?.snapshot(usize::MAX)?;
    let ages: BTreeMap<&str, Duration> =
        snapshot.areas.iter().filter_map(|area| Some((area.name.as_str(), area.age?))).collect();
    let age_s = |name: &str| ages.get(name).map(Duration::as_secs_f64);
    let mut areas = open(connection, job)?.areas()?;
    areas.sort_by(|a, b| a.name.cmp(&b.name));
    if as_json {
        let lines = areas.iter().map(|area| {
            json!({
                "name": area.name, "group": area.group, "len": area.len, "bytes": area.bytes,
                "footprint_bytes": area.footprint, "element": area.element, "copies": area.copies,
                "owner": area.owner, "epoch": area.epoch, "postponed": area.postponed, "row": area.row,
                "interval_s": area.interval.map(|interval| interval.as_secs_f64()), "age_s": age_s(&area.name),
                "version": area.version.map(|version| json!({ "term": version.term, "counter": version.counter })),
            })
        });
        return json(&lines.collect::<Vec<_>>());
    }
    let line = |area: hectare_dsm::AreaInfo| {
        let age = age_s(&area.name).map_or("-".into(), |age| format!("{age:.3}"));
        [
            area.name,
            area.len.to_string(),
            area.element.split(' ').next().unwrap_or_default().into(),
            bytes(area.footprint),
            area.copies.to_string(),
            area.owner.map_or("-".into(), |rank| rank.to_string()),
            area.version.map_or("-".into(), |version| format!("{}.{}", version.term, version.counter)),
            age,
        ]
    };
    let head = ["AREA", "LENGTH", "TYPE", "MEMORY", "COPIES", "OWNER", "VERSION", "AGE/s"];
    table(head, areas.into_iter().map(line).collect())
}

pub(super) fn stat(connection: &Connection, job: &str, as_json: bool) -> Result<()> {
    let stats = open(connection, job)?.stats()?;
    let counters = stats.named();
    if as_json {
        return json(&BTreeMap::from(counters));
    }
    table(["COUNTER", "VALUE"], counters.map(|(name, value)| [name.into(), value.to_string()]).into())
}
