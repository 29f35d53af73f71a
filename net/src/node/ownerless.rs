//! Areas that their owners have dropped: nobody gives them, and who waits for that on other hosts is told.
use super::{Cx, Node};
use crate::types::{AreaId, GroupId, HostId};
use crate::wire::Register;
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

    pub(super) fn on_ownerless(&mut self, cx: &mut Cx<'_>, from: HostId, area: AreaId, is: bool) {
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

    /// A place was made for an area.
    pub(super) fn note_ownerless(&mut self, cx: &mut Cx<'_>, area: AreaId) {
        let inbound = self.inbound.get(&area.group);
        if inbound.is_some_and(|inbound| inbound.ownerless.members.contains(&area.member)) {
            cx.memory.ownerless(area, true);
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
