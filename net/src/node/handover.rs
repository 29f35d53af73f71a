//! Ownership that goes from host to host, by consent: a worker gives a group to one of another host.
//!
//! The giver's host publishes what was written, and sends it to all who have copies. Each of them then subscribes at the next
//! owner's host, which has copies, too, and keeps such subscriptions until it is the owner. Last, the giver's host leaves the
//! group, for good, and says so to that host until it answers. So there is no time at which two hosts write, and whoever has
//! copies is known to the new owner's host before that publishes anything.
use super::arrivals::{Inbound, Phase};
use super::forced::Forcing;
use super::outbound::Outbound;
use super::{AGAIN_NS, Cx, Mutant, Node};
use crate::types::{AreaId, GroupId, HostId};
use crate::wire::{Handover, Key, Owner, Register, Stage, Subscription};
use std::collections::{BTreeMap, BTreeSet};

/// The epoch of a group that never changed its owner.
const FIRST_EPOCH: u64 = 1;

/// Groups on their way, and where those are that were.
#[derive(Debug, Default)]
pub(super) struct Handovers {
    /// The owners of groups that went from one host to another, as far as they are known.
    owners: BTreeMap<GroupId, Owner>,
    /// Groups of this host that were given to others and are not left yet.
    leaving: BTreeMap<GroupId, (HostId, Handover)>,
    /// Groups that were left, until the next owner's host has answered.
    left: BTreeMap<GroupId, (HostId, Handover)>,
    /// Groups that are to come here. They are subscribed to, whoever wants them.
    expected: BTreeSet<GroupId>,
    /// Groups that were left to this host and that it could not take yet.
    offered: BTreeMap<GroupId, (HostId, Handover)>,
    /// Subscriptions to groups whose owners are not here yet.
    early: BTreeMap<(GroupId, HostId), Subscription>,
    /// Groups that were left while the memory was asked to publish them: it says so still, and is asked again after that.
    owed: BTreeSet<GroupId>,
}

impl Handovers {
    /// The host of a group's owner, as far as it is known.
    pub(super) fn owner_of(&self, group: GroupId) -> HostId {
        self.owners.get(&group).map_or(group.home(), |owner| owner.host)
    }

    /// Whether nothing is on its way from this host.
    pub(super) fn are_done(&self) -> bool {
        self.leaving.is_empty() && self.left.is_empty()
    }

    /// The groups that are to be left when all is told.
    pub(super) fn leaving(&self) -> impl Iterator<Item = GroupId> {
        self.leaving.keys().copied()
    }

    /// The host of the worker that a group of this host was given to.
    pub(super) fn next_host(&self, group: GroupId) -> Option<HostId> {
        self.leaving.get(&group).map(|(to, _)| *to)
    }

    /// Whether a group is to come here.
    pub(super) fn expects(&self, group: GroupId) -> bool {
        self.expected.contains(&group)
    }

    /// A group that was to come here is deleted.
    pub(super) fn expect_no_more(&mut self, group: GroupId) {
        self.expected.remove(&group);
    }

    /// A group is not received any more that was on its way to an owner: that one is known as its owner.
    pub(super) fn follow(&mut self, group: GroupId, owner: Owner) {
        self.owners.insert(group, owner);
    }

    /// A group of this host is deleted.
    pub(super) fn forget(&mut self, group: GroupId) {
        self.leaving.remove(&group);
    }

    /// The memory says that it has published, for who asked before a group was left.
    pub(super) fn paid(&mut self, group: GroupId) {
        self.owed.remove(&group);
    }

    /// A host subscribes no more to a group that may not be here yet, or its agent is another one.
    pub(super) fn forget_early(&mut self, host: HostId, group: Option<GroupId>) {
        self.early.retain(|(of, by), _| *by != host || group.is_some_and(|group| group != *of));
    }
}

impl Node {
    /// The host of a group's owner, as far as it is known.
    pub(super) fn owner_of(&self, group: GroupId) -> HostId {
        self.handovers.owner_of(group)
    }

