//! Groups of other hosts to which this one subscribes: their cuts are received and committed.
use super::forced::Requests;
use super::ownerless::Ownerless;
use super::waiting_cut::Held;
use super::{Cx, Mutant, Node};
use crate::intervals::Intervals;
use crate::memory::Arrival;
use crate::types::{AreaId, Description, ElementType, GroupId, HostId, LINE, NameError, Place, Version};
use crate::wire::{Cut, Data, Key, Owner, Register, Stage, Subscription};
use std::collections::BTreeSet;

/// A group that is received.
#[derive(Debug)]
pub(super) struct Inbound {
    /// Its members as the owner tells them; `None` inside if deleted.
    pub(super) told: Vec<Option<Option<Description>>>,
    /// The version of each member with copies that is published here.
    pub(super) have: Vec<Option<Version>>,
    /// The owner's round of it; 0 if that is not known.
    pub(super) round: u64,
    /// The number of what is published here. `first_state` is that at the subscription.
    pub(super) state: u64,
    pub(super) first_state: u64,
    /// The last cut that began or was refused, and the last that ended.
    pub(super) last_cut: u64,
    pub(super) ended_cut: u64,
    pub(super) phase: Phase,
    /// Cuts that may not begin yet: one that waits for an earlier one, and one that is ahead of the clocks here.
    pub(super) held: Vec<Held>,
    /// The terms of a cut of which lines are written and not published.
    pub(super) partial: Option<Vec<u64>>,
    interval_us: u64,
    pub(super) requests: Requests,
    /// Nobody wants it any more; it goes when what was committed is published.
    leaving: bool,
    /// Where it is to be subscribed to when what was committed is published.
    pub(super) moving: Option<Owner>,
    /// The hosts of next owners that were told of it since it has this owner: some may have been passed over.
    pub(super) asked: BTreeSet<HostId>,
    /// Who attaches is told when a state of this round of the owner is there: clocks that count cover it.
    pub(super) floor: u64,
    pub(super) ownerless: Ownerless,
}

#[derive(Debug)]
pub(super) enum Phase {
    Idle,
    Receiving(Receiving),
    /// Whole and committed, not published.
    Arrived {
        cut: u64,
        round: u64,
        versions: Vec<Version>,
        refused: bool,
    },
}

/// The cut under way.
#[derive(Debug)]
pub(super) struct Receiving {
    pub(super) cut: Cut,
    pub(super) came: Intervals,
    /// Where its sender may write its lines, if it may, of which these were announced.
    pub(super) granted: Option<Vec<Place>>,
    pub(super) announced: Intervals,
    since_ns: u64,
}

impl Inbound {
    /// Whether anything of it is published here.
    pub(super) fn has_any(&self) -> bool {
        self.have.iter().any(Option::is_some)
    }

    pub(super) fn has(&self, member: u16) -> bool {
        matches!(self.have.get(usize::from(member)), Some(Some(_)))
    }

    /// Whether this host is sent it only when it asks, or is given it.
    pub(super) fn is_on_demand(&self) -> bool {
        self.told.iter().flatten().flatten().any(|description| description.on_demand)
    }

    /// Whether who attaches to a member may have it: data of it is here, up to what clocks cover, or comes on demand.
    pub(super) fn is_open(&self, member: u16) -> bool {
        match self.is_on_demand() {
            true => usize::from(member) < self.have.len(),
            false => self.has(member) && self.round >= self.floor,
        }
    }

    /// The owner's round of what is here, published or, of what is sent on demand, arrived.
    pub(super) fn round_here(&self) -> u64 {
        match self.phase {
            Phase::Arrived { round, .. } if self.is_on_demand() => round.max(self.round),
            _ => self.round,
        }
    }

    /// Whether workers read what has arrived, which no round has published: it is sent on demand.
    pub(super) fn is_read_in_place(&self) -> bool {
        self.is_on_demand() && matches!(self.phase, Phase::Arrived { .. })
    }

