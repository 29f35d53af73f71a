//! Events and actions of a node, its settings and its counters.
use super::Packet;
use crate::memory::{PinId, State};
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::types::{
    AreaId, Description, ElementType, GroupId, HelloError, HostId, MIN_PAYLOAD, NameError, PeerFailed, Place,
    Version,
};
use crate::wire::Wanted;

/// A node's settings for its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The job.
    pub job: u128,
    /// Which host this is.
    pub host: HostId,
    /// How many hosts the job has.
    pub hosts: u16,
    /// This host's shared memory.
    pub segment: u64,
    /// This agent; another one after each start.
    pub boot: u64,
    /// The most bytes of a packet, from 1100 to 65000.
    pub max_payload: usize,
    /// A host that has sent nothing for this long sends a sign of life.
    pub alive_ns: u64,
    /// A host that is silent for this long has failed. All hosts have as long to appear, too.
    pub silence_ns: u64,
    /// The smallest cut, in lines, that is placed where the link can do that; smaller ones are in packets.
    pub place_lines: u64,
    /// The most lines that are being placed at one peer at a time.
    pub place_most: u64,
    /// A planted error.
    #[cfg(feature = "mutants")]
    pub mutant: Option<Mutant>,
}

impl Config {
    /// The settings of one host of `hosts`: the smallest packets, a sign of life each second, failed after 30 s of silence.
    #[must_use]
    pub fn new(job: u128, host: HostId, hosts: u16, segment: u64, boot: u64) -> Config {
        Config {
            job,
            host,
            hosts,
            segment,
            boot,
            max_payload: MIN_PAYLOAD,
            alive_ns: 1_000_000_000,
            silence_ns: 30_000_000_000,
            place_lines: 64,
            place_most: 1 << 16,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

/// An event.
#[derive(Debug)]
pub enum Event<'b> {
    /// There is a link to a peer, whose agent has this number. All that comes until `Disconnected` is of that agent.
    Connected {
        /// Who.
        peer: HostId,
        /// Another one after each start of its agent.
        boot: u64,
    },
    /// The link is gone, with all that was on its way.
    Disconnected {
        /// Who.
        peer: HostId,
    },
    /// This many bytes may be sent from now on; the last packet may exceed them.
    Writable {
        /// Who.
        peer: HostId,
        /// Bytes.
        bytes: usize,
    },
    /// The most bytes of a packet to a peer, from 1100 to 65000; those of [`Config::max_payload`] again when it is
    /// connected again.
    Payload {
        /// Who.
        peer: HostId,
        /// Bytes.
        bytes: usize,
    },
    /// A packet was delivered to the peer's node.
    Acked {
        /// Who.
        peer: HostId,
        /// Its number.
        packet: u64,
    },
    /// A packet was probably lost.
    Lost {
        /// Who.
        peer: HostId,
        /// Its number.
        packet: u64,
    },
    /// A packet was received.
    Received {
        /// From whom.
        peer: HostId,
        /// All its bytes.
        packet: &'b [u8],
    },
    /// An area of this host: created, or there when the agent starts; then `accepted` says whether the directory has
    /// accepted its name.
    Created {
        /// The area.
        area: AreaId,
        /// Its description.
        description: Description,
        /// Whether [`Action::Accepted`] was done.
        accepted: bool,
        /// At least this long between the beginnings of cuts to one host; of a group, the shortest counts. States that clocks cover
        /// and those that are asked for do not wait for it.
        interval_us: u64,
    },
    /// An area of this host that others cannot have, since it has no reader copies: created, or there when the agent starts.
    Local {
        /// The area: alone in a group of its own.
        area: AreaId,
        /// Its description.
        description: Description,
        /// Whether [`Action::Accepted`] was done.
        accepted: bool,
    },
    /// Its owner deleted an area of this host.
    Deleted {
        /// The area.
        area: AreaId,
    },
    /// A round of this host published a state of one of its groups. Comes before the clocks of that round. When an agent
    /// starts, it is told the last states of the two newest labels, the older one first. What an area is created with is
    /// published, too.
    Published {
        /// The group.
        group: GroupId,
        /// Its state.
        state: State,
    },
    /// A round of this host published what was committed.
    Visible {
        /// The group.
        group: GroupId,
        /// The version of each member.
        versions: Vec<Version>,
    },
    /// A group of another host that an earlier agent received.
    Kept {
        /// The group.
        group: GroupId,
        /// The version of each member that is published here, in order, or has arrived, of what is sent on demand; `None` for those
        /// that were deleted.
        members: Vec<Option<(Description, Option<Version>)>>,
        /// Whether something is committed and not published.
        arrived: bool,
        /// At least this long between the beginnings of cuts.
        interval_us: u64,
    },
    /// The owner of a group of this host, or of a received one, as the memory has it: reported for each area when an agent starts,
    /// before the group's areas.
    Owner {
        /// The group.
        group: GroupId,
        /// The owner's host, as far as it is known.
        host: HostId,
        /// As it stands in the memory: it rises from 1 with each change of owner, also of those that no other host heard of, and
        /// already when the group is given, not only when it is left.
        epoch: u64,
        /// The worker that this host has left it to, if it is not known to have come there.
        given: Option<u32>,
        /// It is given to a worker of another host, and not left yet.
        leaving: bool,
    },
    /// A worker of this host has given a group to one of another.
    Given {
        /// The group.
        group: GroupId,
        /// The host of the other.
        to: HostId,
        /// The other's rank.
        rank: u32,
        /// Rises with each change of owner.
        epoch: u64,
    },
    /// The driver has a card for that of a peer, on a link beside this one.
    Card {
        /// Whose.
        peer: HostId,
        /// At most 255 bytes.
        card: Vec<u8>,
    },
    /// All placements at a peer up to this one are written: the memory that they were read from may change from now on.
    Wrote {
        /// Where.
        peer: HostId,
        /// Of [`Action::Place`].
        id: u64,
    },
    /// Whether lines can be placed at a peer ([`Action::Place`]) from now on. If not, what was to be placed there may have been or not,
    /// and nothing more of it will be.
    Places {
        /// Where.
        peer: HostId,
        /// Whether they can.
        can: bool,
    },
    /// All that a peer placed up to the last line of a cut is in this host's memory.
    Placed {
        /// Who.
        peer: HostId,
        /// The lower bits of the cut's number.
        cut: u32,
    },
    /// The owner of an area of this host has dropped it or has failed, so that nobody gives it, or there is one again. When an agent starts, it is
    /// told of those that were dropped.
    Ownerless {
        /// The area.
        area: AreaId,
        /// Whether nobody owns it.
        is: bool,
    },
    /// How 64 workers of this host stand to the job. When an agent starts that is not the first one, it is told of all.
    Workers {
        /// The rank of the first of them.
        first: u32,
        /// Those that have failed, a bit for each.
        failed: u64,
        /// Those that have left.
        left: u64,
    },
    /// No worker of this host is left, and none will come: nobody here writes or reads any more. Each agent is told once.
    Deserted,
    /// All events from before the agent's start have been passed.
    Ready,
    /// The lowest clock of this host's workers, and the lowest of all that it knows, both as of one round.
    Clocks {
        /// Of its own.
        clock: u64,
        /// Of all.
        lowest: u64,
    },
    /// A worker attaches to a name.
    Attach {
        /// Names the answer.
        ticket: u64,
        /// The name or group that it looks for.
        wanted: Wanted,
        /// At least this long between the beginnings of cuts.
        interval_us: u64,
    },
    /// A worker of this host attached to an area of another host as one of such elements, and was refused.
    TakenFor {
        /// The area.
        area: AreaId,
        /// Elements that it does not have.
        element: ElementType,
    },
    /// Nobody here wants a group of another host any more.
    Detach {
        /// The group.
        group: GroupId,
    },
    /// A worker wants what a group of another host is now.
    Force {
        /// The group.
        group: GroupId,
        /// Rises with each, from 1 on.
        request: u32,
    },
    /// A round of this host has published what [`Memory::force`](crate::Memory::force) asked for. Comes after the events of what it published.
    Forced {
        /// The group.
        group: GroupId,
        /// It could not: the owner was not there, or there was no copy to publish into.
        postponed: bool,
    },
    /// This host's part of the program has ended; its areas are gone.
    Left,
    /// The time that [`Node::next_timeout`](super::Node::next_timeout) named has come.
    Timeout,
}

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Send a packet.
    Send(Packet),
    /// A peer's driver has sent a card.
    Card {
        /// Who.
        peer: HostId,
        /// It.
        card: Vec<u8>,
    },
    /// Write lines of a pinned state into a peer's memory, after all that was to be placed there before. When the last of a cut
    /// are there, the peer is to be told ([`Event::Placed`]).
    Place {
        /// Where.
        peer: HostId,
        /// By which it is named when it is done ([`Event::Wrote`]). Those of a peer rise.
        id: u64,
        /// The lower bits of the cut's number.
        cut: u32,
        /// The pinned copy that they are read from.
        pin: PinId,
        /// Which.
        lines: Vec<Placing>,
        /// Whether these are the last.
        is_last: bool,
    },
    /// The directory has accepted the name of an area of this host.
    Accepted {
        /// The area.
        area: AreaId,
    },
    /// The name of an area of this host was refused, or other hosts cannot have it. Not said of one that was accepted before.
    Refused {
        /// The area.
        area: AreaId,
        /// Why.
        error: NameError,
    },
    /// The answer to `Attach`: the area has data here, or why it has none.
    Attached {
        /// Whose answer it is.
        ticket: u64,
        /// The area.
        result: Result<AreaId, NameError>,
        /// Which area it would be, if the directory named one of another host.
        found: Option<AreaId>,
    },
    /// Another host asked for an area of this host as something else than it is, or wanted its name.
    Conflict {
        /// The area.
        area: AreaId,
        /// Who.
        by: HostId,
        /// The error that it was told.
        error: NameError,
    },
    /// The owner of an area that is received here has deleted it.
    Deleted {
        /// The area.
        area: AreaId,
    },
    /// A peer's hello was refused, by us or by it.
    PeerRefused {
        /// Who.
        peer: HostId,
        /// Why.
        error: HelloError,
    },
    /// The job ends.
    End(PeerFailed),
}

/// Lines in a row that are placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placing {
    /// The member of the pinned group.
    pub member: u16,
    /// The place of the area in the peer's memory.
    pub to: Place,
    /// Where in the area, here and there.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
}