    fn epoch_of(&self, group: GroupId) -> u64 {
        self.handovers.owners.get(&group).map_or(0, |owner| owner.epoch)
    }

    /// Whether a frame of a group comes from another host than its owner's, as far as that is known. It is counted as a violation
    /// unless the group is one that changes its owner.
    pub(super) fn is_foreign(&mut self, group: GroupId, from: HostId) -> bool {
        let is_foreign = self.owner_of(group) != from;
        if is_foreign && !self.handovers.owners.contains_key(&group) && !self.moves_to(group, from) {
            self.counters.violations += 1;
        }
        is_foreign
    }

    /// Whether a group's next owner is on that host, which may not know yet that it is subscribed to. What it says is left: it
    /// says it again, to the subscription of a newer state (`go_over`).
    pub(super) fn moves_to(&self, group: GroupId, host: HostId) -> bool {
        self.inbound.get(&group).is_some_and(|it| it.moving.is_some_and(|owner| owner.host == host))
    }

    /// An agent before this one knew where the owner of a group is. What was given away has the next owner's epoch, and is here until
    /// it is left: if others were told that it is here under that one, they would not believe that the next owner has it.
    pub(super) fn known_owner(&mut self, group: GroupId, said: Owner, given: Option<u32>, leaving: bool) {
        let is_raised = leaving && !self.mutant(Mutant::RaisedOwner);
        let owner = Owner { epoch: said.epoch - u64::from(is_raised), ..said };
        if owner.epoch == FIRST_EPOCH {
            return;
        }
        self.handovers.owners.insert(group, owner);
        if let Some(rank) = given.filter(|_| owner.host != self.config.host) {
            self.offer(group, owner.host, Handover { epoch: owner.epoch, rank });
        }
    }

    /// Copies were made for a group, which may have moved before: it is kept with them where the owner is, for the next agent. That one
    /// would else subscribe at the group's home, and count clocks of the owner's host that cover what is not published here.
    pub(super) fn note_owner(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        if let Some(owner) = self.handovers.owners.get(&group) {
            cx.memory.moved(group, owner.host, owner.epoch);
        }
    }

    /// A worker of this host has given a group to one of another.
    pub(super) fn given(&mut self, group: GroupId, to: HostId, handover: Handover) {
        if !self.outbound.contains_key(&group) || self.peers.get(&to).is_none() {
            return;
        }
        self.handovers.leaving.insert(group, (to, handover));
        self.tell(to, Register::Moving(group, Owner { host: to, epoch: handover.epoch }));
        self.stirred.insert(group);
    }

