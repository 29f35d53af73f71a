//! Ownership that moves from host to host by consent: a worker gives a group to a worker of another host.
//!
//! The giver's host publishes what was written, and sends it to all subscribers. All but the next owner's host then subscribe at the
//! next owner's host, which keeps these subscriptions until it is the owner. Then the giver's host leaves the group for good (`giving`),
//! and tells the next owner's host, which takes the group when it has the last state (`taking`). So there are never two hosts that
//! write, and the new owner's host knows all hosts with copies before it publishes anything.
use super::arrivals::Phase;
use super::giving::{Departed, Giving};
use super::{Cx, Mutant, Node};
use crate::types::{GroupId, HostId};
use crate::wire::{Handover, Key, Left, Owner, Register, Stage, Subscription};
use std::collections::{BTreeMap, BTreeSet};

/// The epoch of a group that never changed its owner.
const FIRST_EPOCH: u64 = 1;

/// Groups that are being handed over, and the owners of those that were.
#[derive(Debug, Default)]
pub(super) struct Handovers {
    /// The owners of groups that went from one host to another, as far as they are known.
    pub(super) owners: BTreeMap<GroupId, Owner>,
    /// Groups of this host that were given to others, until these have taken them.
    pub(super) giving: BTreeMap<GroupId, Giving>,
    /// Groups that are to come here. This host subscribes to them even if no worker wants them.
    pub(super) expected: BTreeSet<GroupId>,
    /// Groups that were left to this host and that it could not take yet.
    pub(super) offered: BTreeMap<GroupId, Offer>,
    /// Subscriptions to groups whose owners are not here yet.
    pub(super) early: BTreeMap<(GroupId, HostId), Subscription>,
    /// Groups that were left while the memory was asked to publish them: it says so still, and is asked again after that.
    pub(super) owed: BTreeSet<GroupId>,
}

/// A group that a host has left to this one.
#[derive(Debug)]
pub(super) struct Offer {
    pub(super) from: HostId,
    pub(super) left: Left,
    /// The last question of that host which was answered: this one had not taken the group.
    pub(super) answered: u32,
}

impl Handovers {
    /// The host of a group's owner, as far as it is known.
    pub(super) fn owner_of(&self, group: GroupId) -> HostId {
        self.owners.get(&group).map_or(group.home(), |owner| owner.host)
    }

    /// Whether nothing is on its way from this host.
    pub(super) fn are_done(&self) -> bool {
        self.giving.is_empty()
    }

    /// The groups that are to be left when all is told.
    pub(super) fn leaving(&self) -> impl Iterator<Item = GroupId> {
        self.giving.iter().filter(|(_, giving)| giving.departed.is_none()).map(|(group, _)| *group)
    }

    /// The groups that a host has left to this one.
    pub(super) fn offered_by(&self, host: HostId) -> impl Iterator<Item = GroupId> {
        self.offered.iter().filter(move |(_, offer)| offer.from == host).map(|(group, _)| *group)
    }

    /// The host of the worker that a group of this host was given to.
    pub(super) fn next_host(&self, group: GroupId) -> Option<HostId> {
        self.giving.get(&group).map(|giving| giving.to)
    }

    /// How a group that was left is received when it is taken.
    pub(super) fn departed_mut(&mut self, group: GroupId) -> Option<&mut Departed> {
        self.giving.get_mut(&group)?.departed.as_mut()
    }

    /// A group that was left, and has not been taken as far as is known.
    fn left(&self, group: GroupId) -> Option<&Giving> {
        self.giving.get(&group).filter(|giving| giving.departed.is_some())
    }

    /// Whether there is such a group.
    pub(super) fn is_left(&self, group: GroupId) -> bool {
        self.left(group).is_some()
    }

    /// Whether it was left to that host.
    pub(super) fn is_left_to(&self, group: GroupId, host: HostId) -> bool {
        self.left(group).is_some_and(|giving| giving.to == host)
    }

    /// As of which epoch a group was left.
    pub(super) fn left_epoch(&self, group: GroupId) -> Option<u64> {
        self.left(group).map(|giving| giving.handover.epoch)
    }