    /// The version of each member that is here, published or, of what is sent on demand, arrived.
    fn here(&self) -> Vec<Option<Version>> {
        match &self.phase {
            Phase::Arrived { versions, .. } if self.is_on_demand() => {
                versions.iter().copied().map(Some).collect()
            }
            _ => self.have.clone(),
        }
    }

    pub(super) fn description(&self, member: u16) -> Option<&Description> {
        self.told.get(usize::from(member))?.as_ref()?.as_ref()
    }

    /// The element type of a member.
    pub(super) fn element(&self, member: u16) -> Option<ElementType> {
        self.description(member).map(|description| description.element)
    }

    /// The subscription that the owner's host is sent, as of an epoch.
    pub(super) fn said(&self, epoch: u64) -> Subscription {
        let (stage, cut) = match &self.phase {
            Phase::Arrived { refused: true, .. } => (Stage::Busy, self.last_cut),
            Phase::Arrived { cut, .. } => (Stage::Complete, *cut),
            Phase::Idle | Phase::Receiving(_) => (Stage::Free, self.ended_cut),
        };
        Subscription {
            number: 0,
            stage,
            cut,
            state: self.state,
            round: self.round,
            epoch,
            interval_us: self.interval_us,
            // Of what is sent on demand, the next owner's host is not asked for what was answered.
            forced: if self.is_on_demand() { self.requests.last_open() } else { self.requests.last() },
            have: self.here(),
        }
    }
}

impl Node {
    pub(super) fn new_inbound(&mut self, interval_us: u64) -> Inbound {
        self.last_state += 1;
        Inbound {
            told: Vec::new(),
            have: Vec::new(),
            round: 0,
            state: self.last_state,
            first_state: self.last_state,
            last_cut: 0,
            ended_cut: 0,
            phase: Phase::Idle,
            held: Vec::new(),
            partial: None,
            interval_us,
            requests: Requests::default(),
            leaving: false,
            moving: None,
            asked: BTreeSet::new(),
            floor: 0,
            ownerless: Ownerless::default(),
        }
    }

    /// Subscribes to a group of another host; if it does already, the shorter interval counts.
    pub(super) fn subscribe(&mut self, group: GroupId, interval_us: u64) {
        if self.handovers.is_left(group) {
            // It subscribes where that has gone.
            return;
        }
        if !self.inbound.contains_key(&group) {
            let inbound = self.new_inbound(interval_us);
            self.inbound.insert(group, inbound);
        }
        let inbound = self.inbound.get_mut(&group).expect("just made");
        inbound.leaving = false;
        inbound.interval_us = inbound.interval_us.min(interval_us);
        self.restate_subscription(group);
    }

    /// A group that an earlier agent of this host received.
    pub(super) fn kept(
        &mut self,
        cx: &mut Cx<'_>,
        group: GroupId,
        members: Vec<Option<(Description, Option<Version>)>>,
        arrived: bool,
        interval_us: u64,
    ) {
        let mut inbound = self.new_inbound(interval_us);
        let is_home = group.home() == self.config.host;
        for (place, member) in members.into_iter().enumerate() {
            let (description, have) = member.map_or((None, None), |(it, have)| (Some(it), have));
            if let Some(description) = description.clone().filter(|_| is_home) {
                // The directory has accepted it, or it would not have been given away.
                let area = AreaId { group, member: place as u16 };
                self.state_name(area, description, true, None);
            }
            inbound.told.push(Some(description));
            inbound.have.push(have);
        }
        if arrived {
            let versions = inbound.have.iter().map(|have| have.unwrap_or_default()).collect();
            inbound.phase = Phase::Arrived { cut: 0, round: 0, versions, refused: false };
        } else {
            cx.memory.restore(group);
        }
        // The owner's host says it again.
        for member in 0..inbound.have.len() as u16 {
            cx.memory.ownerless(AreaId { group, member }, false);
        }
        // The former agent may have counted clocks before there was data. The owner says what they cover.
        inbound.floor = u64::MAX;
        self.inbound.insert(group, inbound);
        self.restate_subscription(group);
    }

