//! Areas that their owners have dropped: nobody will give them, and workers of other hosts that wait for them are told.
use super::{Cx, Mutant, Node};
use crate::types::{AreaId, GroupId, HostId};
use crate::wire::{Key, Register};
use std::collections::{BTreeMap, BTreeSet};

/// Members of a received group that their owners have dropped, as each host says it. That of the owner counts; another one may own the
/// group already, or next, before it is known here.
#[derive(Debug, Default)]
pub(super) struct Ownerless {
    said: BTreeMap<HostId, BTreeSet<u16>>,
}

impl Ownerless {
    fn by(&self, host: HostId) -> impl Iterator<Item = u16> {
        self.said.get(&host).into_iter().flatten().copied()
    }
}

impl Node {
    /// The owner of an area of this host has dropped it, or there is one again.
    pub(super) fn ownerless(&mut self, area: AreaId, is: bool) {
        let Some(outbound) = self.outbound.get_mut(&area.group) else { return };
        set(&mut outbound.ownerless, area.member, is);
        let subscribers: Vec<HostId> = outbound.subscribers.keys().copied().collect();
        for host in subscribers {
            self.tell(host, Register::Ownerless(area, is));
        }
    }

    /// A host subscribes again.
    pub(super) fn tell_ownerless(&mut self, host: HostId, group: GroupId) {
        let Some(outbound) = self.outbound.get(&group) else { return };
        for member in outbound.ownerless.clone() {
            self.tell(host, Register::Ownerless(AreaId { group, member }, true));
        }
    }

    pub(super) fn on_ownerless(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        serial: u64,
        area: AreaId,
        is: bool,
    ) {
        // Members are told again with each subscription, and then which of them have no owner: what is older was said to the
        // subscription before, and where it changed in between, that was said to nobody.
        if self.newest(from, Key::Member(area)) > serial {
            return;
        }
        self.set_ownerless(cx, from, area, is);
    }

    /// A member is told: what was said before of its owner was said to the subscription before.
    pub(super) fn begin_ownerless(&mut self, cx: &mut Cx<'_>, from: HostId, serial: u64, area: AreaId) {
        let ownerless = self.ownerless_mut(area.group);
        let is_known = ownerless.is_some_and(|it| it.by(from).any(|member| member == area.member));
        if is_known && self.newest(from, Key::Ownerless(area)) < serial {
            self.set_ownerless(cx, from, area, false);
        }
    }

    /// The newest serial of what a host has said.
    pub(super) fn newest(&self, from: HostId, key: Key) -> u64 {
        self.peers.get(&from).map_or(0, |peer| peer.inbox.newest(&key))
    }

    fn set_ownerless(&mut self, cx: &mut Cx<'_>, from: HostId, area: AreaId, is: bool) {
        let counts = !self.moves_to(area.group, from) && !self.is_foreign(area.group, from);
        let Some(ownerless) = self.ownerless_mut(area.group) else { return };
        set(ownerless.said.entry(from).or_default(), area.member, is);
        let inbound = self.inbound.get(&area.group).filter(|_| counts);
        if inbound.is_some_and(|inbound| usize::from(area.member) < inbound.have.len()) {
            cx.memory.ownerless(area, is);
        }
    }

    /// What is said of a group that is received, or of one that was left, by an owner after the next one: that may come before it is
    /// known here that the next one has taken it.
    fn ownerless_mut(&mut self, group: GroupId) -> Option<&mut Ownerless> {
        let is_kept = !self.mutant(Mutant::ForgetOwnerless);
        let left = self.handovers.departed_mut(group).filter(|_| is_kept).map(|left| &mut left.inbound);
        self.inbound.get_mut(&group).or(left).map(|inbound| &mut inbound.ownerless)
    }

    /// Places were made for members of a group.
    pub(super) fn note_ownerless(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let owner = self.owner_of(group);
        let Some(inbound) = self.inbound.get(&group) else { return };
        for member in inbound.ownerless.by(owner).filter(|member| usize::from(*member) < inbound.have.len()) {
            cx.memory.ownerless(AreaId { group, member }, true);
        }
    }

    /// A group is received from its owner's host, and was from that host before.
    pub(super) fn renew_ownerless(&mut self, cx: &mut Cx<'_>, group: GroupId, before: HostId) {
        self.note_owners(cx, group, before);
        self.note_ownerless(cx, group);
    }

    /// The agent of a host is another one, which says everything again.
    pub(super) fn forget_ownerless(&mut self, cx: &mut Cx<'_>, host: HostId) {
        let groups: Vec<GroupId> = self.inbound.keys().copied().collect();
        for group in groups {
            if self.owner_of(group) == host {
                self.note_owners(cx, group, host);
            }
            self.inbound.get_mut(&group).expect("just listed").ownerless.said.remove(&host);
        }
    }

    /// Takes back all that a host has said of areas without owner.
    fn note_owners(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
        let Some(inbound) = self.inbound.get(&group) else { return };
        for member in inbound.ownerless.by(host).filter(|member| usize::from(*member) < inbound.have.len()) {
            cx.memory.ownerless(AreaId { group, member }, false);
        }
    }
}

fn set(members: &mut BTreeSet<u16>, member: u16, is: bool) {
    match is {
        true => members.insert(member),
        false => members.remove(&member),
    };
}
