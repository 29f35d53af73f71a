//! A process of a program that a launcher starts on several hosts: the first one on each host meets the others and makes the job
//! here, then each starts its rank.
use super::address::{Place, is_here, own_place};
use super::meeting::{Agreed, Attendance, Attended, Guest, go, hold, random};
use super::message::Prepare;
use super::options::HostOptions;
use super::part::{cluster_key, config, give_up};
use super::siblings::{First, follow};
use crate::cli::failure::{HostFailed, Usage};
use crate::cli::{exit, output::one_line};
use crate::hosts::{Seat, seat};
use anyhow::{Context, Result, bail};
use fnv::FnvHasher;
use hectare_dsm::Job;
use hectare_session::ClusterKey;
use hectare_wire::{Connection, JobHosts, JobSettings, Member, Request, RunDir, check_job_name};
use std::hash::Hasher;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::ops::RangeInclusive;
use std::time::Instant;

/// The ports at which hosts meet, above those that systems give to whoever asks for none.
const PORTS: RangeInclusive<u16> = 61_000..=64_999;

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
    let deadline = Instant::now() + on.timeout();
    let member = match seat.local_rank {
        0 => {
            let ranks = seat.rank..seat.rank + seat.local_size;
            let mut first = First::begin(dir, &job, ranks, deadline)?;
            let member = make(dir, &seat, on, &job, deadline, &mut first);
            let concluded = first.conclude(member.as_ref().err());
            let member = member?;
            if let Err(error) = concluded {
                // The other hosts are not to wait for ranks that do not come.
                let memory = member.memory().try_clone_to_owned().context("dup")?;
                give_up(&Job::from_descriptor(memory)?, &host_name());
                return Err(error);
            }
            member
        }
        _ => follow(dir, (&job, seat.rank), deadline, || Ok(Member::hold(dir, &job)?))?,
    };
    Ok(Joined { job, rank: seat.rank, size: seat.size, member })
}

