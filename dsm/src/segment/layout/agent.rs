//! The agent, which stands in for everybody on other hosts: its record in the header, and its line in the slot of an area.
use super::Padded;
use crate::memory::mutex::RobustMutex;
use crate::primitive::{AtomicU32, AtomicU64};
use crate::protocol::answers::Answers;
use crate::protocol::arrival::ArrivalRecord;
use crate::protocol::conflict::Conflicts;
use crate::protocol::doorbell::Doorbell;
use crate::protocol::force_request::ForceRequest;
use crate::protocol::viewed::Viewed;

/// The one agent of a job on this host.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct AgentRecord {
    /// Held by the agent's thread for as long as it is the agent; the kernel releases it on death.
    pub(crate) life: RobustMutex,
    pub(crate) pid: AtomicU32,
    /// When that process started, as `/proc` has it; 0 if its agent has ended in good order.
    pub(crate) started: AtomicU64,
    /// The PID namespace of `pid`.
    pub(crate) namespace: AtomicU64,
    /// How many agents there were. Written under `life`.
    pub(crate) incarnations: AtomicU64,
    /// The number of the agent that is there, or was when it died; 0: none. What it holds bears this number, so that
    /// nothing of a dead agent counts once there is another.
    pub(crate) attached: Padded<AtomicU64>,
    pub(crate) bell: Padded<AtomicU32>,
    /// 0: it rings for every publication.
    pub(crate) chooses: AtomicU32,
    /// Not 0: the agent waits for the end of a round.
    pub(crate) awaits_round: AtomicU32,
    /// The holdings of agents from this number on count.
    pub(crate) holding_from: AtomicU64,
    /// The last cut that is complete: see `protocol/arrival.rs`.
    pub(crate) cuts: Padded<AtomicU64>,
    /// As `WorkerRecord::creating`.
    pub(crate) creating: AtomicU32,
    /// The last number that an agent drew ([`Agent::draw`](crate::agent::Agent::draw)).
    pub(crate) drawn: AtomicU64,
    /// Why names that workers here wait for cannot be had.
    pub(crate) answers: Answers<16, ANSWER_WORDS>,
    /// Not 0: the other hosts are told that no worker of this one will come any more.
    pub(crate) deserted: AtomicU32,
    /// Rises with each change of a [`WorkerRecord::absent`](super::WorkerRecord::absent), and with each worker that joins or leaves.
    pub(crate) worker_changes: AtomicU32,
    /// How many [`Conflict`](crate::agent::Conflict)es workers of this host were told.
    pub(crate) conflicts: Padded<AtomicU64>,
}

/// Words of an answer: see `engine/refusal.rs`.
pub(crate) const ANSWER_WORDS: usize = 37;

impl AgentRecord {
    /// The way by which news come to the agent; `published` is [`SyncWords::published`](super::SyncWords).
    pub(crate) fn doorbell<'s>(&'s self, published: &'s AtomicU32) -> Doorbell<'s> {
        let AgentRecord { attached, bell, chooses, awaits_round, .. } = self;
        Doorbell { published, attached, bell, chooses, awaits_round }
    }
}

/// An area's words for the agent; only requests and views are written by others, too.
#[repr(C, align(128))]
#[derive(Debug)]
pub(crate) struct AgentLine {
    /// The number of the agent that uses the area: it is not freed meanwhile, though it may be deleted.
    pub(crate) used: AtomicU64,
    /// The arrivals, if the owner is on another host.
    pub(crate) arrival: ArrivalRecord,
    /// The note of agents on the area for those after them.
    pub(crate) note: [AtomicU64; 3],
    /// Not 0: whoever looks for the area's name finds nothing.
    pub(crate) hidden: AtomicU32,
    /// Not 0: other hosts have asked for it since it was lent last, if its owner is on this one.
    pub(crate) wanted_lent: AtomicU32,
    /// The requests of this host's workers, if the owner is on another host.
    pub(crate) request: ForceRequest,
    /// Who may read in place what has arrived.
    pub(crate) viewed: Viewed,
    /// The objections that its owner has not heard of yet.
    pub(crate) conflicts: Conflicts,
}
