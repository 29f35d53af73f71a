//! Why the daemon does not do what it is asked.
use serde::{Deserialize, Serialize};

/// Why a request was not granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    /// The message has another version of the protocol; the frame of the reply says which one the daemon has.
    #[error("the daemon speaks version {daemon} of the protocol")]
    Version {
        /// The daemon's version.
        daemon: u16,
    },
    /// The message is none.
    #[error("the daemon could not read the request: {what}")]
    Malformed {
        /// The fault in it, in words.
        what: String,
    },
    /// There is no such job.
    #[error("there is no job {job:?}; `hectare jobs` lists them")]
    NoSuchJob {
        /// The job.
        job: String,
    },
    /// A job of this name exists.
    #[error("job {job:?} exists already")]
    JobExists {
        /// The job.
        job: String,
    },
    /// The job still has members.
    #[error("job {job:?} has {members} members; wait for them or remove it with --force")]
    JobInUse {
        /// The job.
        job: String,
        /// Processes that are members.
        members: u32,
    },
    /// The name cannot be one of a job.
    #[error("invalid job name {job:?}: {why}")]
    InvalidName {
        /// The name.
        job: String,
        /// The rule that it breaks.
        why: String,
    },
    /// A quota of the job or of the daemon.
    #[error("quota exceeded: {asked} {what} asked for, {limit} allowed by {by}")]
    Quota {
        /// The quantity.
        what: String,
        /// How much was asked for.
        asked: u64,
        /// How much there may be.
        limit: u64,
        /// The setting that says so.
        by: String,
    },
    /// Another member holds the rank.
    #[error("rank {rank} of job {job:?} is held by process {pid}")]
    RankTaken {
        /// The job.
        job: String,
        /// The rank asked for.
        rank: u32,
        /// The process that holds it.
        pid: u32,
    },
    /// The request is for members, or for connections that are not members yet.
    #[error("{what}")]
    UnexpectedRequest {
        /// The fault, in words.
        what: String,
    },
    /// The job's memory could not be made.
    #[error("job {job:?} could not be created: {what}")]
    NotCreated {
        /// The job.
        job: String,
        /// The error of the system.
        what: String,
    },
    /// The job of this name is not the one that the member brought.
    #[error(
        "the daemon has another job {job:?}, which was created while no daemon knew this one; the members of this one \
         keep its memory and go on without a daemon"
    )]
    OtherJob {
        /// The job.
        job: String,
    },
    /// The descriptor that a member brought is no memory of a job.
    #[error("job {job:?} cannot be taken over: {what}")]
    NotAdopted {
        /// The job.
        job: String,
        /// The fault in it, in words.
        what: String,
    },
    /// The hosts cannot be those of a job, or the agent of this one could not be started.
    #[error("job {job:?} cannot be on these hosts: {what}")]
    Hosts {
        /// The job.
        job: String,
        /// The fault, in words.
        what: String,
    },
}

impl Refusal {
    /// The cause in one word, for counters.
    pub fn cause(&self) -> &'static str {
        match self {
            Refusal::Version { .. } => "version",
            Refusal::Malformed { .. } => "malformed",
            Refusal::NoSuchJob { .. } => "no_such_job",
            Refusal::JobExists { .. } => "job_exists",
            Refusal::JobInUse { .. } => "job_in_use",
            Refusal::InvalidName { .. } => "invalid_name",
            Refusal::Quota { .. } => "quota",
            Refusal::RankTaken { .. } => "rank_taken",
            Refusal::UnexpectedRequest { .. } => "unexpected_request",
            Refusal::NotCreated { .. } => "not_created",
            Refusal::OtherJob { .. } => "other_job",
            Refusal::NotAdopted { .. } => "not_adopted",
            Refusal::Hosts { .. } => "hosts",
        }
    }
}
