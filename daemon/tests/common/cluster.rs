//! Hosts, which are network namespaces, with a daemon each; and runs on them.
use super::{Daemon, Said, WATCHDOG, until};
use hectare_dsm::wire::Launch;
use hectare_dsm::{Job, Worker};
use hectare_hosts::{Network, Settings};
use hectare_testing::MemoryGroup;
use hectare_wire::{Connection, JobLine, Reply, Request, RunDir};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};

pub const HECTARE: &str = env!("CARGO_BIN_EXE_hectare");

/// Hosts with a daemon and the same key each; the command is called on none of them.
#[derive(Debug)]
pub struct Cluster {
    pub network: Network,
    pub top: tempfile::TempDir,
    pub daemons: Vec<Daemon>,
    /// Lines of the configuration of each host's daemon beside those of all.
    more: Vec<String>,
}

impl Cluster {
    /// `None` where this process may make no namespaces.
    pub fn new(hosts: usize) -> Option<Cluster> {
        Cluster::with(hosts, &Settings::default())
    }

    /// The same on a network of such settings.
    pub fn with(hosts: usize, settings: &Settings) -> Option<Cluster> {
        Cluster::configured(&vec![String::new(); hosts], settings)
    }

    /// The same, each daemon with this in its configuration.
    pub fn configured(more: &[String], settings: &Settings) -> Option<Cluster> {
        let hosts = more.len();
        let network = Network::new(hosts, settings);
        let network = network.map_err(|error| hectare_testing::skip("network namespaces", error)).ok()?;
        let top = tempfile::tempdir().unwrap();
        let mut cluster = Cluster { network, top, daemons: Vec::new(), more: more.to_vec() };
        for host in 0..hosts {
            std::fs::create_dir(cluster.home(host)).unwrap();
            match host {
                0 => drop(hectare_daemon::key_file::make(&cluster.key(0), "lab").unwrap()),
                _ => drop(std::fs::copy(cluster.key(0), cluster.key(host)).unwrap()),
            }
            cluster.start_daemon(host);
        }
        Some(cluster)
    }

    pub fn name(&self, host: usize) -> String {
        self.network.namespace(host)
    }

    pub fn home(&self, host: usize) -> PathBuf {
        self.top.path().join(self.name(host))
    }

    pub fn key(&self, host: usize) -> PathBuf {
        self.home(host).join("key")
    }

    pub fn dir(&self, host: usize) -> RunDir {
        RunDir::at(self.home(host).join("run"))
    }

    pub fn start_daemon(&mut self, host: usize) {
        self.start_daemon_by(host, self.network.command(host, env!("CARGO_BIN_EXE_hectared")));
    }

    /// Starts another daemon in the place of a host's, which may have what the group may, with its agents.
    pub fn restart_daemon_in(&mut self, host: usize, group: &MemoryGroup) {
        self.daemons[host].child.kill().unwrap();
        self.daemons[host].child.wait().unwrap();
        self.start_daemon_by(host, self.network.command_in_group(host, env!("CARGO_BIN_EXE_hectared")));
        let daemon = self.daemons.pop().expect("just started");
        group.add(daemon.child.id()).unwrap();
        self.daemons[host] = daemon;
    }

    fn start_daemon_by(&mut self, host: usize, mut command: Command) {
        command.env("HECTARE_RUN_DIR", self.dir(host).path()).env("HOME", self.home(host));
        let config = self.home(host).join("hectared.toml");
        std::fs::write(&config, format!("{}\n[metrics]\nsocket = true\n", self.more[host])).unwrap();
        command.arg("--config").arg(config);
        command.args(["--log-format", "json", "--log-level", "debug"]);
        self.daemons.push(Daemon::start(command));
    }

    /// The remote shell: a host has its own run directory and key.
    pub fn rsh(&self) -> String {
        let top = self.top.path().display();
        format!(
            "ip netns exec {{host}} env HOME={top}/{{host}} HECTARE_RUN_DIR={top}/{{host}}/run \
             HECTARE_KEY_FILE={top}/{{host}}/key HECTARE_CONFIG={top}/{{host}}/hectared.toml"
        )
    }

    /// The hosts, with so many ranks each.
    pub fn list(&self, ranks: u32) -> String {
        let host = |host: usize| format!("{}@{}:{ranks}", self.name(host), self.network.address(host));
        (0..self.network.hosts()).map(host).collect::<Vec<_>>().join(",")
    }

    pub fn command(&self, args: &[&str], script: &str) -> Command {
        let mut command = Command::new(HECTARE);
        command.arg("run").args(args);
        if !args.contains(&"--rsh") {
            command.args(["--rsh", &self.rsh()]);
        }
        command.args(["--", "sh", "-c", script]);
        command.env("HOME", self.top.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            if ["HECTARE_", "SLURM_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
                command.env_remove(name);
            }
        }
        command
    }

