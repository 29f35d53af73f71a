//! Passing a job on to other processes, without a daemon.
use super::Job;
use crate::error::{Error, Result};
use rustix::io::{FdFlags, fcntl_setfd};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Where a child finds the number of the descriptor that it inherits.
const VARIABLE: &str = "HECTARE_DESCRIPTOR";

impl Job {
    /// Lets the process that `command` starts join this job by [`Job::inherited`].
    ///
    /// The command keeps the job until it is dropped.
    ///
    /// ```no_run
    /// use hectare_dsm::Job;
    /// use std::process::Command;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// if let Some(job) = Job::inherited()? {
    ///     let mut worker = job.worker()?; // the second process
    ///     return Ok(worker.barrier()?);
    /// }
    /// let job = Job::embedded()?;
    /// let mut second = Command::new(std::env::current_exe()?);
    /// job.pass_to(&mut second);
    /// let mut second = second.spawn()?;
    /// let mut worker = job.worker()?;
    /// worker.barrier()?;
    /// second.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn pass_to(&self, command: &mut Command) {
        let job = self.clone();
        let number = self.shared.segment.fd().as_raw_fd();
        command.env(VARIABLE, number.to_string());
        let keep_open = move || {
            // The closure has the job, so that the descriptor is open for as long as the command can start processes. The call
            // changes the child's own table of descriptors.
            Ok(fcntl_setfd(job.shared.segment.fd(), FdFlags::empty())?)
        };
        // SAFETY: what runs in the child of a process with threads is one system call.
        unsafe { command.pre_exec(keep_open) };
    }

    /// The job that whoever started this process has passed on to it ([`Job::pass_to`]); `None` if nobody did. May be
    /// asked more than once.
    ///
    /// # Errors
    /// Those of [`Job::from_descriptor`]; [`Error::InvalidConfig`] if `HECTARE_DESCRIPTOR` is no number.
    pub fn inherited() -> Result<Option<Job>> {
        let Some(text) = std::env::var_os(VARIABLE) else { return Ok(None) };
        let number: libc::c_int = text.to_str().and_then(|text| text.parse().ok()).ok_or_else(|| {
            let what = format!("{VARIABLE} is {text:?}: it must be the number that `Job::pass_to` gave it");
            Error::InvalidConfig { what }
        })?;
        // SAFETY: plain system calls. The descriptor of this number stays open, for it may be somebody else's; what
        // is used is a duplicate.
        let own = unsafe {
            let own = libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0);
            if own < 0 {
                let source = std::io::Error::last_os_error();
                return Err(Error::Os { call: "fcntl(F_DUPFD_CLOEXEC) of HECTARE_DESCRIPTOR", source });
            }
            OwnedFd::from_raw_fd(own)
        };
        Job::from_descriptor(own).map(Some)
    }
}
