//! Questions to the agent of a job on several hosts, on its own host: by the daemon, and by commands that inspect.
//!
//! Each agent listens at a socket of its own in the run directory, so that it can be asked whether or not a daemon runs. Questions
//! and answers travel as those of the daemon do.
use crate::{Error, Received, Result, RunDir, Socket, decode, encode};
use fnv::FnvHasher;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::hash::Hasher;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The directory of the agents' sockets in the run directory.
const DIRECTORY: &str = "agents";
/// Before the name of a socket at which nobody listens yet.
const NEW: &str = ".";

/// A request to an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentRequest {
    /// The state of the agent and of its links to other hosts. Answered by [`AgentReply::Status`].
    Status,
    /// The agent runs as long as this connection is open, even while nobody is in the job. Answered by [`AgentReply::Stays`]; if it
    /// ends and is not to be started again, by [`AgentReply::EndsForGood`] before.
    Stay,
    /// The steps of versions of an area through this host, from the step of this number on. They are recorded from the first
    /// question on, for two seconds after the last. Answered by [`AgentReply::Trace`].
    Trace {
        /// The area.
        area: String,
        /// The number of the first step; 0 to begin with.
        after: u64,
    },
}

/// An agent's reply.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentReply {
    /// The state of the agent.
    Status(Box<AgentStatus>),
    /// The agent stays.
    Stays,
    /// The agent ends, and the job needs no other.
    EndsForGood,
    /// The steps.
    Trace(Box<TraceAnswer>),
    /// The agent's thread does not answer.
    Busy,
    /// The agent does not understand the request.
    Malformed {
        /// The fault in the request, in words.
        what: String,
    },
}

/// The state of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentStatus {
    /// The job.
    pub job: String,
    /// The process id of the agent.
    pub pid: u32,
    /// The index of this host among the job's.
    pub host: u16,
    /// The name of this host.
    pub name: String,
    /// The address at which the agent receives datagrams.
    pub address: SocketAddr,
    /// The number of the agent's start: each start of a job's agent on this host has a higher one.
    pub boot: u64,
    /// Time since the start, in milliseconds.
    pub age_ms: u64,
    /// How packets are to travel: the name of a [`TransportChoice`](crate::TransportChoice).
    pub transport: String,
    /// The address of the agent's DPDK port, if it has one.
    pub port: Option<SocketAddr>,
    /// Why the job has ended, if it has.
    pub failure: Option<String>,
    /// The other hosts.
    pub peers: Vec<PeerStanding>,
    /// The agent's counters since its start: a name, a cause or an empty text, and the value.
    pub counters: Vec<(String, String, u64)>,
}

/// The state of an agent's link to another host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerStanding {
    /// Its index among the job's hosts.
    pub host: u16,
    /// Its name.
    pub name: String,
    /// The address at which its agent receives datagrams.
    pub address: SocketAddr,
    /// The link of the session, or the one that is tried: `udp`, `dpdk` or `rdma`.
    pub link: String,
    /// The reason for that link.
    pub link_reason: String,
    /// Time since the session began or, without one, since the last one ended, in milliseconds.
    pub since_ms: u64,
    /// How many sessions there were.
    pub sessions: u64,
    /// Why the last session ended, or why there is none.
    pub reason: Option<String>,
    /// The session, if there is one.
    pub session: Option<SessionStanding>,
}

/// A session with another host. Counters begin with the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStanding {
    /// The number of the other agent's start.
    pub boot: u64,
    /// How packets are sealed: the name of a [`Cipher`](crate::Cipher).
    pub seal: String,
    /// Time since a packet was received, in milliseconds.
    pub heard_ms: u64,
    /// The smoothed round-trip time, in nanoseconds.
    pub round_trip_ns: u64,
    /// The shortest one, in nanoseconds.
    pub min_round_trip_ns: u64,
    /// The largest IP packet that the path is known to carry.
    pub path_mtu: u32,
    /// The congestion window, in bytes.
    pub window: u64,
    /// Bytes on the way.
    pub in_flight: u64,
    /// Packets that were sent.
    pub sent: u64,
    /// Bytes that were sent, without headers of UDP and IP.
    pub sent_bytes: u64,
    /// Packets that were received.
    pub received: u64,
    /// Bytes that were received, without headers of UDP and IP.
    pub received_bytes: u64,
    /// Packets with data that the other host acknowledged.
    pub acked: u64,
    /// Packets with data that were declared lost. Their contents are sent again.
    pub lost: u64,
    /// How often the window shrank.
    pub congestion_events: u64,
    /// Probes after nothing was acknowledged.
    pub probes: u64,
    /// How often the path began to drop large packets.
    pub black_holes: u64,
}