/// Counts of events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Counters {
    /// Packets that cannot be decoded.
    pub malformed: u64,
    /// Frames that their sender may not send.
    pub violations: u64,
    pub cuts: u64,
    pub arrivals: u64,
    pub cuts_refused: u64,
    /// Cuts that were overtaken by the next one.
    pub cuts_overtaken: u64,
    /// Cuts that joined a train that was under way.
    pub cuts_joined: u64,
    /// Cuts that were sent ahead of their receivers' clocks.
    pub cuts_ahead: u64,
    /// Cuts that came before they could begin, and were kept.
    pub cuts_held: u64,
    /// Subscribers that got a later state in place of the last one of a label.
    pub skipped_labels: u64,
    /// States that could not be pinned.
    pub pins_refused: u64,
    pub lines_sent: u64,
    /// Lines that were placed, and not sent.
    pub lines_placed: u64,
    pub lines_resent: u64,
    pub lines_received: u64,
    /// Packets with lines of cuts that are over.
    pub stale_lines: u64,
    /// Groups that were given to workers of other hosts, and that came from there.
    pub left: u64,
    pub taken: u64,
    /// Areas of this host whose names the directory refused, or that have more or longer names than can be sent.
    pub names_refused: u64,
    /// Areas of other hosts that were refused because of one of this host, and questions for one of this host that is something
    /// else, or that other hosts cannot have.
    pub conflicts: u64,
}
