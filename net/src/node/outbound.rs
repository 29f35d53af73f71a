//! A group of this host: its states, its subscribers, and which state each subscriber is to be sent.
use super::forced::Forcing;
use super::waiting_cut::HELD_LINES;
use crate::intervals::Intervals;
use crate::lines::Lines;
use crate::memory::{Pinned, State};
use crate::types::{Description, HostId, Place, Version};
use crate::wire::{Forced, Stage, Subscription};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const EXPRESS: usize = 0;
pub(super) const SLOW: usize = 1;
/// A former express, for subscribers that were sent a later state ahead of their clocks meanwhile.
pub(super) const EARLIER: usize = 2;
/// The most labels of a group that are remembered: enough to tell a subscriber that is behind which clocks it may count.
pub(super) const LABELS: usize = 8;
/// The most lines of the cuts, together, that may be overtaken before one of them has ended: each next cut has their lines again. A cut
/// of more lines is not sent ahead.
pub(super) const SMALL_LINES: u64 = HELD_LINES;
/// How long ago a cut must have begun to be overtaken by one that no clock covers: acknowledgements that take longer are not waited for.
const OVERTAKE_NS: u64 = 500_000;

/// A group of this host.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// `None` for deleted ones.
    pub(super) members: Vec<Option<Description>>,
    /// Of each member, between the beginnings of cuts.
    pub(super) intervals_us: Vec<u64>,
    pub(super) newest: Option<State>,
    /// The round of the last state of each of the newest labels. Those of the two newest can be pinned.
    pub(super) labels: BTreeMap<u64, u64>,
    /// Whether these are all labels that it ever had: before them, the group did not exist.
    pub(super) is_young: bool,
    pub(super) subscribers: BTreeMap<HostId, Subscriber>,
    pub(super) trains: [Option<Train>; 3],
    /// The round of the last state that had too many lines to be sent ahead.
    pub(super) oversized: u64,
    /// Who asks for what it is now.
    pub(super) forcing: Forcing,
    /// How many questions wait until what is lent is published ([`Memory::show`](crate::Memory::show)).
    pub(super) showing: u32,
    /// Members that their owners have dropped.
    pub(super) ownerless: BTreeSet<u16>,
}

#[derive(Debug)]
pub(super) struct Train {
    pub(super) cut: u64,
    pub(super) pinned: Pinned,
    pub(super) lines: Vec<Lines>,
    /// The position of each member's first line, and the end.
    pub(super) starts: Vec<u64>,
    /// Of each member, the version since which these are its lines.
    pub(super) bases: Vec<Option<Version>>,
    pub(super) departed_ns: u64,
    /// How long the first who got off took.
    pub(super) fastest_ns: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Subscriber {
    pub(super) said: Subscription,
    pub(super) ride: Option<Ride>,
    /// The cut before it, if the one under way is ahead of the subscriber's clocks: that cannot be published before this one.
    pub(super) earlier: Option<Ride>,
    /// The label of the state that overtook it.
    pub(super) overtaken_by: u64,
    /// The cut whose end it has to tell before the next one.
    pub(super) credit: Option<u64>,
    /// The last cut that left for it.
    pub(super) last_cut: u64,
    /// The cuts that the one under way has overtaken: they may still arrive, and end before it.
    pub(super) overtaken: Option<Overtaken>,
    pub(super) slow: bool,
    /// The round of the last state that was sent ahead and given up: it is not sent ahead again.
    pub(super) put_off: u64,
    pub(super) departed_ns: Option<u64>,
    /// A forced sync waits for no interval.
    pub(super) hurry: bool,
    /// Of a group that is sent on demand: the last question, until it is answered.
    pub(super) asked: Option<u32>,
    /// The round whose publications answer the last question.
    pub(super) wanted: Option<u64>,
    /// The clock of this host when it subscribed. It may have been told before, and count there: the first state that it gets has all
    /// that was published up to it.
    pub(super) since: u64,
}

/// Cuts to one subscriber, each overtaken by the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Overtaken {
    pub(super) first: u64,
    /// Of all of them together.
    pub(super) lines: u64,
}

