//! Errors: what happened, to which area or worker, and what to do.
//!
//! `Display` is whole: it says the cause, too, so that an error is printed with `{}`. `Debug` prints the same, since that
//! is how an error is printed that `main` returns. `Error::source` gives the cause for programs that look at it; who prints
//! all sources of an error prints the cause twice.
#[cfg(test)]
mod tests;
mod text;

use self::text::{has_failed, more_lines, of_host, panics_text, rounded};
use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// The number of a worker in its job.
pub type Rank = u32;

/// An error of the runtime core.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting of [`JobBuilder`](crate::JobBuilder) makes no sense.
    #[error("invalid job configuration: {what}")]
    InvalidConfig {
        /// The fault in it.
        what: String,
    },
    /// The descriptor does not belong to a job.
    #[error("not a job's segment: {what}; pass the descriptor that `Job::descriptor` returned")]
    NotASegment {
        /// The description of what was found instead.
        what: String,
    },
    /// The segment was made by another version of the library.
    #[error(
        "segment layout version {found}, this library has {expected}: link all processes of a job with one version"
    )]
    LayoutVersion {
        /// The version in the segment.
        found: u32,
        /// The version of this library.
        expected: u32,
    },
    /// The daemon refused, or could not be reached.
    #[error("job {job:?}: {source}")]
    Daemon {
        /// The job.
        job: String,
        /// The error of the daemon or of the way to it.
        source: hectare_wire::Error,
    },
    /// The variables of a launcher cannot be used.
    #[error(transparent)]
    Launch(#[from] hectare_wire::LaunchError),
    /// A system call failed.
    #[error("{call} failed: {source}")]
    Os {
        /// The call.
        call: &'static str,
        /// The system's error.
        source: std::io::Error,
    },
    /// A limit of this process stands in the way.
    #[error(
        "{what} is {asked} bytes, and this process has a limit of {limit} bytes (`{name}`): raise it, or let the job \
         reserve less (`JobBuilder::reserve`)"
    )]
    ProcessLimit {
        /// The change that would be beyond it.
        what: &'static str,
        /// Bytes asked for.
        asked: u64,
        /// The limit, in bytes (some shells take and print KiB).
        limit: u64,
        /// The limit's name in a shell.
        name: &'static str,
    },
    /// The process was forked after it mapped the job.
    #[error(
        "this process is a forked child of a worker's: it must open the job itself, by its name or descriptor"
    )]
    ForkedChild,
    /// Every worker slot is taken.
    #[error(
        "{asked} more workers asked for, but the job has {free} of {max} slots free: raise `max_workers` of the job, or, if it is on \
         several hosts, the number of ranks on this one"
    )]
    TooManyWorkers {
        /// How many workers were to be added.
        asked: usize,
        /// Free slots.
        free: usize,
        /// All slots.
        max: usize,
    },
    /// The job has no worker of this rank.
    #[error(
        "worker {rank} asked for, but the job has workers 0 to {}: raise `max_workers` of the job, or, if it is on several hosts, \
         the number of their ranks",
        max.saturating_sub(1)
    )]
    NoSuchRank {
        /// The rank.
        rank: Rank,
        /// All slots.
        max: usize,
    },
    /// Another live worker has the rank.
    #[error("rank {rank} is taken by a live worker (process {pid}): ask for another, or for any")]
    RankTaken {
        /// The rank asked for.
        rank: Rank,
        /// The process of the worker that has it.
        pid: u32,
    },
    /// Every observer slot is taken.
    #[error("all {max} observer slots are taken: raise `max_observers` of the job")]
    TooManyObservers {
        /// All slots.
        max: usize,
    },
    /// An observer holds too many pins at once.
    #[error("this observer holds {max} pins: drop some or raise `pins_per_observer` of the job")]
    TooManyPins {
        /// All pins of an observer.
        max: usize,
    },
    /// The job has an agent.
    #[error("the job has an agent (process {pid}): there is one at a time")]
    AgentTaken {
        /// The agent's process.
        pid: u32,
    },
    /// The agent may not pin the last copy that rounds can publish into.
    #[error(
        "no spare copy of area {name:?}: the agent pins {pinned} of {copies}, and rounds need the rest; give it more \
         reader copies, or wait until the pinned ones have been sent"
    )]
    NoSpareCopy {
        /// The area.
        name: String,
        /// Copies that the agent pins.
        pinned: usize,
        /// Reader copies.
        copies: usize,
    },
    /// Every area slot is taken.
    #[error("all {max} area slots are taken: delete areas or raise `max_areas` of the job")]
    TooManyAreas {
        /// All slots.
        max: usize,
    },
    /// An area or group name is not a path of non-empty parts.
    #[error("invalid area name {name:?}: {why}")]
    InvalidName {
        /// The name.
        name: String,
        /// The rule that it breaks.
        why: String,
    },
    /// An area of this name exists.
    #[error(
        "area {name:?} exists already ({holder}); attach to it, or claim or delete it if its owner is gone"
    )]
    NameTaken {
        /// The name.
        name: String,
        /// Its owner, or the worker that is creating it.
        holder: String,
    },
    /// Workers of two hosts have created areas of one name. The owner of each is told once, at a synchronization point, which has
    /// done what it does.
    #[error(
        "two hosts created an area {name:?}, {here} and {host}: each uses its own, and all other hosts that of {}; create \
         it on one host and attach to it on the others, or give it two names",
        if *.is_known { here } else { host }
    )]
    NameClash {
        /// The name.
        name: String,
        /// This host.
        here: String,
        /// The other host.
        host: String,
        /// Whether the area of this host is the one that the other hosts know: the job's first host heard of it first.
        is_known: bool,
    },
    /// A group has areas of owners on two hosts. The owner of each is told once, at a synchronization point, which has done what
    /// it does.
    #[error(
        "group {group:?} has areas of two hosts, {here} (area {name:?}) and {host}: those of {} are unknown to all other \
         hosts, as the areas of a group have their owners on one host; create them on one host, or in two groups",
        if *.is_known { host } else { here }
    )]
    GroupClash {
        /// The area of this host.
        name: String,
        /// The group.
        group: String,
        /// This host.
        here: String,
        /// The other host.
        host: String,
        /// Whether the areas of this host are those that the other hosts know.
        is_known: bool,
    },
    /// A worker of another host attached to an area with elements of another type, and got [`Error::WrongType`]. The owner is
    /// told once of each host and type, at a synchronization point, which has done what it does.
    #[error(
        "a worker of host {host} attached to area {name:?} as elements of {asked}, but it was created with {found} on {here}: \
         use one type on all hosts; do they run the same program?"
    )]
    TypeClash {
        /// The area.
        name: String,
        /// This host.
        here: Box<str>,
        /// The other host.
        host: String,
        /// The type that the other host asked for.
        asked: Box<str>,
        /// The type that the area was created with.
        found: Box<str>,
    },
    /// Other hosts cannot have an area: who attaches to it there is told, and its owner, at a synchronization point, which has
    /// done what it does, if the area has reader copies.
    #[error("area {name:?} is of host {host} alone, {why}")]
    NotShared {
        /// The area.
        name: String,
        /// The host that has it.
        host: String,
        /// Why.
        why: Unshared,
    },
    /// An area of another host cannot be received here.
    #[error("area {name:?} of host {host} cannot be received on this one: {why}")]
    NotReceived {
        /// The area.
        name: String,
        /// The owner's host.
        host: String,
        /// The reason.
        why: String,
    },
    /// No area of this name exists.
    #[error("there is no area {name:?}: create it first, or wait for it with `Worker::attach_within`")]
    NoSuchArea {
        /// The name.
        name: String,
    },
    /// The area was deleted while this handle was attached.
    #[error("area {name:?} was deleted: attach again when there is a new one of this name")]
    Deleted {
        /// The name that it had.
        name: String,
    },
    /// There is not enough memory for the area.
    #[error(
        "area {name:?} needs {asked} bytes, {free} are free (limit {limit} bytes, set by {payer}): make it smaller or with \
         fewer copies, delete others, or raise the limit"
    )]
    OutOfMemory {
        /// The area.
        name: String,
        /// Bytes that the area needs, all copies and logs included.
        asked: u64,
        /// Bytes that were free.
        free: u64,
        /// The limit that binds.
        limit: u64,
        /// The holder of the limit: the host, a cgroup, or the job's reserved range.
        payer: String,
    },
    /// The area is longer than any can be.
    #[error(
        "area {name:?} of {len} elements of {size} bytes each is longer than any can be, which is {most} bytes: divide it into several \
         areas"
    )]
    AreaTooLong {
        /// The area.
        name: String,
        /// How many elements it was to have.
        len: usize,
        /// Bytes of an element.
        size: u32,
        /// Bytes that an area has at most, without copies and log.
        most: u64,
    },
    /// The area holds elements of another type.
    #[error(
        "area {name:?}{} holds elements of {found}, not of {asked}: attach with the type that it was created with",
        of_host(.host)
    )]
    WrongType {
        /// The area.
        name: String,
        /// Its owner's host, if that is another one.
        host: Option<String>,
        /// The type asked for.
        asked: String,
        /// The type that the area was created with.
        found: String,
    },
    /// An option of [`AreaSpec`](crate::AreaSpec) makes no sense.
    #[error("area {name:?}: {what}")]
    InvalidArea {
        /// The area.
        name: String,
        /// The fault.
        what: String,
    },
    /// A handle was used with a worker of another job.
    #[error("area {name:?} belongs to another job than this worker: use a worker of that job")]
    OtherJob {
        /// The area.
        name: String,
    },
    /// The area has no reader copies.
    #[error(
        "area {name:?} has no reader copy: only its owner can read it; create it with `copies(1)` or more"
    )]
    NoReaderCopy {
        /// The area.
        name: String,
    },
    /// The area is not lent to its readers.
    #[error("area {name:?} is not lent: only its owner may read the writer copy (now: {owner})")]
    NotLent {
        /// The area.
        name: String,
        /// The state of ownership.
        owner: String,
    },
    /// The area is not open to all.
    #[error("area {name:?} is not open: only its owner may read and write it (now: {owner})")]
    NotOpen {
        /// The area.
        name: String,
        /// The state of ownership.
        owner: String,
    },
    /// Tasks over areas in place cannot begin, or go on.
    #[error("worker {rank} cannot run tasks: {what}")]
    Tasks {
        /// The worker.
        rank: Rank,
        /// The setting or state that keeps it from them.
        what: String,
    },
    /// A worker has left a run of tasks before it had done all of its own, which others wait for.
    #[error("worker {rank} has left a run of tasks, and those that come after its own will not be done")]
    TaskLeft {
        /// The worker.
        rank: Rank,
    },
    /// The caller does not own the area (any more).
    #[error("worker {rank} does not own area {name:?} (now: {owner}): it must be given the area first")]
    NotOwner {
        /// The area.
        name: String,
        /// The worker that tried.
        rank: Rank,
        /// The state of ownership.
        owner: String,
    },
    /// The caller wants to take an area that it owns: nobody else can give it.
    #[error(
        "worker {rank} owns area {name:?} already: use what it owns, or let another worker take the area"
    )]
    AlreadyOwner {
        /// The area.
        name: String,
        /// The worker.
        rank: Rank,
    },
    /// A claim was refused because the owner is alive.
    #[error("area {name:?} cannot be claimed: worker {owner} owns it and is alive; let it give the area")]
    OwnerAlive {
        /// The area.
        name: String,
        /// Its owner.
        owner: Rank,
    },
    /// An area was to be claimed or deleted whose owner is on another host.
    #[error(
        "area {name:?} cannot be claimed or deleted here: its owner is a worker of host {host}; that can be done there, here it can \
         be read, and taken when it is given"
    )]
    OwnerElsewhere {
        /// The area.
        name: String,
        /// The owner's host.
        host: String,
    },
    /// An area that a worker of this host owns, or may claim, was to be written by the agent.
    #[error("area {name:?} has its owner on this host: nothing of it can arrive from another")]
    OwnerHere {
        /// The area.
        name: String,
    },
    /// The arrival is not newer than the published version.
    #[error(
        "version {version} of area {name:?} is not newer than {newest}, which is published here, or not of the term received"
    )]
    StaleArrival {
        /// The area.
        name: String,
        /// The version that was to arrive.
        version: String,
        /// The newest version here.
        newest: String,
    },
    /// Ownership was waited for, but whoever could have given it is gone.
    #[error(
        "area {name:?}{} will not be given to worker {rank}: its owner is gone{}; claim it{}",
        of_host(.host), has_failed(*failed), if .host.is_some() { " there" } else { "" }
    )]
    OwnerGone {
        /// The area.
        name: String,
        /// The host of who has dropped it or has failed, if that is another one.
        host: Option<String>,
        /// The worker of that host that has failed first, if any has: here it is not known which of them was the owner.
        failed: Option<Rank>,
        /// The worker that waits.
        rank: Rank,
    },
    /// There is no such worker.
    #[error("worker {rank} is not a live worker of this job")]
    NoSuchWorker {
        /// The rank asked for.
        rank: Rank,
    },
    /// The rank is of another host.
    #[error("worker {rank} belongs to host {host}, another host of this job: it cannot join here")]
    WorkerElsewhere {
        /// The rank asked for.
        rank: Rank,
        /// Its host.
        host: String,
    },
    /// An area was to be given to a worker of another host, and cannot leave this one.
    #[error("area {name:?} cannot go to worker {rank} of host {host}: {why}")]
    CannotLeave {
        /// The area.
        name: String,
        /// The worker that it was to be given to.
        rank: Rank,
        /// Its host.
        host: String,
        /// Why this area does not leave its host.
        why: String,
    },
    /// All workers of this host have left a job on several hosts, or its clocks, and the others go on without this one.
    #[error(
        "all workers of this host have left {job}, or its clocks, and the other hosts continue without this one: keep a worker in both as long as the host is needed"
    )]
    HostLeft {
        /// The job, as `job "NAME"`.
        job: String,
    },
    /// The job, which is on several hosts, has ended because one of them failed.
    #[error("the job has ended: host {host} has failed: {cause}")]
    PeerFailed {
        /// The host.
        host: String,
        /// How it was found to have failed.
        cause: String,
    },
    /// A worker was waited for whose process has failed, or has ended without joining the job.
    #[error("worker {rank} will not come: according to the launcher, its process has ended")]
    WorkerFailed {
        /// Its rank.
        rank: Rank,
    },
    /// A range lies outside the area.
    #[error("range {start}..{end} lies outside area {name:?} of {len} elements")]
    OutOfRange {
        /// The area.
        name: String,
        /// First element.
        start: usize,
        /// One past the last element.
        end: usize,
        /// Elements of the area.
        len: usize,
    },
    /// Under `HECTARE_CHECK=1`: the worker wrote to an area of its own through a raw pointer, and did not log that.
    /// Without the check it is published late or never. The call that returns this has done what it does, the
    /// publication of these writes included.
    #[error(
        "worker {rank} wrote elements {elements:?} (bytes {bytes:?}) of area {area:?} and did not log them{}: call \
         Owned::log (in C ha_log, ha_log_rows or ha_log_all) between the write and the next synchronization point, or \
         create the area with automatic tracking",
        more_lines(.bytes, *.lines)
    )]
    Unlogged {
        /// The area.
        area: String,
        /// Its owner, who wrote.
        rank: Rank,
        /// The first elements in a row that were found: those of whole lines of 64 bytes, of which some were written.
        elements: Range<usize>,
        /// The same in bytes.
        bytes: Range<usize>,
        /// How many lines of 64 bytes were found in all.
        lines: usize,
    },
    /// A wait ended without what it waited for.
    #[error("waited {} for {what}: {missing}", rounded(*.waited))]
    TimedOut {
        /// The event that was waited for.
        what: String,
        /// How long.
        waited: Duration,
        /// The ranks or processes that were missing.
        missing: String,
    },
    /// Workers panicked.
    #[error("{}", panics_text(.panics))]
    Panicked {
        /// Rank and message of each.
        panics: Vec<(Rank, String)>,
    },
    /// A worker failed to start.
    #[error("worker {rank} could not start: {source}")]
    Spawn {
        /// Its rank.
        rank: Rank,
        /// The system's error.
        source: std::io::Error,
    },
}

/// Why other hosts cannot have an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unshared {
    /// It has no reader copies.
    #[error("which created it without reader copies (`copies(0)`): create it there with `copies(1)` or more")]
    Local,
    /// Its group has more areas than are sent.
    #[error(
        "as the areas of its group that were created before it are as many as can be sent: make several groups"
    )]
    Members,
    /// Its name, or that of its group, is too long.
    #[error("as its name, or that of its group, is longer than 255 bytes: shorten it")]
    Length,
    /// Its host has no memory for the copies that others are sent.
    #[error("which has no memory for the copies that it would send (its log has the numbers): give it more")]
    Memory,
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The result of most calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;