    /// The groups that were left to a host.
    pub(super) fn left_to(&self, host: HostId) -> impl Iterator<Item = GroupId> {
        let left = self.giving.iter().filter(move |(_, it)| it.to == host && it.departed.is_some());
        left.map(|(group, _)| *group)
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

    /// The memory says that it has published, for who asked before a group was left.
    pub(super) fn paid(&mut self, group: GroupId) {
        self.owed.remove(&group);
    }

    /// Those who subscribe to a group whose owner is not here.
    pub(super) fn early_hosts(&self, group: GroupId) -> impl Iterator<Item = HostId> {
        self.early.range((group, HostId(0))..=(group, HostId(u16::MAX))).map(|((_, host), _)| *host)
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

    pub(super) fn epoch_of(&self, group: GroupId) -> u64 {
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
            // Whether that one has taken it is to be seen.
            let departed = Some(Departed::new(self.new_inbound(0)));
            let handover = Handover { epoch: owner.epoch, rank };
            self.handovers.giving.insert(group, Giving { to: owner.host, handover, departed });
        }
    }

    /// Copies were made for a group, which may have moved before: it is kept with them where the owner is, for the next agent. That one
    /// would else subscribe at the group's home, and count clocks of the owner's host that cover what is not published here.
    pub(super) fn note_owner(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        if let Some(owner) = self.handovers.owners.get(&group) {
            cx.memory.moved(group, owner.host, owner.epoch);
        }
    }

    /// A group goes to another host: this one, or one at which it is to be subscribed to from now on.
    pub(super) fn on_moving(&mut self, cx: &mut Cx<'_>, from: HostId, group: GroupId, owner: Owner) {
        if owner.host != self.config.host && self.peers.get(&owner.host).is_none() {
            self.counters.violations += 1;
            return;
        }
        self.note_epoch(cx, group, owner.epoch);
        if owner.epoch <= self.epoch_of(group) || self.outbound.contains_key(&group) {
            return;
        }
        if owner.host == self.config.host {
            self.expect(cx, from, group, owner.epoch);
        } else if self.inbound.contains_key(&group) {
            self.move_to(cx, group, owner);
        } else {
            self.handovers.owners.insert(group, owner);
        }
    }

    /// A group is to come here from a host that gives it away, or has left it: it is subscribed to there.
    pub(super) fn expect(&mut self, cx: &mut Cx<'_>, from: HostId, group: GroupId, epoch: u64) {
        self.handovers.expected.insert(group);
        // Whoever gives it away owns it.
        let giver = Owner { host: from, epoch: epoch - 1 };
        if !self.inbound.contains_key(&group) {
            self.handovers.owners.insert(group, giver);
            self.subscribe(group, 0);
        } else if self.owner_of(group) != from || self.moves_elsewhere(group, giver) {
            self.move_to(cx, group, giver);
        } else if self.deserted {
            // The giver's host may have dropped the subscription, as nobody is left here.
            if let Some(peer) = self.peers.get_mut(&from) {
                peer.outbox.forget(|key| *key == Key::Subscription(group));
            }
            self.restate_subscription(group);
        }
    }

    /// Whether a group is to be subscribed to where an owner before this one was.
    fn moves_elsewhere(&self, group: GroupId, owner: Owner) -> bool {
        let moving = self.inbound.get(&group).and_then(|inbound| inbound.moving);
        moving.is_some_and(|moving| moving.host != owner.host && moving.epoch <= owner.epoch)
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
        // Of what is sent on demand, the next owner's host may say that what has arrived is the newest.
        let waits = matches!(inbound.phase, Phase::Arrived { .. }) && !inbound.is_on_demand();
        let Some(owner) = inbound.moving.filter(|_| !waits) else { return };
        // Cuts from there are dropped until it is known to know of this (`go_over`): so it is to make none yet.
        let said = Subscription { stage: Stage::Busy, cut: 0, round: 0, ..inbound.said(owner.epoch) };
        self.state_subscription(owner.host, group, said);
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
            inbound.requests.go_over();
        }
        self.last_state += 1;
        (inbound.state, inbound.first_state) = (self.last_state, self.last_state);
        inbound.phase = Phase::Idle;
        if inbound.partial.take().is_some() {
            cx.memory.restore(group);
        }
        self.drop_held(group);
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
        let is_left = self.handovers.is_left(group);
        let received = self.inbound.contains_key(&group) || is_left;
        if received {
            self.handovers.early.insert((group, from), said.clone());
            // The giver's subscription may be what it waits for to be taken.
            self.stirred.insert(group);
        }
        if is_left {
            // It is told when it has been taken there.
            return true;
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
}
