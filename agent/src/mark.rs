//! Marks of jobs in the run directory: a file for each, by which the next daemon knows which jobs members may bring.
use hectare_wire::{JobHosts, RunDir};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::PathBuf;

/// The directory of marks in the run directory.
const DIRECTORY: &str = "jobs";

/// The content of the mark of a job on several hosts. That of any other job is empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobMark {
    /// Device and inode of the job's memory.
    pub memory: (u64, u64),
    /// The job's hosts.
    pub hosts: JobHosts,
}

impl JobMark {
    /// The name of the directory of marks in a run directory.
    pub fn directory() -> &'static str {
        DIRECTORY
    }

    /// The place of the mark of a job.
    pub fn path(dir: &RunDir, job: &str) -> PathBuf {
        dir.path().join(DIRECTORY).join(job)
    }

    /// The mark of a job; `None` if it is empty.
    ///
    /// # Errors
    /// If there is none, or it cannot be read or understood.
    pub fn read(dir: &RunDir, job: &str) -> io::Result<Option<JobMark>> {
        let bytes = std::fs::read(JobMark::path(dir, job))?;
        if bytes.is_empty() { Ok(None) } else { Ok(Some(serde_json::from_slice(&bytes)?)) }
    }
}
