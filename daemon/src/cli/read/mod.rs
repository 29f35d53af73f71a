//! Reading an area from outside: one version of it, as text or as a file of NumPy.
mod form;

use super::output::print;
use super::parse::{Range, VersionArgument};
use crate::ask::open;
use anyhow::{Result, ensure};
use clap::Args;
use hectare_wire::Connection;

pub use form::Form;

/// The area to read: the newest version that is published, all of it at one moment.
#[derive(Debug, Args)]
pub(super) struct Read {
    /// The job.
    job: String,
    /// The area.
    area: String,
    /// How to write it.
    #[arg(long, value_enum, default_value_t = Form::Csv)]
    format: Form,
    /// Only these elements: FIRST..END, FIRST.. or ..END, without END.
    #[arg(long)]
    range: Option<Range>,
    /// Fail if the newest version is a different one. `hectare wait` waits for one.
    #[arg(long, value_name = "TERM.COUNTER")]
    version: Option<VersionArgument>,
    /// Print a JSON object with the values and their area, version and type.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// An area that a job does not have, by the names of both.
#[derive(Debug, thiserror::Error)]
#[error(
    "job {0:?} has no area {1:?}: `hectare areas {0}` lists those that it has, `hectare wait {0} {1}` waits for one"
)]
pub(super) struct NoSuchArea(String, String);

pub(super) fn read(connection: &Connection, what: &Read) -> Result<()> {
    let job = open(connection, &what.job)?;
    let range = match &what.range {
        None => None,
        // The end of an area is known when it is there.
        Some(range) => {
            let areas = job.areas()?;
            let len = areas.iter().find(|area| area.name == what.area).map_or(0, |area| area.len);
            Some(range.within(len))
        }
    };
    // The copy is written out when nothing is pinned any more: whoever reads it may take as long as it likes.
    let read = job.observer()?.read_bytes(&what.area, range).map_err(|error| match error {
        hectare_dsm::Error::NoSuchArea { .. } => {
            anyhow::Error::new(NoSuchArea(what.job.clone(), what.area.clone()))
        }
        other => other.into(),
    })?;
    if let Some(wanted) = &what.version {
        let (term, counter) = (read.version.term, read.version.counter);
        ensure!(
            wanted.is(term, counter),
            "area {:?} has version {term}.{counter}, not {wanted}: `hectare wait` waits for a version",
            what.area
        );
    }
    if what.json {
        return super::output::json(&form::object(&what.job, &what.area, &read)?);
    }
    print(&form::written(what.format, &what.area, &read)?)
}
