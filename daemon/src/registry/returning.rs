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
            // Its agent may have been killed with it, and no other one follows. One that lives serves members that come later:
            // the mark tells it, and the daemon after this one, that they may.
            let has_agent = remove_dead_agents(&self.run_dir, job);
            match has_agent && self.marks.has_hosts(job) {
                true => drop(self.late.insert(job.clone())),
                false => self.marks.unset(job),
            }
        }
    }

    /// Removes the marks of jobs whose members did not come in time, once no agent lives. To be called often.
    pub fn drop_late(&mut self) {
        // They are not connected to: in a stopped one, connections pile up.
        if !self.late.is_empty() && !self.marks.has_agents() {
            std::mem::take(&mut self.late).iter().for_each(|job| self.marks.unset(job));
        }
    }

    /// The start of the time in which members come back: when the daemon can be reached.
    pub fn open(&mut self) {
        self.since = Instant::now();
    }

    /// Leaves the marks of jobs that have members, for the next daemon.
    pub fn close(&mut self) {
        self.drop_late();
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
    use crate::memory;
    use crate::registry::BroughtJob;
    use crate::registry::marks::Marks;
    use hectare_wire::{JobSettings, Received, RunDir, Socket, listen_as_agent};

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

    /// Whoever was stopped comes when the name is kept no more, and the mark may be gone: the agent of his job is still looked after.
    #[test]
    fn a_job_on_several_hosts_that_comes_late_has_its_agent() {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path());
        let memory = hectare_dsm::Job::builder().hosts(&[1, 1], 0).reserve(1 << 20).memory().unwrap();
        let identity = memory::check(&memory).unwrap().identity;
        let (earlier, _) = Marks::of(dir.clone());
        earlier.set("j", identity, Some(&crate::registry::marks::tests::hosts()));
        let config = Config { run_dir: Some(top.path().into()), ..Config::default() };
        let mut registry = Registry::new(&config);
        let (agent, _place) = listen_as_agent(&dir, "j", 1).unwrap();
        registry.since = Instant::now().checked_sub(RETURN_WITHIN).unwrap();
        registry.stop_awaiting();
        assert!(!registry.is_awaited("j") && top.path().join("jobs/j").exists(), "its agent lives");
        // Another job had the name meanwhile.
        registry.create("j", JobSettings { bytes: Some(1 << 20), ..Default::default() }, true).unwrap();
        registry.remove("j", false).unwrap();
        let brought = BroughtJob { job: "j".into(), memory, keep: false, ranks: vec![0] };
        assert!(registry.adopt(1, 1, brought, |_| false).unwrap().new);
        // Whoever looked for dead agents has said nothing.
        let is_asked = |socket: Socket| loop {
            match socket.receive().unwrap() {
                Received::Nothing => std::thread::sleep(Duration::from_millis(1)),
                other => return matches!(other, Received::Message(..)),
            }
        };
        while !agent.accept().unwrap().is_some_and(is_asked) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(std::fs::read_to_string(top.path().join("jobs/j")).unwrap().contains("there"));
        // As if there had been no thread for it at first.
        registry.jobs.get_mut("j").unwrap().agent = None;
        registry.follow_agents();
        assert!(registry.jobs["j"].agent.is_some());
        registry.close();
        assert!(top.path().join("jobs/j").exists(), "it has a member");
        // Before its agent, which nobody is to replace.
        drop(registry);
    }

    #[test]
    fn a_job_that_could_not_be_marked_is_marked_later() {
        let top = tempfile::tempdir().unwrap();
        let mut registry = Registry::new(&Config { run_dir: Some(top.path().into()), ..Config::default() });
        // Where the directory of marks would be: nothing can be made in it.
        std::fs::write(top.path().join("jobs"), "").unwrap();
        registry.create("j", JobSettings { bytes: Some(1 << 20), ..Default::default() }, true).unwrap();
        registry.mark_missing();
        std::fs::remove_file(top.path().join("jobs")).unwrap();
        registry.mark_missing();
        assert!(top.path().join("jobs/j").exists());
        // Once: what is removed of the directory alone is not looked for.
        assert!(registry.jobs["j"].is_marked);
    }

    #[test]
    fn the_mark_of_a_job_that_nobody_brings_goes_when_its_agent_does() {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path());
        let (earlier, _) = Marks::of(dir.clone());
        earlier.set("j", (1, 1), Some(&crate::registry::marks::tests::hosts()));
        let mut registry = Registry::new(&Config { run_dir: Some(top.path().into()), ..Config::default() });
        let (_agent, place) = listen_as_agent(&dir, "j", 1).unwrap();
        registry.since = Instant::now().checked_sub(RETURN_WITHIN).unwrap();
        registry.stop_awaiting();
        let mark = top.path().join("jobs/j");
        registry.drop_late();
        assert!(mark.exists());
        place.remove();
        registry.drop_late();
        assert!(!mark.exists());
    }
}
