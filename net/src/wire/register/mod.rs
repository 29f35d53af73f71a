//! Registers: what a host says about itself to another, of which only the newest value counts.
mod codec;

use crate::types::{
    AreaId, Description, ElementType, GroupId, HostId, NameError, PeerFailed, Place, Version,
};

/// A register and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Register {
    /// How far the sender's workers are.
    Clock {
        /// The lowest clock of the sender's own workers.
        clock: u64,
        /// The lowest clock of all workers that it knows of.
        lowest: u64,
        /// How many groups of the sender the receiver has named in subscriptions, up to the first that the sender has not heard of.
        subscriptions: u32,
        /// How many groups the sender has named to the receiver (`node/named_groups.rs`).
        named: u32,
        /// The clock counts when the receiver has published these groups' states of these rounds of the sender.
        covers: Vec<(GroupId, u64)>,
        /// The sender's workers have also reached the clock after that, which counts when these are published.
        ahead: Option<Vec<(GroupId, u64)>>,
    },
    /// A host and a group of the receiver.
    Subscription(GroupId, Subscription),
    /// An area of a group to which the receiver subscribes, or `None` if it was deleted.
    Member(AreaId, Option<Description>),
    /// An area of the sender, for the directory; `None` if it was deleted.
    Name(AreaId, Option<Stated>),
    /// To the directory: how many areas of the sender were accepted before its or the directory's agent started.
    Restated(u32),
    /// The directory's answer to `Name`.
    Named(AreaId, Result<(), NameError>),
    /// To the directory: a name is looked up; `None` when the answer came. The index is used again.
    Lookup(u32, Option<Wanted>),
    /// The directory's answer to the `Lookup` of that serial.
    Found(u32, u64, Result<AreaId, NameError>),
    /// To the owner: another host asked for its area with another name, type or length, or for one that it keeps. From the
    /// directory, or, of a type or length, from that host.
    Conflict(AreaId, HostId, NameError),
    /// To the directory: the sender has heard nothing of a host for the time-out (`true`), or does again.
    Suspect(HostId, bool),
    /// The directory's decision: the job ends.
    Verdict(PeerFailed),
    /// The sender's workers and areas are gone, by its program's end.
    Left,
    /// A group of the sender: the answer to the receiver's last forced sync of it.
    Forced(GroupId, Forced),
    /// A group of the sender: there is no memory for the copies that the receiver would be sent, whose subscription says this
    /// state (the first number). The second one counts, as each is news.
    Unsent(GroupId, u64, u64),
    /// To who has copies of a group of the sender: it goes to another host. That one is subscribed to from now on.
    Moving(GroupId, Owner),
    /// To the next owner's host: the sender has left a group to it, which takes it when it has that state; `None` when it has answered.
    Handover(GroupId, Option<Left>),
    /// The answer to a hand-over of this epoch.
    Taken(GroupId, u64),
    /// From the sender's RDMA driver to the receiver's: where and how lines may be placed.
    Card(Vec<u8>),
    /// To the sender of a placed cut: where it may write the lines of each member that it has announced; `None` if it may not, and is to
    /// send them.
    Grant(GroupId, u64, Option<Vec<Place>>),
    /// To who has copies of an area of the sender: whether its owner has dropped it, so that nobody gives it.
    Ownerless(AreaId, bool),
    /// How workers of the sender stand to the job.
    Workers {
        /// The first of 64 ranks.
        first: u32,
        /// Those that have failed, a bit for each.
        failed: u64,
        /// Those that have left.
        left: u64,
    },
    /// No worker of the sender is left, and none will come.
    Deserted,
    /// To who has copies of an area of the sender, or created it: its owner has deleted it (`false`). Back from there: it is gone, and
    /// the directory has heard so (`true`).
    Deleted(AreaId, bool),
}

/// The host of a group's owner, as of one hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The host.
    pub host: HostId,
    /// Rises with each change of owner.
    pub epoch: u64,
}

/// A group that goes to another host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handover {
    /// The epoch of the new owner.
    pub epoch: u64,
    /// The worker that it is given to.
    pub rank: u32,
}

/// A group that was left to the next owner's host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// To whom, and as of which epoch.
    pub handover: Handover,
    /// The last state before the new owner's: the version of each member.
    pub versions: Vec<Version>,
}

