//! Marks of jobs in the run directory: a file per job, so that the next daemon knows which names belong to jobs whose members
//! may come back. The job itself is brought by a member; a mark has only its name and, of a job on several hosts, the list of
//! hosts, so that the next daemon takes care of its agent.
//!
//! A daemon reads the marks of the one before once, at its start: members may bring their job when its mark is gone or that of
//! another one.
use crate::identity::identity;
use crate::memory::Identity;
use hectare_agent::JobMark;
use hectare_wire::{JobHosts, RunDir, check_job_name, remove_agents};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, ErrorKind};
use std::path::PathBuf;
use tracing::warn;

/// Before the name of a mark that is being written. No job's name begins with it.
const NEW: &str = ".";

/// The directory of marks.
#[derive(Debug)]
pub(super) struct Marks {
    dir: RunDir,
    /// Which directory that was, if there was one. In its place may be that of another daemon, to which those marks are left.
    own: Option<Identity>,
    /// The hosts of jobs of an earlier daemon, by their memory.
    earlier: BTreeMap<Identity, (String, JobHosts)>,
}

impl Marks {
    /// The marks of a run directory, which may not exist yet, and the names that an earlier daemon left.
    pub(super) fn of(dir: RunDir) -> (Marks, BTreeSet<String>) {
        let mut marks = Marks { own: identity(dir.path()), dir, earlier: BTreeMap::new() };
        let names = marks.left();
        for job in &names {
            match JobMark::read(&marks.dir, job) {
                Ok(Some(JobMark { memory, hosts })) if hosts.check(job).is_ok() => {
                    marks.earlier.insert(memory, (job.clone(), hosts));
                }
                Ok(_) => {}
                Err(error) => {
                    warn!(job, %error, "the job's mark cannot be read: its agent, if it has one, is not supervised")
                }
            }
        }
        (marks, names)
    }

    /// The names of all marks. What a daemon that was killed left half-written is removed.
    fn left(&self) -> BTreeSet<String> {
        let entries = match std::fs::read_dir(self.directory()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return BTreeSet::new(),
            Err(error) => {
                let dir = self.directory();
                warn!(dir = %dir.display(), %error, "no members of an earlier daemon's jobs are waited for: their marks cannot be read");
                return BTreeSet::new();
            }
        };
        // Nothing else is opened: a pipe would be waited for.
        let files =
            entries.flatten().filter(|entry| entry.file_type().is_ok_and(|file_type| file_type.is_file()));
        let names = files.filter_map(|entry| entry.file_name().into_string().ok());
        let (new, names): (BTreeSet<String>, _) = names.partition(|name| name.starts_with(NEW));
        for name in new {
            let _ = std::fs::remove_file(self.directory().join(name));
        }
        names.into_iter().filter(|name: &String| check_job_name(name).is_ok()).collect()
    }

    /// The run directory was made anew, and is this daemon's.
    pub(super) fn renew(&mut self) {
        self.own = identity(self.dir.path());
    }

    fn is_own(&self) -> bool {
        self.own.is_none() || identity(self.dir.path()) == self.own
    }

    fn directory(&self) -> PathBuf {
        self.dir.path().join(JobMark::directory())
    }

    /// Marks a job; whether it is marked. Without its mark, a job of this name that is made before its members are back is another
    /// one; that is worth a line, not a refusal, and is tried again.
    pub(super) fn set(&self, job: &str, memory: Identity, hosts: Option<&JobHosts>) -> bool {
        let made = self.mark(job, memory, hosts);
        if let Err(error) = &made {
            warn!(job, %error, "the job could not be marked yet: until it is, a next daemon would not wait for its members");
        }
        made.is_ok()
    }

    /// Marks a job without a word.
    pub(super) fn mark(&self, job: &str, memory: Identity, hosts: Option<&JobHosts>) -> Result<(), Error> {
        let note = hosts.map(|hosts| serde_json::to_vec(&JobMark { memory, hosts: hosts.clone() }));
        note.unwrap_or(Ok(Vec::new())).map_err(Error::from).and_then(|note| self.write(job, &note))
    }

    /// Writes a mark whole or not at all: an empty one would be that of a job without an agent.
    fn write(&self, job: &str, note: &[u8]) -> Result<(), Error> {
        if !self.is_own() {
            return Err(Error::other("the run directory is gone, or another one"));
        }
        let dir = self.dir.make_inner(JobMark::directory())?;
        let new = dir.join(format!("{NEW}{job}"));
        let written = std::fs::write(&new, note).and_then(|()| std::fs::rename(&new, dir.join(job)));
        if written.is_err() {
            let _ = std::fs::remove_file(&new);
        }
        written
    }

    /// The hosts of a job of an earlier daemon, which has this memory; none if it was on one host alone.
    pub(super) fn hosts(&self, job: &str, memory: Identity) -> Option<JobHosts> {
        self.earlier.get(&memory).filter(|(name, _)| name == job).map(|(_, hosts)| hosts.clone())
    }

    /// Whether an earlier daemon left a job of this name that was on several hosts.
    pub(super) fn has_hosts(&self, job: &str) -> bool {
        self.earlier.values().any(|(name, _)| name == job)
    }

    /// Whether there may be an agent of any job.
    pub(super) fn has_agents(&self) -> bool {
        let sockets = std::fs::read_dir(self.dir.path().join("agents"));
        sockets.is_ok_and(|mut sockets| sockets.next().is_some())
    }