impl Subscriber {
    /// The cut under way was overtaken by the next.
    pub(super) fn note_overtaken(&mut self, cut: u64, lines: u64) {
        let overtaken = self.overtaken.get_or_insert(Overtaken { first: cut, lines: 0 });
        overtaken.lines += lines;
        self.credit = None;
    }

    /// The cuts under way.
    pub(super) fn rides(&self) -> impl Iterator<Item = &Ride> {
        self.earlier.iter().chain(&self.ride)
    }

    /// One that was sent nothing yet.
    pub(super) fn new(said: Subscription) -> Subscriber {
        Subscriber {
            said,
            ride: None,
            earlier: None,
            overtaken_by: 0,
            credit: None,
            last_cut: 0,
            overtaken: None,
            slow: false,
            put_off: 0,
            departed_ns: None,
            hurry: false,
            asked: None,
            wanted: None,
            since: 0,
        }
    }
}

/// A subscriber's progress on a train: a cursor, and what was lost.
#[derive(Debug)]
pub(super) struct Ride {
    pub(super) slot: usize,
    pub(super) cut: u64,
    pub(super) base: u64,
    pub(super) label: u64,
    /// The members that it has: those that the subscriber had made copies for. It may make more meanwhile.
    pub(super) members: usize,
    /// The lines of these.
    pub(super) total: u64,
    pub(super) cursor: u64,
    pub(super) lost: Intervals,
    /// A packet with the cut's header was acknowledged.
    pub(super) begun: bool,
    pub(super) headers: u32,
    /// If its lines are placed, and not sent: the cursor and what was lost are of their announcement.
    pub(super) placed: Option<Placed>,
}

/// How far the lines of a cut are that are placed.
#[derive(Debug, Default)]
pub(super) struct Placed {
    /// Where the receiver lets each member be written, if it has said so.
    pub(super) granted: Option<Vec<Place>>,
    /// The announcement of these came.
    pub(super) known: Intervals,
    /// Those of them that were not written yet.
    pub(super) due: Intervals,
}

impl Ride {
    pub(super) fn has_work(&self) -> bool {
        !self.lost.is_empty() || self.cursor < self.total || (!self.begun && self.headers == 0)
    }
}

/// Which state a subscriber is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// The label whose last state it is; the newest state if `None`.
    pub(super) kept: Option<u64>,
    /// The label that the receiver goes by.
    pub(super) label: u64,
}

impl Outbound {
    /// The round of the last state that a clock covers.
    pub(super) fn covered_round(&self, clock: u64) -> Option<u64> {
        let newest = self.newest.as_ref()?;
        if newest.label <= clock {
            return Some(newest.round);
        }
        let last = self.labels.range(..=clock).next_back();
        // All known labels are later: the oldest one, unless nothing was published before it.
        let last = last.or_else(|| self.labels.first_key_value().filter(|_| !self.is_young));
        last.map(|(_, round)| *round)
    }

    /// Whether a subscriber has all that this round published, or will be listed with it in no clock.
    pub(super) fn has(&self, host: HostId, round: u64) -> bool {
        let Some(subscriber) = self.subscribers.get(&host) else { return true };
        let is_newest = self.newest.as_ref().is_some_and(|newest| said_has(&subscriber.said, newest));
        subscriber.said.round >= round || is_newest
    }

    /// Whether a subscriber has all that this round published, by its versions, and does not know of the round.
    pub(super) fn has_without_round(&self, host: HostId, round: u64) -> bool {
        self.subscribers.get(&host).is_some_and(|subscriber| subscriber.said.round < round)
            && self.has(host, round)
    }

    /// Whether hosts are sent it only when they ask, or are given it.
    pub(super) fn is_on_demand(&self) -> bool {
        self.members.iter().flatten().any(|description| description.on_demand)
    }

