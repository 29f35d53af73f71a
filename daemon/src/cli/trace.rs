//! `hectare trace`: the steps of an area's versions through this host, as its agent records them, by this host's clock.
use super::output::{bytes, print};
use super::parse::seconds;
use super::peers::{ANSWER, of_job};
use anyhow::{Result, bail};
use clap::Args;
use hectare_wire::{
    AgentConnection, AgentReply, AgentRequest, AgentStatus, RunDir, TraceAnswer, TraceStep, TraceWhat,
};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(50);
/// The number of versions whose first step's time is remembered.
const VERSIONS: usize = 64;

/// Options of a trace.
#[derive(Debug, Args)]
pub(super) struct Trace {
    /// The job.
    job: String,
    /// The area.
    area: String,
    /// For how many seconds.
    #[arg(long = "for", value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    length: Duration,
    /// As JSON, an object in each line.
    #[arg(long)]
    json: bool,
}

/// An area without steps on this host, by the names of its job and its own.
#[derive(Debug, thiserror::Error)]
#[error(
    "job {0:?} has no area {1:?} that this host shares with others: it is not there, has no reader copies, or is of another host \
     and nobody here has asked for it"
)]
pub(super) struct NotShared(String, String);

pub(super) fn trace(dir: &RunDir, what: &Trace) -> Result<()> {
    let standing = of_job(dir, &what.job)?;
    let end = Instant::now() + what.length;
    let mut printer = Printer { what, boot: 0, first: BTreeMap::new() };
    let mut agent = None;
    let mut after = 0;
    let mut owner = None;
    while Instant::now() < end {
        if agent.is_none() {
            agent = AgentConnection::open(dir, &what.job, Some(ANSWER))?;
        }
        let asked = agent.as_ref().map(|agent| ask(agent, &what.area, after));
        match asked {
            Some(Ok(answer)) => {
                if answer.owner.is_some() && owner.is_none() {
                    owner = answer.owner;
                    printer.head(&standing, &answer)?;
                }
                after = answer.next;
                printer.steps(&answer)?;
                if !answer.steps.is_empty() {
                    continue;
                }
            }
            // Another agent follows, which begins anew.
            Some(Err(_)) | None => (agent, after) = (None, 0),
        }
        std::thread::sleep(PAUSE);
    }
    match owner {
        Some(_) => Ok(()),
        None => bail!(NotShared(what.job.clone(), what.area.clone())),
    }
}

fn ask(agent: &AgentConnection, area: &str, after: u64) -> Result<TraceAnswer> {
    match agent.ask(&AgentRequest::Trace { area: area.into(), after })? {
        AgentReply::Trace(answer) => Ok(*answer),
        other => bail!("the agent answered {other:?}"),
    }
}

struct Printer<'a> {
    what: &'a Trace,
    boot: u64,
    /// When the first step of each version was.
    first: BTreeMap<(u64, u64), u64>,
}

impl Printer<'_> {
    fn head(&self, standing: &AgentStatus, answer: &TraceAnswer) -> Result<()> {
        if self.what.json {
            return Ok(());
        }
        let name = |host: u16| answer.hosts.get(usize::from(host)).map_or("", String::as_str);
        let owner = answer.owner.unwrap_or_default();
        let mut text =
            format!("area {} of host {}, seen by host {}", self.what.area, name(owner), name(answer.host));
        for peer in &standing.peers {
            let trip = peer.session.as_ref().map(|session| session.round_trip_ns as f64 / 1e3);
            let trip = trip.map_or("no session".into(), |trip| format!("{trip:.0} us there and back"));
            // Writing to a string does not fail.
            let _ = write!(text, "; {}: {trip}", peer.name);
        }
        text.push_str("\nTIME (UTC)       VERSION       +us  STEP\n");
        print(text.as_bytes())
    }

    fn steps(&mut self, answer: &TraceAnswer) -> Result<()> {
        if std::mem::replace(&mut self.boot, answer.boot) != answer.boot {
            self.first.clear();
        }
        let mut text = String::new();
        if answer.dropped && !self.what.json {
            text.push_str("steps were dropped: there are more than can be shown\n");
        }
        // When a version was published is known when it is sent.
        let mut steps: Vec<&TraceStep> = answer.steps.iter().collect();
        steps.sort_by_key(|step| step.at_ns);
        for step in steps {
            let first = *self.first.entry((step.term, step.counter)).or_insert(step.at_ns);
            while self.first.len() > VERSIONS {
                self.first.pop_first();
            }
            let since_ns = step.at_ns as i64 - first as i64;
            text.push_str(&if self.what.json { object(answer, step) } else { line(answer, step, since_ns) });
        }
        print(text.as_bytes())
    }
}

/// When a moment of the agent's clock was, in nanoseconds since 1970 by this host's clock.
fn unix_ns(answer: &TraceAnswer, at_ns: u64) -> u64 {
    (answer.unix_ns + at_ns).saturating_sub(answer.now_ns)
}

fn object(answer: &TraceAnswer, step: &TraceStep) -> String {
    let host = |host: u16| answer.hosts.get(usize::from(host));
    let object = json!({
        "seen_by": host(answer.host), "version": { "term": step.term, "counter": step.counter }, "step": step.what,
        "host": step.host.and_then(host), "unix_ns": unix_ns(answer, step.at_ns),
        "until_unix_ns": unix_ns(answer, step.until_ns), "packets": step.packets, "bytes": step.bytes,
    });
    format!("{object}\n")
}

fn line(answer: &TraceAnswer, step: &TraceStep, since_ns: i64) -> String {
    let micros = unix_ns(answer, step.at_ns) / 1000;
    let (day, micros) = (micros / 1_000_000 % 86_400, micros % 1_000_000);
    let time = format!("{:02}:{:02}:{:02}.{micros:06}", day / 3600, day / 60 % 60, day % 60);
    let version = format!("{}.{}", step.term, step.counter);
    let host = step.host.and_then(|host| answer.hosts.get(usize::from(host))).map_or("", String::as_str);
    let took = step.until_ns.saturating_sub(step.at_ns) as f64 / 1e3;
    let what = match step.what {
        TraceWhat::Published => "published".to_owned(),
        TraceWhat::PickedUp => "picked up by the agent".into(),
        TraceWhat::Sent => {
            let size = bytes(step.bytes);
            let took = if took > 0.0 { format!(", the last {took:.0} us later") } else { String::new() };
            format!("sent to {host}: {size} in {} packets{took}", step.packets)
        }
        TraceWhat::CompleteThere => format!("{host} says: complete there"),
        TraceWhat::VisibleThere => format!("{host} says: visible there"),
        TraceWhat::Begins => "begins to come".into(),
        TraceWhat::Complete => "complete here".into(),
        TraceWhat::Visible => "visible here".into(),
    };
    format!("{time}  {version:<8} {:>8.0}  {what}\n", since_ns as f64 / 1e3)
}