/// The steps of versions of an area through one host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceAnswer {
    /// The host of the area's owner; none if the agent knows of no such area.
    pub owner: Option<u16>,
    /// This host.
    pub host: u16,
    /// The names of all hosts.
    pub hosts: Vec<String>,
    /// The steps since the last answer, in the order in which they were noted.
    pub steps: Vec<TraceStep>,
    /// The place where the next answer begins.
    pub next: u64,
    /// Whether steps were dropped that nobody fetched in time.
    pub dropped: bool,
    /// The number of the agent's start: another one begins anew.
    pub boot: u64,
    /// The time by the agent's clock, as for the steps, in nanoseconds.
    pub now_ns: u64,
    /// The same moment by this host's clock, in nanoseconds since 1970. Clocks of hosts differ.
    pub unix_ns: u64,
}

/// One step of a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceStep {
    /// The version's term.
    pub term: u64,
    /// The version's counter.
    pub counter: u64,
    /// The step of the version.
    pub what: TraceWhat,
    /// The other host: the receiver, or the one that reports.
    pub host: Option<u16>,
    /// The time by the agent's clock, in nanoseconds.
    pub at_ns: u64,
    /// The end, for steps of several packets: the last packet.
    pub until_ns: u64,
    /// Packets.
    pub packets: u64,
    /// Bytes of the area in them.
    pub bytes: u64,
}

/// Steps of a version on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceWhat {
    /// A round published it on its owner's host. Noted of versions that are sent.
    Published,
    /// The agent there learned of it.
    PickedUp,
    /// Lines of it were sent to a host.
    Sent,
    /// A host reported that all of it has arrived.
    CompleteThere,
    /// A host reported that it is published there.
    VisibleThere,
    /// The first packet of it arrived.
    Begins,
    /// All of it arrived; it waits for a round.
    Complete,
    /// A round published it here.
    Visible,
}

/// The prefix of the names of a job's sockets: a number made of the job's name, which may be longer than an address.
fn name_of(job: &str) -> String {
    let mut hash = FnvHasher::default();
    hash.write(job.as_bytes());
    format!("{:016x}", hash.finish())
}

fn directory(dir: &RunDir) -> PathBuf {
    dir.path().join(DIRECTORY)
}

/// The same path through a descriptor of the directory: that is never too long for the address of a socket.
fn short(directory: &Path) -> Result<(OwnedFd, PathBuf)> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(directory, flags, Mode::empty())
        .map_err(|error| Error::os("opening the directory of agents", error))?;
    let path = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
    Ok((opened, path))
}

/// Listens for questions to the agent of `job` whose start has this number, in place of those before it.
///
/// # Errors
/// [`Error::Os`].
pub fn listen_as_agent(dir: &RunDir, job: &str, boot: u64) -> Result<(Socket, AgentSocket)> {
    let failed = |call| move |source| Error::Os { call, source };
    let directory = dir.make_inner(DIRECTORY).map_err(failed("making the directory of agents"))?;
    let name = format!("{}-{boot:016x}", name_of(job));
    // They were killed, or end now; those of higher numbers there cannot be.
    for other in sockets_of(dir, job) {
        let _ = std::fs::remove_file(directory.join(other));
    }
    let (_opened, short) = short(&directory)?;
    // Under its name it is never one that does not listen, as that of a dead agent does not (`remove_dead_agents`).
    let early = format!("{NEW}{name}");
    let _ = std::fs::remove_file(directory.join(&early));
    let socket = Socket::listen(&short.join(&early))?;
    let path = directory.join(name);
    std::fs::rename(directory.join(early), &path).map_err(failed("naming the socket of an agent"))?;
    Ok((socket, AgentSocket { file: file_at(&path), path }))
}

/// Listens again for an agent whose socket was removed, or that could not listen. `None` while another agent of a job of this name
/// listens: it may be that of a later job, whose place this is now.
///
/// # Errors
/// [`Error::Os`]; [`Error::NoDaemon`] and [`Error::RunDir`] where there is no run directory, or a wrong one.
pub fn listen_again_as_agent(dir: &RunDir, job: &str, boot: u64) -> Result<Option<(Socket, AgentSocket)>> {
    dir.check()?;
    if remove_dead_agents(dir, job) { Ok(None) } else { listen_as_agent(dir, job, boot).map(Some) }
}

