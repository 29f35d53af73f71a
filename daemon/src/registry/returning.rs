//! Jobs of the daemon before this one, whose members may come back.
use super::Registry;
use crate::truncated::Truncated;
use hectare_wire::remove_dead_agents;
use std::time::{Duration, Instant};
use tracing::warn;

/// How long the name of such a job is kept for them. They look for the daemon four times a second.
const RETURN_WITHIN: Duration = Duration::from_secs(2);

impl Registry {
    /// Whether the members of a job of this name may be on their way, so that who asks for it has to wait.
    pub fn is_awaited(&self, job: &str) -> bool {
        self.awaited.contains(job) && self.since.elapsed() < RETURN_WITHIN
    }

    /// How long names are kept; `None` if none are.
    pub fn awaits_for(&self) -> Option<Duration> {
        (!self.awaited.is_empty()).then(|| RETURN_WITHIN.saturating_sub(self.since.elapsed()))
    }

    /// Gives names up whose time is over.
    pub fn stop_awaiting(&mut self) {
        if self.awaits_for() != Some(Duration::ZERO) {
            return;
        }
        let awaited = std::mem::take(&mut self.awaited);
        warn!(jobs = %Truncated(&awaited), "members of an earlier daemon's jobs did not come back");
        for job in &awaited {
            self.marks.unset(job);
            // Its agent may have been killed with it, and no other one follows.
            remove_dead_agents(&self.run_dir, job);
        }
    }

    /// The start of the time in which members come back: when the daemon can be reached.
    pub fn open(&mut self) {
        self.since = Instant::now();
    }

    /// Leaves the marks of jobs that have members, for the next daemon.
    pub fn close(&self) {
        for (job, entry) in &self.jobs {
            if entry.members.is_empty() {
                self.marks.unset(job);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use hectare_wire::{RunDir, listen_as_agent};

    #[test]
    fn a_killed_job_leaves_no_sockets_of_agents() {
        let top = tempfile::tempdir().unwrap();
        let jobs = top.path().join("jobs");
        std::fs::create_dir(&jobs).unwrap();
        let dir = RunDir::at(top.path());
        for job in ["killed", "lives"] {
            std::fs::write(jobs.join(job), "").unwrap();
        }
        let config = Config { run_dir: Some(top.path().into()), ..Config::default() };
        let mut registry = Registry::new(&config);
        drop(listen_as_agent(&dir, "killed", 1).unwrap());
        let lives = listen_as_agent(&dir, "lives", 1).unwrap();
        let sockets = || std::fs::read_dir(top.path().join("agents")).unwrap().count();
        registry.stop_awaiting();
        assert_eq!(sockets(), 2, "they may still come");
        registry.since = Instant::now().checked_sub(RETURN_WITHIN).unwrap();
        registry.stop_awaiting();
        assert_eq!(sockets(), 1);
        drop(lives);
    }
}
