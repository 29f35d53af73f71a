//! A group that a worker of this host gives to a worker of another: this host leaves it as soon as its last state is on its way there,
//! and goes on sending that state until the next owner's host has taken the group.
use super::arrivals::Inbound;
use super::outbound::Outbound;
use super::{AGAIN_NS, Cx, Mutant, Node};
use crate::types::{AreaId, GroupId, HostId};
use crate::wire::{Handover, Key, Left, Owner, Register, Stage, Subscription};
use std::collections::BTreeMap;

/// A group of this host that was given to a worker of another.
#[derive(Debug)]
pub(super) struct Giving {
    /// The next owner's host.
    pub(super) to: HostId,
    pub(super) handover: Handover,
    /// If it was left: how it is received from there as soon as it is taken.
    pub(super) departed: Option<Departed>,
}

/// A group that was left and is not taken yet, as it is received then.
#[derive(Debug)]
pub(super) struct Departed {
    pub(super) inbound: Inbound,
    /// The next owner's host was told of the subscription, and that the group is left to it.
    is_told: bool,
    /// Registers that the present agent of that host has sent meanwhile, with their serials, if it is the owner's.
    said: Vec<(u64, Register)>,
    /// Of a group on demand, the last questions of other hosts, and under which numbers the next owner's host is asked whether it has
    /// not taken the group: then they are answered here.
    pub(super) asked: BTreeMap<HostId, Passed>,
}

/// A question of another host for a group that was left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Passed {
    /// Its number, and that of the question to the next owner's host.
    pub(super) forced: u32,
    pub(super) question: u32,
}

impl Departed {
    pub(super) fn new(inbound: Inbound) -> Departed {
        Departed { inbound, is_told: false, said: Vec::new(), asked: BTreeMap::new() }
    }

    /// A host asks no more, or asks anew.
    pub(super) fn forget_question(&mut self, host: HostId) {
        self.asked.remove(&host);
    }

    /// The subscription that the next owner's host is sent, as of an epoch.
    fn subscription(&self, epoch: u64) -> Subscription {
        let said = self.inbound.said(epoch);
        let last = self.asked.values().map(|passed| passed.question).max().unwrap_or(0);
        Subscription { forced: said.forced.max(last), ..said }
    }
}

impl Node {
    /// A worker of this host has given a group to one of another.
    pub(super) fn given(&mut self, group: GroupId, to: HostId, handover: Handover) {
        if !self.outbound.contains_key(&group) || self.peers.get(&to).is_none() {
            return;
        }
        self.handovers.giving.insert(group, Giving { to, handover, departed: None });
        self.tell(to, Register::Moving(group, Owner { host: to, epoch: handover.epoch }));
        self.stirred.insert(group);
    }

    /// Leaves a group that was given away, if its last state is on its way to the next owner's host, and all other hosts with copies
    /// subscribe there.
    pub(super) fn part(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let Some(giving) = self.handovers.giving.get(&group) else { return };
        let (to, handover) = (giving.to, giving.handover);
        if giving.departed.is_some() {
            return self.offer(group);
        }
        let Some(outbound) = self.outbound.get(&group) else { return };
        let Some(newest) = &outbound.newest else { return };
        // Who looks up its name is sent here first.
        let mut members = (0..outbound.members.len()).map(|member| AreaId { group, member: member as u16 });
        if members.any(|area| self.is_unnamed(area)) {
            return;
        }
        // Those who ask for it are told where it is when it has gone: clocks cover nothing of it.
        let on_demand = outbound.is_on_demand();
        // Whether the next owner's host has all, or is sent it; others lack something; and who has all and is to go over.
        let (mut is_there, mut is_coming, mut lags) = (false, false, false);
        let mut moves = Vec::new();
        for (&host, subscriber) in &outbound.subscribers {
            let said = &subscriber.said;
            let has_all = subscriber.ride.is_none()
                && said.stage == Stage::Free
                && !said.have.is_empty()
                && !said.have.contains(&None)
                && !outbound.lacks(host);
            if host == to {
                is_there = has_all;
                is_coming = outbound.sends_newest(subscriber);
            } else if on_demand {
                // It is told when the group has been taken.
            } else if has_all {
                moves.push(host);
            } else {
                lags = true;
            }
        }
        let waits = lags || !moves.is_empty();
        // Others go over when the next owner's host knows of the group, whatever becomes of its agent.
        if !is_there && !(is_coming && (on_demand || !waits)) {
            return;
        }
        let versions = newest.versions.clone();
        for host in moves {
            self.tell(host, Register::Moving(group, Owner { host: to, epoch: handover.epoch }));
        }
        // Of one whose subscriptions an agent before this one knew, this one may not know yet.
        let waits = waits
            || self.peers.hosts().any(|host| !self.is_deserted(host) && !self.peers[&host].is_known_whole());
        if waits && !on_demand && !self.mutant(Mutant::HastyLeave) {
            return;
        }
        if !cx.memory.leave(group, to, handover, &versions) {
            self.alarms.insert((cx.now + AGAIN_NS, group));
            return;
        }
        self.has_left(group);
    }

