//! The daemon's configuration: a file, the environment on top of it, and flags on top of both.
mod explain;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use hectare_agent::{DpdkPort, RdmaDevice, RdmaError};
use hectare_dsm::JobBuilder;
use hectare_wire::{JobSettings, RunDir, Stall, TransportChoice};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The format of the log's lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Human,
    /// One JSON object a line.
    Json,
}

/// The levels of messages in the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Errors that stop the daemon.
    Error,
    /// Also refusals and deaths.
    Warn,
    /// Also clients and jobs that come and go.
    #[default]
    Info,
    /// Also every request.
    Debug,
}

/// The log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// The format of its lines.
    pub format: Format,
    /// The level from which on messages go into it.
    pub level: Level,
}

/// The most that a job may ask for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Address space for areas, in bytes.
    pub bytes: u64,
    /// Areas at a time.
    pub areas: u32,
    /// Workers at a time.
    pub workers: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { bytes: 1 << 46, areas: 1 << 20, workers: 4096 }
    }
}

/// Metrics for Prometheus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Metrics {
    /// Where scrapes are answered; `None` for nowhere.
    pub listen: Option<SocketAddr>,
    /// Whether scrapes are answered at the socket `metrics` in the run directory, too, which only this user can reach.
    pub socket: bool,
    /// Areas of each job that have metrics of their own.
    pub areas: usize,
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics { listen: None, socket: false, areas: 256 }
    }
}

/// The configuration of `hectared`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The run directory; `None` for the user's.
    pub run_dir: Option<PathBuf>,
    /// The file of the cluster's key; `None` for the first of the usual places.
    pub key_file: Option<PathBuf>,
    /// Jobs at a time.
    pub max_jobs: usize,
    /// Connections at a time. A few more may look at jobs.
    pub max_clients: usize,
    /// Connections of one process at a time.
    pub max_clients_per_process: usize,
    /// The time in seconds after which a job that nobody joined is removed, unless it is kept; 0 for never.
    pub join_within_s: u64,
    /// The transport between agents, for jobs that do not choose one.
    pub transport: TransportChoice,
    /// The port of DPDK of agents; `None` for none.
    pub dpdk: Option<DpdkPort>,
    /// The RDMA device of agents; `None` for none.
    pub rdma: Option<RdmaDevice>,
    /// The log.
    pub log: Log,
    /// Metrics.
    pub metrics: Metrics,
    /// The most that a job may ask for.
    pub limits: Limits,
    /// The default settings of jobs.
    pub defaults: JobSettings,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            run_dir: None,
            key_file: None,
            max_jobs: 64,
            max_clients: 1024,
            max_clients_per_process: 256,
            join_within_s: 3600,
            transport: TransportChoice::default(),
            dpdk: None,
            rdma: None,
            log: Log::default(),
            metrics: Metrics::default(),
            limits: Limits::default(),
            defaults: JobSettings::default(),
        }
    }
}

/// An example with every key, its default and its meaning.
pub const EXAMPLE: &str = include_str!("../hectared.toml");

impl Config {
    /// Reads a configuration.
    ///
    /// ```
    /// use hectare_daemon::config::Config;
    /// assert_eq!(Config::parse("max_jobs = 3")?.max_jobs, 3);
    /// assert!(Config::parse("max_jbos = 3").is_err());
    /// # Ok::<(), anyhow::Error>(())
    /// ```
    ///
    /// # Errors
    /// Unknown keys, invalid values, settings that contradict each other.
    pub fn parse(text: &str) -> Result<Config> {
        let config: Config = toml::from_str(text).map_err(|error| {
            // The error's text has several lines; the first one is enough.
            let at = error.span().map(|span| span.start);
            anyhow::Error::msg(explain::explain(text, at, error.message()))
        })?;
        config.check()?;
        Ok(config)
    }

    /// The file, the first that there is of: `file`, `HECTARE_CONFIG`, `hectare/hectared.toml` in the user's
    /// configuration directory, `/etc/hectare/hectared.toml`. The first two must exist when they are given.
    pub fn search(file: Option<PathBuf>) -> Option<PathBuf> {
        if let Some(given) = file.or_else(|| path_variable("HECTARE_CONFIG")) {
            return Some(given);
        }
        let user = user_directory().map(|directory| directory.join("hectared.toml"));
        let system = PathBuf::from("/etc/hectare/hectared.toml");
        user.into_iter().chain([system]).find(|path| path.exists())
    }

