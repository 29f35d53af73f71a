//! The limits that the system sets to this process (`setrlimit`, a shell's `ulimit`).
use crate::error::{Error, Result};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::io;

/// Refuses to make a file of `asked` bytes where the process may not: the system would not only refuse, but send
/// SIGXFSZ, which ends the process. A sparse file counts with its length.
pub(crate) fn check_file_size(asked: u64) -> Result<()> {
    match getrlimit(Resource::Fsize).current {
        Some(limit) if limit < asked => Err(Error::ProcessLimit {
            what: "the length of the job's memory",
            asked,
            limit,
            name: "ulimit -f",
        }),
        _ => Ok(()),
    }
}

/// The error of a process that asked for `asked` bytes of address space.
pub(crate) fn no_address_space(call: &'static str, asked: u64, error: Errno) -> Error {
    let source = io::Error::from(error);
    match getrlimit(Resource::As).current {
        Some(limit) if error == Errno::NOMEM => {
            Error::ProcessLimit { what: "the address range of the job", asked, limit, name: "ulimit -v" }
        }
        _ => Error::Os { call, source: io::Error::new(source.kind(), format!("{asked} bytes: {source}")) },
    }
}
