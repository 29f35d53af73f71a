//! The exit codes.
use super::failure::{FirstFailed, HostFailed, NotStarted, WrongUsage};
use super::wait::WaitFailed;
use super::{BadConfig, Found};
use hectare_wire::{Error, Refusal};
use std::fmt::Write;

/// Every code of `hectare` and `hectared`, and what it means.
pub const CODES: [(u8, &str); 11] = [
    (
        0,
        "Success. `hectared`: told to stop. `top`: ended by a key, or because the job that it showed has ended.",
    ),
    (1, "Failure, for the reason in the message; or `check` found something."),
    (2, "Wrong usage."),
    (
        3,
        "No daemon runs for the run directory, or it ended meanwhile; for `top` and `wait`, no new one started in time.",
    ),
    (
        4,
        "Refused: no such job or area, a name that is taken or invalid, a quota, a daemon of another \
         version. `hectared`: another daemon has the run directory.",
    ),
    (5, "The configuration is invalid."),
    (6, "The run directory is unusable: not a directory, owned by another user, or accessible to others."),
    (7, "`wait --timeout`: timed out."),
    (
        8,
        "`run` on several hosts: a host did not answer, cannot take part (no key, another key or version, no address, a \
         name that it cannot look up, no such directory), or was lost. One whose daemon does not run or refuses: 3 or 4.",
    ),
    (126, "`run`: the program cannot be executed."),
    (127, "`run`: there is no such program."),
];

/// The codes that are not `hectare`'s own.
pub const PASSED_ON: &str = "`hectare run` exits with the code of the process that failed first, or with 128 plus \
                             the number of the signal that ended it; `top` exits with 128 plus the number of the \
                             signal that ends it, and with 129 when its terminal disappears.";

/// The code of an error.
pub fn code_of(error: &anyhow::Error) -> u8 {
    if error.is::<BadConfig>() {
        return 5;
    }
    if error.is::<WrongUsage>() {
        return 2;
    }
    if error.is::<Found>() {
        return 1;
    }
    if error.is::<WaitFailed>() {
        return 7;
    }
    if let Some(not_started) = error.downcast_ref::<NotStarted>() {
        return not_started.code();
    }
    if let Some(host) = error.downcast_ref::<HostFailed>() {
        return host.code();
    }
    if let Some(first) = error.downcast_ref::<FirstFailed>() {
        return first.code;
    }
    if error.is::<super::read::NoSuchArea>() || error.is::<super::trace::NotShared>() {
        return 4;
    }
    error.downcast_ref::<Error>().map_or(1, code_of_wire)
}

/// The code of an error on the way to the daemon.
pub fn code_of_wire(error: &Error) -> u8 {
    match error {
        Error::NoDaemon { .. } | Error::Closed => 3,
        Error::Refused(Refusal::Malformed { .. }) => 1,
        Error::Refused(_) | Error::NotTakenBack { .. } | Error::Version { .. } | Error::OtherUser { .. } => 4,
        Error::RunDir { .. } => 6,
        _ => 1,
    }
}

/// The codes as text behind the help.
pub(crate) fn help() -> String {
    let mut text = "Exit codes:\n".to_owned();
    for (code, meaning) in CODES {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {code:<3}  {meaning}");
    }
    text + "\n" + PASSED_ON
}
