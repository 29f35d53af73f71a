//! The beginning and end of cuts of this host's groups.
//!
//! A *train* is a pinned state that is sent to several subscribers at once (its passengers), with all lines that any of them may lack.
//! The express leaves as soon as a subscriber waits for it. The slow train is for subscribers that have nothing yet, and for those that
//! were too slow for an express.
use super::outbound::{Choice, EARLIER, EXPRESS, Ride, SLOW, SMALL_LINES, Subscriber, Train};
use super::{AGAIN_NS, Cx, Mutant, Node};
use crate::intervals::Intervals;
use crate::memory::{PinId, Pinned};
use crate::types::{GroupId, HostId, Version};
use crate::wire::{Register, Stage};

/// A train is late when it has taken this many times as long as its first passenger needed.
const OVERDUE: u64 = 2;

impl Node {
    /// Pins a state for those who wait for it, who are told if there is no memory for that; or else after how long to try again.
    fn pin(
        &mut self,
        cx: &mut Cx<'_>,
        group: GroupId,
        label: Option<u64>,
        waiting: &[(HostId, Choice)],
    ) -> Result<Pinned, u64> {
        match cx.memory.pin(group, label) {
            Ok(pinned) => {
                // A round is at it, or all copies are in use: nothing says when they are not.
                let pinned = pinned.ok_or(AGAIN_NS)?;
                *self.pins.entry(pinned.pin).or_default() += 1;
                Ok(pinned)
            }
            Err(_) => {
                self.counters.pins_refused += 1;
                self.last_unsent += 1;
                for &(host, _) in waiting {
                    let outbound = self.outbound.get_mut(&group).expect("it is waited for");
                    let subscriber = outbound.subscribers.get_mut(&host).expect("it waits");
                    // Of what is sent on demand, this is the answer.
                    subscriber.wanted = None;
                    let state = subscriber.said.state;
                    self.tell(host, Register::Unsent(group, state, self.last_unsent));
                }
                Err(self.config.alive_ns)
            }
        }
    }

    pub(super) fn drop_pin(&mut self, cx: &mut Cx<'_>, pin: PinId) {
        let count = self.pins.get_mut(&pin).expect("it was counted");
        *count -= 1;
        if *count == 0 {
            self.pins.remove(&pin);
            cx.memory.unpin(pin);
        }
    }

    /// A host cannot be reached: its cuts end, and their trains go on without it.
    pub(super) fn abandon_rides(&mut self, cx: &mut Cx<'_>, host: HostId) {
        for group in self.groups_of(host) {
            self.abandon_ride(cx, group, host);
        }
    }

    /// Ends the cuts under way to a subscriber. The next one takes their place at the receiver.
    pub(super) fn abandon_ride(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
        self.get_off(cx, group, host, false);
        self.end_earlier(cx, group, host);
        if let Some(subscriber) = self.subscriber(group, host) {
            (subscriber.credit, subscriber.overtaken) = (None, None);
        }
    }

    pub(super) fn subscriber(&mut self, group: GroupId, host: HostId) -> Option<&mut Subscriber> {
        self.outbound.get_mut(&group)?.subscribers.get_mut(&host)
    }

    /// Ends a cut to a subscriber. The state is let go with the last one.
    pub(super) fn get_off(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId, arrived: bool) {
        let Some(outbound) = self.outbound.get_mut(&group) else { return };
        let Some(subscriber) = outbound.subscribers.get_mut(&host) else { return };
        let Some(ride) = subscriber.ride.take() else { return };
        if arrived {
            subscriber.overtaken = None;
            if let Some(train) = &mut outbound.trains[ride.slot] {
                train.fastest_ns.get_or_insert(cx.now.saturating_sub(train.departed_ns));
            }
            if ride.slot == SLOW {
                subscriber.slow = false;
            }
        }
        self.has_ended(cx, group, host, ride.slot);
    }

    /// Ends the cut before the one under way, if it has not.
    pub(super) fn end_earlier(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
        if let Some(ride) = self.subscriber(group, host).and_then(|subscriber| subscriber.earlier.take()) {
            self.has_ended(cx, group, host, ride.slot);
        }
    }

    /// A cut to a subscriber has ended, which went by that train.
    fn has_ended(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId, slot: usize) {
        if let Some(peer) = self.peers.get_mut(&host) {
            peer.ready.remove(&group);
        }
        self.make_ready(host, group);
        self.stirred.insert(group);
        let outbound = self.outbound.get_mut(&group).expect("a cut of it has ended");
        let is_used = outbound.subscribers.values().any(|other| other.rides().any(|ride| ride.slot == slot));
        if !is_used && let Some(train) = outbound.trains[slot].take() {
            self.drop_pin(cx, train.pinned.pin);
        }
    }