/// The device and number of the file at a path.
fn file_at(path: &Path) -> Option<(u64, u64)> {
    let about = std::fs::symlink_metadata(path).ok()?;
    Some((about.dev(), about.ino()))
}

/// The names of sockets of agents of a job, in the order of their starts.
fn sockets_of(dir: &RunDir, job: &str) -> Vec<String> {
    let name = name_of(job) + "-";
    let mut all: Vec<String> = sockets(dir).filter(|other| other.starts_with(&name)).collect();
    all.sort();
    all
}

fn sockets(dir: &RunDir) -> impl Iterator<Item = String> {
    let entries = std::fs::read_dir(directory(dir)).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !name.starts_with(NEW))
}

/// The place of an agent's socket. Each start of an agent has one of its own; but the first agents of two jobs of one name have the
/// same, and the first may end when the second is there.
#[derive(Debug)]
pub struct AgentSocket {
    path: PathBuf,
    file: Option<(u64, u64)>,
}

impl AgentSocket {
    /// Whether it is still there.
    pub fn is_there(&self) -> bool {
        self.file.is_some() && file_at(&self.path) == self.file
    }

    /// Removes the socket.
    pub fn remove(&self) {
        // The next agent may have done so, and be there itself.
        if self.is_there() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// How long an agent may take to take a connection.
const STOPPED: Duration = Duration::from_millis(200);

/// Removes the sockets of agents of a job that were killed; whether one that lives is left.
pub fn remove_dead_agents(dir: &RunDir, job: &str) -> bool {
    remove_dead(dir, sockets_of(dir, job))
}

/// Removes the sockets of all agents that were killed.
pub fn remove_all_dead_agents(dir: &RunDir) {
    remove_dead(dir, sockets(dir).collect());
}

fn remove_dead(dir: &RunDir, names: Vec<String>) -> bool {
    let mut is_one_left = false;
    for name in names {
        let path = directory(dir).join(&name);
        let socket = AgentSocket { file: file_at(&path), path };
        // One that takes nobody in this time is stopped, not dead.
        match AgentConnection::at(dir, &name, Some(STOPPED)) {
            Ok(None) => socket.remove(),
            _ => is_one_left = true,
        }
    }
    is_one_left
}

/// Removes the directory of the agents' sockets, if none is there.
pub fn remove_agents(dir: &Path) {
    let _ = std::fs::remove_dir(dir.join(DIRECTORY));
}

/// A connection to an agent.
#[derive(Debug)]
pub struct AgentConnection {
    socket: Socket,
}

impl AgentConnection {
    /// Connects to the agent of a job; none if there is no agent. `limit` applies to each send and receive.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn open(dir: &RunDir, job: &str, limit: Option<Duration>) -> Result<Option<AgentConnection>> {
        for name in sockets_of(dir, job).iter().rev() {
            if let Some(agent) = AgentConnection::at(dir, name, limit)? {
                return Ok(Some(agent));
            }
        }
        Ok(None)
    }

    fn at(dir: &RunDir, name: &str, limit: Option<Duration>) -> Result<Option<AgentConnection>> {
        let (_opened, path) = short(&directory(dir))?;
        Ok(Socket::connect_within(&path.join(name), limit)?.map(|socket| AgentConnection { socket }))
    }

    /// Connects to all agents of a run directory.
    ///
    /// # Errors
    /// [`Error::RunDir`].
    pub fn all(dir: &RunDir, limit: Option<Duration>) -> Result<Vec<AgentConnection>> {
        dir.check()?;
        // One that ends meanwhile is none.
        Ok(sockets(dir).filter_map(|name| AgentConnection::at(dir, &name, limit).ok().flatten()).collect())
    }

    /// The agent's process.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn process(&self) -> Result<u32> {
        self.socket.peer_process()
    }

    /// Asks, and waits for the answer.
    ///
    /// # Errors
    /// [`Error::Closed`] if the agent ends meanwhile, [`Error::Os`] with `WouldBlock` if it does not answer in time.
    pub fn ask(&self, request: &AgentRequest) -> Result<AgentReply> {
        self.socket.send(&encode(request).map_err(Error::Frame)?, None)?;
        self.next()
    }

    /// The next answer.
    ///
    /// # Errors
    /// Those of [`AgentConnection::ask`].
    pub fn next(&self) -> Result<AgentReply> {
        match self.socket.receive()? {
            Received::Message(bytes, _) => {
                decode(&bytes).map_err(|error| Error::Answer { what: error.to_string() })
            }
            Received::TooLong => Err(Error::Answer { what: "it is too long".into() }),
            Received::Closed => Err(Error::Closed),
            Received::Nothing => Err(Error::os("waiting for the agent", rustix::io::Errno::AGAIN)),
        }
    }

