//! Requests of clients and replies of the daemon.
use crate::{JobHosts, JobSettings, Refusal};
use serde::{Deserialize, Serialize};

/// A request of a client. The order of the variants is part of the protocol: new ones go to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Request {
    /// Tests the connection. Answered by [`Reply::Pong`].
    Ping,
    /// Makes a job. Answered by [`Reply::Done`].
    Create {
        /// Its name.
        job: String,
        /// Its settings.
        settings: JobSettings,
        /// Whether the job remains when its last member has left.
        keep: bool,
    },
    /// Makes this connection a member of a job, which is made with the defaults if there is none.
    /// Answered by [`Reply::Attached`] with the descriptor of the job's memory.
    Attach {
        /// The job.
        job: String,
        /// The rank that the member wants; `None` for the lowest that is free.
        rank: Option<u32>,
    },
    /// One more rank for this member. Answered by [`Reply::Rank`].
    Rank,
    /// The descriptor of a job's memory, to look at it. Answered by [`Reply::Opened`].
    Open {
        /// The job.
        job: String,
    },
    /// The jobs whose names come after this one. Answered by [`Reply::Jobs`].
    Jobs {
        /// The last name of the page before; empty for the first page.
        after: String,
    },
    /// The members whose ids come after this one. Answered by [`Reply::Clients`].
    Clients {
        /// The last id of the page before; 0 for the first page.
        after: u64,
    },
    /// Forgets a job. Answered by [`Reply::Done`].
    Remove {
        /// The job.
        job: String,
        /// Whether to remove a job that has members. They keep its memory and go on among themselves.
        force: bool,
    },
    /// This member leaves its job: what its process does from now on is no death. No answer.
    Leave,
    /// Makes this connection a member of a job without a rank: the job, which is made with the defaults if
    /// there is none, stays as long as the connection. Answered by [`Reply::Done`].
    Hold {
        /// The job.
        job: String,
    },
    /// Answered by [`Reply::Done`] as soon as there is no such job.
    Wait {
        /// The job.
        job: String,
    },
    /// This connection's control page. Answered by [`Reply::Page`] with its descriptor.
    Page,
    /// Makes this connection a member of a job that an earlier daemon made, or again of one of this daemon's.
    /// Comes with the descriptor of the job's memory. Answered by [`Reply::Adopted`].
    Adopt {
        /// The job.
        job: String,
        /// Whether the job remains when its last member has left.
        keep: bool,
        /// The ranks that the member holds.
        ranks: Vec<u32>,
    },
    /// This rank for this member, too. Answered by [`Reply::Done`].
    RankAt {
        /// The rank.
        rank: u32,
    },
    /// The member does not want this rank. Answered by [`Reply::Done`].
    ReleaseRank {
        /// The rank.
        rank: u32,
    },
    /// Makes this host's part of a job that is on several, and starts its agent. Answered by [`Reply::Done`].
    CreateOnHosts {
        /// Its name.
        job: String,
        /// Its settings.
        settings: JobSettings,
        /// Whether the job remains when its last member has left.
        keep: bool,
        /// The hosts.
        hosts: Box<JobHosts>,
    },
}

/// One job of a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLine {
    /// Its name.
    pub job: String,
    /// Processes that are members.
    pub members: u32,
    /// Ranks that they hold.
    pub ranks: u32,
    /// Worker slots.
    pub max_workers: u32,
    /// Area slots.
    pub max_areas: u32,
    /// Address space for areas, in bytes.
    pub reserve_bytes: u64,
    /// Memory that the job takes now, in bytes.
    pub resident_bytes: u64,
    /// How long it exists, in seconds.
    pub age_s: u64,
    /// Whether the job remains when its last member has left.
    pub keep: bool,
    /// Members that died without leaving.
    pub deaths: u64,
}

/// One member of a job in a listing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientLine {
    /// The daemon's number of the connection.
    pub id: u64,
    /// The process.
    pub pid: u32,
    /// The job.
    pub job: String,
    /// How many ranks it holds.
    pub held: u32,
    /// The lowest 256 of the ranks that it holds.
    pub ranks: Vec<u32>,
    /// How long it is connected, in seconds.
    pub age_s: u64,
}

/// A reply of the daemon. The order of the variants is part of the protocol: new ones go to the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reply {
    /// The request was not granted.
    Refused(Refusal),
    /// It was done.
    Done,
    /// The daemon is here.
    Pong {
        /// Its process.
        pid: u32,
        /// Its release.
        release: String,
        /// How long it runs, in seconds.
        age_s: u64,
    },
    /// The connection is a member now; the descriptor comes with this message.
    Attached {
        /// The rank handed out.
        rank: u32,
        /// Whether the job was made by this request.
        created: bool,
    },
    /// One more rank.
    Rank {
        /// The rank handed out.
        rank: u32,
    },
    /// The descriptor comes with this message.
    Opened,
    /// A page of jobs, in the order of their names.
    Jobs {
        /// The jobs.
        jobs: Vec<JobLine>,
        /// Whether there are more.
        more: bool,
    },
    /// A page of members, in the order of their ids.
    Clients {
        /// The members.
        clients: Vec<ClientLine>,
        /// Whether there are more.
        more: bool,
    },
    /// The descriptor of the control page comes with this message.
    Page,
    /// The connection is a member of the job that it brought.
    Adopted {
        /// The ranks asked for that others hold by now.
        missing: Vec<u32>,
    },
}
