//! The options of runs on several hosts, and the plan that follows from them.
use crate::cli::failure::Usage;
use crate::cli::parse::some_seconds;
use crate::hosts::{Plan, allocation, parse_file, parse_list};
use anyhow::{Context, Result, bail};
use clap::Args;
use hectare_wire::{Cipher, TransportChoice};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// On which hosts, and how they are reached.
#[derive(Debug, Args)]
#[command(next_help_heading = "On several hosts")]
pub(in super::super) struct HostOptions {
    /// The hosts, in the order of their ranks, each with its number of ranks: a:2,b:2. A name may be followed by the
    /// address at which the other hosts reach it: b@10.0.0.2:2.
    #[arg(long, value_name = "HOST:RANKS,..", conflicts_with = "hostfile")]
    hosts: Option<String>,
    /// The hosts, from a file in MPI's format: one line each, such as `a slots=2`; comments begin with #.
    #[arg(long, value_name = "FILE")]
    hostfile: Option<PathBuf>,
    /// The hosts that SLURM has allocated to this script or shell (sbatch, salloc), with as many ranks as they have tasks.
    #[arg(long, conflicts_with_all = ["hosts", "hostfile"])]
    slurm: bool,
    /// This command was started once for each rank by srun, mpirun, torchrun or the like, on all hosts: it takes its rank
    /// from the launcher's variables, meets the others at the host of rank 0, and starts one rank.
    #[arg(long, conflicts_with_all = ["hosts", "hostfile", "slurm", "processes", "rsh", "variables", "directory"])]
    pub(in super::super) launched: bool,
    /// With --launched, the rendezvous: the host of rank 0, and a TCP port there. Default: MASTER_ADDR, else the first
    /// node of SLURM's list; a port derived from MASTER_PORT or SLURM's job id.
    #[arg(long, value_name = "HOST[:PORT]")]
    pub(super) rendezvous: Option<String>,
    /// The command that runs another command on a host; {host} in it is replaced by the host's name, which is otherwise
    /// appended. It must forward standard input and output. Default: `ssh -o BatchMode=yes`; with --slurm, an srun of one
    /// task on the host.
    #[arg(long, value_name = "COMMAND")]
    rsh: Option<String>,
    /// The network interface of each host whose address the other hosts use. Default: the source address of the route to
    /// another host.
    #[arg(long, value_name = "NAME")]
    pub(super) interface: Option<String>,
    /// The UDP port of the job on each host. Default: a free one.
    #[arg(long)]
    port: Option<u16>,
    /// How many seconds a host may take to answer, at the start or later. Default: 30.
    #[arg(long, value_name = "SECONDS", value_parser = some_seconds)]
    timeout: Option<Duration>,
    /// How packets between the hosts are sealed: aes-128-gcm, or none, only for networks on which every machine is
    /// trusted: anyone there can read and forge packets; a checksum detects corruption. Must be the same on all hosts.
    /// Default: aes-128-gcm.
    #[arg(long, value_name = "CIPHER")]
    cipher: Option<Cipher>,
    /// The transport between the hosts: auto, udp, dpdk or rdma; with dpdk, a host that cannot be reached by DPDK is an error, and
    /// with rdma one without RDMA.
    /// Default: that of each host's configuration.
    #[arg(long, value_name = "TRANSPORT")]
    pub(super) transport: Option<TransportChoice>,
    /// The path of `hectare` on the hosts. Default: the path by which this one was called.
    #[arg(long, value_name = "PATH")]
    pub(super) remote_hectare: Option<String>,
    /// The program's working directory, on all hosts. Default: that of this command, which must exist there.
    #[arg(long, value_name = "PATH")]
    pub(in super::super) directory: Option<PathBuf>,
    /// Add to the environment of all processes: NAME=VALUE, or NAME with its value here. May be repeated.
    #[arg(short = 'x', long = "env", value_name = "NAME[=VALUE]")]
    variables: Vec<String>,
}

/// How long a host may take to answer if nobody says.
const TIMEOUT: Duration = Duration::from_secs(30);

/// No questions at a terminal that all hosts would ask at once.
const SSH: &str = "ssh -o BatchMode=yes";
/// Its tasks share the allocation's processors with those of the script.
const SRUN: &str = "srun --nodes=1 --ntasks=1 --overlap --nodelist={host}";

/// The longest host file: some 4 KiB for each host that a job may have.
const LONGEST: u64 = 1 << 20;

/// A host file, of bounded length, whatever it is.
fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LONGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        return Err(std::io::Error::other(format!("it is longer than {LONGEST} bytes")));
    }
    Ok(text)
}

impl HostOptions {
    /// Whether there is a list of hosts.
    pub(in super::super) fn are_given(&self) -> bool {
        self.hosts.is_some() || self.hostfile.is_some() || self.slurm
    }

    /// Checks the options of a run on one host, on which most of these have no meaning.
    ///
    /// # Errors
    /// Wrong usage, which names the first option that has none.
    pub(in super::super) fn check_one_host(&self) -> Result<()> {
        let given = [
            ("--rendezvous", self.rendezvous.is_some()),
            ("--rsh", self.rsh.is_some()),
            ("--interface", self.interface.is_some()),
            ("--port", self.port.is_some()),
            ("--timeout", self.timeout.is_some()),
            ("--cipher", self.cipher.is_some()),
            ("--transport", self.transport.is_some()),
            ("--remote-hectare", self.remote_hectare.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => {
                let what =
                    "without --hosts, --hostfile, --slurm or --launched the program runs on this host alone";
                Err(anyhow::anyhow!("{option} is for several hosts: {what}")).usage()
            }
            None => Ok(()),
        }
    }

    /// The variables that are added to the environment.
    ///
    /// # Errors
    /// Wrong usage: one that has no name, or no value here.
    pub(in super::super) fn variables(&self) -> Result<Vec<(String, String)>> {
        let variable = |text: &String| match text.split_once('=') {
            _ if text.is_empty() || text.starts_with('=') => bail!("-x {text:?}: a variable without a name"),
            Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
            None => match std::env::var(text) {
                Ok(value) => Ok((text.clone(), value)),
                Err(error) => bail!("-x {text}: {error}"),
            },
        };
        self.variables.iter().map(variable).collect::<Result<_>>().usage()
    }

    /// The UDP port; 0 for a free one.
    pub(super) fn port(&self) -> u16 {
        self.port.unwrap_or(0)
    }

    /// How long a host may take to answer.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout.unwrap_or(TIMEOUT)
    }

    /// How packets are sealed.
    pub(super) fn cipher(&self) -> Cipher {
        self.cipher.unwrap_or_default()
    }

    /// The remote shell.
    pub(super) fn rsh(&self) -> &str {
        self.rsh.as_deref().unwrap_or(if self.slurm { SRUN } else { SSH })
    }

    /// Which host has which ranks.
    pub(in super::super) fn plan(&self, ranks: Option<u32>) -> Result<Plan> {
        self.read(ranks).usage()
    }

    fn read(&self, ranks: Option<u32>) -> Result<Plan> {
        let hosts = match (&self.hosts, &self.hostfile) {
            (Some(list), _) => parse_list(list).map_err(|error| {
                // There is one line.
                anyhow::anyhow!("--hosts: column {}: {}", error.column, error.what)
            })?,
            (None, Some(path)) => {
                let text = read_text(path)
                    .with_context(|| format!("host file {} cannot be read", path.display()))?;
                parse_file(&text).with_context(|| format!("host file {}", path.display()))?
            }
            (None, None) => allocation(|name| std::env::var(name).ok())?,
        };
        Ok(Plan::new(&hosts, ranks)?)
    }
}
