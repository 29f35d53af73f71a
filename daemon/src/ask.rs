//! Requests of clients that only inspect.
use anyhow::{Result, bail};
use hectare_dsm::{Job, Monitor};
use hectare_wire::{
    AgentConnection, AgentReply, AgentRequest, AgentStatus, ClientLine, Connection, Error, JobLine, Refusal,
    Reply, Request, RunDir,
};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

/// The status of the agent at the other end of a connection.
pub(crate) fn standing_of(agent: &AgentConnection) -> Result<AgentStatus> {
    let since = Instant::now();
    let answer = agent.ask(&AgentRequest::Status).map_err(|error| match error {
        Error::Os { source, .. } if source.kind() == ErrorKind::WouldBlock => {
            let seconds = since.elapsed().as_secs_f64();
            anyhow::anyhow!(
                "it does not answer within {seconds:.1} s: it is stopped, or the host is overloaded"
            )
        }
        other => other.into(),
    })?;
    match answer {
        AgentReply::Status(standing) => Ok(*standing),
        AgentReply::Busy => {
            bail!("its thread did not answer within 2 s: it is stopped, or the host is overloaded")
        }
        other => bail!("it answered {other:?}"),
    }
}

/// A connection that survives restarts of the daemon: when the daemon ends, this waits for the next one.
#[derive(Debug)]
pub(crate) struct Reconnecting {
    dir: RunDir,
    connection: Option<Connection>,
    /// The time since which there is no daemon.
    gone: Option<Instant>,
    timeout: Duration,
}

impl Reconnecting {
    /// Connects to the running daemon; `timeout` limits the wait for the next one.
    pub(crate) fn open(dir: &RunDir, timeout: Duration) -> Result<Reconnecting> {
        let connection = Some(Connection::open(dir)?);
        Ok(Reconnecting { dir: dir.clone(), connection, gone: None, timeout })
    }

    /// Asks. `None` if there is no daemon now, but there may be one soon.
    pub(crate) fn ask<T>(&mut self, ask: impl FnOnce(&Connection) -> Result<T>) -> Result<Option<T>> {
        let connection = match self.connection.take() {
            Some(connection) => Ok(connection),
            None => Connection::open(&self.dir).map_err(anyhow::Error::from),
        };
        let asked = connection.and_then(|connection| Ok((ask(&connection)?, connection)));
        match asked {
            Ok((answer, connection)) => {
                (self.connection, self.gone) = (Some(connection), None);
                Ok(Some(answer))
            }
            Err(error) if error.downcast_ref().is_some_and(Error::is_absence) => {
                let gone = *self.gone.get_or_insert_with(Instant::now);
                if gone.elapsed() < self.timeout { Ok(None) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }
}

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

/// Opens the job for inspection, without becoming a member or a worker.
pub(crate) fn open(connection: &Connection, job: &str) -> Result<Job> {
    Ok(Job::from_descriptor(memory(connection, job)?)?)
}

/// Opens the job for inspection without mapping its memory.
pub(crate) fn monitor(connection: &Connection, job: &str) -> Result<Monitor> {
    Ok(Monitor::open(memory(connection, job)?)?)
}

/// Whether the job exists. After a restart of the daemon, waits for a job that its members may still bring back.
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

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_wire::listen_as_agent;

    #[test]
    fn an_agent_that_does_not_answer_is_stopped_or_slow() {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path());
        let _stopped = listen_as_agent(&dir, "j", 1).unwrap();
        let agent = AgentConnection::open(&dir, "j", Some(Duration::from_millis(100))).unwrap().unwrap();
        let said = standing_of(&agent).unwrap_err().to_string();
        assert_eq!(said, "it does not answer within 0.1 s: it is stopped, or the host is overloaded");
    }
}
