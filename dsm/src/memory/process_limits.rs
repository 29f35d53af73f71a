//! The limits that the system sets to this process (`setrlimit`, a shell's `ulimit`).
use crate::error::{Error, Result};
use std::io;

/// The soft limit of a resource in bytes; `None` if there is none.
fn limit(resource: libc::__rlimit_resource_t) -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `limit` is writable; a resource that the system does not know leaves it as it is.
    unsafe { libc::getrlimit(resource, &mut limit) };
    (limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// Refuses to make a file of `asked` bytes where the process may not: the system would not only refuse, but send
/// SIGXFSZ, which ends the process. A sparse file counts with its length.
pub(crate) fn check_file_size(asked: u64) -> Result<()> {
    match limit(libc::RLIMIT_FSIZE) {
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
pub(crate) fn no_address_space(call: &'static str, asked: u64) -> Error {
    let source = io::Error::last_os_error();
    match limit(libc::RLIMIT_AS) {
        Some(limit) if source.raw_os_error() == Some(libc::ENOMEM) => {
            Error::ProcessLimit { what: "the address range of the job", asked, limit, name: "ulimit -v" }
        }
        _ => Error::Os { call, source: io::Error::new(source.kind(), format!("{asked} bytes: {source}")) },
    }
}
