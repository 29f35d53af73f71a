//! A group that another host has left to this one, which takes it when it has the last state.
use super::arrivals::Phase;
use super::forced::Forcing;
use super::handover::Offer;
use super::outbound::Outbound;
use super::{AGAIN_NS, Cx, Mutant, Node};
use crate::types::{AreaId, GroupId, HostId};
use crate::wire::{Forced, Key, Left, Owner, Register};

impl Node {
    /// A host has left a group to this one.
    pub(super) fn on_handover(&mut self, cx: &mut Cx<'_>, from: HostId, group: GroupId, left: Option<Left>) {
        let Some(left) = left else {
            self.handovers.offered.retain(|of, offer| *of != group || offer.from != from);
            return;
        };
        let epoch = left.handover.epoch;
        self.note_epoch(cx, group, epoch);
        if epoch <= self.epoch_of(group) {
            self.tell(from, Register::Taken(group, epoch));
            return;
        }
        self.handovers.offered.insert(group, Offer { from, left, answered: 0 });
        self.take(cx, group);
        if self.handovers.offered.contains_key(&group) {
            self.expect(cx, from, group, epoch);
        }
    }

    /// Who left a group on demand asks whether this host has taken it, as somebody there wants it: what was left is the newest until
    /// then. To be taken, it may have to wait for a round of this host, whose workers may wait, outside of rounds, for what others are
    /// to take.
    fn tell_not_taken(&mut self, group: GroupId) {
        let Some(offer) = self.handovers.offered.get_mut(&group) else { return };
        let Some(said) = self.handovers.early.get(&(group, offer.from)) else { return };
        let is_on_demand = self.inbound.get(&group).is_some_and(|inbound| inbound.is_on_demand());
        let (from, forced) = (offer.from, said.forced);
        if is_on_demand && forced > offer.answered {
            offer.answered = forced;
            let answer = Forced { forced, round: 0, is_newest: true, postponed: false, is_not_taken: true };
            self.tell(from, Register::Forced(group, answer));
        }
    }

    /// Takes a group that was left to this host, if its last state is here.
    pub(super) fn take(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let blind = self.mutant(Mutant::BlindTake);
        let Some(Offer { from, left: Left { handover, versions }, .. }) = self.handovers.offered.get(&group)
        else {
            return;
        };
        let (from, handover) = (*from, *handover);
        let epoch = handover.epoch;
        let Some(inbound) = self.inbound.get(&group) else { return };
        let is_whole = !matches!(inbound.phase, Phase::Arrived { .. });
        let has_last = inbound.have.iter().copied().eq(versions.iter().copied().map(Some)) || blind;
        // Clocks of this host are to cover what its new owner publishes from the beginning, if anybody is left there.
        let is_known = inbound.is_on_demand()
            || self.is_deserted(from)
            || self.handovers.early.contains_key(&(group, from));
        if !is_whole || !has_last || !is_known {
            return self.tell_not_taken(group);
        }
        // As it is here is all that was written.
        if let Some(request) = self.inbound.get_mut(&group).and_then(|it| it.requests.take_all()) {
            cx.memory.answer(group, request, Some(cx.now), false);
        }
        if !cx.memory.take(group, handover) {
            self.tell_not_taken(group);
            self.alarms.insert((cx.now + AGAIN_NS, group));
            return;
        }
        self.counters.taken += 1;
        self.handovers.offered.remove(&group);
        self.handovers.expected.remove(&group);
        self.handovers.owners.insert(group, Owner { host: self.config.host, epoch });
        self.drop_held(group);
        let inbound = self.inbound.remove(&group).expect("just seen");
        // Its last owner's host knows of the subscription, and forgets it when it hears that the group was taken.
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
        for host in self.handovers.early_hosts(group).collect::<Vec<_>>() {
            if let Some(said) = self.handovers.early.remove(&(group, host)) {
                self.on_subscription(cx, host, group, said);
            }
        }
        self.tell(from, Register::Taken(group, epoch));
        self.clocks.recount_all();
        self.clocks.uncover(group);
    }
}
