//! Marks of jobs in the run directory: an empty file per job, so that the next daemon knows which names belong
//! to jobs whose members may come back. A mark says nothing but a name; the job itself is brought by a member.
use hectare_wire::check_job_name;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tracing::warn;

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
    pub(super) fn set(&self, job: &str) {
        let made = std::fs::create_dir_all(&self.dir).and_then(|()| std::fs::write(self.dir.join(job), b""));
        if let Err(error) = made {
            warn!(job, %error, "the job could not be marked: the next daemon will not wait for its members");
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
    }
}