    /// The configuration of the file that [`Config::search`] finds, or the default; then of the environment.
    ///
    /// # Errors
    /// A file that cannot be read, and those of [`Config::parse`], with the file's name.
    pub fn load(file: Option<PathBuf>) -> Result<Config> {
        let mut config = match Config::search(file) {
            Some(path) => {
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("configuration {} cannot be read", path.display()))?;
                Config::parse(&text).with_context(|| format!("configuration {}", path.display()))?
            }
            None => Config::default(),
        };
        config.environment(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))?;
        config.check()?;
        Ok(config)
    }

    /// Puts `HECTARE_RUN_DIR`, `HECTARE_KEY_FILE`, `HECTARE_MAX_JOBS`, `HECTARE_MAX_CLIENTS`, `HECTARE_METRICS_LISTEN`,
    /// `HECTARE_LOG` and `HECTARE_LOG_FORMAT` on top.
    fn environment(&mut self, variable: impl Fn(&str) -> Option<String>) -> Result<()> {
        if let Some(path) = variable("HECTARE_RUN_DIR") {
            self.run_dir = Some(path.into());
        }
        if let Some(path) = variable("HECTARE_KEY_FILE") {
            self.key_file = Some(path.into());
        }
        for (name, place) in
            [("HECTARE_MAX_JOBS", &mut self.max_jobs), ("HECTARE_MAX_CLIENTS", &mut self.max_clients)]
        {
            if let Some(value) = variable(name) {
                *place = value.parse().with_context(|| format!("{name}={value} is not a number"))?;
            }
        }
        if let Some(value) = variable("HECTARE_METRICS_LISTEN") {
            let wrong = || format!("HECTARE_METRICS_LISTEN={value} is not an address and port");
            self.metrics.listen = Some(value.parse().with_context(wrong)?);
        }
        if let Some(value) = variable("HECTARE_LOG") {
            self.log.level = choice("HECTARE_LOG", &value)?;
        }
        if let Some(value) = variable("HECTARE_LOG_FORMAT") {
            self.log.format = choice("HECTARE_LOG_FORMAT", &value)?;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let has_name = self.run_dir.as_ref().is_none_or(|dir| !dir.as_os_str().is_empty());
        ensure!(has_name, "run_dir is empty: name a directory, or leave the line out for the user's");
        ensure!(self.max_jobs > 0, "max_jobs is 0: no job could be made");
        ensure!(self.max_clients > 0, "max_clients is 0: nobody could connect");
        ensure!(self.max_clients_per_process > 0, "max_clients_per_process is 0: nobody could connect");
        let (limits, defaults) = (&self.limits, &self.defaults);
        let limits_of_all = [
            ("bytes", limits.bytes, JobBuilder::MOST_BYTES),
            ("areas", limits.areas.into(), JobBuilder::MOST_AREAS.into()),
            ("workers", limits.workers.into(), JobBuilder::MOST_WORKERS.into()),
        ];
        for (name, limit, most) in limits_of_all {
            ensure!(limit > 0, "limits.{name} is 0: no job could be made");
            ensure!(limit <= most, "limits.{name} is {limit}, and a job has {most} at most");
        }
        let pairs = [
            ("bytes", defaults.bytes, limits.bytes),
            ("areas", defaults.areas.map(u64::from), limits.areas.into()),
            ("workers", defaults.workers.map(u64::from), limits.workers.into()),
        ];
        for (name, default, limit) in pairs {
            match default {
                Some(default) if default > limit => {
                    bail!("defaults.{name} is {default}, more than limits.{name}, which is {limit}")
                }
                Some(0) => bail!("defaults.{name} is 0"),
                _ => {}
            }
        }
        self.check_transport()?;
        ensure!(
            defaults.round_timeout_ms != Some(0),
            "defaults.round_timeout_ms is 0: every round would be abandoned"
        );
        let stalls_at_once = matches!(defaults.stall, Some(Stall::KillAfterMs(0) | Stall::PinAfterMs(0)));
        ensure!(!stalls_at_once, "defaults.stall acts after 0 ms: every worker would count as stalled");
        Ok(())
    }

    fn check_transport(&self) -> Result<()> {
        if self.transport == TransportChoice::Rdma && !RdmaDevice::IS_BUILT {
            bail!("transport is \"rdma\", and {}", RdmaError::NotBuilt);
        }
        let alone = self.transport == TransportChoice::Dpdk;
        match &self.dpdk {
            // One configuration may be that of hosts with DPDK and without.
            Some(_) if !DpdkPort::IS_BUILT && !alone => Ok(()),
            Some(port) => port.check().map_err(|what| anyhow::anyhow!("dpdk: {what}")),
            None if alone => bail!(
                "transport is \"dpdk\", and there is no port: name one in [dpdk], or let it be \"auto\""
            ),
            None => Ok(()),
        }
    }

    /// The port of agents that reach others like this; none if there is none, or they do not use it.
    ///
    /// # Errors
    /// If a port is required and there is none.
    pub fn port_for(&self, transport: TransportChoice) -> Result<Option<&DpdkPort>> {
        let alone = transport == TransportChoice::Dpdk;
        let port = self.dpdk.as_ref().filter(|_| DpdkPort::IS_BUILT && transport != TransportChoice::Udp);
        if port.is_none() && alone {
            let why = match DpdkPort::IS_BUILT {
                true => "there is no [dpdk] in the configuration of this host's hectared".to_owned(),
                false => hectare_agent::PortError::NotBuilt.to_string(),
            };
            bail!("its agents are to reach others by DPDK alone (transport = \"dpdk\"), and {why}");
        }
        Ok(port)
    }

    /// Whether the key file can be used that this configuration names, if it names one.
    ///
    /// # Errors
    /// It cannot: its name, that of the key of the configuration, and what to do.
    pub fn check_key(&self) -> Result<()> {
        let Some(path) = &self.key_file else { return Ok(()) };
        let named = || format!("key_file = {:?} (or HECTARE_KEY_FILE)", path.display().to_string());
        crate::key_file::load(path).map(drop).with_context(named)
    }

    /// The run directory that this configuration means.
    pub fn run_dir(&self) -> RunDir {
        self.run_dir.as_ref().map_or_else(RunDir::of_user, RunDir::at)
    }

    /// The file of the cluster's key: the one that is named, else the first of the usual places that is there, else the
    /// first of them.
    pub fn key_path(&self) -> PathBuf {
        let usual = || {
            let mut places = usual_key_files();
            let there = places.iter().position(|path| path.exists());
            places.swap_remove(there.unwrap_or(0))
        };
        self.key_file.clone().unwrap_or_else(usual)
    }
}

