//! Groups of this host and who subscribes to them: states are kept, cuts depart, lines are sent.
//!
//! A train is a pinned state and the lines that its passengers may lack. The express leaves as soon as somebody waits; the
//! slow train takes those who have nothing yet and those who kept the express waiting.
use super::forced::Forcing;
use super::peer::Filling;
use super::{Action, Cx, Mutant, Node};
use crate::intervals::Intervals;
use crate::lines::Lines;
use crate::memory::{Pinned, State};
use crate::types::{AreaId, Description, GroupId, HostId, LINE, MAX_MEMBERS, NameError, Version};
use crate::wire::{Cut, Frame, Register, Stage, Subscription, data_cost, put_data_header};
use std::collections::BTreeMap;
use std::ops::Range;

const EXPRESS: usize = 0;
const SLOW: usize = 1;
/// So many labels are known of a group: enough to tell a subscriber that is behind which clocks it may count.
const LABELS: usize = 8;

/// A group of this host.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// `None` for deleted ones.
    members: Vec<Option<Description>>,
    /// Of each member, between the beginnings of cuts.
    intervals_us: Vec<u64>,
    newest: Option<State>,
    /// The round of the last state of each of the newest labels. Those of the two newest can be pinned.
    labels: BTreeMap<u64, u64>,
    subscribers: BTreeMap<HostId, Subscriber>,
    trains: [Option<Train>; 2],
    /// Who asks for what it is now.
    pub(super) forcing: Forcing,
}

#[derive(Debug)]
struct Train {
    cut: u64,
    pinned: Pinned,
    lines: Vec<Lines>,
    /// The position of each member's first line, and the end.
    starts: Vec<u64>,
    departed_ns: u64,
    /// How long the first who got off took.
    fastest_ns: Option<u64>,
}

#[derive(Debug)]
struct Subscriber {
    said: Subscription,
    ride: Option<Ride>,
    /// The cut whose end it has to tell before the next one.
    credit: Option<u64>,
    slow: bool,
    departed_ns: Option<u64>,
    /// A forced sync waits for no interval.
    hurry: bool,
}

/// A subscriber's way through a train: a cursor, and what was lost.
#[derive(Debug)]
struct Ride {
    slot: usize,
    cut: u64,
    base: u64,
    label: u64,
    total: u64,
    cursor: u64,
    lost: Intervals,
    /// A packet with the cut's header was acknowledged.
    begun: bool,
    headers: u32,
}

impl Ride {
    fn has_work(&self) -> bool {
        !self.lost.is_empty() || self.cursor < self.total || (!self.begun && self.headers == 0)
    }
}

/// Which state a subscriber is to get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Choice {
    /// The label whose last state it is; the newest state if `None`.
    kept: Option<u64>,
    /// The label that the receiver goes by.
    label: u64,
}

impl Outbound {
    /// The round of the last state that a clock covers.
    pub(super) fn covered_round(&self, clock: u64) -> Option<u64> {
        let newest = self.newest.as_ref()?;
        if newest.label <= clock {
            return Some(newest.round);
        }
        let last = self.labels.range(..=clock).next_back().or_else(|| self.labels.first_key_value());
        last.map(|(_, round)| *round)
    }

    /// Whether a subscriber has all that this round published, or will be listed with it in no clock.
    pub(super) fn has(&self, host: HostId, round: u64) -> bool {
        let Some(subscriber) = self.subscribers.get(&host) else { return true };
        let is_newest = self.newest.as_ref().is_some_and(|newest| said_has(&subscriber.said, newest));
        subscriber.said.round >= round || is_newest
    }

    pub(super) fn label(&self) -> u64 {
        self.newest.as_ref().map_or(0, |newest| newest.label)
    }

    /// Whether `host` has not published the newest state.
    fn lacks(&self, host: HostId) -> bool {
        let said = &self.subscribers[&host].said;
        let is_older = |newest: &State| said.published() < newest.round && !said_has(said, newest);
        self.newest.as_ref().is_some_and(is_older)
    }