/// Makes this host's part of the job. It is there as long as it has a member.
///
/// # Errors
/// Also if this host's processes have not come, or have equal ranks: then the other hosts hear so, and start nothing.
fn make(
    dir: &RunDir,
    seat: &Seat,
    on: &HostOptions,
    job: &str,
    deadline: Instant,
    first: &mut First,
) -> Result<Member> {
    let connection = Connection::open(dir)?;
    let settings = JobSettings::default();
    if seat.local_size == seat.size {
        // A job on one host needs no agent.
        first.gather()?;
        connection.order(&Request::Create { job: job.into(), settings, keep: false })?;
        return Ok(Member::hold(dir, job)?);
    }
    let (path, key) = cluster_key().map_err(|error| match exit::code_of(&error) {
        1 => HostFailed::new(host_name(), one_line(&error)).into(),
        _ => error,
    })?;
    let key_file = path.to_str().with_context(|| format!("{} is no UTF-8", path.display()))?.to_owned();
    let (place, address) = meeting_place(seat, on, job)?;
    // The agent takes the port when the job is made.
    let mut reserved = None;
    let mut reserve = |address: IpAddr| -> Result<Guest> {
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
    let held = match seat.rank {
        0 => be_meeting_place(seat, (&place, address), &key, deadline, &mut reserve)?,
        _ => None,
    };
    let (Agreed { id, hosts, .. }, meeting) = match held {
        Some((agreed, attended)) => (agreed, Meeting::Held(attended)),
        // A second process of rank 0 goes there, too: then all hear of it.
        None => {
            let (agreed, attendance) = go((place, address), &key, deadline, reserve)?;
            (agreed, Meeting::Attended(attendance))
        }
    };
    let index =
        hosts.iter().position(|host| reserved.as_ref().is_some_and(|place| place.address == host.address));
    let index = u16::try_from(index.context("a job without this host")?)?;
    let silence_ms = u64::try_from(on.timeout().as_millis()).unwrap_or(u64::MAX).max(1);
    let transport = reserved.as_ref().map(|place| place.transport).unwrap_or_default();
    let cipher = on.cipher();
    let hosts = Box::new(JobHosts { id, index, hosts, key_file, silence_ms, cipher, transport });
    drop(reserved);
    let request = Request::CreateOnHosts { job: job.into(), settings, keep: false, hosts };
    let made = connection.order(&request).and_then(|_| Member::hold(dir, job));
    let (member, made) = match made {
        Ok(member) => (Some(member), first.gather()),
        Err(error) => (None, Err(error.into())),
    };
    let concluded = meeting.conclude(made);
    let member = match (member, concluded) {
        (Some(member), Ok(())) => member,
        (Some(member), Err(error)) => {
            let memory = member.memory().try_clone_to_owned().context("dup")?;
            give_up(&Job::from_descriptor(memory)?, &host_name());
            return Err(error);
        }
        (None, concluded) => bail!(concluded.err().context("a job without its member")?),
    };
    Ok(member)
}

/// Holds the meeting at its place, as the process of rank 0; `None` if another process does.
fn be_meeting_place(
    seat: &Seat,
    (place, address): (&str, SocketAddr),
    key: &ClusterKey,
    deadline: Instant,
    own: impl FnOnce(IpAddr) -> Result<Guest>,
) -> Result<Option<(Agreed, Attended)>> {
    let any: IpAddr = if address.is_ipv4() { [0, 0, 0, 0].into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let listener = TcpListener::bind((any, address.port())).with_context(|| {
        format!("port {} cannot be used here: --rendezvous names another", address.port())
    })?;
    let is_here = is_here(place, Some(address.ip()));
    let hint = match is_here {
        true => String::new(),
        false => format!(
            "; the meeting place {place} ({}) is no address of {}, where this process has rank 0, and nobody answers there",
            address.ip(),
            host_name()
        ),
    };
    let elsewhere = (!is_here).then_some(address);
    hold(listener, elsewhere, key, deadline, (seat.local_size, seat.size), &hint, own)
}

/// The meeting as this host takes part in it.
enum Meeting {
    Held(Attended),
    Attended(Attendance),
}

impl Meeting {
    /// Says whether this host has made its part of the job, and waits for the others.
    fn conclude(self, made: Result<()>) -> Result<()> {
        let own = host_name();
        match self {
            Meeting::Held(attended) => attended.conclude(&own, made),
            Meeting::Attended(attendance) => attendance.conclude(&own, made),
        }
    }
}

fn reserve(on: &HostOptions, address: IpAddr) -> Result<Place> {
    let interface = on.interface.clone();
    // By which this host met the others.
    let address = interface.is_none().then_some(address);
    let (port, transport) = (on.port(), on.transport);
    own_place(&Prepare { run_dir: None, address, interface, others: Vec::new(), port, transport }, &config()?)
}

/// Where the hosts meet: the host of rank 0.
///
/// # Errors
/// Wrong usage, if nobody has said where or has written no port; a name that cannot be looked up is this host's failure.
fn meeting_place(seat: &Seat, on: &HostOptions, job: &str) -> Result<(String, SocketAddr)> {
    let (host, port) = named_place(seat, on, job).usage()?;
    let unknown = |why: String| HostFailed::new(host_name(), format!("the meeting place {host} {why}"));
    let found = (host.as_str(), port).to_socket_addrs();
    let found = found.map_err(|error| unknown(format!("is unknown here: {error}")))?;
    let found: Vec<SocketAddr> = found.collect();
    let best = found.iter().find(|address| address.is_ipv4()).or(found.first());
    let address = *best.ok_or_else(|| unknown("has no address".into()))?;
    Ok((host, address))
}

/// Its name and port, as the user or the launcher says.
fn named_place(seat: &Seat, on: &HostOptions, job: &str) -> Result<(String, u16)> {
    let port = seat.port.unwrap_or_else(|| port_of(job));
    match (&on.rendezvous, &seat.first_host) {
        (Some(place), _) => split_place(place, port).with_context(|| format!("--rendezvous {place}")),
        (None, Some(host)) => Ok((host.clone(), port)),
        (None, None) => {
            bail!("the launcher does not say which host has rank 0: say it by --rendezvous HOST or HOST:PORT")
        }
    }
}

/// The port of a job's name: the same on all hosts, and hardly ever that of another start with the same first host.
fn port_of(job: &str) -> u16 {
    let mut hash = FnvHasher::default();
    hash.write(job.as_bytes());
    let (first, count) = (*PORTS.start(), u64::from(PORTS.end() - PORTS.start()) + 1);
    // Below `count`, which is a number of 16 bits.
    first + (hash.finish() % count) as u16
}

/// `HOST`, `HOST:PORT`, and the same with an address of IPv6, which is in brackets if a port follows.
fn split_place(place: &str, default: u16) -> Result<(String, u16)> {
    let (host, port) = match place.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, ""))) => (host, None),
        Some(Some((host, rest))) => (host, Some(rest.strip_prefix(':').context("behind ] comes :PORT")?)),
        Some(None) => bail!("[ without ]"),
        None => match place.split_once(':') {
            Some((_, rest)) if rest.contains(':') => (place, None),
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        None => default,
        Some(port) => {
            port.parse().ok().filter(|port| *port > 0).with_context(|| format!("{port:?} is no port"))?
        }
    };
    anyhow::ensure!(!host.is_empty(), "it names no host");
    Ok((host.to_owned(), port))
}

