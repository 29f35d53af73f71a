//! Failures of `hectare run` that have exit codes of their own.
use std::io::ErrorKind;

/// A program that could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be started: {source}", named(program))]
pub(crate) struct NotStarted {
    pub(super) program: String,
    pub(super) r#source: std::io::Error,
}

/// A program in a message. An empty name, as of a variable of a script that is not set, would leave a hole there.
fn named(program: &str) -> &str {
    if program.is_empty() { "the program, whose name is empty (\"\")," } else { program }
}

impl NotStarted {
    /// The exit code that a shell gives it: 127 where there is no such program, 126 where it cannot be executed; 1 if
    /// the host has no room for a process.
    pub(super) fn code(&self) -> u8 {
        match self.source.kind() {
            ErrorKind::NotFound => 127,
            ErrorKind::WouldBlock | ErrorKind::OutOfMemory => 1,
            _ => 126,
        }
    }
}

/// Options, lists of hosts or launchers' variables that cannot be meant.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct WrongUsage(String);

impl WrongUsage {
    pub(super) fn new(what: impl Into<String>) -> WrongUsage {
        WrongUsage(what.into())
    }
}

/// Makes errors those of wrong usage.
pub(crate) trait Usage<T> {
    /// The same with the exit code of wrong usage.
    fn usage(self) -> anyhow::Result<T>;
}

impl<T, E: Into<anyhow::Error>> Usage<T> for Result<T, E> {
    fn usage(self) -> anyhow::Result<T> {
        self.map_err(|error| WrongUsage(super::output::one_line(&error.into())).into())
    }
}

/// A host that cannot take part, or is lost.
#[derive(Debug, thiserror::Error)]
#[error("host {host}: {what}")]
pub(crate) struct HostFailed {
    pub(super) host: String,
    pub(super) what: String,
    pub(super) code: u8,
}

impl HostFailed {
    pub(super) fn new(host: String, what: String) -> HostFailed {
        HostFailed { host, what, code: HostFailed::CODE }
    }

    /// The exit code for a host that does not answer or cannot take part.
    pub(crate) const CODE: u8 = 8;

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

/// Why the first process of this host, of those that a launcher has started here, has not made the job.
#[derive(Debug, thiserror::Error)]
#[error("{what} (says the process of local rank 0)")]
pub(crate) struct FirstFailed {
    pub(super) what: String,
    /// The exit code of that process.
    pub(super) code: u8,
}
