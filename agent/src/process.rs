//! The process of an agent, which the daemon of its host starts for one job.
//!
//! Its standard input is the job's memory, its [`Order`] as JSON is in its environment, its log goes to standard error. Its standard
//! output is a pipe to which it writes nothing: the daemon closes the other end when the job is over. The exit code is 0 when the agent
//! is no longer needed, 2 if the job has failed or cannot be served as ordered, 3 if the job has another agent, which lives, and anything
//! else if the agent is to be restarted.
use crate::links::{self, Links, NoLink};
use crate::mark::JobMark;
use crate::memory::SegmentMemory;
use crate::order::Order;
use crate::placer::Placer;
use crate::reach::Reach;
use crate::relay::{Relay, Setup};
use crate::serve::{Stage, serve};
use crate::window::{Questions, Window};
use hectare_dsm::agent::Agent;
use hectare_dsm::{Job, WorkerInfo, WorkerState};
use hectare_net::HostId;
use hectare_session::{self as session, ClusterKey, Config, KeyError, Suite, Time};
use hectare_transport::Transport;
use hectare_wire::{Cipher, RunDir, TransportChoice};
use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tracing::{error, info, warn};

/// Something that an agent needs is not available.
#[derive(Debug, thiserror::Error)]
enum Unavailable {
    #[error("the key file {file}: {source}")]
    KeyFile { file: String, source: io::Error },
    #[error("the key file {file}: {source}")]
    Key { file: String, source: KeyError },
    #[error(transparent)]
    Link(#[from] NoLink),
}

/// Why there is no agent.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("the order cannot be parsed: {0}")]
    Order(#[from] serde_json::Error),
    #[error("the job has ended: {0}")]
    Ended(Unavailable),
    #[error(transparent)]
    Unavailable(Unavailable),
    #[error("the job's memory: {0}")]
    Memory(#[from] hectare_dsm::Error),
    #[error("{what}: {source}")]
    System { what: String, source: io::Error },
}

/// Runs an agent by this order, which is JSON; the code with which the process ends.
pub fn main_of(order: &str) -> u8 {
    match run(order) {
        Ok(code) => code,
        Err(error) => {
            error!(%error, "no agent");
            match error {
                Failed::Order(_) | Failed::Ended(_) => 2,
                Failed::Memory(hectare_dsm::Error::AgentTaken { .. }) => 3,
                _ => 1,
            }
        }
    }
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn key(file: &str) -> Result<ClusterKey, Unavailable> {
    let text =
        std::fs::read_to_string(file).map_err(|source| Unavailable::KeyFile { file: file.into(), source })?;
    ClusterKey::parse(&text).map_err(|source| Unavailable::Key { file: file.into(), source })
}

/// All that an agent needs beside its job.
struct Needs {
    key: ClusterKey,
    links: Links,
    reaches: Vec<Reach>,
    placer: Placer,
}

fn needs(order: &Order) -> Result<Needs, Unavailable> {
    let key = key(&order.hosts.key_file)?;
    let (links, reaches) = links::open(order)?;
    Ok(Needs { key, links, reaches, placer: links::placer(order)? })
}

/// Whether starting the agent again would not help.
fn is_in_vain(missing: &Unavailable, order: &Order, agent: &Agent) -> bool {
    let is_demanded = matches!(order.hosts.transport, TransportChoice::Dpdk | TransportChoice::Rdma);
    // Nothing that was never there is waited for, except the port: it was free, and another program may have it for a moment.
    let was_there = agent.number() > 1;
    order.is_last_try || (!was_there && (is_demanded || !matches!(missing, Unavailable::Link(_))))
}

/// Whether nobody reads a pipe any more.
fn is_closed(pipe: impl AsFd) -> bool {
    let mut set = [PollFd::new(&pipe, PollFlags::empty())];
    let at_once = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut set, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

fn run(order: &str) -> Result<u8, Failed> {
    let order: Order = serde_json::from_str(order)?;
    let memory = io::stdin().as_fd().try_clone_to_owned().map_err(system("the job's memory"))?;
    let stat = rustix::fs::fstat(&memory).map_err(|error| system("the job's memory")(error.into()))?;
    let job = Job::from_descriptor(memory)?;
    let agent = job.agent()?;
    let memory = (stat.st_dev, stat.st_ino);
    let Needs { key, links, reaches, placer } = match needs(&order) {
        Ok(needs) => needs,
        Err(missing) if is_in_vain(&missing, &order, &agent) => return Err(end_job(&order, &agent, missing)),
        Err(missing) => return Err(Failed::Unavailable(missing)),
    };
    let part = Part { order: &order, job: &job, memory, key, reaches, placer };
    match links {
        Links::Udp(mut udp, why) => {
            info!(job = order.job, why, "by UDP alone");
            run_over(part, agent, &mut *udp)
        }
        #[cfg(feature = "dpdk")]
        Links::Both(mut both) => run_over(part, agent, &mut *both),
        #[cfg(feature = "dpdk")]
        Links::Dpdk(mut dpdk, _number) => run_over(part, agent, &mut *dpdk),
    }
}

/// Ends the job on this host, since the agent lacks something.
fn end_job(order: &Order, agent: &Agent, missing: Unavailable) -> Failed {
    let own = order.hosts.own();
    match agent.end_job(&format!("{} ({})", own.name, own.address), &missing.to_string()) {
        Ok(()) => Failed::Ended(missing),
        Err(told) => {
            error!(job = order.job, error = %told, "the job cannot be told");
            Failed::Unavailable(missing)
        }
    }
}

fn system(what: &str) -> impl Fn(io::Error) -> Failed + use<> {
    let what = what.to_owned();
    move |source| Failed::System { what: what.clone(), source }
}

/// This host's part of the job, and how the others are reached.
struct Part<'j> {
    order: &'j Order,
    job: &'j Job,
    /// Device and inode of its memory.
    memory: (u64, u64),
    key: ClusterKey,
    reaches: Vec<Reach>,
    placer: Placer,
}

fn run_over(part: Part<'_>, agent: Agent, transport: &mut impl Transport) -> Result<u8, Failed> {
    let Part { order, job, memory: identity, key, reaches, placer } = part;
    let Order { job: name, hosts, run_dir, .. } = order.clone();
    let own = hosts.own().address;
    let host = HostId(hosts.index);
    let random = || random().map_err(system("random bytes"));
    let silence = Duration::from_millis(hosts.silence_ms);
    // A clock would not do: one that is set back, and a daemon that knows of no start before, and nobody would speak with this one.
    let boot = agent.number();
    let mut config = Config::new(session::HostId(hosts.index), boot, hosts.id, key, random()?);
    config.suite = match hosts.cipher {
        Cipher::Aes128Gcm => Suite::Aes128Gcm,
        Cipher::None => Suite::Checksum,
    };
    config.max_datagram = transport.facts().max_datagram;
    config.idle_timeout = config.idle_timeout.min(silence / 2);
    config.keep_alive = config.keep_alive.min(config.idle_timeout / 4);
    // Where one way is in vain, there has to be time for the other one.
    let ways = if reaches.iter().any(Reach::has_several_ways) { 4 } else { 2 };
    config.connect_timeout = config.connect_timeout.min(silence / ways);
    let setup = Setup { session: config, seed: random()?, reaches, segment: identity.1, silence };
    let since = Instant::now();
    // A job that was made without its hosts has no place for their names.
    for (index, of) in hosts.hosts.iter().enumerate().take(job.hosts().len()) {
        agent.name_host(index, &format!("{} ({})", of.name, of.address))?;
    }
    let memory = SegmentMemory::with_ranks(agent, host, job.hosts()).with_placer(placer);
    let mut relay = Relay::new(setup, memory, Time::ZERO);
    relay.name_hosts(hosts.hosts.iter().map(|host| host.name.clone()).collect());
    if hosts.transport == TransportChoice::Dpdk {
        relay.refuse_strangers();
    }
    if hosts.transport == TransportChoice::Rdma {
        relay.demand_rdma();
    }
    info!(job = name, %host, address = %own, boot, "the agent is here");
    // The daemon keeps the other end open as long as it knows of the job; after that, the job has ended when nobody is in it. If it
    // was the daemon that ended, the mark of the job is there, and programs that have no worker yet bring the job to the next one: no
    // worker could join after the host has left. A daemon may be away for as long as a host may be silent.
    let is_away = |worker: &WorkerInfo| matches!(worker.state, WorkerState::Remote | WorkerState::Dead);
    // Without the window, the job goes on; nobody can see how.
    let (run_dir, waker) = (RunDir::at(run_dir), transport.waker());
    let (window, questions) = match Window::open(order, boot, &run_dir, waker) {
        Ok((window, questions)) => (Some(window), questions),
        Err(error) => {
            warn!(job = name, %error, "nobody can ask the agent how it stands");
            (None, Questions::none())
        }
    };
    let is_kept = || window.as_ref().is_some_and(Window::is_kept);
    let nobody = || job.workers().is_ok_and(|workers| workers.iter().all(is_away));
    let is_marked =
        || JobMark::read(&run_dir, &name).is_ok_and(|mark| mark.is_some_and(|mark| mark.memory == identity));
    let mut alone_since = None;
    let stage = || {
        if !is_closed(io::stdout()) || is_kept() || !nobody() {
            alone_since = None;
            return Stage::Runs;
        }
        let alone = alone_since.get_or_insert_with(Instant::now).elapsed();
        match job.check_hosts() {
            Err(_) => Stage::GivenUp,
            Ok(()) if alone < silence && is_marked() => Stage::Waits,
            Ok(()) => Stage::Over,
        }
    };
    let served = serve(relay, transport, since, &questions, stage).map_err(system("the transport"));
    if let Some(window) = window {
        window.close(served.is_ok());
    }
    match served? {
        Some(failure) => {
            error!(job = name, %failure, "the job has ended");
            Ok(2)
        }
        None => Ok(0),
    }
}