fn host_name() -> String {
    let name = std::env::var("SLURMD_NODENAME").ok().filter(|name| !name.is_empty());
    let name =
        name.unwrap_or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default());
    let name = name.trim();
    if name.is_empty() { "unnamed".into() } else { name.chars().take(100).collect() }
}

#[cfg(test)]
mod tests {
    use super::{PORTS, port_of, split_place};

    #[test]
    fn starts_at_the_same_time_have_ports_of_their_own() {
        // Of each job the first steps, and of Open MPI's names, which differ in their last digits.
        let slurm = (4000..4050).flat_map(|job| (0..4).map(move |step| format!("slurm-{job}-{step}")));
        let mpi = (0..200).map(|number| format!("ompi-{}", 2_403_205_121u64 + number * 65_536));
        for names in [slurm.collect::<Vec<_>>(), mpi.collect()] {
            let ports: Vec<u16> = names.iter().map(|name| port_of(name)).collect();
            assert!(ports.iter().all(|port| PORTS.contains(port)));
            let equal =
                (0..200).flat_map(|a| (0..a).map(move |b| (a, b))).filter(|(a, b)| ports[*a] == ports[*b]);
            // By chance, five of these pairs would be.
            assert!(equal.count() < 20);
        }
        // Hosts with other releases of this program meet there.
        assert_eq!(port_of("slurm-4123-2"), 64_412);
    }

    #[test]
    fn a_place_is_a_host_with_a_port_or_without() {
        let split = |place| split_place(place, 7).map_err(|error| error.to_string());
        for (place, host, port) in [
            ("a", "a", 7),
            ("a:9", "a", 9),
            ("10.0.0.1", "10.0.0.1", 7),
            ("[::1]", "::1", 7),
            ("[::1]:9", "::1", 9),
            ("fe80::1", "fe80::1", 7),
        ] {
            assert_eq!(split(place), Ok((host.to_owned(), port)), "{place}");
        }
        for (place, what) in [
            ("a:0", "\"0\" is no port"),
            ("a:", "\"\" is no port"),
            ("a:70000", "is no port"),
            ("[::1", "without ]"),
            ("[::1]9", "comes :PORT"),
            (":9", "no host"),
            ("[]:9", "no host"),
        ] {
            assert!(split(place).unwrap_err().contains(what), "{place}: {:?}", split(place));
        }
    }
}