    /// A host that knows of all that is received here says which states its clocks cover. What it covers no more is here, also if
    /// nobody knows the round of what is.
    pub(super) fn set_floors(&mut self, cx: &mut Cx<'_>, from: HostId, covers: &[(GroupId, u64)]) {
        let is_covered = |group: &GroupId| covers.iter().any(|(other, _)| other == group);
        let unknown = |(group, inbound): (&GroupId, &Inbound)| {
            let is_open = inbound.has_any() && inbound.round == 0 && inbound.floor > 0 && !is_covered(group);
            (self.owner_of(*group) == from && (inbound.floor == u64::MAX || is_open)).then_some(*group)
        };
        let groups: Vec<GroupId> = self.inbound.iter().filter_map(unknown).collect();
        for group in groups {
            let floor = covers.iter().find(|(other, _)| *other == group).map_or(0, |(_, round)| *round);
            self.inbound.get_mut(&group).expect("just listed").floor = floor;
            self.answer_attached(cx, group);
        }
    }

    /// Nobody here wants a group any more.
    pub(super) fn detach(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        if self.handovers.is_left(group) {
            // Who was to have it has no other way to get it.
            let members = self.outbound.get(&group).map_or(0, |outbound| outbound.members.len() as u16);
            return (0..members).for_each(|member| self.deleted(cx, AreaId { group, member }));
        }
        let Some(inbound) = self.inbound.get_mut(&group) else { return };
        if matches!(inbound.phase, Phase::Arrived { .. }) {
            inbound.leaving = true;
            return;
        }
        self.drop_held(group);
        let Some(mut inbound) = self.inbound.remove(&group) else { return };
        cx.memory.release(group);
        inbound.phase = Phase::Idle;
        let owner = self.owner_of(group);
        inbound.asked.insert(owner);
        self.unsubscribe_from(group, &inbound, None);
        // A host that subscribes again does so where the group goes, as nobody tells that twice.
        if let Some(owner) = inbound.moving {
            self.handovers.follow(group, owner);
        }
        if self.handovers.expects(group) {
            self.subscribe(group, 0);
        }
    }

    /// Tells all hosts that were told of a subscription that it is over, but the one at which it goes on. The present agent of one that
    /// was passed over may not have been told: it is not to count what is not counted here (`Clocks`).
    pub(super) fn unsubscribe_from(&mut self, group: GroupId, inbound: &Inbound, but: Option<HostId>) {
        let is_stated = |host: &HostId| self.peers.get(host).is_some_and(|it| it.stated.contains(group));
        let told: Vec<HostId> = inbound.asked.iter().copied().filter(is_stated).collect();
        for host in told.into_iter().filter(|host| Some(*host) != but) {
            let said =
                Subscription { stage: Stage::Off, have: Vec::new(), ..inbound.said(self.epoch_of(group)) };
            self.tell(host, Register::Subscription(group, said));
            self.clocks.recount(host);
        }
    }

    /// A host sends a group to which this one does not subscribe. What it knows may be from before this one owned the group, if it came
    /// after that host had left it; it would wait for an answer.
    fn disown(&mut self, host: HostId, group: GroupId) {
        let is_stated = self.peers.get(&host).is_some_and(|peer| peer.stated.contains(group));
        if is_stated && !self.outbound.contains_key(&group) {
            let nothing = self.new_inbound(0);
            let said = Subscription { stage: Stage::Off, ..nothing.said(self.epoch_of(group)) };
            self.tell(host, Register::Subscription(group, said));
        }
    }

