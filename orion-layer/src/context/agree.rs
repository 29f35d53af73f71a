//! Ending a step on files: afterwards every worker goes on, or every worker has the same error.
use super::Context;
use crate::error::{Error, Result};
use crate::site::Site;
use hectare_dsm::Rank;
use serde::{Deserialize, Serialize};
use std::io;

/// An error as it travels between workers.
#[derive(Debug, Serialize, Deserialize)]
enum Told {
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
    Invalid(String),
    /// What cannot be made anew elsewhere, and whether it follows from another worker's error.
    Other(String, bool),
}

impl Told {
    fn of(error: &Error) -> Told {
        match error {
            Error::Parse { file, line, what } => {
                Told::Parse { file: file.clone(), line: *line, what: what.clone() }
            }
            Error::Io { file, source } => {
                Told::Io { file: file.clone(), code: source.raw_os_error(), text: source.to_string() }
            }
            Error::Format { file, what } => Told::Format { file: file.clone(), what: what.clone() },
            Error::Shape { array, what } => Told::Shape { array: array.clone(), what: what.clone() },
            Error::Entry { array, worker, key, what } => {
                Told::Entry { array: array.clone(), worker: *worker, key: key.clone(), what: what.clone() }
            }
            Error::RulePanicked { site, array, rule, worker, key, message } => {
                let [site, array, rule, message] = [site, array, rule, message].map(String::clone);
                let key = key.to_string();
                Told::RulePanicked { site, array, rule, worker: *worker, key, message }
            }
            Error::Invalid(what) => Told::Invalid(what.clone()),
            other => Told::Other(other.to_string(), other.is_consequence()),
        }
    }

    fn is_cause(&self) -> bool {
        !matches!(self, Told::Other(_, true))
    }

    fn into_error(self, site: Site, rank: Rank) -> Error {
        match self {
            Told::Parse { file, line, what } => Error::Parse { file, line, what },
            Told::Io { file, code, text } => {
                let source = code.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error);
                Error::Io { file, source }
            }
            Told::Format { file, what } => Error::Format { file, what },
            Told::Shape { array, what } => Error::Shape { array, what },
            Told::Entry { array, worker, key, what } => Error::Entry { array, worker, key, what },
            Told::RulePanicked { site, array, rule, worker, key, message } => {
                Error::RulePanicked { site, array, rule, worker, key: key.into(), message }
            }
            Told::Invalid(what) => Error::Invalid(what),
            Told::Other(message, _) => Error::PeerFailed { site: site.to_string(), rank, message },
        }
    }
}

impl Context<'_> {
    /// Ends a step that may have failed on some workers: afterwards either all go on, or all have the error of
    /// the lowest of them that has a cause of its own. Errors of files, shapes and arguments are the same on all;
    /// of others the rest get [`Error::PeerFailed`]. Collective.
    pub(crate) fn agree_on_same<R>(&mut self, site: Site, result: Result<R>) -> Result<R> {
        let mine = result.as_ref().err().map(Told::of);
        let me = self.rank();
        let mut first: Option<(Rank, Told)> = None;
        let told = self.exchange_values(site, &mine, |rank, told: Option<Told>| {
            if let Some(told) = told
                && first.as_ref().is_none_or(|(_, first)| !first.is_cause() && told.is_cause())
            {
                first = Some((rank, told));
            }
            Ok(())
        });
        match (result, told, first) {
            (Err(error), Err(_), _) if !error.is_consequence() => Err(error),
            (_, Err(error), _) => Err(error),
            (Err(error), Ok(()), Some((rank, _))) if rank == me => Err(error),
            (_, Ok(()), Some((rank, told))) => Err(told.into_error(site, rank)),
            (result, Ok(()), None) => result,
        }
    }
}
