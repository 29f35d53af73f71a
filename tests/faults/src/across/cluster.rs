//! Hosts, which are network namespaces, with a daemon each: this program in another role.
use crate::host::{Daemon, Log, until};
use anyhow::{Context, Result, bail};
use hectare_hosts::{Network, Settings};
use hectare_session::ClusterKey;
use hectare_testing::Random;
use hectare_wire::{
    AgentConnection, AgentReply, AgentRequest, AgentStatus, Cipher, Connection, JobHost, JobHosts, JobLine,
    JobSettings, Reply, Request, RunDir, TransportChoice,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// One of them.
#[derive(Debug)]
struct Host {
    home: PathBuf,
    /// By how much its wall clock differs, in seconds.
    shift: i64,
    /// How much longer ago than this machine it was started, in seconds.
    older: u64,
    daemon: Option<Daemon>,
    /// The logs of the daemons and of the agents that they started.
    logs: Vec<Log>,
}

/// Hosts on one switch.
#[derive(Debug)]
pub(crate) struct Cluster {
    // First, as processes that are in a host's directory end with it.
    pub(crate) network: Network,
    hosts: Vec<Host>,
    top: PathBuf,
    jobs: u16,
    /// The id of the last job, which no other has.
    id: [u8; 16],
}

/// The start of the names of directories of campaigns; the process of the campaign follows.
const DIRECTORY: &str = "hectare-faults-hosts-";

/// There can be no network here.
#[derive(Debug)]
pub(crate) struct NoNetwork(std::io::Error);

impl std::fmt::Display for NoNetwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "network namespaces: {}", self.0)
    }
}

impl std::error::Error for NoNetwork {}

/// Removes the directories of campaigns that were killed; their namespaces go when the next network is made.
fn sweep() -> Result<()> {
    for entry in std::fs::read_dir(std::env::temp_dir())?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let pid = name.strip_prefix(DIRECTORY).and_then(|pid| pid.parse::<u32>().ok());
        if pid.is_some_and(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists()) {
            // Another campaign may sweep, too.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    Ok(())
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.top);
    }
}

impl Cluster {
    /// Clocks of the hosts differ by numbers of `random` (41).
    pub(crate) fn new(hosts: usize, random: &mut Random) -> Result<Cluster> {
        let mut network = Network::new(hosts, &Settings::default()).map_err(NoNetwork)?;
        // Finds out whether there can be faults, before an episode needs one.
        network.set(&[]).map_err(NoNetwork)?;
        sweep()?;
        let top = std::env::temp_dir().join(format!("{DIRECTORY}{}", std::process::id()));
        let mut cluster = Cluster { network, hosts: Vec::new(), top, jobs: 0, id: [0; 16] };
        for host in 0..hosts {
            let home = cluster.top.join(host.to_string());
            std::fs::create_dir_all(&home)?;
            let key = home.join("key");
            match host {
                0 => drop(hectare_daemon::key_file::make(&key, "faults")?),
                _ => drop(std::fs::copy(cluster.top.join("0/key"), &key)?),
            }
            std::fs::write(home.join("hectared.toml"), "")?;
            let (shift, older) = (random.below(7200) as i64 - 3600, random.below(10_000_000) as u64);
            crate::clock::set(&home.join("clock"), shift)?;
            cluster.hosts.push(Host { home, shift, older, daemon: None, logs: Vec::new() });
            cluster.start_daemon(host)?;
        }
        Ok(cluster)
    }

    pub(crate) fn count(&self) -> usize {
        self.hosts.len()
    }

