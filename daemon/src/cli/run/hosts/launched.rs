//! A process of a program that a launcher starts on several hosts: the first one on each host meets the others and makes the job
//! here, then each starts its rank.
use super::address::{Place, own_place};
use super::meeting::{Agreed, Guest, go, hold, random};
use super::message::Prepare;
use super::options::HostOptions;
use super::part::{cluster_key, config};
use crate::ask::is_there;
use crate::cli::failure::{HostFailed, Usage};
use crate::cli::{exit, output::one_line};
use crate::hosts::{Seat, seat};
use anyhow::{Context, Result, bail};
use hectare_wire::{Connection, JobHosts, JobSettings, Member, Request, RunDir, check_job_name};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Between two looks whether the job is there.
const PAUSE: Duration = Duration::from_millis(20);

/// The rank that is to be started here.
pub(in super::super) struct Joined {
    pub(in super::super) job: String,
    pub(in super::super) rank: u32,
    pub(in super::super) size: u32,
    pub(in super::super) member: Member,
}

/// Takes part in the program: afterwards this host's part of the job is there.
pub(in super::super) fn join(dir: &RunDir, on: &HostOptions, job: Option<&str>) -> Result<Joined> {
    let seat = seat(|name| std::env::var(name).ok()).usage()?;
    let given = std::env::var("HECTARE_JOB").ok().filter(|job| !job.is_empty());
    let named = job.map(str::to_owned).or(given).or(seat.job.clone());
    let job = named
        .context(
            "the launcher has no name for this start: give it one of its own by --job, the same on all hosts",
        )
        .usage()?;
    check_job_name(&job).map_err(hectare_wire::Error::Refused)?;
    let deadline = Instant::now() + on.timeout;
    let connection = Connection::open(dir)?;
    let marks = Marks { dir: dir.path().join("launched").join(&job) };
    if seat.local_rank == 0 {
        marks.clear();
        make(&connection, &seat, on, &job, deadline)?;
    } else {
        while !is_there(&connection, &job)? {
            if Instant::now() > deadline {
                bail!(
                    "job {job} did not come to this host within {} s: the process of local rank 0 says why",
                    on.timeout.as_secs_f64()
                );
            }
            std::thread::sleep(PAUSE);
        }
    }
    let member = Member::hold(dir, &job)?;
    // The job goes with its last member: the first process stays until all are.
    match seat.local_rank {
        0 => marks.wait_for(seat.local_size, deadline)?,
        local => marks.set(local)?,
    }
    Ok(Joined { job, rank: seat.rank, size: seat.size, member })
}

/// Files by which the processes of this host tell the first one that they are members.
struct Marks {
    dir: PathBuf,
}

impl Marks {
    /// Removes what an earlier start left, before the job is there.
    fn clear(&self) {
        // There is seldom something.
        let _ = std::fs::remove_dir_all(&self.dir);
    }

    fn set(&self, local_rank: u32) -> Result<()> {
        let place = self.dir.join(local_rank.to_string());
        let set = std::fs::create_dir_all(&self.dir).and_then(|()| std::fs::write(&place, b""));
        set.with_context(|| format!("{} cannot be written", place.display()))
    }

    fn wait_for(&self, local_size: u32, deadline: Instant) -> Result<()> {
        loop {
            let away = |local: &u32| !self.dir.join(local.to_string()).exists();
            let missing: Vec<String> = (1..local_size).filter(away).map(|local| local.to_string()).collect();
            if missing.is_empty() {
                break;
            }
            if Instant::now() > deadline {
                bail!("the processes of local rank {} did not come in time", missing.join(", "));
            }
            std::thread::sleep(PAUSE);
        }
        self.clear();
        // Only if it is empty.
        let _ = self.dir.parent().map(std::fs::remove_dir);
        Ok(())
    }
}