    /// Whether it is sent on demand, and what is lent of it is published: those who have asked can be answered.
    pub(super) fn may_answer_asked(&self) -> bool {
        self.is_on_demand() && self.showing == 0
    }

    /// Answers those who have asked for a group that is sent on demand: with the round that each is to have, 0 if it has all. What
    /// is published was published before the question came.
    pub(super) fn answer_asked(&mut self) -> Vec<(HostId, Forced)> {
        let Some(newest) = self.newest.as_ref().map(|newest| newest.round) else { return Vec::new() };
        let asked = self.subscribers.iter_mut().filter_map(|(host, it)| Some((*host, it.asked.take()?)));
        let asked: Vec<_> = asked.collect();
        let answer = |(host, forced)| {
            let round = if self.lacks(host) { newest } else { 0 };
            let subscriber = self.subscribers.get_mut(&host).expect("it asks");
            subscriber.wanted = Some(round).filter(|round| *round > 0);
            (host, Forced { forced, round, is_newest: true, postponed: false, is_not_taken: false })
        };
        asked.into_iter().map(answer).collect()
    }

    /// A host says that a cut has arrived, or what it has published: whether it has what it asked for.
    pub(super) fn note_arrived(&mut self, host: HostId) {
        let Some(subscriber) = self.subscribers.get_mut(&host) else { return };
        let said = &subscriber.said;
        let complete =
            subscriber.ride.as_ref().filter(|ride| said.stage == Stage::Complete && ride.cut == said.cut);
        let train = complete.and_then(|ride| self.trains[ride.slot].as_ref());
        let has = train.map_or(0, |train| train.pinned.state.round).max(said.published());
        subscriber.wanted = subscriber.wanted.filter(|round| *round > has);
    }

    /// Who was answered that it is to have a round, and has got what that published from the group's last owner, is sent nothing:
    /// it is answered again, that it has all.
    pub(super) fn note_had_otherwise(&mut self, host: HostId) {
        let waits = self.subscribers.get(&host).is_some_and(|subscriber| subscriber.wanted.is_some());
        if waits && !self.lacks(host) {
            let subscriber = self.subscribers.get_mut(&host).expect("it waits");
            subscriber.wanted = None;
            subscriber.asked = subscriber.asked.or(Some(subscriber.said.forced).filter(|forced| *forced > 0));
        }
    }

    pub(super) fn label(&self) -> u64 {
        self.newest.as_ref().map_or(0, |newest| newest.label)
    }

    /// Whether `host` has not published the newest state.
    pub(super) fn lacks(&self, host: HostId) -> bool {
        let said = &self.subscribers[&host].said;
        let is_older = |newest: &State| said.published() < newest.round && !said_has(said, newest);
        self.newest.as_ref().is_some_and(is_older)
    }

    /// The cut that `host` is to get next, if its lowest clock is `lowest`.
    pub(super) fn choose(&self, host: HostId, lowest: Option<u64>) -> Option<Choice> {
        if !self.lacks(host) {
            return None;
        }
        let round = self.subscribers[&host].said.published();
        let newest = self.newest.as_ref()?;
        if newest.label == 0 {
            return Some(Choice { kept: None, label: 0 });
        }
        let limit = lowest? + 1;
        if newest.label <= limit {
            return Some(Choice { kept: None, label: newest.label });
        }
        let subscriber = &self.subscribers[&host];
        let has_any = subscriber.said.have.iter().any(Option::is_some);
        // Who has nothing gets nothing from before the clocks that may have counted there.
        let covered = if has_any { None } else { self.covered_round(subscriber.since) };
        let is_old = |last: u64| covered.is_some_and(|covered| last < covered);
        if let Some((&label, &last)) = self.labels.range(..=limit).next_back() {
            if last <= round || is_old(last) {
                return None;
            }
            if self.is_kept(label) {
                return Some(Choice { kept: Some(label), label });
            }
        } else if self.labels.len() < LABELS && (self.is_young || !has_any) {
            // No state that it may have was ever here: the group did not exist then, or had another owner. A later state would be from
            // behind barriers that it has not passed.
            return None;
        }
        // It is too late for that state: the receiver is to take a later one in its place.
        let mut later = self.labels.iter().filter(|(label, _)| **label > limit && self.is_kept(**label));
        match later.next() {
            Some((_, last)) if is_old(*last) => None,
            kept => Some(Choice { kept: kept.map(|(label, _)| *label), label: limit }),
        }
    }