    /// This program in another role on a host.
    pub(crate) fn role(&self, host: usize, role: &[&str]) -> Result<Command> {
        let program = std::env::current_exe().context("where this program is")?;
        // A namespace for each process: what they have in common is the number.
        let Host { home, older, .. } = &self.hosts[host];
        let older = older.to_string();
        let mut command = self.network.command(host, "unshare");
        command.args(["--time", "--monotonic", &older, "--boottime", &older]).arg(program);
        command.arg("role").args(role).env(crate::clock::VARIABLE, home.join("clock"));
        for (name, _) in std::env::vars_os() {
            if ["HECTARE_", "SLURM_", "XDG_"].iter().any(|prefix| name.to_string_lossy().starts_with(prefix))
            {
                command.env_remove(name);
            }
        }
        command.env("HOME", home).env("HECTARE_RUN_DIR", home.join("run"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Ok(command)
    }

    fn connect(&self, host: usize) -> Result<Connection> {
        Ok(Connection::open(&self.run_dir(host))?)
    }

    /// Starts the daemon of a host, if none runs, and waits until it answers.
    pub(crate) fn start_daemon(&mut self, host: usize) -> Result<()> {
        if self.hosts[host].daemon.is_some() {
            return Ok(());
        }
        let config = self.hosts[host].home.join("hectared.toml");
        let mut command = self.role(host, &["daemon", &config.to_string_lossy()])?;
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?;
        let log = Log::of(child.stderr.take().context("standard error")?);
        self.hosts[host].logs.push(log.clone());
        let mut daemon = Daemon { child, log };
        until("a daemon", || self.connect(host).is_ok() || matches!(daemon.child.try_wait(), Ok(Some(_))))?;
        if let Ok(Some(status)) = daemon.child.try_wait() {
            bail!("the daemon of host {host} ended with {status}: {}", daemon.log.text());
        }
        self.hosts[host].daemon = Some(daemon);
        Ok(())
    }

    pub(crate) fn kill_daemon(&mut self, host: usize) -> Result<()> {
        self.hosts[host].daemon.take().map_or(Ok(()), Daemon::kill)
    }

    /// Makes a job on all hosts, which have so many ranks each; its name.
    pub(crate) fn make_job(&mut self, ranks: u32, silence_ms: u64, id: [u8; 16]) -> Result<String> {
        self.jobs += 1;
        self.id = id;
        let job = format!("load{}", self.jobs);
        let address = |host| self.agent_address(host);
        let one = |host| JobHost { name: format!("host{host}"), address: address(host), ranks, dpdk: None };
        let hosts: Vec<JobHost> = (0..self.count()).map(one).collect();
        for host in 0..self.count() {
            self.make_part(host, &job, (host as u16, hosts.clone()), id, silence_ms)?;
        }
        Ok(job)
    }

    /// Makes the first host's part of a job on two hosts; its name.
    pub(crate) fn make_job_with(
        &self,
        host: usize,
        other: SocketAddr,
        own: SocketAddr,
        id: [u8; 16],
        silence: Duration,
    ) -> Result<String> {
        let job = format!("beside{}", own.port());
        let one = |name: &str, address| JobHost { name: name.into(), address, ranks: 1, dpdk: None };
        let hosts = vec![one("true", own), one("hostile", other)];
        self.make_part(host, &job, (0, hosts), id, silence.as_millis() as u64)?;
        Ok(job)
    }

    fn make_part(
        &self,
        host: usize,
        job: &str,
        (index, hosts): (u16, Vec<JobHost>),
        id: [u8; 16],
        silence_ms: u64,
    ) -> Result<()> {
        let key_file = self.hosts[host].home.join("key").to_string_lossy().into_owned();
        let (cipher, transport) = (Cipher::default(), TransportChoice::default());
        let hosts = Box::new(JobHosts { id, index, hosts, key_file, silence_ms, cipher, transport });
        let settings = JobSettings { bytes: Some(64 << 20), ..JobSettings::default() };
        let request = Request::CreateOnHosts { job: job.into(), settings, keep: false, hosts };
        self.connect(host)?.order(&request).with_context(|| format!("making {job} on host {host}"))?;
        Ok(())
    }

    pub(crate) fn jobs(&self, host: usize) -> Result<Vec<JobLine>> {
        match self.connect(host)?.ask(&Request::Jobs { after: String::new() })?.0 {
            Reply::Jobs { jobs, .. } => Ok(jobs),
            other => bail!("{other:?} instead of jobs"),
        }
    }

    /// Turns the wall clock of a host by so many seconds.
    pub(crate) fn jump(&mut self, host: usize, seconds: i64) -> Result<()> {
        let host = &mut self.hosts[host];
        host.shift += seconds;
        Ok(crate::clock::set(&host.home.join("clock"), host.shift)?)
    }

    /// Where the agent of a host is, of the last job.
    pub(crate) fn agent_address(&self, host: usize) -> SocketAddr {
        (self.network.address(host), 20_000 + self.jobs).into()
    }

    /// The id of the last job, which no other has.
    pub(crate) fn job_id(&self) -> [u8; 16] {
        self.id
    }

    /// The key that all hosts have.
    pub(crate) fn key(&self) -> Result<ClusterKey> {
        Ok(ClusterKey::parse(&std::fs::read_to_string(self.top.join("0/key"))?)?)
    }

    /// The run directory of a host.
    pub(crate) fn run_dir(&self, host: usize) -> RunDir {
        RunDir::at(self.hosts[host].home.join("run"))
    }

    /// How the agents of a host stand, of which one may be about to end.
    pub(crate) fn standings(&self, host: usize) -> Result<Vec<AgentStatus>> {
        let dir = self.run_dir(host);
        let mut all = Vec::new();
        for agent in AgentConnection::all(&dir, Some(Duration::from_secs(2)))? {
            if let Ok(AgentReply::Status(standing)) = agent.ask(&AgentRequest::Status) {
                all.push(*standing);
            }
        }
        Ok(all)
    }

    /// A counter, added up over the agents of a host.
    pub(crate) fn counted(&self, host: usize, family: &str, cause: &str) -> Result<u64> {
        let all = self.standings(host)?.into_iter().flat_map(|standing| standing.counters);
        Ok(all.filter(|(of, why, _)| of == family && why == cause).map(|(_, _, value)| value).sum())
    }

    /// The agents on a host.
    pub(crate) fn agents(&self, host: usize) -> Result<Vec<u32>> {
        let is_agent = |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).nth(1).is_some_and(|word| word == b"agent")
        };
        Ok(self.network.processes(host)?.into_iter().filter(is_agent).collect())
    }

    /// Whether a process with this id stands still.
    pub(crate) fn is_stopped(pid: u32) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    }

    /// Kills everything that runs on a host.
    pub(crate) fn kill_host(&mut self, host: usize) -> Result<()> {
        // A loss of power is at once. So the agent goes first: it would tell other hosts of workers that died before it.
        let (mut pids, agents) = (self.network.processes(host)?, self.agents(host)?);
        pids.sort_by_key(|pid| !agents.contains(pid));
        for pid in pids {
            let _ = crate::system::signal(pid, libc::SIGKILL);
        }
        drop(self.hosts[host].daemon.take());
        Ok(())
    }

    /// The log of a host since [`Cluster::forget_logs`].
    pub(crate) fn said(&self, host: usize) -> String {
        self.hosts[host].logs.iter().map(Log::text).collect()
    }

    pub(crate) fn forget_logs(&mut self) {
        for host in &mut self.hosts {
            host.logs.clear();
            if let Some(daemon) = &host.daemon {
                daemon.log.clear();
                host.logs.push(daemon.log.clone());
            }
        }
    }
}
