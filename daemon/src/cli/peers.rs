//! `hectare peers`: the other hosts of jobs, as the agents on this host see them. The agents are asked directly, so that no daemon
//! is needed.
use super::output::{bytes, json, table_text};
use crate::ask::{is_there, standing_of};
use crate::logging::say;
use anyhow::{Result, bail};
use hectare_wire::{AgentConnection, AgentStatus, Connection, PeerStanding, RunDir};
use std::fmt::Write;
use std::time::{Duration, Instant};

/// How long an agent may take to answer.
pub(super) const ANSWER: Duration = Duration::from_secs(3);
/// How long one that is started again is waited for.
const TIME_LIMIT: Duration = Duration::from_secs(3);
const PAUSE: Duration = Duration::from_millis(50);

pub(super) fn peers(dir: &RunDir, job: Option<&str>, as_json: bool) -> Result<()> {
    let mut agents = match job {
        Some(job) => vec![of_job(dir, job)?],
        None => AgentConnection::all(dir, Some(ANSWER))?.iter().filter_map(answer_of).collect(),
    };
    agents.sort_by(|a, b| a.job.cmp(&b.job));
    if as_json {
        return json(&agents);
    }
    super::output::print(text(&agents).as_bytes())
}

/// How an agent stands. Of one that does not answer, standard error has why.
fn answer_of(agent: &AgentConnection) -> Option<AgentStatus> {
    match standing_of(agent) {
        Ok(standing) => Some(standing),
        // It has ended meanwhile.
        Err(error) if matches!(error.downcast_ref(), Some(hectare_wire::Error::Closed)) => None,
        Err(error) => {
            let process = agent.process().map_or_else(|_| "unknown".into(), |process| process.to_string());
            say(&format!("hectare: the agent of process {process} cannot be asked: {error:#}"));
            None
        }
    }
}

/// How the agent of a job stands; one that has just ended is followed by another.
pub(super) fn of_job(dir: &RunDir, job: &str) -> Result<AgentStatus> {
    dir.check()?;
    let since = Instant::now();
    loop {
        let why = match AgentConnection::open(dir, job, Some(ANSWER)) {
            Ok(Some(agent)) => match standing_of(&agent) {
                Ok(standing) => return Ok(standing),
                Err(error) => error,
            },
            Ok(None) => {
                // Either there is no such job, or it is on this host alone, or its agent is being started.
                let connection = Connection::open(dir)?;
                if !is_there(&connection, job)? {
                    bail!(hectare_wire::Error::Refused(hectare_wire::Refusal::NoSuchJob { job: job.into() }));
                }
                if !crate::ask::open(&connection, job)?.hosts().len().gt(&1) {
                    bail!("job {job:?} is on this host alone: it has no agent, and no peers");
                }
                anyhow::anyhow!("it does not run: the daemon's log says why")
            }
            Err(error) => error.into(),
        };
        if since.elapsed() > TIME_LIMIT {
            return Err(why.context(format!("the agent of job {job:?} on this host cannot be asked")));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Hosts say something each second; who is not heard for so long is cut off, or stands still, and is lost when this goes on.
const SILENT: Duration = Duration::from_secs(3);

/// The state of another host, and, if it is silent, for how long.
pub(super) fn state(peer: &PeerStanding) -> (&'static str, Option<Duration>) {
    let Some(session) = &peer.session else { return ("away", None) };
    let heard = Duration::from_millis(session.heard_ms);
    if heard >= SILENT { ("silent", Some(heard)) } else { ("connected", None) }
}

/// Why nothing comes from another host, if that is so.
pub(super) fn trouble(peer: &PeerStanding) -> Option<String> {
    let (name, address) = (&peer.name, peer.address);
    match state(peer).1 {
        Some(silent) => {
            let seconds = silent.as_secs_f64();
            Some(format!("host {name} ({address}): nothing was heard of it for {seconds:.1} s"))
        }
        None if peer.session.is_none() => {
            let why = peer.reason.as_deref().unwrap_or("it did not answer yet");
            Some(format!("host {name} ({address}): {why}"))
        }
        None => None,
    }
}

fn text(agents: &[AgentStatus]) -> String {
    let head = [
        "JOB", "HOST", "ADDRESS", "STATE", "FOR/s", "IDLE/s", "RTT/us", "MTU", "SENT", "RECEIVED", "PACKETS",
        "LOST", "SEAL", "LINK",
    ];
    let lines =
        agents.iter().flat_map(|agent| agent.peers.iter().map(|peer| line(&agent.job, peer))).collect();
    let mut text = table_text(head, lines);
    for agent in agents {
        let job = &agent.job;
        for trouble in agent.peers.iter().filter_map(trouble) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "job {job}: {trouble}");
        }
        for peer in &agent.peers {
            let PeerStanding { name, link, link_reason, .. } = peer;
            let is = if peer.session.is_some() { "is reached" } else { "is called" };
            let _ = writeln!(text, "job {job}: host {name} {is} by {link}: {link_reason}");
        }
        if let Some(failure) = &agent.failure {
            let _ = writeln!(text, "job {job} has ended: {failure}");
        }
    }
    text
}

fn line(job: &str, peer: &PeerStanding) -> [String; 14] {
    let seconds = |millis: u64| format!("{:.1}", millis as f64 / 1e3);
    let none = || "-".to_owned();
    let (job, name, address) = (job.to_owned(), peer.name.clone(), peer.address.to_string());
    let since = seconds(peer.since_ms);
    let Some(session) = &peer.session else {
        return [
            job,
            name,
            address,
            "away".into(),
            since,
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
            none(),
        ];
    };
    [
        job,
        name,
        address,
        state(peer).0.into(),
        since,
        seconds(session.heard_ms),
        format!("{:.0}", session.round_trip_ns as f64 / 1e3),
        session.path_mtu.to_string(),
        bytes(session.sent_bytes),
        bytes(session.received_bytes),
        format!("{}/{}", session.sent, session.received),
        session.lost.to_string(),
        session.seal.clone(),
        peer.link.clone(),
    ]
}
