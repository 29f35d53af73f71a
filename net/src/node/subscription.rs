//! A subscriber says how it stands to a group of this host.
use super::outbound::Subscriber;
use super::{Cx, Mutant, Node};
use crate::types::{AreaId, GroupId, HostId};
use crate::wire::{Register, Stage, Subscription};

/// Whether a group of this host is on its way to another owner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    No,
    /// To one of the host that subscribes.
    ToSubscriber,
    /// To one of another host.
    Elsewhere,
}

impl Node {
    /// A host says how it stands to a group of ours.
    pub(super) fn on_subscription(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        group: GroupId,
        said: Subscription,
    ) {
        self.note_number(from, said.number);
        if said.stage == Stage::Off || self.wants_nothing(from, group) {
            self.handovers.forget_early(from, Some(group));
            self.unsubscribe(cx, group, from);
            self.stirred.insert(group);
            return;
        }
        self.note_epoch(cx, group, said.epoch);
        let left = match self.handovers.is_left(group) {
            false => Left::No,
            true if self.handovers.is_left_to(group, from) => Left::ToSubscriber,
            true => Left::Elsewhere,
        };
        // Until it has been taken, what is sent on demand can be had here.
        let is_gone = left == Left::Elsewhere
            && self.outbound.get(&group).is_none_or(|outbound| !outbound.is_on_demand());
        if (is_gone || !self.outbound.contains_key(&group)) && self.is_elsewhere(from, group, &said) {
            return;
        }
        if !self.outbound.contains_key(&group) {
            // Deleted, with all its members; or not ours. It may have been told before, and asked all the same.
            self.forget_members(from, group);
            for member in 0..said.have.len().max(1) {
                self.tell(from, Register::Member(AreaId { group, member: member as u16 }, None));
            }
            return;
        }
        let (cut, state) = (said.cut, said.state);
        let is_new = self.note_subscriber(cx, from, group, said, left);
        self.earlier_arrives(cx, group, from);
        self.compare_ride(cx, from, group, cut, state);
        if is_new {
            self.welcome(cx, from, group, left);
        }
        self.stirred.insert(group);
        self.clocks.stir(from);
    }

    /// A host has sent a subscription of this number, and those before it were named.
    fn note_number(&mut self, from: HostId, number: u32) {
        let first = if self.mutant(Mutant::LooseNumbers) { 1 } else { number };
        if let Some(peer) = self.peers.get_mut(&from)
            && peer.named.insert(first..=number)
        {
            self.clocks.stir(from);
            self.stirred.extend(self.handovers.leaving());
        }
    }

    /// Keeps what a subscriber says, and passes on what it asks for; whether it is a new one. The group is one of ours.
    fn note_subscriber(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        group: GroupId,
        said: Subscription,
        left: Left,
    ) -> bool {
        let outbound = self.outbound.get_mut(&group).expect("one of ours");
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
        if asks && !on_demand && left == Left::No {
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
        subscriber.said = said;
        if stage == Stage::Free && subscriber.credit.is_some_and(|credit| credit <= cut || is_anew) {
            subscriber.credit = None;
        }
        if asks && on_demand && left != Left::Elsewhere {
            subscriber.asked = Some(forced);
            outbound.showing += u32::from(!cx.memory.show(group));
        } else if forced == 0 {
            // Another host answered its earlier request, which may have reached this one late.
            (subscriber.asked, subscriber.wanted) = (None, None);
        }
        outbound.note_arrived(from);
        outbound.note_had_otherwise(from);
        if asks && on_demand && left == Left::Elsewhere {
            self.pass_question(cx, group, from, forced);
        }
        is_new
    }

    /// Ends the cut that is under way to a subscriber if that has it, and gives it up if the subscriber's areas are in another state than
    /// it was made for.
    fn compare_ride(&mut self, cx: &mut Cx<'_>, from: HostId, group: GroupId, cut: u64, state: u64) {
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
    }

    /// Tells a new subscriber of the group's members.
    fn welcome(&mut self, cx: &mut Cx<'_>, from: HostId, group: GroupId, left: Left) {
        // Of the subscription before, nothing will be said any more.
        self.abandon_ride(cx, group, from);
        self.forget_members(from, group);
        if left != Left::Elsewhere {
            self.tell_back(from, group);
        }
        let members: Vec<_> = self.outbound[&group].members.iter().cloned().enumerate().collect();
        for (member, description) in members {
            self.tell(from, Register::Member(AreaId { group, member: member as u16 }, description));
        }
        self.tell_ownerless(from, group);
        if left == Left::ToSubscriber {
            self.subscribe_there_again(group);
        }
    }
}
