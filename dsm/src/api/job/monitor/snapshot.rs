//! A snapshot of a job.
use crate::api::job::info::{Stats, WorkerState};
use crate::error::Rank;
use crate::protocol::publication::Version;
use std::time::Duration;

/// The state of a job at one moment; its parts are some microseconds apart.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Snapshot {
    /// The counters.
    pub stats: Stats,
    /// The round that is under way, or that comes next.
    pub round: u64,
    /// Whether a round waits for workers to arrive.
    pub waits: bool,
    /// Bytes of memory that the job takes.
    pub resident_bytes: u64,
    /// Bytes of address space for areas.
    pub reserve_bytes: u64,
    /// The workers, in the order of their ranks.
    pub workers: Vec<WorkerSnapshot>,
    /// The areas, in the order of their slots.
    pub areas: Vec<AreaSnapshot>,
    /// Areas beyond those that were asked for.
    pub areas_omitted: usize,
}

/// A worker at one moment. Its counters go on when another worker takes its rank.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerSnapshot {
    /// Its rank.
    pub rank: Rank,
    /// Its process, as that process sees its own id.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// Its state. [`WorkerState::Dead`] also if nobody has noticed yet, but `/proc` has no such thread;
    /// of a process in another PID namespace than the one who looks, only when another worker has noticed.
    pub state: WorkerState,
    /// Whether its process is stopped, as by SIGSTOP or a debugger; `false` of one in another PID namespace or on another host.
    pub stopped: bool,
    /// Whether a round waits for it at this moment.
    pub waited_for: bool,
    /// Whether it waits at this moment for something that may come from another host: a clock, a version, an area, a worker. Of a
    /// job on several hosts alone, and of this host's workers.
    pub waits: bool,
    /// The last round in which it stood at a synchronization point.
    pub last_round: u64,
    /// Its clock; that of its host if that is another one.
    pub clock: u64,
    /// The name of its host, and where that is, if it is not this one.
    pub host: Option<String>,
    /// How often a round was abandoned because of it.
    pub late: u64,
    /// Rounds that were completed with it.
    pub rounds: u64,
    /// Rounds that it waited in until they were abandoned.
    pub abandoned: u64,
    /// Rounds that it planned.
    pub planned: u64,
    /// Versions that it published, of whatever owner's areas.
    pub published: u64,
    /// Pieces of areas that it copied.
    pub chunks: u64,
    /// Bytes that it copied into reader copies.
    pub copied_bytes: u64,
}

/// An area at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AreaSnapshot {
    /// Its name.
    pub name: String,
    /// The element type, for people.
    pub element: String,
    /// Elements.
    pub len: u64,
    /// Bytes of one copy.
    pub bytes: u64,
    /// Reader copies.
    pub copies: u32,
    /// The rank that owns it or that it is on its way to; `None` if it can be claimed.
    pub owner: Option<Rank>,
    /// The newest published version; `None` without reader copies.
    pub version: Option<Version>,
    /// For how long the newest version may have differed from what the owner has: the time since a round last
    /// published it or found nothing to publish. If it is not `dirty`, nothing was written since. `None` without
    /// reader copies.
    pub age: Option<Duration>,
    /// Its interval.
    pub interval: Option<Duration>,
    /// Whether its owner wrote something that is not published.
    pub dirty: bool,
    /// Publications postponed because every copy was pinned, or because of its group.
    pub postponed: u64,
}