    /// Leaves a group that was given away, if all who have copies are so far.
    pub(super) fn part(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let Some(&(to, handover)) = self.handovers.leaving.get(&group) else { return };
        let Some(outbound) = self.outbound.get(&group) else { return };
        let Some(newest) = &outbound.newest else { return };
        // Who looks up its name is sent here first.
        let mut members = (0..outbound.members.len()).map(|member| AreaId { group, member: member as u16 });
        if members.any(|area| self.is_unnamed(area)) {
            return;
        }
        // Those who ask for it are told where it is when it has gone: clocks cover nothing of it.
        let on_demand = outbound.is_on_demand();
        // Whether the next owner's host has all, others lack something, and who has all and is to go over.
        let (mut is_there, mut lags, mut moves, mut others) = (false, false, Vec::new(), Vec::new());
        for (&host, subscriber) in &outbound.subscribers {
            let said = &subscriber.said;
            let has_all = subscriber.ride.is_none()
                && said.stage == Stage::Free
                && !said.have.is_empty()
                && !said.have.contains(&None)
                && !outbound.lacks(host);
            if host == to {
                is_there = has_all || (on_demand && self.mutant(Mutant::BlindLeave));
            } else if on_demand {
                others.push(host);
            } else if has_all {
                moves.push(host);
            } else {
                lags = true;
            }
        }
        // The next owner's host knows of the group then, whatever becomes of its agent.
        if !is_there {
            return;
        }
        let versions = newest.versions.clone();
        let waits = lags || !moves.is_empty();
        for host in moves {
            self.tell(host, Register::Moving(group, Owner { host: to, epoch: handover.epoch }));
        }
        // Of one whose subscriptions an agent before this one knew, this one may not know yet.
        let waits = waits || self.peers.hosts().any(|host| !self.peers[&host].is_known_whole());
        if waits && !on_demand && !self.mutant(Mutant::HastyLeave) {
            return;
        }
        if !cx.memory.leave(group, to, handover, &versions) {
            self.alarms.insert((cx.now + AGAIN_NS, group));
            return;
        }
        self.counters.left += 1;
        self.handovers.leaving.remove(&group);
        for host in others {
            self.abandon_ride(cx, group, host);
            self.tell(host, Register::Moving(group, Owner { host: to, epoch: handover.epoch }));
            // Until it says that it has gone over, it is a subscriber here: the group may come back before that.
            let subscriber = &self.outbound[&group].subscribers[&host];
            let is_open = subscriber.asked.is_some() || subscriber.wanted.is_some();
            let forced = if is_open { subscriber.said.forced } else { 0 };
            let said = Subscription { forced, ..subscriber.said.clone() };
            self.handovers.early.insert((group, host), said);
        }
        let outbound = self.outbound.remove(&group).expect("just seen");
        if outbound.forcing.is_under_way() {
            self.handovers.owed.insert(group);
        }
        let mut inbound = self.new_inbound(0);
        inbound.told = outbound.members.into_iter().map(Some).collect();
        inbound.have = versions.into_iter().map(Some).collect();
        self.inbound.insert(group, inbound);
        self.handovers.owners.insert(group, Owner { host: to, epoch: handover.epoch });
        self.restate_subscription(group);
        self.offer(group, to, handover);
        self.clocks.stir_all();
    }

    fn offer(&mut self, group: GroupId, to: HostId, handover: Handover) {
        self.handovers.left.insert(group, (to, handover));
        self.offer_left(to, group);
    }

    /// Tells the next owner's host that a group was left to it, when that knows that this one subscribes: its clocks are to cover what
    /// its owner publishes from the beginning. It may have known before, when the group was there.
    pub(super) fn offer_left(&mut self, to: HostId, group: GroupId) {
        let Some(&(_, handover)) = self.handovers.left.get(&group).filter(|(host, _)| *host == to) else {
            return;
        };
        let is_known = self.peers.get(&to).is_some_and(|peer| peer.outbox.is_heard(Key::Subscription(group)));
        // Of one that was deleted, nothing is to be covered, nor of one that is sent on demand.
        if is_known || self.inbound.get(&group).is_none_or(Inbound::is_on_demand) {
            self.tell(to, Register::Handover(group, Some(handover)));
        }
    }

    /// A group goes to another host: this one, or one at which it is to be subscribed to from now on.
    pub(super) fn on_moving(&mut self, cx: &mut Cx<'_>, from: HostId, group: GroupId, owner: Owner) {
        if owner.host != self.config.host && self.peers.get(&owner.host).is_none() {
            self.counters.violations += 1;
            return;
        }
        if owner.epoch <= self.epoch_of(group) || self.outbound.contains_key(&group) {
            return;
        }
        if owner.host == self.config.host {
            self.handovers.expected.insert(group);
            // Whoever gives it away owns it.
            let giver = Owner { host: from, epoch: owner.epoch - 1 };
            if !self.inbound.contains_key(&group) {
                self.handovers.owners.insert(group, giver);
                self.subscribe(group, 0);
            } else if self.owner_of(group) != from {
                self.move_to(cx, group, giver);
            }
        } else if self.inbound.contains_key(&group) {
            self.move_to(cx, group, owner);
        } else {
            self.handovers.owners.insert(group, owner);
        }
    }

    /// Subscribes to a group at its next owner's host; later, if something is committed and not published.
    fn move_to(&mut self, cx: &mut Cx<'_>, group: GroupId, owner: Owner) {
        let question = self.next_question();
        let inbound = self.inbound.get_mut(&group).expect("it is received");
        if inbound.moving.is_none_or(|moving| moving.epoch <= owner.epoch) {
            if inbound.moving.is_none_or(|moving| moving.host != owner.host) {
                inbound.requests.ask_another(question);
            }
            inbound.moving = Some(owner);
        }
        self.go_ahead(cx, group);
    }