/// The usual places of the key; the first file that exists is used: `hectare/cluster.key` in the user's configuration directory,
/// `/etc/hectare/cluster.key`.
fn usual_key_files() -> Vec<PathBuf> {
    let user = user_directory().map(|directory| directory.join("cluster.key"));
    user.into_iter().chain([PathBuf::from("/etc/hectare/cluster.key")]).collect()
}

/// The user's directory of configurations, if the environment says where that is.
pub(crate) fn user_directory() -> Option<PathBuf> {
    let home =
        path_variable("XDG_CONFIG_HOME").or_else(|| path_variable("HOME").map(|home| home.join(".config")));
    home.map(|home| home.join("hectare"))
}

fn path_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The value of a variable that has only a few; the error lists them.
fn choice<T: ValueEnum>(name: &str, value: &str) -> Result<T> {
    T::from_str(value, true).map_err(|_| {
        let values = T::value_variants().iter().filter_map(T::to_possible_value);
        let names: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        anyhow::anyhow!("{name}={value} is none of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_the_default() {
        let mut example = Config::parse(EXAMPLE).unwrap();
        example.defaults = JobSettings::default();
        assert_eq!(example, Config::default());
        // Also with every line that is commented out.
        let all: String = EXAMPLE
            .lines()
            .map(|line| line.strip_prefix("#: ").unwrap_or(line))
            .fold(String::new(), |text, line| text + line + "\n");
        let all: Config = toml::from_str(&all).unwrap();
        all.check().unwrap();
        let alone = Config { transport: TransportChoice::Dpdk, ..all.clone() };
        let refused = alone.check().map_err(|error| error.to_string()).err().unwrap_or_default();
        let said = if cfg!(feature = "dpdk") { "" } else { "dpdk: this program was built without DPDK" };
        assert!(refused.starts_with(said) && refused.is_empty() == said.is_empty(), "{refused}");
        assert!(
            all.run_dir.is_some()
                && all.key_file.is_some()
                && all.dpdk.is_some()
                && all.rdma.is_some()
                && all.defaults.bytes.is_some()
                && all.defaults.stall.is_some()
        );
        assert!(all.metrics.listen.is_some());
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        for (text, part) in [
            ("max_jobs = 3\nmax_jbos = 4", "line 2: unknown key `max_jbos`; did you mean `max_jobs`?"),
            ("[metrics]\nlisten_at = 3", "line 2: unknown key `metrics.listen_at`; did you mean `listen`?"),
            ("zoo = 3", "line 1: unknown key `zoo`; the keys there are `run_dir`, `key_file`"),
            ("max_jobs = \"many\"", "line 1: max_jobs = \"many\": invalid type: string \"many\""),
            ("[log]\nformat = \"xml\"", "line 2: log.format = \"xml\": unknown variant `xml`"),
            ("[defaults]\nbytes = 9\n[limits]\nbytes = 8", "defaults.bytes is 9"),
            ("max_clients = 0", "max_clients is 0"),
            ("max_clients_per_process = 0", "max_clients_per_process is 0"),
            ("[limits]\nbytes = 0", "limits.bytes is 0"),
            ("run_dir = \"\"", "run_dir is empty"),
            ("[limits]\nworkers = 100000", "limits.workers is 100000, and a job has 65536 at most"),
            ("[limits]\nareas = 4194305", "limits.areas is 4194305"),
            ("[limits]\nbytes = 70368744177665", "limits.bytes is 70368744177665"),
            ("[limits]\nareas = 0", "limits.areas is 0"),
            ("[limits]\nworkers = 0", "limits.workers is 0"),
            (
                "[metrics]\nlisten = \"here\" # there",
                "line 2: metrics.listen = \"here\": invalid socket address syntax; for example, listen = \"127.0.0.1:9464\"",
            ),
            ("[rdma]\ndevise = \"x\"", "line 2: unknown key `rdma.devise`; did you mean `device`?"),
            ("transport = \"tcp\"", "line 1: transport = \"tcp\": expected auto, udp, dpdk or rdma"),
            ("transport = \"dpdk\"", "there is no port: name one in [dpdk]"),
            ("[defaults]\nstall = { kill_after_ms = 0 }", "defaults.stall acts after 0 ms"),
            ("[defaults]\nstall = { pin_after_ms = 0 }", "defaults.stall acts after 0 ms"),
            ("[defaults]\nstall = { kill = 4 }", "unknown variant `kill`"),
        ] {
            let error = format!("{:#}", Config::parse(text).unwrap_err());
            assert!(error.contains(part), "{text:?}: {error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn the_environment_goes_on_top() {
        let mut config = Config::parse("max_jobs = 3\n[log]\nlevel = \"warn\"").unwrap();
        let set = |name: &str| match name {
            "HECTARE_MAX_JOBS" => Some("5".to_owned()),
            "HECTARE_LOG_FORMAT" => Some("json".into()),
            _ => None,
        };
        config.environment(set).unwrap();
        assert_eq!((config.max_jobs, config.log.level, config.log.format), (5, Level::Warn, Format::Json));
        let bad = |name: &str| (name == "HECTARE_LOG").then(|| "loud".to_owned());
        let said = config.environment(bad).unwrap_err().to_string();
        assert_eq!(said, "HECTARE_LOG=loud is none of error, warn, info, debug");
        let bad = |name: &str| (name == "HECTARE_LOG_FORMAT").then(|| "xml".to_owned());
        let said = config.environment(bad).unwrap_err().to_string();
        assert_eq!(said, "HECTARE_LOG_FORMAT=xml is none of human, json");
    }
}
