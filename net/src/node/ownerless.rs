//! Areas that their owners have dropped: nobody gives them, and who waits for that on other hosts is told.
use super::{Cx, Node};
use crate::types::{AreaId, GroupId, HostId};
use crate::wire::{Key, Register};
use std::collections::{BTreeMap, BTreeSet};

/// Members of a received group that their owners have dropped.
#[derive(Debug, Default)]
pub(super) struct Ownerless {
    members: BTreeSet<u16>,
    /// As other hosts say it: one of them may own the group already, or next, before it is known here.
    elsewhere: BTreeMap<HostId, BTreeSet<u16>>,
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
            let elsewhere = inbound.ownerless.elsewhere.get(&from);
            inbound.ownerless.members.contains(&area.member)
                || elsewhere.is_some_and(|members| members.contains(&area.member))
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
        if self.moves_to(area.group, from) || self.is_foreign(area.group, from) {
            if let Some(inbound) = self.inbound.get_mut(&area.group) {
                set(inbound.ownerless.elsewhere.entry(from).or_default(), area.member, is);
            }
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

    /// A group is received from another host: what that has said of it counts now. It may come back to the host before without being told
    /// anew, if that never knew that it was left.
    pub(super) fn renew_ownerless(&mut self, cx: &mut Cx<'_>, group: GroupId, host_before: Option<HostId>) {
        let owner = self.owner_of(group);
        if host_before == Some(owner) {
            return self.note_ownerless(cx, group);
        }
        let Some(inbound) = self.inbound.get_mut(&group) else { return };
        let next = inbound.ownerless.elsewhere.remove(&owner).unwrap_or_default();
        let before = std::mem::replace(&mut inbound.ownerless.members, next);
        if let Some(host) = host_before {
            inbound.ownerless.elsewhere.insert(host, before.clone());
        }
        let now = &inbound.ownerless.members;
        for member in before.union(now).copied().filter(|member| usize::from(*member) < inbound.have.len()) {
            cx.memory.ownerless(AreaId { group, member }, now.contains(&member));
        }
    }
}

impl Ownerless {
    /// The agent of a host is another one, which says anew what it has to say.
    pub(super) fn forget(&mut self, host: HostId) {
        self.elsewhere.remove(&host);
    }
}

fn set(members: &mut BTreeSet<u16>, member: u16, is: bool) {
    match is {
        true => members.insert(member),
        false => members.remove(&member),
    };
}