    pub(super) fn restate_subscription(&mut self, group: GroupId) {
        let said = self.inbound[&group].said(self.epoch_of(group));
        self.state_subscription(self.owner_of(group), group, said);
    }

    /// Tells a host of a subscription: both count that it has heard of the group.
    pub(super) fn state_subscription(&mut self, to: HostId, group: GroupId, said: Subscription) {
        if let Some(peer) = self.peers.get_mut(&to)
            && peer.stated.insert(group)
        {
            self.clocks.stir(to);
        }
        self.tell(to, Register::Subscription(group, said));
    }

    /// The agent of a host is another one: its cuts are numbered from 1, and what was under way is not finished.
    pub(super) fn forget_cuts(&mut self, cx: &mut Cx<'_>, from: HostId) {
        let groups: BTreeSet<GroupId> =
            self.inbound.keys().filter(|group| self.owner_of(**group) == from).copied().collect();
        let moving = self.inbound.iter().filter(|(_, it)| it.moving.is_some_and(|owner| owner.host == from));
        let moving: Vec<GroupId> = moving.map(|(group, _)| *group).collect();
        self.under_way.retain(|(host, _), _| *host != from);
        self.forget_ownerless(cx, from);
        if let Some(peer) = self.peers.get_mut(&from) {
            let left = self.handovers.left_to(from);
            peer.stated = groups.iter().copied().chain(moving).chain(left).collect();
            // Drop pending subscriptions to groups that have come here or moved on: both sides must count the same groups.
            let stated = &peer.stated;
            peer.outbox.forget(|key| matches!(key, Key::Subscription(group) if !stated.contains(*group)));
        }
        for group in groups {
            self.drop_held(group);
            let inbound = self.inbound.get_mut(&group).expect("just listed");
            (inbound.last_cut, inbound.ended_cut) = (0, 0);
            match &mut inbound.phase {
                Phase::Arrived { cut, refused, .. } => (*cut, *refused) = (0, false),
                phase => *phase = Phase::Idle,
            }
            self.restate_subscription(group);
        }
    }

    /// The owner has no memory for the copies that it would send: whoever attaches to an area that has not come is told, and a
    /// group of which nothing has come is let go.
    pub(super) fn on_unsent(&mut self, cx: &mut Cx<'_>, group: GroupId, state: u64) {
        let Some(inbound) = self.inbound.get_mut(&group).filter(|inbound| inbound.state == state) else {
            return;
        };
        if inbound.is_on_demand() {
            if let Some(request) = inbound.requests.take_all() {
                cx.memory.answer(group, request, None, true);
            }
            return;
        }
        let first =
            AreaId { group, member: inbound.have.iter().take_while(|have| have.is_some()).count() as u16 };
        // A group that is being handed over to this host stays subscribed.
        let is_new = !inbound.has_any() && !self.handovers.expects(group);
        let by = self.owner_of(group);
        self.refuse_from(cx, first, NameError::Unsent { by });
        if is_new {
            self.detach(cx, group);
        }
    }

