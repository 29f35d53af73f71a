//! The host's shared memory as the node uses it.
use crate::lines::{Lines, Run};
use crate::types::{AreaId, Description, GroupId, HostId, NameError, Place, Version};
use crate::wire::Handover;

/// A published state that stays as it is while it is pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PinId(pub u64);

/// A published state of a group: what one round left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The owner's round that published it. Rounds of a segment rise, from 1.
    pub round: u64,
    /// The lowest clock before that round, plus one; 0 outside of the clocks.
    pub label: u64,
    /// The version of each member.
    pub versions: Vec<Version>,
}

/// A state that was pinned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The pin; the same for the same state, however often it is pinned. The node counts.
    pub pin: PinId,
    /// The pinned state.
    pub state: State,
    /// When it was published, by the clock that the node is told.
    pub published_ns: u64,
}

/// A state that arrived whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The version of each member.
    pub versions: Vec<Version>,
    /// It is published in a round before which the lowest clock was at least this less one.
    pub label: u64,
    /// How long ago its owner's host published it, without the way here.
    pub age_ns: u64,
}

/// The shared memory of this host, as its agent sees it.
///
/// All of it is local and returns at once. The agent may end between any two calls; what the next one needs to know is in
/// the memory.
pub trait Memory {
    /// Pins the newest published state of a group of this host, or the last one of a label. `None` if it is not there any
    /// more, or if the pin would take the last free copy.
    ///
    /// The last state of the label before the newest is there until a state of the label after the newest is published:
    /// workers of other hosts may wait for it. If it had to be published over, since others than the agent have pinned all other
    /// copies, the next later state is pinned in its place.
    ///
    /// # Errors
    /// [`NameError::Unsent`] if this host has no memory for copies that can be pinned, which ends what attaches to the group.
    fn pin(&mut self, group: GroupId, label: Option<u64>) -> Result<Option<Pinned>, NameError>;

    /// Gives a pin back.
    fn unpin(&mut self, pin: PinId);

    /// Lines of a member that may differ between `base` and the pinned state; all if there is no base or it is of another
    /// term. Also those that were published after the pinned state by now: a receiver may have written some of these, of a later cut
    /// that it has given up (one that was ahead), and gets them back with the older state.
    fn changed(&mut self, pin: PinId, member: u16, base: Option<Version>) -> Lines;

    /// Takes memory for copies of an area of another host. Which version is in them, if the area was there before.
    ///
    /// # Errors
    /// [`NameError`] if there is none, which ends what attaches to it.
    fn reserve(&mut self, area: AreaId, description: &Description) -> Result<Option<Version>, NameError>;

    /// Restores all lines of a received group that were written and not published, and clears its log.
    fn restore(&mut self, group: GroupId);

    /// A cut of a received group begins, of these versions. Its lines follow; it may never be whole, and another begin.
    fn begin(&mut self, group: GroupId, versions: &[Version]);

    /// Marks the lines of a received area, then writes them. The area's last line may be short.
    fn write(&mut self, area: AreaId, run: Run, bytes: &[u8]);

    /// Lets the owner's host write the lines of a cut that has begun itself, once each is announced: where it may, for each of the first
    /// `members` of the group. `None` if it may not. The lines of an earlier cut of the same host may still be written meanwhile, but
    /// before those of this one.
    ///
    /// It may until [`placed`](Self::placed). When anything else comes to write or hand over the group, or it goes, none of its writes
    /// is seen any more, by whatever that takes.
    fn grant(&mut self, group: GroupId, to: HostId, members: usize) -> Option<Vec<Place>>;

    /// Marks lines of a received area that the owner's host writes itself from now on.
    fn announce(&mut self, area: AreaId, run: Run);

    /// All lines that were announced are written.
    fn placed(&mut self, group: GroupId);

    /// A state of a received group is whole: the next round that may publish it does. The node touches the group again when
    /// it was told that it is visible. False if it cannot be published: then the node lets the group go, and begins anew if it is
    /// to come here. What is published here already can be: its sender may have heard so, and have let it go.
    fn commit(&mut self, group: GroupId, arrival: Arrival) -> bool;

    /// Workers of a host have all reached a clock.
    fn set_clock(&mut self, host: HostId, clock: u64);

    /// A subscriber wants what a group of this host has, published now: a round that begins after this publishes it. To be
    /// answered with [`Event::Forced`](crate::Event::Forced), after the events of what that round published.
    fn force(&mut self, group: GroupId);

    /// A subscriber asks for what is published of a group of this host that is sent on demand. Publishes what is written and not
    /// published yet, if nobody writes it meanwhile, without a round of the workers. False if that is under way, or was done just now: then
    /// it is answered as [`force`](Self::force) is.
    fn show(&mut self, group: GroupId) -> bool;

    /// The answer to [`Event::Force`](crate::Event::Force) of this number and all before: what the subscriber asked for is
    /// published here, or, of what is sent on demand, committed. At `as_of_ns` that was all that the owner had written; it may have been older if there is none. `postponed`
    /// says that the owner could not publish.
    fn answer(&mut self, group: GroupId, request: u32, as_of_ns: Option<u64>, postponed: bool);

    /// Leaves a group of this host that a worker has given to one of another ([`Event::Given`](crate::Event::Given)), if these
    /// versions of its members are published and nothing newer is written: nobody of this host writes it from then on. That state is
    /// pinned and sent until the next owner's host has taken it ([`moved`](Self::moved)), by the next agent, too, which is told so
    /// ([`Event::Owner`](crate::Event::Owner)). False if it is not so far; then it is asked again, after what is published next or a
    /// while.
    fn leave(&mut self, group: GroupId, to: HostId, handover: Handover, versions: &[Version]) -> bool;

    /// Takes over a received group that was given to a worker of this host: as it is published here it is the worker's from now on. False if it cannot be yet; then it is asked again. The states that are published here are told
    /// afterwards, as of a group of this host.
    fn take(&mut self, group: GroupId, handover: Handover) -> bool;

    /// The owner of a received group, or of one that was left, is on that host by now, as of the hand-over of this epoch: it is
    /// received from there. What its last owner's host was let write ([`grant`](Self::grant)) is not that one's any more.
    fn moved(&mut self, group: GroupId, owner: HostId, epoch: u64);

    /// A host has no copies of a group of this host any more: nothing is sent or placed there but what is on its way.
    fn unsubscribed(&mut self, group: GroupId, host: HostId);

    /// The owner of a received area, which is on another host, has dropped it, so that nobody gives it; or there is one again.
    fn ownerless(&mut self, area: AreaId, is: bool);

    /// Of 64 workers from rank `first` on, those of `host` have failed, have left or are there, as the bits say; any that it says of
    /// another host's are nothing that it knows.
    fn workers(&mut self, host: HostId, first: u32, failed: u64, left: u64);

    /// An area of another host is gone, or nobody here wants its group any more.
    fn release(&mut self, group: GroupId);
}
