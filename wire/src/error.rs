//! Errors between a client and the daemon.
//!
//! `Display` is whole: it says the cause, too. So `Error::source` does not (`r#source` keeps `thiserror` from that), and a
//! program that prints an error with its sources prints no cause twice.
use crate::{FrameError, Refusal};
use std::path::PathBuf;

/// An error of a client of the daemon.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens.
    #[error(
        "no daemon runs for {}: start `hectared`, or set HECTARE_RUN_DIR to the run directory of the one that \
         runs", .dir.display()
    )]
    NoDaemon {
        /// The run directory that was looked at.
        dir: PathBuf,
    },
    /// The run directory could be read or replaced by others.
    #[error("run directory {}: {what}", .dir.display())]
    RunDir {
        /// The run directory.
        dir: PathBuf,
        /// The fault in it, in words.
        what: String,
    },
    /// The daemon belongs to somebody else.
    #[error("the daemon at {} runs as user {theirs}, not as user {ours}", .dir.display())]
    OtherUser {
        /// The run directory.
        dir: PathBuf,
        /// The daemon's user.
        theirs: u32,
        /// The client's user.
        ours: u32,
    },
    /// Client and daemon speak different versions.
    #[error(
        "the daemon speaks version {theirs} of the protocol, this program version {ours}: \
         use programs and a daemon of one release"
    )]
    Version {
        /// The daemon's version.
        theirs: u16,
        /// This client's version.
        ours: u16,
    },
    /// The daemon refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A daemon that was started anew refuses a member of a job that it did not know.
    #[error("the daemon does not take this process back as a member of job {job:?}: {why}")]
    NotTakenBack {
        /// The job.
        job: String,
        /// The refusal, in words.
        why: String,
    },
    /// The daemon ended or closed the connection.
    #[error("the daemon closed the connection: it ended, or dropped this client; its log says why")]
    Closed,
    /// The daemon does not answer.
    #[error("the daemon did not answer within {within_s} s: it is stopped, or the host is overloaded")]
    NoAnswer {
        /// How long the answer was waited for, in seconds.
        within_s: u64,
    },
    /// The daemon's reply does not answer the request.
    #[error("the daemon answered with {what}")]
    Answer {
        /// Its answer.
        what: String,
    },
    /// A message that cannot be sent.
    #[error("the request cannot be sent: {0}")]
    Frame(FrameError),
    /// A system call failed.
    #[error("{call} failed: {source}")]
    Os {
        /// The call.
        call: &'static str,
        /// The error of the system.
        r#source: std::io::Error,
    },
}

impl From<FrameError> for Error {
    fn from(error: FrameError) -> Error {
        Error::Frame(error)
    }
}

impl Error {
    /// Whether no daemon can answer: there is none, it has just ended, or it is stopped.
    pub fn is_absence(&self) -> bool {
        matches!(self, Error::NoDaemon { .. } | Error::Closed | Error::NoAnswer { .. })
    }

    pub(crate) fn os(call: &'static str, source: impl Into<std::io::Error>) -> Error {
        Error::Os { call, source: source.into() }
    }
}

/// The result of most calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    /// Each variant that holds another error: its text says that, and no source says it again.
    #[test]
    fn no_cause_is_said_twice() {
        let io = || std::io::Error::from_raw_os_error(13);
        let frame = FrameError::TooLong { len: 70_000, most: 65_536 };
        let refusal = Refusal::NoSuchJob { job: "j".into() };
        for (error, cause) in [
            (Error::os("connect", io()), io().to_string()),
            (frame.clone().into(), frame.to_string()),
            (refusal.clone().into(), refusal.to_string()),
        ] {
            let mut text = error.to_string();
            let mut next = error.source();
            while let Some(source) = next {
                text = format!("{text}: {source}");
                next = source.source();
            }
            assert_eq!(text.matches(&cause).count(), 1, "{text}");
        }
    }
}