    /// A cut begins.
    pub(super) fn on_cut(&mut self, cx: &mut Cx<'_>, from: HostId, cut: Cut) {
        let stale_accepted = self.mutant(Mutant::StaleCut);
        let departed = self.handovers.departed_mut(cut.group).map(|departed| departed.inbound.first_state);
        if departed.is_some_and(|first| cut.base >= first) && self.handovers.is_left_to(cut.group, from) {
            // It is made for the subscription at the next owner's host.
            self.has_gone(cx, cut.group);
        }
        if !self.inbound.contains_key(&cut.group) {
            return self.disown(from, cut.group);
        }
        if !self.mutant(Mutant::ForeignCut) && self.is_foreign(cut.group, from) {
            return;
        }
        let inbound = self.inbound.get_mut(&cut.group).expect("just seen");
        // It was sent to where the group had gone. If that came back meanwhile, it will hear so.
        if inbound.moving.is_some_and(|owner| owner.host != from) && !inbound.has_any() {
            return;
        }
        if cut.versions.len() > inbound.have.len() || cut.base > inbound.state {
            self.counters.violations += 1;
            return;
        }
        let group = cut.group;
        let is_under_way =
            matches!(&inbound.phase, Phase::Receiving(receiving) if receiving.cut.cut == cut.cut);
        if is_under_way {
            if cut.placed {
                self.grant_again(from, group);
            }
            return;
        }
        if (cut.cut <= inbound.last_cut && !stale_accepted) || inbound.holds(from, cut.cut) {
            return;
        }
        // It was made for a subscription before this one. Its sender ends it when it hears of this one, and nothing else is to be said: that
        // it was refused would count for a cut that has overtaken it and came before.
        if cut.base < inbound.first_state {
            self.counters.cuts_refused += 1;
            return;
        }
        if self.is_to_be_held(&self.inbound[&group], &cut) {
            return self.hold(cx, from, cut);
        }
        let inbound = self.inbound.get_mut(&group).expect("just seen");
        inbound.last_cut = cut.cut;
        if let Phase::Arrived { refused, .. } = &mut inbound.phase {
            *refused = true;
            self.counters.cuts_refused += 1;
            self.restate_subscription(group);
            return;
        }
        let goes_back = inbound.have.iter().zip(&cut.versions).any(|(have, version)| *have > Some(*version))
            && !stale_accepted;
        if goes_back {
            inbound.phase = Phase::Idle;
            inbound.ended_cut = cut.cut;
            self.counters.cuts_refused += 1;
            self.restate_subscription(group);
            return;
        }
        let terms: Vec<u64> = cut.versions.iter().map(|version| version.term).collect();
        if inbound.partial.as_ref().is_some_and(|partial| *partial != terms) {
            cx.memory.restore(group);
        }
        inbound.partial = Some(terms);
        cx.memory.begin(group, &cut.versions);
        self.end_under_way(group);
        self.under_way.insert((from, cut.cut), group);
        let (came, announced) = (Intervals::default(), Intervals::default());
        let receiving = Receiving { cut, came, granted: None, announced, since_ns: cx.now };
        self.inbound.get_mut(&group).expect("just seen").phase = Phase::Receiving(receiving);
        self.grant(cx, from, group);
        self.complete(cx, group);
    }

    /// Lines of a cut.
    pub(super) fn on_data(&mut self, cx: &mut Cx<'_>, from: HostId, data: &Data<'_>) {
        // One cut of a sender is of one group.
        let Some(group) = self.group_of_cut(from, data.cut) else {
            self.counters.stale_lines += u64::from(!self.hold_lines(from, data));
            return;
        };
        let first_only = self.mutant(Mutant::SplitGroup) && self.inbound[&group].has_any();
        let inbound = self.inbound.get_mut(&group).expect("just found");
        let Phase::Receiving(receiving) = &inbound.phase else { return };
        let area = AreaId { group, member: data.member };
        let total = receiving.cut.total;
        let Some(description) = inbound.description(data.member).cloned() else { return };
        let count: u64 = data.runs().map(|run| u64::from(run.count)).sum();
        let len: u64 = data.runs().map(|run| run_bytes(&description, run)).sum();
        // Some of them may be on their way into memory.
        let is_placed = receiving.granted.is_some();
        let outside =
            data.runs().any(|run| u64::from(run.first) + u64::from(run.count) > description.lines());
        if outside
            || is_placed
            || len != data.bytes.len() as u64
            || data.position + count > total
            || usize::from(data.member) >= receiving.cut.versions.len()
        {
            self.counters.violations += 1;
            return;
        }
        let mut bytes = data.bytes;
        for run in data.runs() {
            let (these, rest) = bytes.split_at(run_bytes(&description, run) as usize);
            bytes = rest;
            if !(first_only && data.member > 0) {
                cx.memory.write(area, run, these);
            }
        }
        let Phase::Receiving(receiving) = &mut inbound.phase else { return };
        receiving.came.insert(data.position..data.position + count);
        self.counters.lines_received += count;
        self.complete(cx, group);
    }