/// A host's statement on an area of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// Its description.
    pub description: Description,
    /// The directory accepted it before.
    pub accepted: bool,
    /// Why other hosts cannot have it, if they cannot: its name is not taken by it.
    pub kept: Option<NameError>,
}

/// The area that is looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub name: String,
    /// The type that its elements have to have; any if `None`.
    pub element: Option<ElementType>,
    /// The bytes that it has to have; any number if `None`.
    pub bytes: Option<u64>,
    /// How often it was asked for before: who asks again is told again that there is none.
    pub asked: u32,
}

/// A subscriber's side of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// Counts the groups that the subscriber has named to this host since that one's agent started, from 1 on; set when it is sent.
    pub number: u32,
    /// Its progress with the last cut.
    pub stage: Stage,
    /// The last cut that it has dealt with; not one that is under way.
    pub cut: u64,
    /// The number of what it has published, for cuts to be relative to.
    pub state: u64,
    /// The owner's round of what it has published; 0 if that is not known.
    pub round: u64,
    /// The epoch of the owner to whom this is said, as far as it is known.
    pub epoch: u64,
    /// At least this long between the beginnings of cuts, in microseconds.
    pub interval_us: u64,
    /// The last forced sync that it asked for; they are counted.
    pub forced: u32,
    /// The version of each member with copies that it has published.
    pub have: Vec<Option<Version>>,
}

/// The answer to a forced sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forced {
    /// The last one that it answers.
    pub forced: u32,
    /// The subscriber has what it asked for when it has published this round of the owner; 0: it had it.
    pub round: u64,
    /// Whether that is what the owner had written when it was asked: not an older state, because of the subscriber's clocks.
    pub is_newest: bool,
    /// The owner could not publish.
    pub postponed: bool,
    /// It is no answer of an owner: a group that was left to this host has not been taken, so that what was left is the newest.
    pub is_not_taken: bool,
}

/// How far a subscriber is with the last cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// It does not subscribe any more.
    Off,
    /// It takes the next cut: all up to this one are published, or were given up.
    Free,
    /// This cut is complete and not published yet.
    Complete,
    /// This cut was refused, since an earlier one is complete and not published yet.
    Busy,
}

/// The name of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Key {
    Verdict,
    Clock,
    Left,
    Deserted,
    Restated,
    Suspect(HostId),
    Subscription(GroupId),
    Member(AreaId),
    Name(AreaId),
    Named(AreaId),
    Lookup(u32),
    Found(u32),
    /// The last is the type that was asked for, if the conflict is over that: each one is told.
    Conflict(AreaId, HostId, Option<ElementType>),
    Forced(GroupId),
    Unsent(GroupId),
    Moving(GroupId),
    Handover(GroupId),
    Taken(GroupId),
    Card,
    Grant(GroupId),
    Ownerless(AreaId),
    Workers(u32),
    Deleted(AreaId),
}

impl Register {
    /// The register that this is a value of.
    #[must_use]
    pub fn key(&self) -> Key {
        match self {
            Register::Clock { .. } => Key::Clock,
            Register::Subscription(group, _) => Key::Subscription(*group),
            Register::Member(area, _) => Key::Member(*area),
            Register::Name(area, _) => Key::Name(*area),
            Register::Restated(_) => Key::Restated,
            Register::Named(area, _) => Key::Named(*area),
            Register::Lookup(index, _) => Key::Lookup(*index),
            Register::Found(index, ..) => Key::Found(*index),
            Register::Conflict(area, host, error) => {
                let asked = if let NameError::Type { here, .. } = error { Some(*here) } else { None };
                Key::Conflict(*area, *host, asked)
            }
            Register::Suspect(host, _) => Key::Suspect(*host),
            Register::Verdict(_) => Key::Verdict,
            Register::Left => Key::Left,
            Register::Deserted => Key::Deserted,
            Register::Forced(group, _) => Key::Forced(*group),
            Register::Unsent(group, ..) => Key::Unsent(*group),
            Register::Moving(group, _) => Key::Moving(*group),
            Register::Handover(group, _) => Key::Handover(*group),
            Register::Taken(group, _) => Key::Taken(*group),
            Register::Card(_) => Key::Card,
            Register::Grant(group, ..) => Key::Grant(*group),
            Register::Ownerless(area, _) => Key::Ownerless(*area),
            Register::Workers { first, .. } => Key::Workers(*first),
            Register::Deleted(area, _) => Key::Deleted(*area),
        }
    }
}
