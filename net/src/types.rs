//! The terms of messages between hosts: hosts, groups of areas, versions, types.
use std::fmt;

/// A host of the job: its place in the job's list of hosts. Host 0 keeps the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u16);

impl HostId {
    /// The job's first host, which answers for names and decides deaths.
    pub const FIRST: HostId = HostId(0);
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", self.0)
    }
}

/// Areas that are published together. An area without a group is a group of one.
///
/// The host that creates it makes the number: its own in the upper 16 bits, and below them one that it never uses again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

impl GroupId {
    /// The group that `host` calls `serial`, of which the lower 48 bits count.
    #[must_use]
    pub fn new(host: HostId, serial: u64) -> GroupId {
        GroupId(u64::from(host.0) << 48 | serial & ((1 << 48) - 1))
    }

    /// The host that created it. Its areas may be given to another one later.
    #[must_use]
    pub fn home(self) -> HostId {
        HostId((self.0 >> 48) as u16)
    }
}

/// One area: a member of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AreaId {
    /// The group.
    pub group: GroupId,
    /// Its place in the group, in the order in which the group's areas were created.
    pub member: u16,
}

/// A version of an area, ordered by term, then counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version {
    /// Rises when ownership is taken over without consent.
    pub term: u64,
    /// Counts publications.
    pub counter: u64,
}

/// The type of an area's elements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementType {
    /// The kind of type.
    pub kind: u32,
    /// Bytes of an element.
    pub size: u32,
    /// Its alignment in bytes.
    pub align: u32,
}

/// The properties of an area that stay the same as long as it exists.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Description {
    /// Its name, of at most [`MAX_NAME`] bytes.
    pub name: String,
    /// The name of its group on its host, of as many; empty if it is in none.
    pub group: String,
    /// The type of its elements.
    pub element: ElementType,
    /// Bytes of all elements.
    pub bytes: u64,
    /// Elements of a row.
    pub row: u32,
    /// Whether a host is sent a state only when it asks, or its worker is given the area. Not in groups of several areas.
    pub on_demand: bool,
}

/// Bytes of a line, the unit in which changes are sent: that of the write log of areas.
pub const LINE: u64 = 64;
/// The most bytes of a name.
pub const MAX_NAME: usize = 255;
/// The most areas of a group that has subscribers: a subscription names the version of each and fits into the smallest
/// packet.
pub const MAX_MEMBERS: usize = 32;
/// The least bytes that a packet of any link can have.
pub const MIN_PAYLOAD: usize = 1100;

impl Description {
    /// Lines of the area; the last one may be short.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.bytes.div_ceil(LINE)
    }
}

/// Why a name is refused, on the host that asked and on the one that has the name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// Another host has an area of this name.
    #[error("an area of this name is on {by} already")]
    Taken {
        /// The host that has it.
        by: HostId,
    },
    /// The area's group has areas of another host.
    #[error("the area's group has areas of {by} already: all have their owners on one host")]
    Group {
        /// The host that has them.
        by: HostId,
    },
    /// The element types differ.
    #[error("the area's elements are {there:?} on its owner's host and {here:?} on {asked_by}")]
    Type {
        /// The owner's.
        there: ElementType,
        /// The type asked for.
        here: ElementType,
        /// The host that asked.
        asked_by: HostId,
    },
    /// The lengths differ.
    #[error("the area has {there} bytes on its owner's host and {here} on {asked_by}")]
    Length {
        /// The owner's.
        there: u64,
        /// The length asked for.
        here: u64,
        /// The host that asked.
        asked_by: HostId,
    },
    /// The host that asked could not make copies, for want of memory mostly.
    #[error("no copies of the area could be made")]
    Memory,
    /// The group has more areas than can be sent.
    #[error("only {by} has the area: its group has more than {} areas", MAX_MEMBERS)]
    Members {
        /// The host that has it.
        by: HostId,
    },
    /// The name, or that of the group, is too long.
    #[error("only {by} has the area: its name or that of its group is longer than {} bytes", MAX_NAME)]
    Long {
        /// The host that has it, or asked for it.
        by: HostId,
    },
    /// It has no reader copies.
    #[error("only {by} has the area: it has no reader copies")]
    Local {
        /// The host that has it.
        by: HostId,
    },
    /// Its owner's host has no memory for the copies that are sent.
    #[error("only {by} has the area: it has no memory for the copies that others are sent")]
    Unsent {
        /// The host that has it.
        by: HostId,
    },
    /// The area was deleted.
    #[error("the area was deleted by its owner")]
    Deleted,
    /// No host has an area of this name by now. Whoever asked is answered again when there is one.
    #[error("no host has an area of this name")]
    Unknown,
}

/// A host that is gone, and how that was found. The job ends with it, everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{host} failed: {cause}")]
pub struct PeerFailed {
    /// The host.
    pub host: HostId,
    /// Why it counts as failed.
    pub cause: Cause,
}

/// How a failure was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Cause {
    /// The one who decided heard nothing for the time-out.
    #[error("silent for longer than the time-out")]
    Silent,
    /// Another host heard nothing of it for the time-out.
    #[error("{from} heard nothing of it for the time-out")]
    Unreachable {
        /// The host that said so.
        from: HostId,
    },
    /// It is not of this job, or speaks another version.
    #[error("{from} refused it: {why}")]
    Refused {
        /// The host that refused it.
        from: HostId,
        /// Why.
        why: HelloError,
    },
}

/// Why a host that says hello is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HelloError {
    /// It speaks another version of the protocol.
    #[error("it speaks version {theirs} of the protocol, not {ours}")]
    Version {
        /// Its version.
        theirs: u16,
        /// The version of who refused it.
        ours: u16,
    },
    /// It is of another job.
    #[error("it is of another job")]
    Job,
    /// It says it is another host than the one at this address.
    #[error("it says that it is {says}")]
    Host {
        /// The host whose statement it is.
        says: HostId,
    },
    /// Its shared memory is another one than before: what was known of its areas is void.
    #[error("its shared memory was created again")]
    Segment,
}

/// The place where a peer's driver writes lines of an area itself: what its link needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The address of the area's first byte.
    pub address: u64,
    /// The key that opens it.
    pub key: u32,
}