    /// Ends the connection, also for a thread that waits for an answer.
    pub fn shut(&self) {
        self.socket.shut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_agents_keep_their_names() {
        assert_eq!(name_of("a"), "af63dc4c8601ec8c");
        assert_eq!(name_of("foobar"), "85944171f73967e8");
    }

    #[test]
    fn an_agent_is_found_by_its_job_however_long_the_names_are() {
        let top =
            std::env::temp_dir().join(format!("hectare-agents-{}-{}", std::process::id(), "x".repeat(90)));
        let dir = RunDir::at(&top);
        std::fs::create_dir_all(&top).unwrap();
        let job = "j".repeat(128);
        assert!(AgentConnection::open(&dir, &job, None).unwrap().is_none());
        let (killed, old) = listen_as_agent(&dir, &job, 1).unwrap();
        drop(killed);
        assert!(AgentConnection::open(&dir, &job, None).unwrap().is_none());
        assert!(!remove_dead_agents(&dir, "other"));
        assert_eq!(sockets_of(&dir, &job).len(), 1);
        assert!(!remove_dead_agents(&dir, &job));
        assert_eq!(sockets_of(&dir, &job).len(), 0);
        let (listener, place) = listen_as_agent(&dir, &job, 2).unwrap();
        let connection = AgentConnection::open(&dir, &job, None).unwrap().unwrap();
        let other = listener.accept().unwrap().unwrap();
        other.send(&encode(&AgentReply::Stays).unwrap(), None).unwrap();
        assert_eq!(connection.ask(&AgentRequest::Stay).unwrap(), AgentReply::Stays);
        assert!(AgentConnection::open(&dir, "other", None).unwrap().is_none());
        assert!(remove_dead_agents(&dir, &job));
        old.remove();
        assert!(AgentConnection::open(&dir, &job, None).unwrap().is_some(), "the other one's is still there");
        // The first agent of another job of that name, while the last one of the job before ends.
        let (_next, again) = listen_as_agent(&dir, &job, 2).unwrap();
        place.remove();
        assert!(AgentConnection::open(&dir, &job, None).unwrap().is_some(), "the next one's is still there");
        again.remove();
        remove_agents(dir.path());
        std::fs::remove_dir(&top).unwrap();
    }

    /// The daemon alone makes the run directory again, with the mode that it asks for.
    #[test]
    fn an_agent_does_not_make_the_run_directory() {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path().join("run"));
        let error = listen_as_agent(&dir, "j", 1).unwrap_err().to_string();
        assert!(error.contains("making the directory of agents") && !dir.path().exists(), "{error}");
        dir.make().unwrap();
        let _listens = listen_as_agent(&dir, "j", 1).unwrap();
        dir.check().unwrap();
    }

    #[test]
    fn an_agent_whose_socket_was_removed_listens_again_unless_its_place_is_taken() {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path().join("run"));
        dir.make().unwrap();
        let (_removed, place) = listen_as_agent(&dir, "j", 3).unwrap();
        assert!(place.is_there() && listen_again_as_agent(&dir, "j", 3).unwrap().is_none());
        std::fs::remove_dir_all(dir.path()).unwrap();
        assert!(!place.is_there());
        let without = listen_again_as_agent(&dir, "j", 3);
        assert!(matches!(without, Err(Error::NoDaemon { .. })), "{without:?}");
        dir.make().unwrap();
        // One of its predecessors was killed.
        drop(listen_as_agent(&dir, "j", 2).unwrap());
        let (_again, place) = listen_again_as_agent(&dir, "j", 3).unwrap().expect("nobody has its place");
        assert!(place.is_there() && AgentConnection::open(&dir, "j", None).unwrap().is_some());
        // That of a later job of the name.
        let (_later, _) = listen_as_agent(&dir, "j", 1).unwrap();
        assert!(!place.is_there() && listen_again_as_agent(&dir, "j", 3).unwrap().is_none());
    }

    #[test]
    fn sockets_of_the_dead_go_whatever_their_jobs_are() {
        let top = tempfile::tempdir().unwrap();
        let dir = RunDir::at(top.path());
        drop(listen_as_agent(&dir, "killed", 1).unwrap());
        let _lives = listen_as_agent(&dir, "lives", 1).unwrap();
        remove_all_dead_agents(&dir);
        assert_eq!(sockets(&dir).collect::<Vec<_>>(), sockets_of(&dir, "lives"));
        assert_eq!(sockets(&dir).count(), 1);
    }
}