    /// Removes the mark of a job.
    pub(super) fn unset(&self, job: &str) {
        if self.is_own()
            && let Err(error) = std::fs::remove_file(JobMark::path(&self.dir, job))
            && error.kind() != ErrorKind::NotFound
        {
            warn!(job, %error, "the mark of the job could not be removed");
        }
    }
}

impl Drop for Marks {
    fn drop(&mut self) {
        // Only if it is empty.
        if self.is_own() {
            let _ = std::fs::remove_dir(self.directory());
            remove_agents(self.dir.path());
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn hosts() -> JobHosts {
        let host = |name: &str, port| hectare_wire::JobHost {
            name: name.into(),
            address: ([127, 0, 0, 1], port).into(),
            ranks: 1,
            dpdk: None,
        };
        let (silence_ms, cipher, transport) = (1000, Default::default(), Default::default());
        let hosts = vec![host("here", 7117), host("there", 7118)];
        JobHosts { id: [1; 16], index: 0, hosts, key_file: "/k".into(), silence_ms, cipher, transport }
    }

    fn top() -> (tempfile::TempDir, RunDir) {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path());
        (top, dir)
    }

    #[test]
    fn what_an_earlier_daemon_knew_stays_known_when_its_marks_are_gone() {
        let (_top, dir) = top();
        let (marks, left) = Marks::of(dir.clone());
        assert!(left.is_empty());
        marks.set("one", (1, 1), None);
        marks.set("several", (1, 2), Some(&hosts()));
        let (next, left) = Marks::of(dir);
        assert!(left.iter().eq(["one", "several"]));
        next.unset("several");
        next.set("several", (1, 3), None);
        assert_eq!(next.hosts("several", (1, 2)), Some(hosts()));
        let others = [next.hosts("one", (1, 1)), next.hosts("several", (1, 3)), next.hosts("one", (1, 2))];
        assert!(others.iter().all(Option::is_none), "{others:?}");
        assert!(next.has_hosts("several") && !next.has_hosts("one"));
    }

    /// Whoever reads it finds the old one or the new one, and a full disc leaves the old one.
    #[test]
    fn a_mark_is_written_whole_or_not_at_all() {
        use std::io::Read;
        let (_top, dir) = top();
        let (marks, _) = Marks::of(dir.clone());
        marks.set("j", (1, 2), Some(&hosts()));
        let mut old = std::fs::File::open(JobMark::path(&dir, "j")).unwrap();
        marks.set("j", (1, 3), None);
        let mut text = String::new();
        old.read_to_string(&mut text).unwrap();
        assert!(text.contains("there"), "it was emptied in place: {text:?}");

        marks.set("j", (1, 2), Some(&hosts()));
        let new = marks.directory().join(".j");
        std::os::unix::fs::symlink("/dev/full", &new).unwrap();
        marks.set("j", (1, 4), Some(&hosts()));
        assert_eq!(JobMark::read(&dir, "j").unwrap().unwrap().memory, (1, 2));
        // What could not be written is not left for the next daemon, and neither is what a killed one left.
        assert!(std::fs::symlink_metadata(&new).is_err());
        std::fs::write(&new, "{").unwrap();
        let (_next, left) = Marks::of(dir);
        assert!(left.iter().eq(["j"]) && !new.exists(), "{left:?}");
    }

    #[test]
    fn what_is_no_mark_is_not_waited_for() {
        let (_top, dir) = top();
        let jobs = dir.make_inner("jobs").unwrap();
        let pipe = std::process::Command::new("mkfifo").arg(jobs.join("pipe")).status().unwrap();
        assert!(pipe.success());
        std::fs::create_dir(jobs.join("directory")).unwrap();
        std::fs::write(jobs.join("torn"), "{\"memory\":[1,").unwrap();
        let (marks, left) = Marks::of(dir);
        assert!(left.iter().eq(["torn"]), "{left:?}");
        assert!(!marks.has_hosts("torn"));
    }

    /// The daemon makes its run directory again by itself, with the mode that it asks for; this must not come before it.
    #[test]
    fn a_mark_does_not_make_the_run_directory() {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path().join("run"));
        let (marks, _) = Marks::of(dir.clone());
        marks.set("j", (1, 2), None);
        assert!(!dir.path().exists());
    }

    /// A daemon looks once a second whether its directory is still its own.
    #[test]
    fn the_marks_of_another_daemon_in_a_new_directory_are_left_alone() {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path().join("run"));
        dir.make().unwrap();
        let (mut marks, _) = Marks::of(dir.clone());
        assert!(marks.set("j", (1, 1), None));
        std::fs::rename(dir.path(), top.path().join("moved")).unwrap();
        dir.make().unwrap();
        let (other, _) = Marks::of(dir.clone());
        assert!(other.set("j", (1, 2), Some(&hosts())) && !marks.set("j", (1, 1), None));
        marks.unset("j");
        assert_eq!(JobMark::read(&dir, "j").unwrap().unwrap().memory, (1, 2));
        other.unset("j");
        let agents = dir.make_inner("agents").unwrap();
        // Its own again, if it is the daemon that made the directory anew.
        marks.renew();
        assert!(marks.set("j", (1, 1), None));
        std::fs::rename(dir.path(), top.path().join("moved again")).unwrap();
        dir.make().unwrap();
        dir.make_inner("agents").unwrap();
        drop(marks);
        assert!(agents.exists(), "another daemon's agent is about to listen there");
    }
}
