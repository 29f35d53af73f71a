//! What clients that only look ask the daemon.
use anyhow::{Result, bail};
use hectare_dsm::{Job, Watch};
use hectare_wire::{ClientLine, Connection, Error, JobLine, Refusal, Reply, Request};
use std::os::fd::OwnedFd;

/// Refuses an answer that does not fit the question.
pub(crate) fn answer<T>(other: &Reply) -> Result<T> {
    bail!(Error::Answer { what: format!("{other:?}") })
}

/// The descriptor of a job's memory.
fn memory(connection: &Connection, job: &str) -> Result<OwnedFd> {
    match connection.ask(&Request::Open { job: job.into() })? {
        (Reply::Opened, Some(memory)) => Ok(memory),
        (other, _) => answer(&other),
    }
}

/// The job, to look at: no member, no worker.
pub(crate) fn open(connection: &Connection, job: &str) -> Result<Job> {
    Ok(Job::from_descriptor(memory(connection, job)?)?)
}

/// The job, to look at without a mapping of its memory.
pub(crate) fn watch(connection: &Connection, job: &str) -> Result<Watch> {
    Ok(Watch::open(memory(connection, job)?)?)
}

/// Whether there is such a job. After a restart of the daemon, one that may still be brought back is waited for.
pub(crate) fn is_there(connection: &Connection, job: &str) -> Result<bool> {
    match connection.ask(&Request::Open { job: job.into() }) {
        Ok((Reply::Opened, _)) => Ok(true),
        Ok((other, _)) => answer(&other),
        Err(Error::Refused(Refusal::NoSuchJob { .. })) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The jobs, in the order of their names.
pub(crate) fn all_jobs(connection: &Connection) -> Result<Vec<JobLine>> {
    let mut all: Vec<JobLine> = Vec::new();
    loop {
        let after = all.last().map(|line| line.job.clone()).unwrap_or_default();
        match connection.ask(&Request::Jobs { after })?.0 {
            Reply::Jobs { jobs, more } => {
                all.extend(jobs);
                if !more {
                    return Ok(all);
                }
            }
            other => return answer(&other),
        }
    }
}

/// The members of all jobs.
pub(crate) fn all_clients(connection: &Connection) -> Result<Vec<ClientLine>> {
    let mut all: Vec<ClientLine> = Vec::new();
    loop {
        let after = all.last().map_or(0, |line| line.id);
        match connection.ask(&Request::Clients { after })?.0 {
            Reply::Clients { clients, more } => {
                all.extend(clients);
                if !more {
                    return Ok(all);
                }
            }
            other => return answer(&other),
        }
    }
}