    /// What `host` is to get next, if its lowest clock is `lowest`.
    fn choose(&self, host: HostId, lowest: Option<u64>) -> Option<Choice> {
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
        if let Some((&label, &last)) = self.labels.range(..=limit).next_back() {
            if last <= round {
                return None;
            }
            if self.is_kept(label) {
                return Some(Choice { kept: Some(label), label });
            }
        }
        // It is too late for that state: the receiver is to take a later one in its place.
        let later = self.labels.keys().copied().find(|&label| label > limit && self.is_kept(label));
        Some(Choice { kept: later, label: limit })
    }

    /// Whether the last state of a label can be pinned: until one of the label after the next is published.
    fn is_kept(&self, label: u64) -> bool {
        self.labels.keys().rev().take(2).any(|kept| *kept == label)
    }
}

impl Outbound {
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

    /// At least this long between the beginnings of cuts to one host.
    fn interval_us(&self) -> u64 {
        self.intervals_us.iter().copied().min().unwrap_or(0)
    }

    /// Whether states wait for an interval.
    pub(super) fn has_interval(&self) -> bool {
        self.interval_us() > 0 || self.subscribers.values().any(|subscriber| subscriber.said.interval_us > 0)
    }

    pub(super) fn is_subscriber(&self, host: HostId) -> bool {
        self.subscribers.contains_key(&host)
    }
}

impl Subscription {
    /// The round that all members are published of. One for which copies were made since has nothing yet.
    fn published(&self) -> u64 {
        if self.have.contains(&None) { 0 } else { self.round }
    }
}

fn said_has(said: &Subscription, state: &State) -> bool {
    said.have.len() == state.versions.len()
        && said.have.iter().zip(&state.versions).all(|(have, version)| *have == Some(*version))
}

impl Node {
    /// An area of this host was created, or is there at the agent's start.
    pub(super) fn created(
        &mut self,
        cx: &mut Cx<'_>,
        area: AreaId,
        description: Description,
        accepted: bool,
    ) {
        let refused = match () {
            () if usize::from(area.member) >= MAX_MEMBERS => Some(NameError::Members),
            () if description.name.len().max(description.group.len()) > crate::types::MAX_NAME => {
                Some(NameError::Long)
            }
            () => None,
        };
        if let Some(error) = refused {
            cx.out.push(Action::Refused { area, error });
            return;
        }
        let outbound = self.outbound.entry(area.group).or_default();
        let member = usize::from(area.member);
        if outbound.members.len() <= member {
            outbound.members.resize(member + 1, None);
        }
        outbound.members[member] = Some(description.clone());
        let subscribers: Vec<HostId> = outbound.subscribers.keys().copied().collect();
        for host in subscribers {
            self.tell(host, Register::Member(area, Some(description.clone())));
        }
        self.state_name(area, description, accepted);
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
        if let Some(member) = outbound.members.get_mut(usize::from(area.member)) {
            *member = None;
        }
        if let Some(interval_us) = outbound.intervals_us.get_mut(usize::from(area.member)) {
            *interval_us = u64::MAX;
        }
        let subscribers: Vec<HostId> = outbound.subscribers.keys().copied().collect();
        let is_gone = outbound.members.iter().all(Option::is_none);
        // Cuts under way count its lines: they are made anew without them.
        for &host in &subscribers {
            self.abandon_ride(cx, area.group, host);
        }
        if is_gone {
            for &host in &subscribers {
                self.unsubscribe(cx, area.group, host);
            }
            self.outbound.remove(&area.group);
        }
        for host in subscribers {
            self.tell(host, Register::Member(area, None));
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
        }
        outbound.newest = Some(state);
    }

    fn pin(&mut self, cx: &mut Cx<'_>, group: GroupId, label: Option<u64>) -> Option<Pinned> {
        let pinned = cx.memory.pin(group, label)?;
        *self.pins.entry(pinned.pin).or_default() += 1;
        Some(pinned)
    }

