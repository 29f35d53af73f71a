//! Groups of this host and who subscribes to them: states are kept, cuts depart.
//!
//! A train is a pinned state and the lines that its passengers may lack. The express leaves as soon as somebody waits; the
//! slow train takes those who have nothing yet and those who kept the express waiting.
use super::outbound::{Choice, EXPRESS, LABELS, Outbound, Ride, SLOW, Subscriber, Train};
use super::{AGAIN_NS, Action, Cx, Mutant, Node};
use crate::intervals::Intervals;
use crate::memory::{PinId, Pinned, State};
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
        if let Some(member) = outbound.members.get_mut(usize::from(area.member)) {
            *member = None;
        }
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
            self.handovers.forget(area.group);
            for &host in &subscribers {
                self.unsubscribe(cx, area.group, host);
            }
            self.outbound.remove(&area.group);
        }
        // Its name was given by the host that created it.
        let home = area.group.home();
        let is_away = home != self.config.host && !subscribers.contains(&home);
        for host in subscribers.into_iter().chain(is_away.then_some(home)) {
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
            outbound.is_young = false;
        }
        outbound.newest = Some(state);
    }

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
                for &(host, _) in waiting {
                    let outbound = self.outbound.get_mut(&group).expect("it is waited for");
                    let subscriber = outbound.subscribers.get_mut(&host).expect("it waits");
                    // Of what is sent on demand, this is the answer.
                    subscriber.wanted = None;
                    let state = subscriber.said.state;
                    self.tell(host, Register::Unsent(group, state, self.counters.pins_refused));
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
            self.stirred.extend(self.handovers.leaving());
        }
        if said.stage == Stage::Off {
            self.handovers.forget_early(from, Some(group));
            self.unsubscribe(cx, group, from);
            self.stirred.insert(group);
            return;
        }
        if !self.outbound.contains_key(&group) && self.is_elsewhere(from, group, &said) {
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
        if asks && !on_demand {
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
        if asks && on_demand {
            subscriber.asked = Some(forced);
        }
        outbound.note_arrived(from);
        outbound.note_had_otherwise(from);
        let ride = self.outbound[&group].subscribers[&from].ride.as_ref();
        if ride.is_some_and(|ride| ride.cut <= cut) {
            self.get_off(cx, group, from, true);
        } else if ride.is_some_and(|ride| ride.base != state) {
            // It has subscribed again, or published what was given up before: the cut was made for another state.
            self.abandon_ride(cx, group, from);
        }
        if is_new {
            // Of the subscription before, nothing will be said any more.
            self.abandon_ride(cx, group, from);
            self.forget_members(from, group);
            self.tell_back(from, group);
            let members: Vec<_> = self.outbound[&group].members.iter().cloned().enumerate().collect();
            for (member, description) in members {
                self.tell(from, Register::Member(AreaId { group, member: member as u16 }, description));
            }
            self.tell_ownerless(from, group);
        }
        self.stirred.insert(group);
        self.clocks.stir(from);
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
    fn unsubscribe(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
        self.get_off(cx, group, host, false);
        let Some(outbound) = self.outbound.get_mut(&group) else { return };
        let was_here = outbound.subscribers.remove(&host).is_some();
        outbound.forcing.forget(host);
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

    /// A host cannot be reached: its cuts end, and their trains go on without it.
    pub(super) fn abandon_rides(&mut self, cx: &mut Cx<'_>, host: HostId) {
        for group in self.groups_of(host) {
            self.abandon_ride(cx, group, host);
        }
    }

    /// Ends a cut under way. The next one takes its place at the receiver.
    pub(super) fn abandon_ride(&mut self, cx: &mut Cx<'_>, group: GroupId, host: HostId) {
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
            self.drop_pin(cx, train.pinned.pin);
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
            let Some(peer) = self.peers.get(&host) else { continue };
            if !free || said.have.is_empty() || is_slow != (slot == SLOW) || !peer.connected || !peer.greeted
            {
                continue;
            }
            let is_early = no_labels || (early_first && said.have.iter().all(Option::is_none));
            let lowest = if is_early { Some(u64::MAX - 1) } else { peer.lowest };
            let Some(choice) = outbound.choose(host, lowest) else { continue };
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
        let pinned = match self.pin(cx, group, choice.kept, waiting) {
            Ok(pinned) => pinned,
            Err(after_ns) => {
                self.counters.pins_refused += 1;
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
        let outbound = &self.outbound[&group];
        let is_placed = |host: &HostId| {
            let members = outbound.subscribers[host].said.have.len().min(lines.len());
            self.is_to_be_placed(*host, starts[members])
        };
        let placed: Vec<bool> = passengers.iter().map(is_placed).collect();
        let outbound = self.outbound.get_mut(&group).expect("just seen");
        for (&host, placed) in passengers.iter().zip(placed) {
            let subscriber = outbound.subscribers.get_mut(&host).expect("it waits");
            let members = subscriber.said.have.len().min(lines.len());
            self.counters.skipped_labels += u64::from(choice.label < pinned.state.label);
            subscriber.ride = Some(Ride {
                slot,
                cut,
                base: subscriber.said.state,
                label: choice.label,
                members,
                total: starts[members],
                cursor: 0,
                lost: Intervals::default(),
                begun: false,
                headers: 0,
                placed: placed.then(Default::default),
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
}