    /// The memory has left a group that was given away: it goes on being sent.
    fn has_left(&mut self, group: GroupId) {
        self.counters.left += 1;
        let departed = Departed::new(self.new_inbound(0));
        let giving = self.handovers.giving.get_mut(&group).expect("it was given away");
        giving.departed = Some(departed);
        let owner = Owner { host: giving.to, epoch: giving.handover.epoch };
        self.handovers.owners.insert(group, owner);
        self.offer(group);
        self.clocks.stir_all();
    }

    /// Tells the next owner's host that a group was left to it, and that this one subscribes there: its clocks are to cover what the
    /// next owner publishes from the beginning.
    fn offer(&mut self, group: GroupId) {
        let Some(Giving { to, handover, departed: Some(departed) }) = self.handovers.giving.get_mut(&group)
        else {
            return;
        };
        let Some(outbound) = self.outbound.get(&group).filter(|_| !departed.is_told) else { return };
        let Some(newest) = &outbound.newest else { return };
        departed.is_told = true;
        departed.inbound.told = outbound.members.iter().cloned().map(Some).collect();
        departed.inbound.have = newest.versions.iter().copied().map(Some).collect();
        let (to, left) = (*to, Left { handover: *handover, versions: newest.versions.clone() });
        self.tell(to, Register::Handover(group, Some(left)));
        self.subscribe_there(group);
    }

    /// The next owner's host subscribes anew to a group that was left to it. Where that was not known, nor was this host's subscription
    /// kept.
    pub(super) fn subscribe_there_again(&mut self, group: GroupId) {
        if let Some(to) = self.handovers.next_host(group)
            && let Some(peer) = self.peers.get_mut(&to)
        {
            peer.outbox.forget(|key| *key == Key::Subscription(group));
            self.subscribe_there(group);
        }
    }

    /// Tells the next owner's host of the subscription to a group that was left to it.
    pub(super) fn subscribe_there(&mut self, group: GroupId) {
        let Some(Giving { to, handover, departed: Some(departed) }) = self.handovers.giving.get(&group)
        else {
            return;
        };
        let (to, said) = (*to, departed.subscription(handover.epoch));
        if !departed.is_told {
            return;
        }
        self.state_subscription(to, group, said);
    }

    /// Keeps what the host of a group's next owner says of it, if it has not said yet that it has taken it.
    pub(super) fn keep_said(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        serial: u64,
        register: &Register,
    ) -> bool {
        let group = match register {
            Register::Subscription(group, _) => {
                // What it said before it subscribed last, it did not say as the owner.
                if self.handovers.is_left_to(*group, from)
                    && let Some(departed) = self.handovers.departed_mut(*group)
                {
                    departed.said.retain(|(said, _)| *said > serial);
                }
                return false;
            }
            Register::Member(area, _) | Register::Ownerless(area, _) => area.group,
            Register::Forced(group, _) | Register::Unsent(group, ..) => *group,
            _ => return false,
        };
        if !self.handovers.is_left_to(group, from) {
            return false;
        }
        if let Register::Forced(_, forced) = register
            && forced.is_not_taken
        {
            self.not_taken(cx, group, forced.forced);
            return true;
        }
        if self.newest(from, Key::Subscription(group)) > serial {
            return true;
        }
        if let Some(departed) = self.handovers.departed_mut(group) {
            let key = register.key();
            departed.said.retain(|(_, other)| other.key() != key);
            departed.said.push((serial, register.clone()));
        }
        true
    }

