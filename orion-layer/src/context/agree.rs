//! Ending a step on files: afterwards every worker goes on, or every worker has the same error.
use super::Context;
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_dsm::Rank;
use serde::{Deserialize, Serialize};
use std::io;

/// An error as it travels between workers.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum RemoteError {
    Parse {
        file: String,
        line: u64,
        what: String,
    },
    Io {
        file: String,
        code: Option<i32>,
        text: String,
    },
    Format {
        file: String,
        what: String,
    },
    Shape {
        array: String,
        what: String,
    },
    Entry {
        array: String,
        worker: Rank,
        key: String,
        what: String,
    },
    RulePanicked {
        site: String,
        array: String,
        rule: String,
        worker: Rank,
        key: String,
        message: String,
    },
    Priority {
        loop_name: String,
        place: String,
        what: String,
    },
    Invalid(String),
    /// The text of an error that cannot be recreated elsewhere, and whether it follows from another worker's error.
    Other(String, bool),
}

impl RemoteError {
    fn of(error: &Error) -> RemoteError {
        match error {
            Error::Parse { file, line, what } => {
                RemoteError::Parse { file: file.clone(), line: *line, what: what.clone() }
            }
            Error::Io { file, source } => {
                RemoteError::Io { file: file.clone(), code: source.raw_os_error(), text: source.to_string() }
            }
            Error::Format { file, what } => RemoteError::Format { file: file.clone(), what: what.clone() },
            Error::Shape { array, what } => RemoteError::Shape { array: array.clone(), what: what.clone() },
            Error::Entry { array, worker, key, what } => RemoteError::Entry {
                array: array.clone(),
                worker: *worker,
                key: key.clone(),
                what: what.clone(),
            },
            Error::RulePanicked { site, array, rule, worker, key, message } => {
                let [site, array, rule, message] = [site, array, rule, message].map(String::clone);
                let key = key.to_string();
                RemoteError::RulePanicked { site, array, rule, worker: *worker, key, message }
            }
            Error::Priority { loop_name, place, what } => {
                let [loop_name, place, what] = [loop_name, place, what].map(String::clone);
                RemoteError::Priority { loop_name, place, what }
            }
            Error::Invalid(what) => RemoteError::Invalid(what.clone()),
            other => RemoteError::Other(other.to_string(), other.is_consequence()),
        }
    }

    fn is_cause(&self) -> bool {
        !matches!(self, RemoteError::Other(_, true))
    }

    fn into_error(self, site: Site, rank: Rank) -> Error {
        match self {
            RemoteError::Parse { file, line, what } => Error::Parse { file, line, what },
            RemoteError::Io { file, code, text } => {
                let source = code.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error);
                Error::Io { file, source }
            }
            RemoteError::Format { file, what } => Error::Format { file, what },
            RemoteError::Shape { array, what } => Error::Shape { array, what },
            RemoteError::Entry { array, worker, key, what } => Error::Entry { array, worker, key, what },
            RemoteError::RulePanicked { site, array, rule, worker, key, message } => {
                Error::RulePanicked { site, array, rule, worker, key: key.into(), message }
            }
            RemoteError::Priority { loop_name, place, what } => Error::Priority { loop_name, place, what },
            RemoteError::Invalid(what) => Error::Invalid(what),
            RemoteError::Other(message, _) => Error::PeerFailed { site: site.to_string(), rank, message },
        }
    }
}

impl Context<'_> {
    /// Ends a step that may have failed on some workers: afterwards either all go on, or all have the error of
    /// the lowest of them that has a cause of its own. Errors of files, shapes and arguments are the same on all;
    /// of others the rest get [`Error::PeerFailed`]. On several hosts, an error of a file that not all workers have names the host
    /// whose file it is. Collective.
    pub(crate) fn agree_on_same<R>(&mut self, site: Site, result: Result<R>) -> Result<R> {
        let mut value = None;
        self.agree_on_same_error(site, result.map(|its| value = Some(its)))?;
        let Some(value) = value else { unreachable!("who has failed gets an error") };
        Ok(value)
    }

    fn agree_on_same_error(&mut self, site: Site, result: Result<()>) -> Result<()> {
        let mine = result.as_ref().err().map(RemoteError::of);
        let me = self.rank();
        let mut first: Option<(Rank, RemoteError)> = None;
        let mut is_of_all = true;
        let told = self.exchange_values(site, &mine, |rank, told: Option<RemoteError>| {
            is_of_all &= told == mine;
            if let Some(told) = told
                && first.as_ref().is_none_or(|(_, first)| !first.is_cause() && told.is_cause())
            {
                first = Some((rank, told));
            }
            Ok(())
        });
        let host = first.as_ref().filter(|_| !is_of_all);
        let host = host.and_then(|(rank, _)| self.fabric.name_of_host(*rank as usize));
        match (result, told, first) {
            (Err(error), Err(_), _) if !error.is_consequence() => Err(error),
            (_, Err(error), _) => Err(error),
            (Err(error), Ok(()), Some((rank, _))) if rank == me => Err(error.of_host(host)),
            (_, Ok(()), Some((rank, told))) => Err(told.into_error(site, rank).of_host(host)),
            (result, Ok(()), None) => result,
        }
    }
}
