//! Hosts that are daemons of one machine, at the addresses of two RDMA devices: two network namespaces cannot have a software device
//! each. Of the guest that `net/rdma/guest/run` starts.
use super::cluster::{HECTARE, Running};
use super::{Daemon, Said, until};
use hectare_wire::{AgentStatus, RunDir};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Daemons on one machine: the first and the third at addresses of one device, the second at that of another.
#[derive(Debug)]
pub struct Flat {
    pub top: tempfile::TempDir,
    pub daemons: Vec<Daemon>,
}

fn name(host: usize) -> String {
    format!("h{host}")
}

/// In the configuration of a host with a device.
pub const DEVICE: &str = "[rdma]\n";

impl Flat {
    /// With this in the configuration of each. `None` where there are no devices, which in the guest there have to be.
    pub fn new(configs: &[&str]) -> Option<Flat> {
        if std::env::var_os("HECTARE_RDMA_GUEST").is_none() {
            hectare_testing::skip("RDMA devices", "jobs over RDMA run in the guest with devices");
            return None;
        }
        let mut all = Flat { top: tempfile::tempdir().unwrap(), daemons: Vec::new() };
        for (host, config) in configs.iter().enumerate() {
            std::fs::create_dir(all.home(host)).unwrap();
            let key = |host| all.home(host).join("key");
            match host {
                0 => drop(hectare_daemon::key_file::make(&key(0), "lab").unwrap()),
                _ => drop(std::fs::copy(key(0), key(host)).unwrap()),
            }
            std::fs::write(all.home(host).join("hectared.toml"), config).unwrap();
            all.daemons.push(all.daemon(host));
        }
        Some(all)
    }

    /// Starts a host's daemon.
    pub fn daemon(&self, host: usize) -> Daemon {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hectared"));
        command.env("HECTARE_RUN_DIR", self.dir(host).path()).env("HOME", self.home(host));
        command.arg("--config").arg(self.home(host).join("hectared.toml")).args(["--log-format", "json"]);
        Daemon::start(command)
    }

    pub fn home(&self, host: usize) -> PathBuf {
        self.top.path().join(name(host))
    }

    pub fn dir(&self, host: usize) -> RunDir {
        RunDir::at(self.home(host).join("run"))
    }

    /// A file whose appearance ends programs that were started with its path.
    pub fn enough(&self) -> PathBuf {
        self.top.path().join("enough")
    }

    /// Ends such programs by the file; all of them succeed.
    pub fn end(&self, mut run: Running) {
        std::fs::write(self.enough(), "").unwrap();
        assert_eq!(run.end(), Some(0));
        std::fs::remove_file(self.enough()).unwrap();
    }

    pub fn command(&self, args: &[&str], script: &str) -> Command {
        let host = |host: usize| format!("{}@10.9.0.{}:1", name(host), 1 + host);
        let list: Vec<String> = (0..self.daemons.len()).map(host).collect();
        let top = self.top.path().display();
        let rsh = format!(
            "nsenter --net=/proc/1/ns/net env HOME={top}/{{host}} HECTARE_RUN_DIR={top}/{{host}}/run HECTARE_KEY_FILE={top}/{{host}}/key \
             HECTARE_CONFIG={top}/{{host}}/hectared.toml"
        );
        // Where none of the addresses is its own, or it would not ask for a remote shell.
        let mut command = Command::new("unshare");
        command.args(["--net", "sh", "-c", "ip link set lo up; exec \"$@\"", "sh", HECTARE]);
        command.args(["run", "--hosts", &list.join(","), "--timeout", "60"]).args(args);
        command.args(["--rsh", &rsh, "--", "sh", "-c", script]);
        command.env("HOME", self.top.path()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str], script: &str) -> Said {
        said(&mut self.command(args, script))
    }

    /// How the agent of a host stands, once `is_it` says so.
    pub fn standing(
        &self,
        run: &mut Running,
        host: usize,
        is_it: impl Fn(&AgentStatus) -> bool,
    ) -> AgentStatus {
        let mut found = None;
        until("the agents", || {
            if let Some(status) = run.child.try_wait().unwrap() {
                panic!("it ended with {status}: {}", run.said());
            }
            // Each answer costs the emulated processor a process.
            std::thread::sleep(Duration::from_millis(100));
            let mut command = Command::new(HECTARE);
            command.arg("--run-dir").arg(self.dir(host).path()).args(["peers", "seen", "--json"]);
            let agents = serde_json::from_str::<Vec<AgentStatus>>(&said(&mut command).out);
            found = agents.ok().and_then(|mut agents| agents.pop()).filter(&is_it);
            found.is_some()
        });
        found.unwrap()
    }
}

fn said(command: &mut Command) -> Said {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said { code: output.status.code().unwrap_or(-1), out: text(&output.stdout), err: text(&output.stderr) }
}
