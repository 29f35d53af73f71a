//! Areas that their owners have dropped: nobody gives them, and who waits for that on other hosts is told.
use super::{Cx, Node};
use crate::types::{AreaId, GroupId, HostId};
use crate::wire::{Key, Register};
use std::collections::BTreeSet;

/// Members of a received group that their owners have dropped.
#[derive(Debug, Default)]
pub(super) struct Ownerless {
    members: BTreeSet<u16>,
    /// As the next owner's host says it.
    next: BTreeSet<u16>,
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

    /// A host subscribes anew.
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
        // Members are told anew with each subscription, and then which of them have no owner: what is older was said to the
        // subscription before, and where it changed in between, that was said to nobody.
        if self.newest(from, Key::Member(area)) > serial {
            return;
        }
        self.set_ownerless(cx, from, area, is);
    }

    /// A member is told: what was said before of its owner was said to the subscription before.
    pub(super) fn begin_ownerless(&mut self, cx: &mut Cx<'_>, from: HostId, serial: u64, area: AreaId) {
        let is_known = self.inbound.get(&area.group).is_some_and(|inbound| {
            inbound.ownerless.members.contains(&area.member) || inbound.ownerless.next.contains(&area.member)
        });
        if is_known && self.newest(from, Key::Ownerless(area)) < serial {
            self.set_ownerless(cx, from, area, false);
        }
    }

    /// The newest serial of what a host has said.
    fn newest(&self, from: HostId, key: Key) -> u64 {
        self.peers.get(&from).map_or(0, |peer| peer.inbox.newest(&key))
    }

    fn set_ownerless(&mut self, cx: &mut Cx<'_>, from: HostId, area: AreaId, is: bool) {
        if self.moves_to(area.group, from) {
            let inbound = self.inbound.get_mut(&area.group).expect("it is received");
            return set(&mut inbound.ownerless.next, area.member, is);
        }
        if self.is_foreign(area.group, from) {
            return;
        }
        let Some(inbound) = self.inbound.get_mut(&area.group) else { return };
        set(&mut inbound.ownerless.members, area.member, is);
        if usize::from(area.member) < inbound.have.len() {
            cx.memory.ownerless(area, is);
        }
    }

    /// Places were made for members of a group.
    pub(super) fn note_ownerless(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let Some(inbound) = self.inbound.get(&group) else { return };
        for &member in
            inbound.ownerless.members.iter().filter(|member| usize::from(**member) < inbound.have.len())
        {
            cx.memory.ownerless(AreaId { group, member }, true);
        }
    }

    /// A group is received from another host, or from another agent, which says anew what it has to say: that of the next owner's host
    /// has, if that is who it is.
    pub(super) fn renew_ownerless(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let Some(inbound) = self.inbound.get_mut(&group) else { return };
        let next = std::mem::take(&mut inbound.ownerless.next);
        let before = std::mem::replace(&mut inbound.ownerless.members, next);
        let now = &inbound.ownerless.members;
        for member in before.union(now).copied().filter(|member| usize::from(*member) < inbound.have.len()) {
            cx.memory.ownerless(AreaId { group, member }, now.contains(&member));
        }
    }
}

fn set(members: &mut BTreeSet<u16>, member: u16, is: bool) {
    match is {
        true => members.insert(member),
        false => members.remove(&member),
    };
}