    /// Does what [`Node::move_to`] left for later, if it did and can be done.
    pub(super) fn go_ahead(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let Some(inbound) = self.inbound.get(&group) else { return };
        let Some(owner) = inbound.moving.filter(|_| !matches!(inbound.phase, Phase::Arrived { .. })) else {
            return;
        };
        // Cuts from there are dropped until it is known to know of this (`go_over`): so it is to make none yet.
        let said = Subscription { stage: Stage::Busy, cut: 0, round: 0, ..inbound.said() };
        if let Some(peer) = self.peers.get_mut(&owner.host)
            && peer.stated.insert(group)
        {
            self.clocks.stir(owner.host);
        }
        self.tell(owner.host, Register::Subscription(group, said));
        self.inbound.get_mut(&group).expect("just seen").asked.insert(owner.host);
        if self.peers.get(&owner.host).is_some_and(|peer| peer.outbox.is_heard(Key::Subscription(group))) {
            self.go_over(cx, owner.host, group);
        }
    }

    /// A host knows of a subscription: where that is the next owner's, the last one's is told that it is over. Not before, so that
    /// at each time a host knows of it by which the group has to go.
    pub(super) fn go_over(&mut self, cx: &mut Cx<'_>, host: HostId, group: GroupId) {
        let before = self.owner_of(group);
        let Some(inbound) = self.inbound.get_mut(&group) else { return };
        let is_whole = !matches!(inbound.phase, Phase::Arrived { .. });
        let Some(owner) = inbound.moving.filter(|owner| owner.host == host && is_whole) else { return };
        inbound.moving = None;
        (inbound.last_cut, inbound.ended_cut) = (0, 0);
        if before != owner.host {
            // Where it has come back to its last owner's host, or went from worker to worker there, that one's rounds go on. What another
            // one has is newer than all that clocks covered before.
            (inbound.round, inbound.floor) = (0, 0);
        }
        self.last_state += 1;
        (inbound.state, inbound.first_state) = (self.last_state, self.last_state);
        inbound.phase = Phase::Idle;
        inbound.requests.go_over();
        if inbound.partial.take().is_some() {
            cx.memory.restore(group);
        }
        self.drop_held(group);
        self.end_offer(group, owner.epoch);
        self.handovers.owners.insert(group, owner);
        cx.memory.moved(group, owner.host, owner.epoch);
        self.renew_ownerless(cx, group, before);
        self.restate_subscription(group);
        if let Some(mut inbound) = self.inbound.remove(&group) {
            inbound.asked.insert(before);
            self.unsubscribe_from(group, &inbound, Some(owner.host));
            inbound.asked.clear();
            self.inbound.insert(group, inbound);
        }
        self.answer_attached(cx, group);
        self.answer_wishes(cx, group);
    }

    /// A host subscribes to a group whose owner is not here: not yet, or not any more. Whether such a group is known.
    pub(super) fn is_elsewhere(&mut self, from: HostId, group: GroupId, said: &Subscription) -> bool {
        let owner = self.handovers.owners.get(&group).copied();
        let received = self.inbound.contains_key(&group);
        if received {
            self.handovers.early.insert((group, from), said.clone());
        }
        if let Some(owner) = owner.filter(|owner| owner.host != self.config.host && owner.host != from) {
            self.tell(from, Register::Moving(group, owner));
            return true;
        }
        received
    }

    /// A host subscribes again to a group of this one. It may have been told where that had gone before it came here again. The next
    /// owner's host was told what is newer.
    pub(super) fn tell_back(&mut self, host: HostId, group: GroupId) {
        if let Some(&owner) = self.handovers.owners.get(&group)
            && self.handovers.next_host(group) != Some(host)
        {
            self.tell(host, Register::Moving(group, owner));
        }
    }

