//! A daemon in a run directory of its own, for tests.
#![allow(dead_code, unreachable_pub, missing_docs)]
pub mod cluster;
pub mod flat;
pub mod process;

use hectare_wire::{Connection, JobLine, Reply, Request, RunDir};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// How long a test waits for something before it is called missing; far above what it takes.
pub const WATCHDOG: Duration = Duration::from_secs(180);

#[derive(Debug)]
pub struct Daemon {
    pub child: Child,
    pub log: Arc<Mutex<String>>,
}

/// The output of a command.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

#[derive(Debug)]
pub struct Host {
    pub top: tempfile::TempDir,
    pub dir: RunDir,
}

impl Host {
    pub fn new() -> Host {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path().join("run"));
        Host { top, dir }
    }

    /// A command that finds this host's daemon and nothing else of the environment.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["HECTARE_", "SLURM_", "OMPI_", "PMI_"].iter().any(|prefix| text.starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command.env("HECTARE_RUN_DIR", self.dir.path()).env("HOME", self.top.path());
        command.env_remove("XDG_CONFIG_HOME");
        command
    }

    pub fn hectare(&self, args: &[&str]) -> Said {
        let mut command = self.command(env!("CARGO_BIN_EXE_hectare"));
        let output = command.args(args).stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let code = output.status.code().expect("hectare ends by itself");
        Said { code, out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Starts a daemon and waits until it is ready.
    pub fn daemon(&self, config: &str) -> Daemon {
        let file = self.top.path().join("hectared.toml");
        std::fs::write(&file, config).unwrap();
        let mut command = self.command(env!("CARGO_BIN_EXE_hectared"));
        command.arg("--config").arg(file).args(["--log-format", "json", "--log-level", "debug"]);
        Daemon::start(command)
    }

    pub fn connect(&self) -> Connection {
        Connection::open(&self.dir).unwrap()
    }

    pub fn jobs(&self) -> Vec<JobLine> {
        match self.connect().ask(&Request::Jobs { after: String::new() }).unwrap().0 {
            Reply::Jobs { jobs, .. } => jobs,
            other => panic!("{other:?}"),
        }
    }
}

impl Daemon {
    /// Starts one, which logs JSON, and waits until it is ready.
    pub fn start(mut command: Command) -> Daemon {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let (lines, copy) = (BufReader::new(child.stderr.take().unwrap()), log.clone());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut log = copy.lock().unwrap();
                log.push_str(&line);
                log.push('\n');
            }
        });
        let daemon = Daemon { child, log };
        daemon.wait_for("\"message\":\"ready\"");
        daemon
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    pub fn wait_for(&self, part: &str) {
        until(&format!("{part} in the log:\n{}", self.log()), || self.log().contains(part));
    }

    pub fn terminate(mut self) -> std::process::ExitStatus {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.child.wait().unwrap()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of the test `role` in the caller's file, which plays a part in a process of its own.
#[track_caller]
pub fn role_here() -> String {
    let file = Path::new(std::panic::Location::caller().file());
    format!("{}::role", file.file_stem().unwrap().to_str().unwrap())
}

/// Waits until something is so.
pub fn until(what: &str, mut so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !so() {
        assert!(since.elapsed() < WATCHDOG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The program of an example or an application: built beside this test by `cargo test --workspace`, else built now, also
/// if it is older than its sources.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let profile = test.parent().and_then(|deps| deps.parent()).expect("tests lie in PROFILE/deps");
    let (program, build) = match name {
        "matrix_completion" => (profile.join(name), ["-p", name, "--bin", name]),
        _ => (profile.join("examples").join(name), ["-p", "hectare", "--example", name]),
    };
    if !hectare_testing::is_current(&program, &["apps", "examples", "orion-layer", "dsm", "wire"]) {
        let mut command = Command::new(env!("CARGO"));
        command.arg("build").args(build);
        if !cfg!(debug_assertions) {
            command.arg("--release");
        }
        assert!(command.status().unwrap().success());
    }
    program
}
