//! Groups of this host and who subscribes to them.
use super::outbound::{LABELS, Outbound, Subscriber};
use super::{Action, Cx, Mutant, Node};
use crate::memory::State;
use crate::types::{AreaId, Description, GroupId, HostId, MAX_MEMBERS, MAX_NAME, NameError, Version};
use crate::wire::{Key, Register, Stage, Subscription};

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

    /// A host says how it stands to a group of ours.
    pub(super) fn on_subscription(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        group: GroupId,
        said: Subscription,
    ) {
        let first = if self.mutant(Mutant::LooseNumbers) { 1 } else { said.number };
        if let Some(peer) = self.peers.get_mut(&from)
            && peer.named.insert(first..=said.number)
        {
            self.clocks.stir(from);
            self.stirred.extend(self.handovers.leaving());
        }
        if said.stage == Stage::Off || self.wants_nothing(from, group) {
            self.handovers.forget_early(from, Some(group));
            self.unsubscribe(cx, group, from);
            self.stirred.insert(group);
            return;
        }
        self.note_epoch(cx, group, said.epoch);
        let is_left = self.handovers.is_left(group);
        // Left to another host than the subscriber's. Until it has been taken, what is sent on demand can be had here.
        let is_left_elsewhere = is_left && !self.handovers.is_left_to(group, from);
        let is_gone =
            is_left_elsewhere && self.outbound.get(&group).is_none_or(|outbound| !outbound.is_on_demand());
        if (is_gone || !self.outbound.contains_key(&group)) && self.is_elsewhere(from, group, &said) {
            return;
        }
        let Some(outbound) = self.outbound.get_mut(&group) else {
            // Deleted, with all its members; or not ours. It may have been told before, and asked all the same.
            self.forget_members(from, group);
            for member in 0..said.have.len().max(1) {
                self.tell(from, Register::Member(AreaId { group, member: member as u16 }, None));
            }
            return;
        };
        let (stage, cut, forced) = (said.stage, said.cut, said.forced);
        let on_demand = outbound.is_on_demand();
        // One that has left and come back may not have been heard to leave; nothing is known there of the members.
        let is_new = outbound
            .subscribers
            .get(&from)
            .is_none_or(|subscriber| said.have.is_empty() && said.state != subscriber.said.state);
        let subscriber = outbound.subscribers.entry(from).or_insert_with(|| Subscriber::new(said.clone()));
        let asks = forced > subscriber.said.forced || (is_new && forced > 0);
        // The next owner's host has what is newest when it takes the group.
        if asks && !on_demand && !is_left {
            subscriber.hurry = true;
            if outbound.forcing.ask(from, forced) {
                cx.memory.force(group);
            }
        }
        let subscriber = outbound.subscribers.get_mut(&from).expect("just entered");
        if is_new {
            subscriber.since = self.clocks.own();
        }
        // Who has gone from host to host with the group restarts the count of its cuts.
        let is_anew = subscriber.ride.is_none() && said.state != subscriber.said.state;
        let state = said.state;
        subscriber.said = said;
        if stage == Stage::Free && subscriber.credit.is_some_and(|credit| credit <= cut || is_anew) {
            subscriber.credit = None;
        }
        if asks && on_demand && !is_left_elsewhere {
            subscriber.asked = Some(forced);
            outbound.showing += u32::from(!cx.memory.show(group));
        } else if forced == 0 {
            // Another host answered its earlier request, which may have reached this one late.
            (subscriber.asked, subscriber.wanted) = (None, None);
        }
        outbound.note_arrived(from);
        outbound.note_had_otherwise(from);
        if asks && on_demand && is_left_elsewhere {
            self.pass_question(cx, group, from, forced);
        }
        self.earlier_arrives(cx, group, from);
        let ride = self.outbound[&group].subscribers[&from].ride.as_ref();
        if ride.is_some_and(|ride| ride.cut <= cut) {
            self.get_off(cx, group, from, true);
        } else if ride.is_some_and(|ride| ride.base != state) {
            // It has published one that this cut has overtaken, and takes this one, too. Or it has subscribed again, or published what was
            // given up before: the cut was made for another state.
            let overtaken = self.outbound[&group].subscribers[&from].overtaken;
            if overtaken.is_none_or(|overtaken| cut < overtaken.first) {
                self.abandon_ride(cx, group, from);
            }
        }
        if is_new {
            // Of the subscription before, nothing will be said any more.
            self.abandon_ride(cx, group, from);
            self.forget_members(from, group);
            if !is_left_elsewhere {
                self.tell_back(from, group);
            }
            let members: Vec<_> = self.outbound[&group].members.iter().cloned().enumerate().collect();
            for (member, description) in members {
                self.tell(from, Register::Member(AreaId { group, member: member as u16 }, description));
            }
            self.tell_ownerless(from, group);
            if is_left && !is_left_elsewhere {
                self.subscribe_there_again(group);
            }
        }
        self.stirred.insert(group);
        self.clocks.stir(from);
    }

    /// Ends the cut before the one under way if its receiver has dealt with it. If it has not published it, that one is for nothing, too:
    /// it would wait for it.
    fn earlier_arrives(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
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
    fn forget_members(&mut self, host: HostId, group: GroupId) {
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
    fn wants_nothing(&self, host: HostId, group: GroupId) -> bool {
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