    fn drop_pin(&mut self, cx: &mut Cx<'_>, pinned: &Pinned) {
        let count = self.pins.get_mut(&pinned.pin).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            self.pins.remove(&pinned.pin);
            cx.memory.unpin(pinned.pin);
        }
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
        if let Some(peer) = self.peers.get_mut(&from)
            && peer.named.insert(group)
        {
            self.clocks.stir(from);
        }
        if said.stage == Stage::Off {
            self.unsubscribe(cx, group, from);
            return;
        }
        let Some(outbound) = self.outbound.get_mut(&group) else {
            // Deleted, with all its members; or not ours.
            for member in 0..said.have.len().max(1) {
                self.tell(from, Register::Member(AreaId { group, member: member as u16 }, None));
            }
            return;
        };
        let (stage, cut, forced) = (said.stage, said.cut, said.forced);
        let is_new = !outbound.subscribers.contains_key(&from);
        let subscriber = outbound.subscribers.entry(from).or_insert_with(|| Subscriber {
            said: said.clone(),
            ride: None,
            credit: None,
            slow: false,
            departed_ns: None,
            hurry: false,
        });
        if forced > subscriber.said.forced || (is_new && forced > 0) {
            subscriber.hurry = true;
            if outbound.forcing.ask(from, forced) {
                cx.memory.force(group);
            }
        }
        let subscriber = outbound.subscribers.get_mut(&from).expect("just entered");
        subscriber.said = said;
        if stage == Stage::Free && subscriber.credit.is_some_and(|credit| credit <= cut) {
            subscriber.credit = None;
        }
        if subscriber.ride.as_ref().is_some_and(|ride| ride.cut <= cut) {
            self.get_off(cx, group, from, true);
        } else if subscriber.ride.as_ref().is_some_and(|ride| ride.base != subscriber.said.state) {
            // It has subscribed anew, or published what was given up before: the cut was made for another state.
            self.abandon_ride(cx, group, from);
        }
        if is_new {
            let members: Vec<_> = self.outbound[&group].members.iter().cloned().enumerate().collect();
            for (member, description) in members {
                self.tell(from, Register::Member(AreaId { group, member: member as u16 }, description));
            }
        }
        self.stirred.insert(group);
        self.clocks.stir(from);
    }

    /// A host does not subscribe to a group any more.
    fn unsubscribe(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
        self.get_off(cx, group, host, false);
        let Some(outbound) = self.outbound.get_mut(&group) else { return };
        outbound.subscribers.remove(&host);
        outbound.forcing.forget(host);
    }

    /// The agent of a host is another one: it subscribes anew.
    pub(super) fn forget_subscriber(&mut self, cx: &mut Cx<'_>, host: HostId) {
        for group in self.groups_of(host) {
            self.unsubscribe(cx, group, host);
        }
    }

    /// A host cannot be reached: its cuts end, and their trains go on without it.
    pub(super) fn abandon_rides(&mut self, cx: &mut Cx<'_>, host: HostId) {
        for group in self.groups_of(host) {
            self.abandon_ride(cx, group, host);
        }
    }

    /// Ends a cut under way. The next one takes its place at the receiver.
    fn abandon_ride(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
        self.get_off(cx, group, host, false);
        if let Some(subscriber) = self.outbound.get_mut(&group).and_then(|all| all.subscribers.get_mut(&host))
        {
            subscriber.credit = None;
        }
    }

    fn groups_of(&self, host: HostId) -> Vec<GroupId> {
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

    /// Whether a host has still to get something: also what it cannot take yet, as its own clocks are not so far.
    pub(super) fn has_more(&self, host: HostId) -> bool {
        let waits = |outbound: &Outbound| outbound.subscribers[&host].ride.is_some() || outbound.lacks(host);
        self.subscribed_by(host).any(|(_, outbound)| waits(outbound))
    }

    fn get_off(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId, arrived: bool) {
        if let Some(peer) = self.peers.get_mut(&host) {
            peer.ready.remove(&group);
        }
        let Some(outbound) = self.outbound.get_mut(&group) else { return };
        let Some(ride) = outbound.subscribers.get_mut(&host).and_then(|subscriber| subscriber.ride.take())
        else {
            return;
        };
        self.stirred.insert(group);
        if arrived {
            if let Some(train) = &mut outbound.trains[ride.slot] {
                train.fastest_ns.get_or_insert(cx.now.saturating_sub(train.departed_ns));
            }
            if ride.slot == SLOW {
                outbound.subscribers.get_mut(&host).expect("just seen").slow = false;
            }
        }
        let is_empty = !outbound
            .subscribers
            .values()
            .any(|other| other.ride.as_ref().is_some_and(|other| other.slot == ride.slot));
        if is_empty && let Some(train) = outbound.trains[ride.slot].take() {
            self.drop_pin(cx, &train.pinned);
        }
    }

    /// Lets trains depart for whom it is time.
    pub(super) fn depart(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        for slot in [EXPRESS, SLOW] {
            let waiting = self.waiting(cx.now, group, slot);
            let Some(&(_, choice)) = waiting.first() else { continue };
            if self.outbound[&group].trains[slot].is_some()
                && !(slot == EXPRESS && self.clear_express(cx, group))
            {
                continue;
            }
            self.board(cx, group, slot, choice, &waiting);
        }
    }

    /// Who waits for that train, and for which state.
    fn waiting(&mut self, now: u64, group: GroupId, slot: usize) -> Vec<(HostId, Choice)> {
        let no_labels = self.mutant(Mutant::NoLabels);
        let clock = self.clocks.own();
        let Some(outbound) = self.outbound.get(&group) else { return Vec::new() };
        let mut waiting = Vec::new();
        for (&host, subscriber) in &outbound.subscribers {
            let said = &subscriber.said;
            let is_slow = subscriber.slow || said.have.contains(&None);
            let free = subscriber.ride.is_none() && subscriber.credit.is_none() && said.stage == Stage::Free;
            let Some(peer) = self.peers.get(&host) else { continue };
            if !free || said.have.is_empty() || is_slow != (slot == SLOW) || !peer.connected || !peer.greeted
            {
                continue;
            }
            let lowest = if no_labels { Some(u64::MAX - 1) } else { peer.lowest };
            let Some(choice) = outbound.choose(host, lowest) else { continue };
            let interval_us = said.interval_us.max(outbound.interval_us());
            let due_ns = subscriber
                .departed_ns
                .map_or(0, |departed| departed.saturating_add(interval_us.saturating_mul(1000)));
            // What a clock covers that this host tells is waited for by clocks there.
            let is_covered = choice.kept.is_some() || (choice.label > 0 && choice.label <= clock);
            if due_ns > now && !subscriber.hurry && !is_covered {
                self.alarms.insert((due_ns, group));
                continue;
            }
            waiting.push((host, choice));
        }
        waiting
    }

    /// Makes room for the next express if the one under way is overdue. Who is late goes on as the slow train, or, if there
    /// is one, waits for the next of those.
    fn clear_express(&mut self, cx: &mut Cx<'_>, group: GroupId) -> bool {
        let outbound = self.outbound.get_mut(&group).expect("somebody waits for it");
        let Some(Train { departed_ns, fastest_ns: Some(fastest_ns), .. }) = &outbound.trains[EXPRESS] else {
            return false;
        };
        let overdue_ns = departed_ns + 2 * fastest_ns + 1;
        if cx.now < overdue_ns {
            self.alarms.insert((overdue_ns, group));
            return false;
        }
        let rides_on = outbound.trains[SLOW].is_none();
        let mut late = Vec::new();
        for (&host, subscriber) in &mut outbound.subscribers {
            if let Some(ride) = &mut subscriber.ride
                && ride.slot == EXPRESS
            {
                subscriber.slow = true;
                late.push(host);
                if rides_on {
                    ride.slot = SLOW;
                } else {
                    // Its next cut replaces this one.
                    subscriber.credit = None;
                }
            }
        }
        if rides_on {
            outbound.trains.swap(EXPRESS, SLOW);
        } else {
            late.into_iter().for_each(|host| self.get_off(cx, group, host, false));
        }
        true
    }

    fn board(
        &mut self,
        cx: &mut Cx<'_>,
        group: GroupId,
        slot: usize,
        choice: Choice,
        waiting: &[(HostId, Choice)],
    ) {
        // If it cannot be pinned now, it is tried again after a while, or at the next publication.
        let Some(pinned) = self.pin(cx, group, choice.kept) else {
            self.counters.pins_refused += 1;
            self.alarms.insert((cx.now + self.config.alive_ns, group));
            return;
        };
        let outbound = &self.outbound[&group];
        // It may be newer than what was published when the choice was made; then so is its label.
        if choice.kept.is_none()
            && outbound.newest.as_ref().is_none_or(|newest| newest.label != pinned.state.label)
        {
            self.drop_pin(cx, &pinned);
            return;
        }
        let passengers: Vec<HostId> =
            waiting.iter().filter(|(_, other)| *other == choice).map(|(host, _)| *host).collect();
        let bases = |member: usize| -> Option<Version> {
            let have = passengers.iter().filter_map(|host| outbound.subscribers[host].said.have.get(member));
            have.copied().min().flatten()
        };
        let mut lines = Vec::with_capacity(pinned.state.versions.len());
        for member in 0..pinned.state.versions.len() {
            let is_there = outbound.members.get(member).is_some_and(Option::is_some);
            let changed = is_there.then(|| cx.memory.changed(pinned.pin, member as u16, bases(member)));
            lines.push(changed.unwrap_or_default());
        }
        let mut starts = vec![0];
        for lines in &lines {
            starts.push(starts.last().expect("begins with 0") + lines.total());
        }
        self.last_cut += 1;
        let cut = self.last_cut;
        let outbound = self.outbound.get_mut(&group).expect("just seen");
        for &host in &passengers {
            let subscriber = outbound.subscribers.get_mut(&host).expect("it waits");
            let members = subscriber.said.have.len().min(lines.len());
            self.counters.skipped_labels += u64::from(choice.label < pinned.state.label);
            subscriber.ride = Some(Ride {
                slot,
                cut,
                base: subscriber.said.state,
                label: choice.label,
                total: starts[members],
                cursor: 0,
                lost: Intervals::default(),
                begun: false,
                headers: 0,
            });
            subscriber.credit = Some(cut);
            subscriber.departed_ns = Some(cx.now);
            subscriber.hurry = false;
            self.peers.get_mut(&host).expect("it waits").ready.insert(group);
        }
        self.counters.cuts += passengers.len() as u64;
        outbound.trains[slot] =
            Some(Train { cut, pinned, lines, starts, departed_ns: cx.now, fastest_ns: None });
    }

    /// Puts lines of a group into a packet, as far as they fit, with the cut's header until the peer has one. The group stays
    /// ready as long as there is more.
    pub(super) fn load(&mut self, now: u64, host: HostId, group: GroupId, packet: &mut Filling) {
        let ready = &mut self.peers.get_mut(&host).expect("it is sent to").ready;
        let outbound = self.outbound.get_mut(&group);
        let of_host =
            outbound.and_then(|all| Some((&all.members, &all.trains, all.subscribers.get_mut(&host)?)));
        let Some((members, trains, Subscriber { said, ride: Some(ride), .. })) = of_host else {
            ready.remove(&group);
            return;
        };
        let train = trains[ride.slot].as_ref().expect("it has a passenger");
        debug_assert_eq!(train.cut, ride.cut);
        if !ride.has_work() {
            ready.remove(&group);
            return;
        }
        if !ride.begun {
            let count = said.have.len().min(train.lines.len());
            let cut = Cut {
                cut: ride.cut,
                group,
                base: ride.base,
                round: train.pinned.state.round,
                label: ride.label,
                age_ns: now.saturating_sub(train.pinned.published_ns),
                total: ride.total,
                versions: train.pinned.state.versions[..count].to_vec(),
            };
            if !packet.add(&Frame::Cut(cut)) {
                return;
            }
            ride.headers += 1;
            packet.sent.cuts.push((group, ride.cut));
        }
        loop {
            let lost = ride.lost.take_front(u64::MAX);
            let wanted = lost.clone().unwrap_or(ride.cursor..ride.total);
            let taken = add_lines(packet, train, members, wanted);
            match &lost {
                Some(lost) => ride.lost.insert(taken.end..lost.end),
                None => ride.cursor = taken.end,
            }
            if taken.is_empty() {
                break;
            }
            let count = taken.end - taken.start;
            self.counters.lines_sent += count;
            self.counters.lines_resent += if lost.is_some() { count } else { 0 };
            packet.sent.lines.push((group, ride.cut, taken));
        }
        if !ride.has_work() {
            ready.remove(&group);
        }
    }

    /// Lines of a cut were lost, or its header.
    pub(super) fn on_lost(&mut self, host: HostId, sent: super::peer::Sent) {
        for (group, cut) in sent.cuts {
            if let Some(ride) = self.ride(host, group, cut) {
                ride.headers -= 1;
            }
            self.make_ready(host, group);
        }
        for (group, cut, range) in sent.lines {
            if self.mutant(Mutant::ForgetLost) {
                continue;
            }
            if let Some(ride) = self.ride(host, group, cut) {
                ride.lost.insert(range);
            }
            self.make_ready(host, group);
        }
    }

    /// The header of a cut came.
    pub(super) fn on_begun(&mut self, host: HostId, group: GroupId, cut: u64) {
        if let Some(ride) = self.ride(host, group, cut) {
            ride.headers -= 1;
            ride.begun = true;
        }
    }

    fn ride(&mut self, host: HostId, group: GroupId, cut: u64) -> Option<&mut Ride> {
        let ride = self.outbound.get_mut(&group)?.subscribers.get_mut(&host)?.ride.as_mut()?;
        (ride.cut == cut).then_some(ride)
    }

    fn make_ready(&mut self, host: HostId, group: GroupId) {
        let ride = self.outbound.get(&group).and_then(|all| all.subscribers.get(&host)?.ride.as_ref());
        if ride.is_some_and(Ride::has_work)
            && let Some(peer) = self.peers.get_mut(&host)
        {
            peer.ready.insert(group);
        }
    }
}

