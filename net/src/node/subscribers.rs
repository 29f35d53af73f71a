//! Groups of this host and who subscribes to them.
use super::outbound::{LABELS, Outbound};
use super::{Action, Cx, Node};
use crate::memory::State;
use crate::types::{AreaId, Description, GroupId, HostId, MAX_MEMBERS, MAX_NAME, NameError, Version};
use crate::wire::{Key, Register, Stage};

impl Node {
    /// An area of this host was created, or is there at the agent's start.
    pub(super) fn created(
        &mut self,
        cx: &mut Cx<'_>,
        area: AreaId,
        description: Description,
        accepted: bool,
    ) {
        let by = self.config.host;
        let kept = match () {
            () if usize::from(area.member) >= MAX_MEMBERS => Some(NameError::Members { by }),
            () if description.name.len().max(description.group.len()) > MAX_NAME => {
                Some(NameError::Long { by })
            }
            () => None,
        };
        if let Some(error) = kept {
            if !accepted {
                self.counters.names_refused += 1;
                cx.out.push(Action::Refused { area, error });
            }
            self.keep(area, description, accepted, error);
            return;
        }
        // Of what was there before the agent, it is told the newest labels.
        let young = || Outbound { is_young: self.ready, ..Outbound::default() };
        let outbound = self.outbound.entry(area.group).or_insert_with(young);
        let member = usize::from(area.member);
        if outbound.members.len() <= member {
            outbound.members.resize(member + 1, None);
        }
        outbound.members[member] = Some(description.clone());
        let subscribers: Vec<HostId> = outbound.subscribers.keys().copied().collect();
        for host in subscribers {
            self.tell(host, Register::Member(area, Some(description.clone())));
        }
        if area.group.home() == self.config.host {
            self.state_name(area, description, accepted, None);
        }
    }

    /// Other hosts cannot have an area of this host: those who ask for it are told why.
    pub(super) fn keep(&mut self, area: AreaId, description: Description, accepted: bool, why: NameError) {
        // Nobody can ask for a longer name, and the group is of no interest.
        if description.name.len() <= MAX_NAME {
            let description = Description { group: String::new(), ..description };
            self.state_name(area, description, accepted, Some(why));
        }
    }

    /// Sets the interval of an area of this host.
    pub(super) fn set_interval(&mut self, area: AreaId, interval_us: u64) {
        let Some(outbound) = self.outbound.get_mut(&area.group) else { return };
        let member = usize::from(area.member);
        if outbound.intervals_us.len() <= member {
            outbound.intervals_us.resize(member + 1, u64::MAX);
        }
        outbound.intervals_us[member] = interval_us;
    }

    /// An area of this host was deleted by its owner.
    pub(super) fn deleted(&mut self, cx: &mut Cx<'_>, area: AreaId) {
        self.withdraw_name(area);
        let Some(outbound) = self.outbound.get_mut(&area.group) else { return };
        let member = outbound.members.get_mut(usize::from(area.member)).and_then(Option::take);
        if let Some(interval_us) = outbound.intervals_us.get_mut(usize::from(area.member)) {
            *interval_us = u64::MAX;
        }
        let subscribers: Vec<HostId> = outbound.subscribers.keys().copied().collect();
        let is_gone = outbound.members.iter().all(Option::is_none);
        // Cuts under way count its lines: they are made again without them.
        for &host in &subscribers {
            self.abandon_ride(cx, area.group, host);
        }
        if is_gone {
            self.lose_departed(area.group);
            for &host in &subscribers {
                self.unsubscribe(cx, area.group, host);
            }
            self.outbound.remove(&area.group);
        }
        for &host in &subscribers {
            // It may not have heard yet that there was one.
            self.tell(host, Register::Member(area, None));
        }
        if let Some(description) = member {
            self.begin_deletion(area, description.name, subscribers);
        }
    }

    /// A round of this host published a state.
    pub(super) fn published(&mut self, group: GroupId, state: State) {
        let Some(outbound) = self.outbound.get_mut(&group) else { return };
        if outbound.newest.as_ref().is_some_and(|newest| newest.round >= state.round) {
            return;
        }
        self.stirred.insert(group);
        outbound.labels.insert(state.label, state.round);
        while outbound.labels.len() > LABELS {
            outbound.labels.pop_first();
            outbound.is_young = false;
        }
        outbound.newest = Some(state);
    }

    /// How those stand who have copies of a group of this host, as they said last: what they do with which cut, and what they have
    /// published of each member.
    pub fn subscribers(
        &self,
        group: GroupId,
    ) -> impl Iterator<Item = (HostId, Stage, u64, &[Option<Version>])> {
        let all = self.outbound.get(&group).into_iter().flat_map(|outbound| &outbound.subscribers);
        all.map(|(host, subscriber)| {
            let said = &subscriber.said;
            (*host, said.stage, said.cut, said.have.as_slice())
        })
    }