    /// A host has left a group to this one.
    pub(super) fn on_handover(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        group: GroupId,
        handover: Option<Handover>,
    ) {
        let Some(handover) = handover else { return };
        if handover.epoch <= self.epoch_of(group) {
            self.tell(from, Register::Taken(group, handover.epoch));
            return;
        }
        self.handovers.offered.insert(group, (from, handover));
        self.take(cx, group);
    }

    /// Takes a group that was left to this host, if there is one and it can.
    pub(super) fn take(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let Some(&(from, handover)) = self.handovers.offered.get(&group) else { return };
        let epoch = handover.epoch;
        let Some(inbound) = self.inbound.get(&group) else {
            if !self.handovers.expects(group) {
                // It was deleted here, which its owner may do.
                self.handovers.offered.remove(&group);
                self.handovers.owners.insert(group, Owner { host: self.config.host, epoch });
                self.tell(from, Register::Taken(group, epoch));
                self.tell(from, Register::Member(AreaId { group, member: 0 }, None));
            }
            return;
        };
        let is_whole = !matches!(inbound.phase, Phase::Arrived { .. });
        // As it is here is all that was written.
        if is_whole && let Some(request) = self.inbound.get_mut(&group).and_then(|it| it.requests.take_all())
        {
            cx.memory.answer(group, request, Some(cx.now), false);
        }
        if !is_whole || !cx.memory.take(group, handover) {
            self.alarms.insert((cx.now + AGAIN_NS, group));
            return;
        }
        self.counters.taken += 1;
        self.handovers.offered.remove(&group);
        self.handovers.expected.remove(&group);
        self.end_offer(group, epoch);
        self.handovers.owners.insert(group, Owner { host: self.config.host, epoch });
        self.drop_held(group);
        let inbound = self.inbound.remove(&group).expect("just seen");
        // Its last owner's host knows of the subscription, and forgets it as it has left.
        for host in self.peers.hosts() {
            if let Some(peer) = self.peers.get_mut(&host) {
                peer.outbox.begin_anew(Key::Subscription(group));
            }
        }
        self.unsubscribe_from(group, &inbound, None);
        let members = inbound.told.into_iter().map(Option::flatten).collect::<Vec<_>>();
        let count = members.len() as u16;
        let forcing =
            if self.handovers.owed.remove(&group) { Forcing::under_way() } else { Forcing::default() };
        self.outbound.insert(group, Outbound { members, forcing, ..Outbound::default() });
        for member in 0..count {
            let area = AreaId { group, member };
            self.answer_lookups(cx, area, Ok(area));
        }
        let early = self.handovers.early.range((group, HostId(0))..=(group, HostId(u16::MAX)));
        let early: Vec<_> = early.map(|((_, host), said)| (*host, said.clone())).collect();
        for (host, said) in early {
            self.handovers.early.remove(&(group, host));
            self.on_subscription(cx, host, group, said);
        }
        self.tell(from, Register::Taken(group, epoch));
        self.clocks.recount_all();
        self.clocks.uncover(group);
    }

    /// A group has an owner as of this epoch: to whom it was left before, and whose answer did not come, is told so no more. A later
    /// agent of that host may not know that it has had it, and gone on.
    fn end_offer(&mut self, group: GroupId, epoch: u64) {
        if let Some(&(to, left)) = self.handovers.left.get(&group).filter(|(_, left)| left.epoch < epoch) {
            self.end_handover(to, group, left.epoch);
        }
    }

    fn end_handover(&mut self, to: HostId, group: GroupId, epoch: u64) {
        self.handovers.left.remove(&group);
        self.tell(to, Register::Handover(group, None));
        if let Some(peer) = self.peers.get_mut(&to) {
            // A later agent of it would wait for the group again.
            peer.outbox.withdraw(&Register::Moving(group, Owner { host: to, epoch }));
        }
    }

    /// The next owner's host has taken a group.
    pub(super) fn on_taken(&mut self, from: HostId, group: GroupId, epoch: u64) {
        if self.handovers.left.get(&group).is_some_and(|(to, it)| *to == from && it.epoch == epoch) {
            self.end_handover(from, group, epoch);
        }
    }
}