    /// Lets trains depart for whom it is time.
    pub(super) fn depart(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        self.end_passed(cx, group);
        for slot in [EXPRESS, SLOW] {
            let mut waiting = self.waiting(cx.now, group, slot);
            if slot == EXPRESS {
                self.join_express(cx, group, &mut waiting);
            }
            let overtakes = slot == EXPRESS && self.all_overtake(group, &mut waiting);
            let Some(&(_, choice)) = waiting.first() else { continue };
            if !overtakes {
                self.put_off_ahead(cx, group, slot);
            }
            if self.outbound[&group].trains[slot].is_some()
                && !overtakes
                && !(slot == EXPRESS && self.clear_express(cx, group))
            {
                continue;
            }
            self.board(cx, group, (slot, overtakes), choice, &waiting);
        }
    }

    /// Who waits for that train, and for which state.
    fn waiting(&mut self, now: u64, group: GroupId, slot: usize) -> Vec<(HostId, Choice)> {
        let (no_labels, early_first) = (self.mutant(Mutant::NoLabels), self.mutant(Mutant::EarlyFirst));
        let clock = self.clocks.own();
        let Some(outbound) = self.outbound.get(&group) else { return Vec::new() };
        let (on_demand, next) = (outbound.is_on_demand(), self.handovers.next_host(group));
        let unasked = self.mutant(Mutant::Unasked);
        let mut waiting = Vec::new();
        for (&host, subscriber) in &outbound.subscribers {
            if on_demand && subscriber.wanted.is_none() && next != Some(host) && !unasked {
                continue;
            }
            let said = &subscriber.said;
            let is_slow = subscriber.slow || said.have.contains(&None);
            let free = subscriber.ride.is_none() && subscriber.credit.is_none() && said.stage == Stage::Free;
            let rides = slot == EXPRESS && subscriber.ride.is_some() && !on_demand;
            let Some(peer) = self.peers.get(&host) else { continue };
            let is_there = peer.connected && peer.greeted;
            if !(free || rides) || said.have.is_empty() || is_slow != (slot == SLOW) || !is_there {
                continue;
            }
            let may_be_ahead = |label| slot == EXPRESS && !on_demand && !early_first && label <= clock;
            let is_early = no_labels || (early_first && said.have.iter().all(Option::is_none));
            let lowest = if is_early { Some(u64::MAX - 1) } else { peer.lowest };
            // Who is behind waits for what clocks cover, and nothing else.
            let ahead = outbound.ahead(host, lowest).filter(|ahead| may_be_ahead(ahead.label));
            let Some(choice) = ahead.or_else(|| outbound.choose(host, lowest)) else { continue };
            // Who asks for it is sent no older state, nor the next owner's host: it waits for that host's clocks.
            if on_demand && (choice.kept.is_some() || choice.label != outbound.label()) {
                continue;
            }
            let interval_us = said.interval_us.max(outbound.interval_us());
            let due_ns = subscriber
                .departed_ns
                .map_or(0, |departed| departed.saturating_add(interval_us.saturating_mul(1000)));
            // Clocks there wait for cuts that a clock of this host covers.
            let is_covered = choice.kept.is_some() || (choice.label > 0 && choice.label <= clock);
            // Nor does a worker wait for what it is given.
            let waits_for_nothing = subscriber.hurry || is_covered || next.is_some();
            let mut due_ns = if waits_for_nothing { 0 } else { due_ns };
            if rides {
                let is_full = outbound.trains[EARLIER].is_some() && self.goes_on(group, host, choice.label);
                let overtakes_ns = outbound.may_overtake(subscriber, choice, is_covered);
                let Some(overtakes_ns) = overtakes_ns.filter(|_| !is_full) else {
                    continue;
                };
                due_ns = due_ns.max(overtakes_ns);
            }
            if due_ns > now {
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
        let overdue_ns = departed_ns + OVERDUE * fastest_ns + 1;
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
        (slot, overtakes): (usize, bool),
        choice: Choice,
        waiting: &[(HostId, Choice)],
    ) {
        // As a rule, the last state is let go before the next one is pinned.
        let goes_on = overtakes
            && self.on_express(group).into_iter().any(|host| self.goes_on(group, host, choice.label));
        if overtakes && !goes_on {
            self.overtake(cx, group, choice.label);
        }
        // If it cannot be pinned now, it is tried again after a while, or at the next publication.
        let pinned = match self.pin(cx, group, choice.kept, waiting) {
            Ok(pinned) => pinned,
            Err(after_ns) => {
                // They may hold the copies that are needed.
                [EXPRESS, SLOW].into_iter().for_each(|slot| self.put_off_ahead(cx, group, slot));
                self.alarms.insert((cx.now + after_ns, group));
                return;
            }
        };
        let outbound = &self.outbound[&group];
        // It may be newer than what was published when the choice was made; then so is its label.
        if choice.kept.is_none()
            && outbound.newest.as_ref().is_none_or(|newest| newest.label != pinned.state.label)
        {
            self.drop_pin(cx, pinned.pin);
            return;
        }
        let passengers: Vec<HostId> =
            waiting.iter().filter(|(_, other)| *other == choice).map(|(host, _)| *host).collect();
        let bases = |member: usize| -> Option<Version> {
            let have = passengers.iter().filter_map(|host| outbound.subscribers[host].said.have.get(member));
            have.copied().min().flatten()
        };
        let bases: Vec<Option<Version>> = (0..pinned.state.versions.len()).map(bases).collect();
        let mut lines = Vec::with_capacity(bases.len());
        for (member, base) in bases.iter().enumerate() {
            let is_there = outbound.members.get(member).is_some_and(Option::is_some);
            let changed = is_there.then(|| cx.memory.changed(pinned.pin, member as u16, *base));
            lines.push(changed.unwrap_or_default());
        }
        let mut starts = vec![0];
        for lines in &lines {
            starts.push(starts.last().expect("begins with 0") + lines.total());
        }
        let total = |host: &HostId| starts[outbound.subscribers[host].said.have.len().min(lines.len())];
        // Its receiver could not keep it.
        let is_oversized = |host: &HostId| {
            let lines = total(host);
            self.is_ahead(*host, choice.label) && (lines > SMALL_LINES || self.is_to_be_placed(*host, lines))
        };
        if passengers.iter().any(is_oversized) {
            // It waits until that one's clocks are so far.
            self.outbound.get_mut(&group).expect("just seen").oversized = pinned.state.round;
            self.stirred.insert(group);
            self.drop_pin(cx, pinned.pin);
            return;
        }
        let ahead = passengers.iter().filter(|host| self.is_ahead(**host, choice.label)).count();
        let placed: Vec<bool> =
            passengers.iter().map(|host| self.is_to_be_placed(*host, total(host))).collect();
        if goes_on {
            self.overtake(cx, group, choice.label);
        }
        for &host in &passengers {
            if !self.is_ahead(host, choice.label) {
                self.end_earlier(cx, group, host);
            }
        }
        self.last_cut += 1;
        let cut = self.last_cut;
        let outbound = self.outbound.get_mut(&group).expect("just seen");
        let departed_ns = cx.now;
        outbound.trains[slot] =
            Some(Train { cut, pinned, lines, starts, bases, departed_ns, fastest_ns: None });
        for (&host, placed) in passengers.iter().zip(placed) {
            self.take_seat(cx.now, group, slot, (host, choice, placed));
        }
        self.counters.cuts_ahead += ahead as u64;
    }

    /// A subscriber's cut goes by a train.
    pub(super) fn take_seat(
        &mut self,
        now: u64,
        group: GroupId,
        slot: usize,
        (host, choice, placed): (HostId, Choice, bool),
    ) {
        let outbound = self.outbound.get_mut(&group).expect("it has a train");
        let train = outbound.trains[slot].as_ref().expect("it departs");
        let subscriber = outbound.subscribers.get_mut(&host).expect("it waits");
        let members = subscriber.said.have.len().min(train.lines.len());
        subscriber.ride = Some(Ride {
            slot,
            cut: train.cut,
            base: subscriber.said.state,
            label: choice.label,
            members,
            total: train.starts[members],
            cursor: 0,
            lost: Intervals::default(),
            begun: false,
            headers: 0,
            placed: placed.then(Default::default),
        });
        (subscriber.credit, subscriber.last_cut) = (Some(train.cut), train.cut);
        subscriber.departed_ns = Some(now);
        subscriber.hurry = false;
        self.peers.get_mut(&host).expect("it waits").ready.insert(group);
        self.counters.cuts += 1;
        self.counters.skipped_labels += u64::from(choice.label < train.pinned.state.label);
    }
}
