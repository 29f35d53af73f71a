//! Marks of jobs in the run directory: a file per job, so that the next daemon knows which names belong to jobs whose members
//! may come back. The job itself is brought by a member; a mark has only its name and, of a job on several hosts, the list of
//! hosts, so that the next daemon takes care of its agent.
use crate::memory::Identity;
use hectare_wire::{JobHosts, check_job_name, remove_agents};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tracing::warn;

/// The content of the mark of a job on several hosts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Note {
    /// The identity of the job's memory.
    memory: Identity,
    hosts: JobHosts,
}

/// The directory of marks.
#[derive(Debug)]
pub(super) struct Marks {
    dir: PathBuf,
}

impl Marks {
    /// The marks of a run directory, which may not exist yet.
    pub(super) fn of(run_dir: &Path) -> Marks {
        Marks { dir: run_dir.join("jobs") }
    }

    /// The names that an earlier daemon left.
    pub(super) fn left(&self) -> BTreeSet<String> {
        let Ok(entries) = std::fs::read_dir(&self.dir) else { return BTreeSet::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        names.filter(|name| check_job_name(name).is_ok()).collect()
    }

    /// Marks a job. Without its mark, a job of this name that is made before its members are back is another
    /// one; that is worth a line, not a refusal.
    pub(super) fn set(&self, job: &str, memory: Identity, hosts: Option<&JobHosts>) {
        let note = hosts.map(|hosts| serde_json::to_vec(&Note { memory, hosts: hosts.clone() }));
        let made = note.unwrap_or(Ok(Vec::new())).map_err(std::io::Error::from).and_then(|note| {
            std::fs::create_dir_all(&self.dir)?;
            std::fs::write(self.dir.join(job), note)
        });
        if let Err(error) = made {
            warn!(job, %error, "the job could not be marked: the next daemon will not wait for its members");
        }
    }

    /// The hosts of a job of an earlier daemon, which has this memory; none if it was on one host alone.
    pub(super) fn hosts(&self, job: &str, memory: Identity) -> Option<JobHosts> {
        let bytes = std::fs::read(self.dir.join(job)).ok().filter(|bytes| !bytes.is_empty())?;
        match serde_json::from_slice::<Note>(&bytes) {
            Ok(note) => (note.memory == memory && note.hosts.check(job).is_ok()).then_some(note.hosts),
            Err(error) => {
                warn!(job, %error, "the job's mark cannot be read: its agent, if it has one, is not supervised");
                None
            }
        }
    }

    /// Removes the mark of a job.
    pub(super) fn unset(&self, job: &str) {
        if let Err(error) = std::fs::remove_file(self.dir.join(job))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            warn!(job, %error, "the mark of the job could not be removed");
        }
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        // Only if it is empty.
        let _ = std::fs::remove_dir(&self.dir);
        self.dir.parent().into_iter().for_each(remove_agents);
    }
}