/// Makes this host's part of the job.
fn make(connection: &Connection, seat: &Seat, on: &HostOptions, job: &str, deadline: Instant) -> Result<()> {
    let settings = JobSettings::default();
    if seat.local_size == seat.size {
        // A job on one host needs no agent.
        connection.order(&Request::Create { job: job.into(), settings, keep: false })?;
        return Ok(());
    }
    let (path, key) = cluster_key().map_err(|error| match exit::code_of(&error) {
        1 => HostFailed::new(host_name(), one_line(&error)).into(),
        _ => error,
    })?;
    let key_file = path.to_str().with_context(|| format!("{} is no UTF-8", path.display()))?.to_owned();
    let (place, address) = meeting_place(seat, on)?;
    // The agent takes the port when the job is made.
    let mut reserved = None;
    let reserve = |address: IpAddr| -> Result<Guest> {
        let place = reserved.insert(reserve(on, address)?);
        Ok(Guest {
            job: job.into(),
            size: seat.size,
            first: seat.rank,
            ranks: seat.local_size,
            name: host_name(),
            address: place.address,
            dpdk: place.dpdk,
            nonce: random()?,
        })
    };
    let Agreed { id, hosts, .. } = if seat.rank == 0 {
        let any: IpAddr = if address.is_ipv4() { [0, 0, 0, 0].into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let listener = TcpListener::bind((any, address.port())).with_context(|| {
            format!("port {} cannot be used here: --rendezvous names another", address.port())
        })?;
        hold(listener, &key, deadline, seat.local_size, seat.size, reserve)?
    } else {
        go((&place, address), &key, deadline, reserve)?
    };
    let index =
        hosts.iter().position(|host| reserved.as_ref().is_some_and(|place| place.address == host.address));
    let index = u16::try_from(index.context("a job without this host")?)?;
    let silence_ms = u64::try_from(on.timeout.as_millis()).unwrap_or(u64::MAX).max(1);
    let transport = reserved.as_ref().map(|place| place.transport).unwrap_or_default();
    let cipher = on.cipher;
    let hosts = Box::new(JobHosts { id, index, hosts, key_file, silence_ms, cipher, transport });
    drop(reserved);
    connection.order(&Request::CreateOnHosts { job: job.into(), settings, keep: false, hosts })?;
    Ok(())
}

fn reserve(on: &HostOptions, address: IpAddr) -> Result<Place> {
    let interface = on.interface.clone();
    // By which this host met the others.
    let address = interface.is_none().then_some(address);
    let (port, transport) = (on.port, on.transport);
    own_place(&Prepare { run_dir: None, address, interface, others: Vec::new(), port, transport }, &config()?)
}

/// Where the hosts meet: the host of rank 0.
///
/// # Errors
/// Wrong usage, if nobody has said where or has written no port; a name that cannot be looked up is this host's failure.
fn meeting_place(seat: &Seat, on: &HostOptions) -> Result<(String, SocketAddr)> {
    let (host, port) = named_place(seat, on).usage()?;
    let unknown = |why: String| HostFailed::new(host_name(), format!("the meeting place {host} {why}"));
    let found = (host.as_str(), port).to_socket_addrs();
    let found = found.map_err(|error| unknown(format!("is unknown here: {error}")))?;
    let found: Vec<SocketAddr> = found.collect();
    let best = found.iter().find(|address| address.is_ipv4()).or(found.first());
    let address = *best.ok_or_else(|| unknown("has no address".into()))?;
    Ok((host, address))
}

/// Its name and port, as the user or the launcher says.
fn named_place(seat: &Seat, on: &HostOptions) -> Result<(String, u16)> {
    Ok(match (&on.rendezvous, &seat.first_host) {
        (Some(meet), _) => match meet.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.ends_with(']') => {
                let port = port.parse().with_context(|| format!("--rendezvous {meet}: {port} is no port"))?;
                (host.trim_matches(['[', ']']).to_owned(), port)
            }
            _ => (meet.clone(), seat.port),
        },
        (None, Some(host)) => (host.clone(), seat.port),
        (None, None) => {
            bail!("the launcher does not say which host has rank 0: say it by --rendezvous HOST:PORT")
        }
    })
}

fn host_name() -> String {
    let name = std::env::var("SLURMD_NODENAME").ok().filter(|name| !name.is_empty());
    let name =
        name.unwrap_or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default());
    let name = name.trim();
    if name.is_empty() { "unnamed".into() } else { name.chars().take(100).collect() }
}
