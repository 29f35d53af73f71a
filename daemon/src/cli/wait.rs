//! `hectare wait`: until a job is gone, or an area is as far as it should be.
use super::output::json;
use super::parse::{VersionArgument, seconds};
use crate::ask::{all_jobs, is_there, watch};
use anyhow::Result;
use clap::Args;
use hectare_dsm::AreaGlance;
use hectare_wire::{Connection, Error, Refusal, Request};
use serde_json::json;
use std::time::{Duration, Instant};

/// How often an area is looked at, and how often the daemon is asked whether its job is there.
const LOOK_EVERY: Duration = Duration::from_millis(5);
const ASK_EVERY: Duration = Duration::from_millis(500);

/// What to wait for: the end of a job, or the first version of an area that is as new as it should be. An area
/// that is not there is waited for, too; a job that is not there is refused, since nothing tells one that has ended
/// from one that never was.
#[derive(Debug, Args)]
pub(super) struct Wait {
    /// The job.
    job: String,
    /// The area. Without it, the end of the job is waited for.
    area: Option<String>,
    /// A job that is not there has ended: for one that may be over before this command begins.
    #[arg(long, conflicts_with = "area")]
    absent_ok: bool,
    /// Until this version or a later one is published.
    #[arg(long, requires = "area", value_name = "TERM.COUNTER")]
    version: Option<VersionArgument>,
    /// Until a round has looked at the area at most this many seconds ago.
    #[arg(long, requires = "area", value_name = "SECONDS", value_parser = seconds)]
    fresh: Option<Duration>,
    /// Give up after this many seconds, with exit code 7.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<Duration>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// What did not come in time.
#[derive(Debug, thiserror::Error)]
#[error("waited {waited:?} for {what}: {missing}")]
pub(super) struct InVain {
    waited: Duration,
    what: String,
    missing: String,
}

pub(super) fn wait(connection: &Connection, what: &Wait) -> Result<()> {
    match &what.area {
        Some(area) => wait_for_area(connection, what, area),
        None => wait_for_end(connection, what),
    }
}

fn wait_for_end(connection: &Connection, what: &Wait) -> Result<()> {
    // From here on its absence is what is waited for.
    if !is_there(connection, &what.job)? && !what.absent_ok {
        return Err(Error::Refused(Refusal::NoSuchJob { job: what.job.clone() }).into());
    }
    match what.timeout {
        None => connection.order(&Request::Wait { job: what.job.clone() })?,
        Some(timeout) => {
            let since = Instant::now();
            while all_jobs(connection)?.iter().any(|line| line.job == what.job) {
                let left = timeout.saturating_sub(since.elapsed());
                if left.is_zero() {
                    let (waited, what) = (since.elapsed(), format!("the end of job {:?}", what.job));
                    return Err(InVain { waited, what, missing: "it has members".into() }.into());
                }
                std::thread::sleep(left.min(Duration::from_millis(20)));
            }
        }
    }
    if what.json { json(&json!({ "job": what.job, "gone": true })) } else { Ok(()) }
}

fn wait_for_area(connection: &Connection, what: &Wait, area: &str) -> Result<()> {
    let watch = watch(connection, &what.job)?;
    let (since, mut asked) = (Instant::now(), Instant::now());
    loop {
        let glance = watch.look(usize::MAX)?;
        let found = glance.areas.into_iter().find(|found| found.name == area);
        let missing = match &found {
            None => Some("nobody has created it".into()),
            Some(found) => missing(what, found),
        };
        let (Some(missing), left) = (missing, what.timeout.map(|most| most.saturating_sub(since.elapsed())))
        else {
            return report(what, area, found.as_ref());
        };
        if left == Some(Duration::ZERO) {
            let what = format!("area {area:?}");
            return Err(InVain { waited: since.elapsed(), what, missing }.into());
        }
        if asked.elapsed() >= ASK_EVERY {
            if !all_jobs(connection)?.iter().any(|line| line.job == what.job) {
                return Err(Error::Refused(Refusal::NoSuchJob { job: what.job.clone() }).into());
            }
            asked = Instant::now();
        }
        std::thread::sleep(left.map_or(LOOK_EVERY, |left| left.min(LOOK_EVERY)));
    }
}

/// What the area lacks; `None` if it is as it should be.
fn missing(what: &Wait, found: &AreaGlance) -> Option<String> {
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

fn report(what: &Wait, area: &str, found: Option<&AreaGlance>) -> Result<()> {
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