    /// Ends the cut before the one under way if its receiver has dealt with it. If it has not published it, that one is for nothing, too:
    /// it would wait for it.
    pub(super) fn earlier_arrives(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
        let outbound = &self.outbound[&group];
        let subscriber = &outbound.subscribers[&host];
        let said = &subscriber.said;
        let Some(earlier) = &subscriber.earlier else { return };
        let round = outbound.trains[earlier.slot].as_ref().map_or(0, |train| train.pinned.state.round);
        match () {
            // By its round: with its versions alone, the clock that covers it does not count there.
            () if said.published() >= round || (said.stage == Stage::Complete && said.cut == earlier.cut) => {
                self.end_earlier(cx, group, host);
            }
            () if earlier.cut <= said.cut => self.abandon_ride(cx, group, host),
            () => {}
        }
    }

    /// A subscriber starts over: what it knew of a group, its members and answers, it has forgotten.
    pub(super) fn forget_members(&mut self, host: HostId, group: GroupId) {
        if let Some(peer) = self.peers.get_mut(&host) {
            peer.outbox.forget(|key| match key {
                Key::Member(area) | Key::Ownerless(area) => area.group == group,
                Key::Forced(of) | Key::Unsent(of) => *of == group,
                _ => false,
            });
        }
    }

    /// A host does not subscribe to a group any more.
    pub(super) fn unsubscribe(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
        self.get_off(cx, group, host, false);
        self.end_earlier(cx, group, host);
        let Some(outbound) = self.outbound.get_mut(&group) else { return };
        let was_here = outbound.subscribers.remove(&host).is_some();
        outbound.forcing.forget(host);
        if let Some(departed) = self.handovers.departed_mut(group) {
            departed.forget_question(host);
        }
        if was_here {
            cx.memory.unsubscribed(group, host);
        }
    }

    /// The agent of a host is another one: it subscribes again.
    pub(super) fn forget_subscriber(&mut self, cx: &mut Cx<'_>, host: HostId) {
        for group in self.groups_of(host) {
            self.unsubscribe(cx, group, host);
        }
    }

    /// No worker of a host is left: it subscribes to nothing any more, whatever it said before, but to what goes there. Nobody reads
    /// there what is sent, and hand-overs would wait for it.
    pub(super) fn on_deserted(&mut self, cx: &mut Cx<'_>, host: HostId) {
        if let Some(peer) = self.peers.get_mut(&host) {
            peer.deserted = true;
        }
        self.stirred.extend(self.handovers.offered_by(host));
        for group in self.groups_of(host) {
            if self.wants_nothing(host, group) {
                self.unsubscribe(cx, group, host);
                self.stirred.insert(group);
            }
        }
        self.stirred.extend(self.handovers.leaving());
    }

    /// Whether nobody on a host reads a group any more: no worker is left there, and the group does not go there.
    pub(super) fn wants_nothing(&self, host: HostId, group: GroupId) -> bool {
        self.is_deserted(host) && self.handovers.next_host(group) != Some(host)
    }

    /// Whether no worker of a host is left.
    pub(super) fn is_deserted(&self, host: HostId) -> bool {
        self.peers.get(&host).is_some_and(|peer| peer.deserted)
    }

    pub(super) fn groups_of(&self, host: HostId) -> Vec<GroupId> {
        let subscribed = |(group, outbound): (&GroupId, &Outbound)| {
            outbound.subscribers.contains_key(&host).then_some(*group)
        };
        self.outbound.iter().filter_map(subscribed).collect()
    }

    /// The groups of ours that `host` has copies of.
    pub(super) fn subscribed_by(&self, host: HostId) -> impl Iterator<Item = (GroupId, &Outbound)> {
        self.outbound
            .iter()
            .filter(move |(_, outbound)| outbound.subscribers.contains_key(&host))
            .map(|(group, outbound)| (*group, outbound))
    }

    /// Those of them that clocks cover.
    pub(super) fn covered_for(&self, host: HostId) -> impl Iterator<Item = (GroupId, &Outbound)> {
        self.subscribed_by(host).filter(|(_, outbound)| !outbound.is_on_demand())
    }

    /// Whether a host has still to get something: also what it cannot take yet, as its own clocks are not so far.
    pub(super) fn has_more(&self, host: HostId) -> bool {
        let waits = |outbound: &Outbound| {
            let subscriber = &outbound.subscribers[&host];
            let is_owed =
                !outbound.is_on_demand() || subscriber.wanted.is_some() || subscriber.asked.is_some();
            subscriber.ride.is_some() || (is_owed && outbound.lacks(host))
        };
        self.subscribed_by(host).any(|(_, outbound)| waits(outbound))
    }
}
