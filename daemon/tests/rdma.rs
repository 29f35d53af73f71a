//! Jobs whose agents place large cuts by RDMA. Two network namespaces cannot have a software device each, so that hosts are daemons of one
//! machine, at the addresses of two devices. `net/rdma/guest/run` runs this where there are such.
use crate::areas_on_hosts::in_role;
use crate::common::cluster::{HECTARE, Running};
use crate::common::{Daemon, Host, Said, example, until};
use crate::matrix_completion::ratings_in;
use hectare_wire::{AgentStatus, RunDir};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Daemons on one machine: the first and the third at addresses of one device, the second at that of another.
#[derive(Debug)]
struct Flat {
    top: tempfile::TempDir,
    daemons: Vec<Daemon>,
}

fn name(host: usize) -> String {
    format!("h{host}")
}

const DEVICE: &str = "[rdma]\n";

impl Flat {
    /// With this in the configuration of each. `None` where there are no devices, which in the guest there have to be.
    fn new(configs: &[&str]) -> Option<Flat> {
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
            let file = all.home(host).join("hectared.toml");
            std::fs::write(&file, config).unwrap();
            let mut command = Command::new(env!("CARGO_BIN_EXE_hectared"));
            command.env("HECTARE_RUN_DIR", all.dir(host).path()).env("HOME", all.home(host));
            command.arg("--config").arg(file).args(["--log-format", "json"]);
            all.daemons.push(Daemon::start(command));
        }
        Some(all)
    }

    fn home(&self, host: usize) -> PathBuf {
        self.top.path().join(name(host))
    }

    fn dir(&self, host: usize) -> RunDir {
        RunDir::at(self.home(host).join("run"))
    }

    fn command(&self, args: &[&str], script: &str) -> Command {
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

    fn run(&self, args: &[&str], script: &str) -> Said {
        said(&mut self.command(args, script))
    }

    /// How the agent of a host stands, once `is_it` says so.
    fn standing(&self, run: &mut Running, host: usize, is_it: impl Fn(&AgentStatus) -> bool) -> AgentStatus {
        let mut found = None;
        until("the agents", || {
            if let Some(status) = run.child.try_wait().unwrap() {
                panic!("it ended with {status}: {}", run.said());
            }
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

fn counted(standing: &AgentStatus, name: &str, cause: &str) -> u64 {
    let found = standing.counters.iter().find(|(n, c, _)| (n.as_str(), c.as_str()) == (name, cause));
    found.unwrap_or_else(|| panic!("no {name} {cause} in {standing:?}")).2
}

#[test]
fn a_job_runs_over_rdma_and_it_is_said_why() {
    for transport in ["auto", "rdma"] {
        let Some(flat) = Flat::new(&[DEVICE, DEVICE]) else { return };
        let args = ["--job", "seen", "--transport", transport];
        let mut run = Running::start(flat.command(&args, &in_role("turns:300")));
        for host in 0..2 {
            let it = flat.standing(&mut run, host, |it| counted(it, "lines", "placed") > 0);
            assert_eq!(it.transport, transport);
            let peer = &it.peers[0];
            assert_eq!(
                (peer.link.as_str(), peer.link_reason.contains("both have an RDMA device")),
                ("rdma", true),
                "{peer:?}"
            );
            assert!(counted(&it, "rdma", "bytes") > 0, "{it:?}");
        }
        assert_eq!(run.end(), Some(0));
    }
}

#[test]
fn a_killed_agent_is_followed_by_one_that_places_again_over_rdma() {
    let Some(flat) = Flat::new(&[DEVICE, DEVICE]) else { return };
    let mut run = Running::start(flat.command(&["--job", "seen"], &in_role("turns:800")));
    for host in [0, 1] {
        let killed = flat.standing(&mut run, host, |it| counted(it, "lines", "placed") > 0).pid;
        let pid = rustix::process::Pid::from_raw(killed as i32).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        flat.standing(&mut run, host, |it| it.pid != killed && counted(it, "lines", "placed") > 0);
    }
    assert_eq!(run.end(), Some(0));
}

#[test]
fn a_host_without_rdma_is_reached_by_udp_or_named() {
    let Some(flat) = Flat::new(&[DEVICE, ""]) else { return };
    let mut run = Running::start(flat.command(&["--job", "seen"], &in_role("turns:200")));
    let it = flat.standing(&mut run, 0, |it| it.peers[0].link_reason.contains("no RDMA: the peer says"));
    assert_eq!(it.peers[0].link, "udp");
    assert_eq!(run.end(), Some(0));
    // A device that is not there, and without which the job is not to run.
    let Some(flat) = Flat::new(&[DEVICE, "[rdma]\ndevice = \"rxe7\"\n"]) else { return };
    let said = flat.run(&["--transport", "rdma"], &in_role("turns:10"));
    assert!(
        said.code != 0 && said.err.contains("there is no RDMA device rxe7: name one of rxe0, rxe1"),
        "{said:?}"
    );
    let mut run = Running::start(flat.command(&["--job", "seen"], &in_role("turns:200")));
    let it =
        flat.standing(&mut run, 1, |it| it.peers[0].link_reason.contains("there is no RDMA device rxe7"));
    assert_eq!(it.peers[0].link, "udp");
    assert_eq!(run.end(), Some(0));
}

/// The application, on three hosts, learns to the last digit what three threads learn.
#[test]
fn three_hosts_learn_over_rdma_what_three_threads_do() {
    let Some(flat) = Flat::new(&[DEVICE; 3]) else { return };
    let (host, program) = (Host::new(), example("matrix_completion"));
    let data = ratings_in(flat.top.path());
    let common = |out: &str| {
        let out = flat.top.path().join(out);
        let (data, out) = (data.display(), out.display());
        format!("--ratings {data} --rank 64 --batch 150 --mode areas --epochs 2 --quiet --out {out}")
    };
    let losses = |out: &str| {
        let text = std::fs::read_to_string(flat.top.path().join(out).join("loss.csv")).unwrap();
        // The fourth is a time.
        let fields = |line: &str| line.split(',').take(3).collect::<Vec<_>>().join(",");
        text.lines().skip(1).map(fields).collect::<Vec<String>>()
    };
    let mut alone: Command = host.command(program.to_str().unwrap());
    let status = alone.args(common("threads").split(' ')).args(["--workers", "3"]).status().unwrap();
    assert!(status.success());
    let script = format!("exec {} {}", program.display(), common("hosts"));
    let said = flat.run(&["--transport", "rdma"], &script);
    assert_eq!(said.code, 0, "{said:?}");
    for daemon in &flat.daemons {
        assert!(daemon.log().contains("lines are placed by RDMA"));
    }
    let expected = losses("threads");
    assert_eq!((expected.len(), losses("hosts")), (2, expected));
}