    pub(super) fn group_of_cut(&self, from: HostId, cut: u64) -> Option<GroupId> {
        let group = self.under_way.get(&(from, cut))?;
        let is_under_way = matches!(&self.inbound.get(group)?.phase, Phase::Receiving(receiving) if receiving.cut.cut == cut);
        is_under_way.then_some(*group)
    }

    /// Commits the cut under way if it is whole.
    pub(super) fn complete(&mut self, cx: &mut Cx<'_>, group: GroupId) {
        let missing = u64::from(self.mutant(Mutant::EarlyCommit));
        let (first_only, no_labels) = (self.mutant(Mutant::SplitGroup), self.mutant(Mutant::NoLabels));
        let early_first = self.mutant(Mutant::EarlyFirst);
        let inbound = self.inbound.get_mut(&group).expect("a cut of it is under way");
        let Phase::Receiving(receiving) = &inbound.phase else { return };
        let Receiving { cut, came, since_ns, .. } = receiving;
        let no_labels = no_labels || (early_first && !inbound.has_any());
        if !came.covers(cut.total.saturating_sub(missing)) {
            return;
        }
        let mut arrival = Arrival {
            versions: cut.versions.clone(),
            label: if no_labels { 0 } else { cut.label },
            age_ns: cut.age_ns.saturating_add(cx.now.saturating_sub(*since_ns)),
        };
        if first_only {
            for (version, have) in arrival.versions.iter_mut().zip(&inbound.have).skip(1) {
                *version = have.unwrap_or(*version);
            }
        }
        let (cut, round, versions) = (cut.cut, cut.round, arrival.versions.clone());
        self.end_under_way(group);
        if !cx.memory.commit(group, arrival) {
            if self.mutant(Mutant::FailedCounts) {
                self.inbound.get_mut(&group).expect("just seen").phase =
                    Phase::Arrived { cut, round, versions, refused: false };
                return self.visible(cx, group, &[]);
            }
            // Its sender is told that nobody subscribes, and never that it is here: it would let it go, though it may be nowhere else.
            self.refuse_from(cx, AreaId { group, member: 0 }, NameError::Deleted);
            return self.detach(cx, group);
        }
        let inbound = self.inbound.get_mut(&group).expect("just seen");
        inbound.phase = Phase::Arrived { cut, round, versions, refused: false };
        self.counters.arrivals += 1;
        self.restate_subscription(group);
        // Of what is sent on demand, what has arrived is here.
        self.answer_wishes(cx, group);
    }

    /// A round of this host published what was committed.
    pub(super) fn visible(&mut self, cx: &mut Cx<'_>, group: GroupId, versions: &[Version]) {
        let Some(inbound) = self.inbound.get_mut(&group) else { return };
        let Phase::Arrived { round, .. } = inbound.phase else { return };
        for (have, version) in inbound.have.iter_mut().zip(versions) {
            *have = Some(*version);
        }
        inbound.round = round;
        inbound.phase = Phase::Idle;
        inbound.ended_cut = inbound.last_cut;
        inbound.partial = None;
        self.last_state += 1;
        inbound.state = self.last_state;
        if inbound.leaving {
            return self.detach(cx, group);
        }
        self.restate_subscription(group);
        self.answer_attached(cx, group);
        self.answer_wishes(cx, group);
        let owner = self.owner_of(group);
        self.clocks.recount(owner);
        self.go_ahead(cx, group);
        self.take(cx, group);
    }
}

fn run_bytes(description: &Description, run: crate::lines::Run) -> u64 {
    let start = u64::from(run.first) * LINE;
    (u64::from(run.count) * LINE).min(description.bytes.saturating_sub(start))
}
