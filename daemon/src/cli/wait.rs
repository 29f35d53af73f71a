//! `hectare wait`: waits until a job has ended, or an area has a version that is new enough.
use super::output::json;
use super::parse::{VersionArgument, seconds};
use crate::ask::{Reconnecting, is_there, monitor};
use anyhow::Result;
use clap::Args;
use hectare_dsm::AreaSnapshot;
use hectare_wire::{Error, Refusal, Request, RunDir};
use serde_json::json;
use std::time::{Duration, Instant};

/// How often an area is looked at, and how often the daemon is asked whether its job is there.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const ASK_EVERY: Duration = Duration::from_millis(500);
/// The pause between two looks for the end of a job, or for a daemon.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// Waits for the end of a job, or for the first version of an area that is as new as it should be. An area
/// that is not there is waited for, too; a job that is not there is refused, since nothing tells one that has ended
/// from one that never was.
#[derive(Debug, Args)]
pub(super) struct Wait {
    /// The job.
    job: String,
    /// The area. Without it, wait for the end of the job.
    area: Option<String>,
    /// Treat a job that does not exist as ended: for one that may end before this command starts.
    #[arg(long, conflicts_with = "area")]
    missing_ok: bool,
    /// Wait until this version or a later one is published.
    #[arg(long, requires = "area", value_name = "TERM.COUNTER")]
    version: Option<VersionArgument>,
    /// Wait until a round has checked the area at most this many seconds ago.
    #[arg(long, requires = "area", value_name = "SECONDS", value_parser = seconds)]
    fresh: Option<Duration>,
    /// Give up after this many seconds, with exit code 7.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// Seconds to wait for a new daemon when this one ends.
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    daemon_timeout: Duration,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The wait ended without what was waited for.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct WaitFailed(hectare_dsm::Error);

impl WaitFailed {
    fn new(waited: Duration, what: String, missing: String) -> WaitFailed {
        WaitFailed(hectare_dsm::Error::TimedOut { waited, what, missing })
    }
}

pub(super) fn wait(dir: &RunDir, what: &Wait) -> Result<()> {
    let mut daemon = Reconnecting::open(dir, what.daemon_timeout)?;
    match &what.area {
        Some(area) => wait_for_area(&mut daemon, what, area),
        None => wait_for_end(&mut daemon, what),
    }
}

/// How much of the time-out is left; `None` without one.
fn left(what: &Wait, since: Instant) -> Option<Duration> {
    what.timeout.map(|timeout| timeout.saturating_sub(since.elapsed()))
}

fn wait_for_end(daemon: &mut Reconnecting, what: &Wait) -> Result<()> {
    let (since, mut seen) = (Instant::now(), false);
    loop {
        // A daemon that is new waits for those who bring the job before it says that there is none.
        let answer = daemon.ask(|connection| {
            if !is_there(connection, &what.job)? {
                return Ok(false);
            }
            seen = true;
            if what.timeout.is_none() {
                connection.order(&Request::Wait { job: what.job.clone() })?;
            }
            Ok(true)
        })?;
        match answer {
            // It ended while it was waited for.
            Some(true) if what.timeout.is_none() => break,
            // From the first look on, its absence is what is waited for.
            Some(false) if seen || what.missing_ok => break,
            Some(false) => return Err(Error::Refused(Refusal::NoSuchJob { job: what.job.clone() }).into()),
            _ => {}
        }
        let left = left(what, since);
        if left == Some(Duration::ZERO) {
            let (waited, what) = (since.elapsed(), format!("the end of job {:?}", what.job));
            return Err(WaitFailed::new(waited, what, "it has members".into()).into());
        }
        std::thread::sleep(left.map_or(ASK_AGAIN, |left| left.min(ASK_AGAIN)));
    }
    if what.json { json(&json!({ "job": what.job, "gone": true })) } else { Ok(()) }
}

fn wait_for_area(daemon: &mut Reconnecting, what: &Wait, area: &str) -> Result<()> {
    let since = Instant::now();
    let monitor = loop {
        if let Some(monitor) = daemon.ask(|connection| monitor(connection, &what.job))? {
            break monitor;
        }
        std::thread::sleep(ASK_AGAIN);
    };
    let mut asked = Instant::now();
    loop {
        // The memory is there, whether or not there is a daemon.
        let snapshot = monitor.snapshot(usize::MAX)?;
        let found = snapshot.areas.into_iter().find(|found| found.name == area);
        let missing = match &found {
            None => Some("nobody has created it".into()),
            Some(found) => missing(what, found),
        };
        let (Some(missing), left) = (missing, left(what, since)) else {
            return report(what, area, found.as_ref());
        };
        if left == Some(Duration::ZERO) {
            let what = format!("area {area:?}");
            return Err(WaitFailed::new(since.elapsed(), what, missing).into());
        }
        if asked.elapsed() >= ASK_EVERY {
            if daemon.ask(|connection| is_there(connection, &what.job))? == Some(false) {
                return Err(Error::Refused(Refusal::NoSuchJob { job: what.job.clone() }).into());
            }
            asked = Instant::now();
        }
        std::thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
    }
}

/// The condition that the area does not meet yet; `None` if it is as it should be.
fn missing(what: &Wait, found: &AreaSnapshot) -> Option<String> {
    if let Some(wanted) = what.version {
        match found.version {
            None => return Some("it has no reader copy, so no version is published".into()),
            Some(now) if !wanted.is_reached(now.term, now.counter) => {
                return Some(format!("it is at version {}.{}", now.term, now.counter));
            }
            Some(_) => {}
        }
    }
    match (what.fresh, found.age) {
        (Some(_), None) => Some("no round has come to it".into()),
        (Some(fresh), Some(age)) if age > fresh => Some(format!("its age is {:.3} s", age.as_secs_f64())),
        _ => None,
    }
}

fn report(what: &Wait, area: &str, found: Option<&AreaSnapshot>) -> Result<()> {
    if !what.json {
        return Ok(());
    }
    let version = found.and_then(|found| found.version);
    json(&json!({
        "job": what.job,
        "area": area,
        "version": version.map(|version| json!({ "term": version.term, "counter": version.counter })),
        "age_s": found.and_then(|found| found.age).map(|age| age.as_secs_f64()),
    }))
}
