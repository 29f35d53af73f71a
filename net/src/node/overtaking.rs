//! Cuts that are sent before the previous one has ended: with a newer state, or ahead of the clocks of their receivers.
use super::outbound::{Choice, EARLIER, EXPRESS, Ride, SMALL_LINES, Subscriber};
use super::{Cx, Mutant, Node};
use crate::types::{GroupId, HostId};

impl Node {
    /// Whether an error is planted by which labels are not looked at: then nothing is ahead.
    pub(super) fn is_blind_to_labels(&self) -> bool {
        self.mutant(Mutant::NoLabels) || self.mutant(Mutant::EarlyFirst)
    }

    /// Whether a state of this label is ahead of the clocks of a host, as far as is known here.
    pub(super) fn is_ahead(&self, host: HostId, label: u64) -> bool {
        if self.is_blind_to_labels() {
            return false;
        }
        let lowest = self.peers.get(&host).and_then(|peer| peer.lowest);
        label > 0 && lowest.is_some_and(|lowest| label > lowest + 1)
    }

    /// Where the state that overtook it is ahead no more, the cut before that is not needed, and what it pins is not kept from the rounds.
    pub(super) fn end_passed(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let Some(outbound) = self.outbound.get(&group) else { return };
        let is_passed = |(host, subscriber): (&HostId, &Subscriber)| {
            subscriber.earlier.as_ref()?;
            (!self.is_ahead(*host, subscriber.overtaken_by)).then_some(*host)
        };
        let passed: Vec<HostId> = outbound.subscribers.iter().filter_map(is_passed).collect();
        passed.into_iter().for_each(|host| self.end_earlier(cx, group, host));
    }

    /// Ends the cuts on a train that are ahead: for how long they wait at their receivers depends on others, who may wait for that train.
    pub(super) fn put_off_ahead(&mut self, cx: &mut Cx<'_>, group: GroupId, slot: usize) {
        let Some(outbound) = self.outbound.get(&group) else { return };
        let Some(round) = outbound.trains[slot].as_ref().map(|train| train.pinned.state.round) else {
            return;
        };
        let is_ahead = |(host, subscriber): (&HostId, &Subscriber)| {
            let ride = subscriber.ride.as_ref().filter(|ride| ride.slot == slot)?;
            self.is_ahead(*host, ride.label).then_some(*host)
        };
        let ahead: Vec<HostId> = outbound.subscribers.iter().filter_map(is_ahead).collect();
        for host in ahead {
            self.get_off(cx, group, host, false);
            let subscriber = self.subscriber(group, host).expect("just seen");
            (subscriber.credit, subscriber.put_off) = (None, round);
        }
    }

    /// Who waits for the state that the express under way has, and has all that it brings changes of, goes by it, too: so nobody waits
    /// because another was ready a moment before.
    pub(super) fn join_express(
        &mut self,
        cx: &mut Cx<'_>,
        group: GroupId,
        waiting: &mut Vec<(HostId, Choice)>,
    ) {
        let Some(outbound) = self.outbound.get(&group) else { return };
        let (Some(train), Some(newest)) = (&outbound.trains[EXPRESS], &outbound.newest) else { return };
        // Where one has arrived, the next one is not to wait for who would begin now.
        if train.pinned.state.round != newest.round || train.fastest_ns.is_some() {
            return;
        }
        let anyone = self.mutant(Mutant::AnyoneJoins);
        let seat = |&(host, choice): &(HostId, Choice)| {
            let subscriber = &outbound.subscribers[&host];
            let have = &subscriber.said.have;
            let total = train.starts[have.len().min(train.lines.len())];
            let (is_ahead, placed) = (self.is_ahead(host, choice.label), self.is_to_be_placed(host, total));
            let joins = choice.kept.is_none()
                && subscriber.ride.is_none()
                && subscriber.last_cut < train.cut
                && (anyone || have.iter().zip(&train.bases).all(|(have, base)| have >= base))
                && !(is_ahead && (total > SMALL_LINES || placed));
            joins.then_some((host, choice, placed))
        };
        let seats: Vec<(HostId, Choice, bool)> = waiting.iter().filter_map(seat).collect();
        waiting.retain(|(host, _)| seats.iter().all(|(joins, ..)| joins != host));
        for seat @ (host, choice, _) in seats {
            let is_ahead = self.is_ahead(host, choice.label);
            if !is_ahead {
                self.end_earlier(cx, group, host);
            }
            self.counters.cuts_ahead += u64::from(is_ahead);
            self.counters.cuts_joined += 1;
            self.take_seat(cx.now, group, EXPRESS, seat);
        }
    }

    /// Whether all passengers of the express under way are to overtake it; otherwise those wait.
    pub(super) fn all_overtake(&self, group: GroupId, waiting: &mut Vec<(HostId, Choice)>) -> bool {
        let Some(&(_, first)) = waiting.first() else { return false };
        let riding = self.on_express(group);
        let all = riding.iter().all(|host| waiting.contains(&(*host, first)));
        if !all {
            waiting.retain(|(host, _)| !riding.contains(host));
        }
        all && !riding.is_empty()
    }

    pub(super) fn on_express(&self, group: GroupId) -> Vec<HostId> {
        let is_on = |subscriber: &Subscriber| subscriber.ride.as_ref().is_some_and(|it| it.slot == EXPRESS);
        let all = self.outbound.get(&group).into_iter().flat_map(|outbound| &outbound.subscribers);
        all.filter(|(_, subscriber)| is_on(subscriber)).map(|(host, _)| *host).collect()
    }

    /// Whether a cut goes on when one of that label overtakes it, as that is ahead and this one is not.
    pub(super) fn goes_on(&self, group: GroupId, host: HostId, label: u64) -> bool {
        let ride = self.outbound.get(&group).and_then(|all| all.subscribers.get(&host)?.ride.as_ref());
        let is_before = ride.is_some_and(|ride| !self.is_ahead(host, ride.label));
        self.is_ahead(host, label) && is_before && !self.mutant(Mutant::GiveUpEarlier)
    }

    /// The express under way ends for all its passengers, which overtake it with a state of that label, or goes on beside the next one.
    pub(super) fn overtake(&mut self, cx: &mut Cx<'_>, group: GroupId, label: u64) {
        for host in self.on_express(group) {
            let goes_on = self.goes_on(group, host, label);
            let subscriber = self.subscriber(group, host).expect("it is on the express");
            let ride = subscriber.ride.as_mut().expect("it is on the express");
            let (cut, lines) = (ride.cut, ride.total);
            subscriber.note_overtaken(cut, lines);
            if goes_on {
                let ride = subscriber.ride.take().expect("just seen");
                (subscriber.earlier, subscriber.overtaken_by) = (Some(Ride { slot: EARLIER, ..ride }), label);
                let trains = &mut self.outbound.get_mut(&group).expect("just seen").trains;
                if let Some(train) = trains[EXPRESS].take() {
                    trains[EARLIER] = Some(train);
                }
                self.make_ready(host, group);
            } else {
                self.get_off(cx, group, host, false);
            }
            self.counters.cuts_overtaken += 1;
        }
    }
}