/// Adds a data frame for as many lines at `wanted` as fit, all of one member. Which they are.
fn add_lines(
    packet: &mut Filling,
    train: &Train,
    members: &[Option<Description>],
    wanted: Range<u64>,
) -> Range<u64> {
    let from = wanted.start;
    if wanted.is_empty() {
        return from..from;
    }
    let member = train.starts.partition_point(|&start| start <= from) - 1;
    let (first, end) = (train.starts[member], train.starts[member + 1].min(wanted.end));
    // A member that was deleted meanwhile is received by nobody; its lines are as good as sent.
    let Some(description) = members.get(member).and_then(Option::as_ref) else { return from..end };
    let (mut cost, mut bytes, mut position, mut runs, mut lens) =
        (data_cost(0), 0, from, Vec::new(), Vec::new());
    for mut run in train.lines[member].at(from - first..end - first) {
        let left = packet.left().saturating_sub(cost + data_cost(1) - data_cost(0));
        run.count = run.count.min((left as u64 / LINE) as u32);
        if run.count == 0 {
            break;
        }
        let offset = u64::from(run.first) * LINE;
        let len = (u64::from(run.count) * LINE).min(description.bytes - offset);
        cost += data_cost(1) - data_cost(0) + len as usize;
        bytes += len as usize;
        position += u64::from(run.count);
        lens.push((offset, len as u32));
        runs.push(run);
    }
    if runs.is_empty() {
        return from..from;
    }
    put_data_header(&mut packet.bytes, train.cut, member as u16, from, &runs, bytes);
    for (offset, len) in lens {
        packet.gather(train.pinned.pin, member as u16, offset, len);
    }
    from..position
}