    pub fn run(&self, args: &[&str], script: &str) -> Said {
        let output = self.command(args, script).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    pub fn jobs(&self, host: usize) -> Vec<JobLine> {
        match Connection::open(&self.dir(host))
            .unwrap()
            .ask(&Request::Jobs { after: String::new() })
            .unwrap()
            .0
        {
            Reply::Jobs { jobs, .. } => jobs,
            other => panic!("{other:?}"),
        }
    }

    /// The output of `hectare` on a host.
    pub fn hectare(&self, host: usize, args: &[&str]) -> Said {
        let mut command = Command::new(HECTARE);
        command.env("HECTARE_RUN_DIR", self.dir(host).path()).args(args).stdin(Stdio::null());
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Said { code: output.status.code().unwrap(), out: text(&output.stdout), err: text(&output.stderr) }
    }

    /// Kills the agent of a host, which has one; its process was.
    pub fn kill_agent(&self, host: usize) -> i32 {
        let agents = self.agents(host);
        assert_eq!(agents.len(), 1, "{agents:?}");
        kill_process(Pid::from_raw(agents[0]).unwrap(), Signal::KILL).unwrap();
        agents[0]
    }

    /// Nothing runs on any host but its daemon and what that started for itself, and no job is there.
    pub fn assert_nothing_is_left(&self) {
        for host in 0..self.network.hosts() {
            until("the jobs to go", || self.jobs(host).is_empty());
            until("the processes to go", || self.processes(host).is_empty());
            let sockets = self.dir(host).path().join("agents");
            until("the sockets of agents to go", || {
                std::fs::read_dir(&sockets).is_ok_and(|mut it| it.next().is_none()) || !sockets.exists()
            });
        }
    }

    /// The ids of the agents on a host.
    pub fn agents(&self, host: usize) -> Vec<i32> {
        let pids = Command::new("ip").args(["netns", "pids", &self.name(host)]).output().unwrap().stdout;
        let is_agent = |pid: &i32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("\0agent\0")
        };
        let all = String::from_utf8(pids).unwrap();
        all.split_whitespace().map(|pid| pid.parse().unwrap()).filter(is_agent).collect()
    }

    /// The processes on a host whose program is `sh`, `sleep`, an agent, or a part of the run.
    pub fn processes(&self, host: usize) -> Vec<String> {
        let pids = Command::new("ip").args(["netns", "pids", &self.name(host)]).output().unwrap().stdout;
        let words = |pid: &str| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).replace('\0', " ")
        };
        let all = String::from_utf8(pids).unwrap();
        let ours = |line: &String| {
            line.contains(" __part")
                || line.starts_with("hectared agent ")
                || line.starts_with("sh ")
                || line.starts_with("sleep ")
        };
        all.split_whitespace().map(words).filter(ours).collect()
    }
}

/// A run that goes on beside the test.
#[derive(Debug)]
pub struct Running {
    pub child: Child,
    pub out: BufReader<ChildStdout>,
    /// The lines that were read.
    seen: String,
}

impl Running {
    pub fn start(mut command: Command) -> Running {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Running { child, out, seen: String::new() }
    }

    pub fn lines(&mut self, count: usize) -> Vec<String> {
        let mut lines: Vec<String> = (0..count)
            .map(|_| {
                let mut line = String::new();
                if self.out.read_line(&mut line).unwrap() == 0 {
                    let status = self.child.wait().unwrap();
                    panic!("it ended, {status}: {}\nafter\n{}", self.said(), self.seen);
                }
                self.seen += &line;
                line.trim_end().to_owned()
            })
            .collect();
        lines.sort();
        lines
    }

    pub fn said(&mut self) -> String {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        said
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub fn end(&mut self) -> Option<i32> {
        let mut status = None;
        until("the run to end", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap().code()
    }
}

/// Nothing outlives a test that failed.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The job of this process, which `hectare run` has started, and its worker, when so many are there.
pub fn join(count: usize) -> (Job, Worker) {
    let launch = Launch::from_environment().unwrap().expect("a launcher");
    let job = Job::connect(&launch.job).unwrap();
    let mut worker = job.worker().unwrap();
    worker.wait_for_workers(count, WATCHDOG).unwrap();
    (job, worker)
}

/// Runs the test `role` of a file as a rank on each of so many hosts, with `variable` set, until each has said `end`.
pub fn run_on_each(hosts: usize, role: &str, variable: &str, end: &str) {
    let Some(cluster) = Cluster::new(hosts) else { return };
    let program = std::env::current_exe().unwrap();
    let program = format!("{variable}=1 exec {} --exact {role} --nocapture", program.display());
    let said = cluster.run(&["--hosts", &cluster.list(1), "--timeout", "20"], &program);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(said.out.matches(end).count(), hosts, "{said:?}");
    cluster.assert_nothing_is_left();
}
