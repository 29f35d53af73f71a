//! This very test binary again as another process, which plays the role that the environment names.
use super::Host;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub const ROLE: &str = "MEMBERS_TEST_ROLE";

/// A process in a role; it says lines, and goes on when it is told a line.
#[derive(Debug)]
pub struct Member {
    pub child: Child,
    says: BufReader<ChildStdout>,
    hears: Option<ChildStdin>,
}

impl Member {
    #[track_caller]
    pub fn start(host: &Host, role: &str) -> Member {
        Member::of(as_role(host, role))
    }

    /// One that is started so ([`as_role`]).
    pub fn of(mut command: Command) -> Member {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let says = BufReader::new(child.stdout.take().unwrap());
        let hears = child.stdin.take();
        Member { child, says, hears }
    }

    /// The next line of the role's; what the test harness prints is left out.
    pub fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.says.read_line(&mut line).unwrap() > 0, "the member ended");
            if let Some((_, said)) = line.trim_end().split_once("SAYS ") {
                return said.to_owned();
            }
        }
    }

    pub fn tell(&mut self) {
        self.hears.as_mut().unwrap().write_all(b"\n").unwrap();
    }

    /// Tells a word and hears what it is answered by.
    pub fn ask(&mut self, word: &str) -> String {
        self.hears.as_mut().unwrap().write_all(format!("{word}\n").as_bytes()).unwrap();
        self.hear()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(rustix::process::Pid::from_child(&self.child), signal).unwrap();
    }

    /// Stops it, and waits until all of its threads stand still: those that run go on until one has had the signal.
    pub fn stop(&self) {
        self.signal(rustix::process::Signal::STOP);
        super::until("all threads to stand still", || {
            let mut tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
            tasks.all(|task| {
                let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
                stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
            })
        });
    }

    /// How many descriptors it has open.
    pub fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn finish(mut self) {
        self.hears = None;
        assert!(self.child.wait().unwrap().success());
    }
}

/// Nothing outlives a test that failed.
impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
pub fn as_role(host: &Host, role: &str) -> Command {
    let mut command = host.command(std::env::current_exe().unwrap().to_str().unwrap());
    command.env(ROLE, role).args(["--exact", &super::role_here(), "--nocapture"]);
    command
}

pub fn say(what: &str) {
    println!("SAYS {what}");
}

/// Waits to be told; false when nobody will.
pub fn told() -> bool {
    std::io::stdin().read_line(&mut String::new()).unwrap() > 0
}

/// The next word that is told; `None` when nobody will tell any.
pub fn told_word() -> Option<String> {
    let mut line = String::new();
    let got = std::io::stdin().read_line(&mut line).unwrap();
    (got > 0).then(|| line.trim().to_owned())
}