    /// A group that was left had its next owner, if that is so as of this epoch: there was a later one.
    pub(super) fn note_epoch(&mut self, cx: &mut Cx<'_>, group: GroupId, epoch: u64) {
        if self.handovers.left_epoch(group).is_some_and(|left| left < epoch) {
            self.has_gone(cx, group);
        }
    }

    /// The next owner's host has taken a group that was left to it: from now on it is received.
    pub(super) fn on_taken(&mut self, cx: &mut Cx<'_>, from: HostId, group: GroupId, epoch: u64) {
        if self.handovers.is_left_to(group, from) && self.handovers.left_epoch(group) == Some(epoch) {
            self.has_gone(cx, group);
        }
    }

    /// A group that was left has been taken.
    pub(super) fn has_gone(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let Some(Giving { to, handover: Handover { epoch, .. }, departed: Some(mut departed) }) =
            self.handovers.giving.remove(&group)
        else {
            return;
        };
        for host in self.outbound.get(&group).map(Outbound::hosts).unwrap_or_default() {
            if host != to {
                self.go_early(group, host, departed.asked.contains_key(&host));
            }
            self.unsubscribe(cx, group, host);
        }
        if let Some(outbound) = self.outbound.remove(&group) {
            if outbound.forcing.is_under_way() {
                self.handovers.owed.insert(group);
            }
            if !departed.is_told {
                // This agent has said nothing of it yet, as one that finds what it received.
                departed.inbound.told = outbound.members.into_iter().map(Some).collect();
                departed.inbound.floor = u64::MAX;
            }
        }
        self.tell(to, Register::Handover(group, None));
        if let Some(peer) = self.peers.get_mut(&to) {
            // A later agent of it would wait for the group again.
            peer.outbox.withdraw(&Register::Moving(group, Owner { host: to, epoch }));
        }
        for host in self.handovers.early_hosts(group).filter(|host| *host != to).collect::<Vec<_>>() {
            self.tell(host, Register::Moving(group, Owner { host: to, epoch }));
        }
        cx.memory.moved(group, to, epoch);
        self.inbound.insert(group, departed.inbound);
        if !departed.is_told {
            self.reserve(cx, group);
        }
        // It does not ask for others any more.
        if !departed.is_told || !departed.asked.is_empty() {
            self.restate_subscription(group);
        }
        self.clocks.stir_all();
        self.clocks.recount(to);
        self.answer_attached(cx, group);
        for (serial, register) in departed.said {
            self.on_register(cx, to, serial, register);
        }
    }

    /// A group on demand has gone with its next owner. Until a subscriber says that it has gone over, its subscription is kept here,
    /// with its question if that is not answered: the group may come back before that.
    fn go_early(&mut self, group: GroupId, host: HostId, is_passed_on: bool) {
        let outbound = &self.outbound[&group];
        if !outbound.is_on_demand() {
            return;
        }
        let subscriber = &outbound.subscribers[&host];
        let is_open = is_passed_on || subscriber.asked.is_some() || subscriber.wanted.is_some();
        let forced = if is_open { subscriber.said.forced } else { 0 };
        let said = Subscription { forced, ..subscriber.said.clone() };
        self.handovers.early.insert((group, host), said);
    }

    /// The agent of a host is another one: what the one before said of groups that were left to it is void.
    pub(super) fn forget_said(&mut self, host: HostId) {
        let groups: Vec<GroupId> = self.handovers.left_to(host).collect();
        for group in groups {
            if let Some(departed) = self.handovers.departed_mut(group) {
                departed.said.clear();
            }
        }
    }

    /// A group that was left is gone: nobody can have it any more.
    pub(super) fn lose_departed(&mut self, group: GroupId) {
        if let Some(Giving { to, departed: Some(_), .. }) = self.handovers.giving.remove(&group) {
            self.tell(to, Register::Handover(group, None));
        }
    }
}