    /// The newest state, if `host` may be sent that ahead of its clocks: it may be published there when its lowest clock, of which this
    /// host has not heard yet, is one further, and the last state before that is there, or on its way.
    pub(super) fn ahead(&self, host: HostId, lowest: Option<u64>) -> Option<Choice> {
        let newest = self.newest.as_ref().filter(|newest| newest.round > self.oversized)?;
        let limit = lowest? + 1;
        let subscriber = &self.subscribers[&host];
        if newest.label.checked_sub(1) != Some(limit)
            || newest.round <= subscriber.put_off
            || subscriber.said.have.contains(&None)
            || !self.lacks(host)
        {
            return None;
        }
        let (_, &last) = self.labels.range(..=limit).next_back()?;
        let round = |ride: &Ride| self.trains[ride.slot].as_ref().map_or(0, |train| train.pinned.state.round);
        let is_there = subscriber.said.published() >= last
            || subscriber.rides().any(|ride| ride.label <= limit && round(ride) >= last);
        is_there.then_some(Choice { kept: None, label: newest.label })
    }

    /// Whether the last state of a label can be pinned: until one of the label after the next is published.
    pub(super) fn is_kept(&self, label: u64) -> bool {
        self.labels.keys().rev().take(2).any(|kept| *kept == label)
    }

    /// The round of the state that `host` gets next, if its lowest clock is `lowest`, 0 if it has all that it may have by now;
    /// and whether that is the newest.
    pub(super) fn best_for(&self, host: HostId, lowest: Option<u64>) -> (u64, bool) {
        let Some(newest) = &self.newest else { return (0, true) };
        // Who has not said how far it is has not gone back.
        match self.choose(host, lowest.or(Some(0))) {
            None => (0, !self.lacks(host)),
            Some(Choice { kept: None, .. }) => (newest.round, true),
            Some(Choice { kept: Some(label), .. }) => {
                (self.labels.get(&label).copied().unwrap_or(newest.round), false)
            }
        }
    }

    /// From when on a subscriber may be sent the newest state though the last cut to it has not ended, if at all: that cut was sent
    /// whole, and it and those before it are so small that sending their lines again costs little.
    pub(super) fn may_overtake(
        &self,
        subscriber: &Subscriber,
        choice: Choice,
        is_covered: bool,
    ) -> Option<u64> {
        let ride = subscriber.ride.as_ref()?;
        let train = self.trains[EXPRESS].as_ref().filter(|_| ride.slot == EXPRESS)?;
        let lines = subscriber.overtaken.map_or(0, |overtaken| overtaken.lines) + ride.total;
        let is_sent = !ride.has_work() && ride.placed.is_none() && lines <= SMALL_LINES;
        let is_newer = self.newest.as_ref().is_some_and(|newest| newest.round > train.pinned.state.round);
        if !is_sent || !is_newer || choice.kept.is_some() || subscriber.said.stage != Stage::Free {
            return None;
        }
        // Who is at the next clock already waits for what that covers.
        let waits_ns = if is_covered && choice.label > ride.label { 0 } else { OVERTAKE_NS };
        Some(subscriber.departed_ns?.saturating_add(waits_ns))
    }

    /// At least this long between the beginnings of cuts to one host.
    pub(super) fn interval_us(&self) -> u64 {
        self.intervals_us.iter().copied().min().unwrap_or(0)
    }

    /// Whether states wait for an interval.
    pub(super) fn has_interval(&self) -> bool {
        self.interval_us() > 0 || self.subscribers.values().any(|subscriber| subscriber.said.interval_us > 0)
    }

    pub(super) fn is_subscriber(&self, host: HostId) -> bool {
        self.subscribers.contains_key(&host)
    }

    pub(super) fn hosts(&self) -> Vec<HostId> {
        self.subscribers.keys().copied().collect()
    }

    /// Whether the newest state is on its way to a subscriber, in packets. Where its lines are placed, a hand-over waits until they are
    /// there.
    pub(super) fn sends_newest(&self, subscriber: &Subscriber) -> bool {
        let Some(ride) = subscriber.ride.as_ref().filter(|ride| ride.placed.is_none()) else { return false };
        let train = self.trains[ride.slot].as_ref();
        let pinned = train.map(|train| &train.pinned.state.versions[..ride.members]);
        pinned == self.newest.as_ref().map(|newest| newest.versions.as_slice())
    }
}

impl Subscription {
    /// The round that all members are published of. One for which copies were made since has nothing yet.
    pub(super) fn published(&self) -> u64 {
        if self.have.contains(&None) { 0 } else { self.round }
    }
}

pub(super) fn said_has(said: &Subscription, state: &State) -> bool {
    said.have.len() == state.versions.len()
        && said.have.iter().zip(&state.versions).all(|(have, version)| *have == Some(*version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Version;

    const HOST: HostId = HostId(1);

    /// A group with these labels and the last round of each, of which the subscriber has that round (0: nothing), and to which it
    /// subscribed at that clock.
    fn group(labels: &[(u64, u64)], has: u64, since: u64) -> Outbound {
        let mut outbound = Outbound { labels: labels.iter().copied().collect(), ..Outbound::default() };
        let version = |counter| Version { term: 1, counter };
        let (label, round) = *labels.last().expect("something is published");
        outbound.newest = Some(State { round, label, versions: vec![version(round)] });
        let have = vec![(has > 0).then(|| version(has))];
        let said = Subscription {
            number: 1,
            epoch: 1,
            stage: Stage::Free,
            cut: 0,
            state: 1,
            round: has,
            interval_us: 0,
            forced: 0,
            have,
        };
        outbound.subscribers.insert(HOST, Subscriber { since, ..Subscriber::new(said) });
        outbound
    }

    #[test]
    fn who_subscribes_late_gets_nothing_from_before_the_clock_of_the_owner() {
        let labels = [(10, 627), (11, 638)];
        // It has everything up to the clocks that were told before it subscribed, or waits for its own.
        assert_eq!(group(&labels, 0, 11).choose(HOST, Some(9)), None);
        let newest = Choice { kept: None, label: 11 };
        assert_eq!(group(&labels, 0, 11).choose(HOST, Some(10)), Some(newest));
        let kept = Choice { kept: Some(10), label: 10 };
        assert_eq!(group(&labels, 0, 10).choose(HOST, Some(9)), Some(kept));
        // The state of the label that it may have is gone: another one comes in its place, if it is not old as well.
        let longer = [(8, 610), (10, 627), (11, 638)];
        let in_its_place = Choice { kept: Some(10), label: 9 };
        assert_eq!(group(&longer, 0, 8).choose(HOST, Some(8)), Some(in_its_place));
        assert_eq!(group(&longer, 0, 10).choose(HOST, Some(8)), None);
        let all_later: Vec<(u64, u64)> = (4..12).map(|label| (label, label)).collect();
        let in_its_place = Choice { kept: Some(10), label: 3 };
        assert_eq!(group(&all_later, 0, 10).choose(HOST, Some(2)), Some(in_its_place));
        assert_eq!(group(&all_later, 0, 11).choose(HOST, Some(2)), None);
        // Who has something was counted with it.
        assert_eq!(group(&labels, 620, 11).choose(HOST, Some(9)), Some(kept));
    }

    #[test]
    fn what_was_not_there_at_a_clock_is_not_sent_in_place_of_what_was() {
        let labels = [(2, 345), (3, 347)];
        let young = |has| Outbound { is_young: true, ..group(&labels, has, 0) };
        assert_eq!(young(345).choose(HOST, Some(0)), None);
        assert_eq!(young(345).covered_round(1), None);
        assert_eq!(young(345).covered_round(2), Some(345));
        // Who has nothing waits as well, until its clock is so far.
        assert_eq!(young(0).choose(HOST, Some(0)), None);
        assert_eq!(young(0).choose(HOST, Some(1)), Some(Choice { kept: Some(2), label: 2 }));
        let later = Choice { kept: Some(2), label: 1 };
        // Of a group from before the agent, nobody knows.
        assert_eq!(group(&labels, 345, 0).choose(HOST, Some(0)), Some(later));
        assert_eq!(group(&labels, 345, 0).covered_round(1), Some(345));
        // A state that there was and that is gone has one in its place, also of a young group.
        let gone = Outbound { is_young: true, ..group(&[(1, 5), (2, 345), (3, 347)], 3, 0) };
        assert_eq!(gone.choose(HOST, Some(0)), Some(later));
    }

    #[test]
    fn what_an_owner_had_elsewhere_is_not_replaced_by_what_it_published_since() {
        // The group came here with its state of label 5: who has nothing, and may have 4, waits. Who has something has that state.
        let labels = [(5, 70)];
        assert_eq!(group(&labels, 0, 0).choose(HOST, Some(3)), None);
        assert_eq!(group(&labels, 0, 0).choose(HOST, Some(4)), Some(Choice { kept: None, label: 5 }));
        // Where so many labels are known, workers are so far ahead of the slowest that no barrier is between them.
        let many: Vec<(u64, u64)> = (5..5 + LABELS as u64).map(|label| (label, label)).collect();
        let kept = Some(3 + LABELS as u64);
        assert_eq!(group(&many, 0, 0).choose(HOST, Some(3)), Some(Choice { kept, label: 4 }));
    }

    /// A group whose subscriber is sent a cut of so many lines, all of which have left, and that has published since.
    fn on_its_way(total: u64) -> Outbound {
        let mut outbound = group(&[(1, 10), (2, 20)], 10, 0);
        let state = State { round: 15, label: 1, versions: Vec::new() };
        outbound.trains[EXPRESS] = Some(Train {
            cut: 7,
            pinned: Pinned { pin: crate::memory::PinId(1), state, published_ns: 0 },
            lines: Vec::new(),
            starts: vec![0, total],
            departed_ns: 1_000,
            bases: Vec::new(),
            fastest_ns: None,
        });
        let subscriber = outbound.subscribers.get_mut(&HOST).expect("it subscribes");
        subscriber.departed_ns = Some(1_000);
        subscriber.ride = Some(Ride {
            slot: EXPRESS,
            cut: 7,
            base: 1,
            label: 1,
            members: 1,
            total,
            cursor: total,
            lost: Intervals::default(),
            begun: false,
            headers: 1,
            placed: None,
        });
        outbound
    }

    #[test]
    fn a_state_is_sent_ahead_when_all_before_it_is_there_or_on_its_way() {
        let newest = Some(Choice { kept: None, label: 2 });
        assert_eq!(group(&[(1, 10), (2, 20)], 10, 0).ahead(HOST, Some(0)), newest);
        // It may have it anyway, or is too far behind, or nobody knows how far.
        assert_eq!(group(&[(1, 10), (2, 20)], 10, 0).ahead(HOST, Some(1)), None);
        assert_eq!(group(&[(1, 10), (3, 20)], 10, 0).ahead(HOST, Some(0)), None);
        assert_eq!(group(&[(1, 10), (2, 20)], 10, 0).ahead(HOST, None), None);
        // The last state of the label before has not left, nor has what comes before all labels that are known.
        assert_eq!(group(&[(1, 10), (2, 20)], 5, 0).ahead(HOST, Some(0)), None);
        assert_eq!(group(&[(2, 20)], 5, 0).ahead(HOST, Some(0)), None);
        let with = |change: fn(&mut Outbound, &mut Subscriber)| {
            let mut outbound = on_its_way(4);
            let mut subscriber = outbound.subscribers.remove(&HOST).expect("it subscribes");
            subscriber.said.round = 5;
            change(&mut outbound, &mut subscriber);
            outbound.subscribers.insert(HOST, subscriber);
            outbound.ahead(HOST, Some(0))
        };
        assert_eq!(with(|_, _| {}), newest);
        assert_eq!(with(|_, it| it.ride.as_mut().expect("it rides").label = 2), None, "that is ahead itself");
        assert_eq!(with(|_, it| it.put_off = 20), None);
        assert_eq!(with(|outbound, _| outbound.oversized = 20), None);
    }

    /// From when on the newest state may overtake the cut.
    fn overtakes(outbound: &Outbound, is_covered: bool) -> Option<u64> {
        outbound.may_overtake(&outbound.subscribers[&HOST], Choice { kept: None, label: 2 }, is_covered)
    }

    #[test]
    fn what_clocks_wait_for_overtakes_at_once_and_all_else_after_a_while() {
        assert_eq!(overtakes(&on_its_way(4), true), Some(1_000));
        assert_eq!(overtakes(&on_its_way(4), false), Some(1_000 + OVERTAKE_NS));
        // Nobody waits for more of a label that is on its way.
        let outbound = on_its_way(4);
        let same = Choice { kept: None, label: 1 };
        let due = outbound.may_overtake(&outbound.subscribers[&HOST], same, true);
        assert_eq!(due, Some(1_000 + OVERTAKE_NS));
    }

    #[test]
    fn only_the_newest_state_overtakes_and_only_what_was_sent_whole() {
        let but = |change: fn(&mut Outbound)| {
            let mut outbound = on_its_way(4);
            change(&mut outbound);
            overtakes(&outbound, true)
        };
        fn ride(outbound: &mut Outbound) -> &mut Ride {
            outbound.subscribers.get_mut(&HOST).and_then(|it| it.ride.as_mut()).expect("it rides")
        }
        assert!(but(|_| ()).is_some());
        assert_eq!(but(|outbound| ride(outbound).cursor = 3), None);
        assert_eq!(but(|outbound| ride(outbound).lost.insert(0..1)), None);
        assert_eq!(but(|outbound| ride(outbound).placed = Some(Placed::default())), None);
        assert_eq!(but(|outbound| ride(outbound).slot = SLOW), None);
        assert_eq!(but(|outbound| outbound.newest.as_mut().expect("one").round = 15), None);
        // It has arrived, and is published soon; or waits until another one is.
        for stage in [Stage::Complete, Stage::Busy] {
            let mut outbound = on_its_way(4);
            outbound.subscribers.get_mut(&HOST).expect("it subscribes").said.stage = stage;
            assert_eq!(overtakes(&outbound, true), None);
        }
        let kept = Choice { kept: Some(1), label: 1 };
        let outbound = on_its_way(4);
        assert_eq!(outbound.may_overtake(&outbound.subscribers[&HOST], kept, true), None);
    }

    #[test]
    fn the_lines_of_cuts_that_are_overtaken_are_bounded() {
        assert!(overtakes(&on_its_way(SMALL_LINES), true).is_some());
        assert_eq!(overtakes(&on_its_way(SMALL_LINES + 1), true), None);
        let mut outbound = on_its_way(500);
        for cut in [5, 6] {
            assert!(overtakes(&outbound, true).is_some(), "{cut}");
            let subscriber = outbound.subscribers.get_mut(&HOST).expect("it subscribes");
            subscriber.credit = Some(cut);
            subscriber.note_overtaken(cut, 500);
        }
        assert_eq!(overtakes(&outbound, true), None);
        let subscriber = &outbound.subscribers[&HOST];
        assert_eq!(subscriber.overtaken.expect("two are").first, 5);
        assert_eq!(subscriber.credit, None, "they may never end");
    }
}
