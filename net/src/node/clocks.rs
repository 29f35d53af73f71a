//! The clocks of hosts, each of which is sent with the states that it covers.
//!
//! A clock counts at the receiver when the states that it covers are published there. If the receiver may not publish some of these
//! states yet, since its lowest clock is too low, it is sent the next clock after its lowest, and beside it the one after that: a later
//! clock would cover states that it can publish only after an earlier one has counted.
use super::outbound::Outbound;
use super::{Cx, Mutant, Node};
use crate::types::{GroupId, HostId};
use crate::wire::Register;
use std::collections::{BTreeMap, BTreeSet};

/// The most groups that a clock names: more do not fit into the smallest packet beside a hello.
const MAX_COVERED: usize = 60;

/// The clocks of this host and what is told of them.
#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// The lowest clock of this host's workers, and of all that they know of.
    clock: u64,
    lowest: u64,
    /// Peers that may have to be sent a clock.
    stirred: BTreeSet<HostId>,
    all_stirred: bool,
    /// Peers whose clocks may count by now.
    recount: BTreeSet<HostId>,
    told: BTreeMap<HostId, Told>,
    heard: BTreeMap<HostId, Heard>,
}

/// The clock that a peer was told.
#[derive(Debug, Default)]
struct Told {
    clock: u64,
    subscriptions: u32,
    covers: Vec<(GroupId, u64)>,
    /// The clock after that was told, too, with what it covers.
    ahead: Option<Vec<(GroupId, u64)>>,
    /// A clock that covers too much to be told: it waits until the peer has most of it.
    waiting: Option<(u64, Vec<(GroupId, u64)>)>,
}

/// A peer's clock: the one that counts, and those that are to count when the versions that they cover are here.
#[derive(Debug, Default)]
struct Heard {
    counted: u64,
    /// The oldest and the last ones that were received. That suffices: when one counts, the next one is here.
    pending: Vec<Claim>,
}

/// A clock, what it covers, and how many of this host's subscriptions its sender knew.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) clock: u64,
    pub(super) subscriptions: u32,
    pub(super) covers: Vec<(GroupId, u64)>,
}

impl Clocks {
    pub(super) fn stir(&mut self, host: HostId) {
        self.stirred.insert(host);
    }

    pub(super) fn stir_all(&mut self) {
        self.all_stirred = true;
    }

    pub(super) fn recount(&mut self, host: HostId) {
        self.recount.insert(host);
    }

    /// A group has come here, with all that this host published of it when it was here before: clocks that were told since then
    /// cover it no more.
    pub(super) fn uncover(&mut self, group: GroupId) {
        for told in self.told.values_mut() {
            told.covers.retain(|(covered, _)| *covered != group);
            if let Some(covers) = &mut told.ahead {
                covers.retain(|(covered, _)| *covered != group);
            }
            if let Some((_, covers)) = &mut told.waiting {
                covers.retain(|(covered, _)| *covered != group);
            }
        }
        self.all_stirred = true;
    }

    pub(super) fn recount_all(&mut self) {
        self.recount.extend(self.heard.keys());
    }

    /// The lowest clock of this host's workers.
    pub(super) fn own(&self) -> u64 {
        self.clock
    }

    /// The highest label of a state that may be published here.
    pub(super) fn may_publish(&self) -> u64 {
        self.lowest.saturating_add(1)
    }

    /// Whether a peer has still to be told of this host's clock.
    pub(super) fn owes(&self, host: HostId) -> bool {
        self.told.get(&host).is_none_or(|told| told.waiting.is_some() || told.clock < self.clock)
    }

    /// A peer's agent is another one.
    pub(super) fn forget(&mut self, host: HostId) {
        self.told.remove(&host);
        if let Some(heard) = self.heard.get_mut(&host) {
            heard.pending.clear();
        }
        self.stirred.insert(host);
    }
}

impl Node {
    /// Clocks of this host moved.
    pub(super) fn local_clocks(&mut self, clock: u64, lowest: u64) {
        if clock > self.clocks.clock {
            // Versions that it covers wait for no interval any more, and may be sent ahead.
            let before = self.clocks.clock;
            let is_covered = |outbound: &Outbound| outbound.has_interval() || outbound.label() > before;
            let covered = self.outbound.iter().filter(|(_, outbound)| is_covered(outbound));
            self.stirred.extend(covered.map(|(group, _)| *group));
        }
        self.clocks.clock = self.clocks.clock.max(clock);
        self.clocks.lowest = self.clocks.lowest.max(lowest);
        self.clocks.stir_all();
    }

    pub(super) fn advance_clocks(&mut self, cx: &mut Cx<'_>) {
        let stirred = match std::mem::take(&mut self.clocks.all_stirred) {
            true => self.peers.hosts().collect(),
            false => std::mem::take(&mut self.clocks.stirred),
        };
        self.clocks.stirred.clear();
        for host in stirred {
            self.tell_clock(host);
        }
        for host in std::mem::take(&mut self.clocks.recount) {
            self.count(cx, host);
        }
    }

    fn tell_clock(&mut self, host: HostId) {
        let Some(peer) = self.peers.get(&host) else { return };
        // Names that were created before a clock are in the directory before it counts anywhere, and what was deleted is gone.
        let own = self.clocks.clock.min(self.untold_since().unwrap_or(u64::MAX));
        let (lowest, subscriptions) = (self.clocks.lowest, peer.named.count());
        let named = peer.stated.count();
        let limit = peer.lowest.map_or(0, |lowest| lowest + 1);
        let label = self.covered_for(host).map(|(_, outbound)| outbound.label()).max().unwrap_or(0);
        let clock = if label > limit { own.min(limit) } else { own };
        let told = self.clocks.told.get(&host);
        let (last, known) = told.map_or((0, 0), |told| (told.clock, told.subscriptions));
        // A peer that has named more groups gets a new cover of the clock: the one it was told before does not count there.
        let mut next = told.filter(|_| known == subscriptions).and_then(|told| told.waiting.clone());
        if next.is_none() && (clock > last || known != subscriptions) {
            let ahead =
                told.and_then(|told| told.ahead.clone()).filter(|_| clock.checked_sub(1) == Some(last));
            let ahead = ahead.filter(|_| known == subscriptions);
            next = Some((clock, ahead.unwrap_or_else(|| self.covered_at(host, clock))));
        }
        if let Some((_, covers)) = &mut next {
            covers.retain(|(group, round)| {
                self.outbound.get(group).is_some_and(|outbound| !outbound.has(host, *round))
            });
            if self.mutant(Mutant::BareClocks) {
                covers.clear();
            }
        }
        // The groups that the next one covers have been sent, or soon will be (`Outbound::ahead`).
        let is_ahead = own > limit && label > limit;
        let ahead = is_ahead.then(|| self.covered_at(host, limit + 1));
        let told = self.clocks.told.entry(host).or_default();
        let before = told.ahead.take().filter(|_| (told.clock, told.subscriptions) == (limit, subscriptions));
        told.waiting = None;
        told.subscriptions = subscriptions;
        match next {
            Some((clock, covers)) if covers.len() <= MAX_COVERED => {
                (told.clock, told.covers) = (clock, covers)
            }
            Some(next) => {
                told.waiting = Some(next);
                // The last one that was told may not cover all that was named since.
                (told.clock, told.covers) = (0, Vec::new());
            }
            // States that an earlier agent of the peer received have no round there: the peer cannot tell that it has this one.
            None => told.covers.retain(|(group, round)| {
                !self.outbound.get(group).is_some_and(|outbound| outbound.has_without_round(host, *round))
            }),
        }
        let is_last = told.clock == limit && told.waiting.is_none();
        told.ahead = ahead.filter(|_| is_last).map(|ahead| before.unwrap_or(ahead));
        if let Some(covers) = &mut told.ahead {
            covers.retain(|(group, round)| {
                self.outbound.get(group).is_some_and(|outbound| {
                    !outbound.has(host, *round) && !outbound.has_without_round(host, *round)
                })
            });
            if told.covers.len() + covers.len() >= MAX_COVERED {
                told.ahead = None;
            }
        }
        let (mut clock, mut covers, mut ahead) = (told.clock, told.covers.clone(), told.ahead.clone());
        if self.mutant(Mutant::LoneClock)
            && let Some(later) = ahead.take()
        {
            (clock, covers) = (clock + 1, later);
        }
        self.tell(host, Register::Clock { clock, lowest, subscriptions, named, covers, ahead });
    }

    /// Up to which round a clock covers each group of which a host has copies.
    fn covered_at(&self, host: HostId, clock: u64) -> Vec<(GroupId, u64)> {
        let all = self.covered_for(host);
        all.filter_map(|(group, outbound)| Some((group, outbound.covered_round(clock)?))).collect()
    }

    /// A host says how many groups of this one it has named.
    pub(super) fn note_names(&mut self, from: HostId, named: u32) {
        if let Some(peer) = self.peers.get_mut(&from) {
            peer.names = Some(named);
            self.stirred.extend(self.handovers.leaving());
        }
    }

    pub(super) fn on_clock(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        lowest: u64,
        claim: Claim,
        ahead: Option<Claim>,
    ) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        // No host says more (`Event::Clocks`); one that does gets no arithmetic out of its range here.
        let lowest = lowest.min(u64::MAX - 1);
        let stated = peer.stated.count();
        if peer.lowest.is_none_or(|before| lowest > before) {
            peer.lowest = Some(lowest);
            // States that waited for it may depart, and clocks be told.
            self.clocks.stir(from);
            let groups: Vec<GroupId> = self.subscribed_by(from).map(|(group, _)| group).collect();
            self.stirred.extend(groups);
        }
        let is_said =
            |clock| claim.clock == clock || ahead.as_ref().is_some_and(|ahead| ahead.clock == clock);
        let heard = self.clocks.heard.entry(from).or_default();
        heard.pending.retain(|older| !is_said(older.clock) && older.subscriptions >= stated);
        heard.pending.truncate(1);
        if claim.subscriptions >= stated {
            // A former agent here may have counted the later one.
            self.set_floors(cx, from, &ahead.as_ref().unwrap_or(&claim).covers);
        }
        let heard = self.clocks.heard.entry(from).or_default();
        heard.pending.push(claim);
        heard.pending.extend(ahead);
        self.clocks.recount(from);
    }

    /// Lets a peer's clock count as far as what it covers is published here.
    fn count(&mut self, cx: &mut Cx<'_>, host: HostId) {
        let is_deserted = self.deserted && !self.mutant(Mutant::DesertedWaits);
        let Some(heard) = self.clocks.heard.get_mut(&host) else { return };
        let Some(peer) = self.peers.get(&host) else { return };
        let (mut counted, handovers) = (heard.counted, &self.handovers);
        heard.pending.retain(|claim| {
            if claim.clock <= counted {
                return false;
            }
            // It was made by one who did not know of all that is received here.
            if claim.subscriptions < peer.stated.count() {
                return true;
            }
            // Of a group that has gone to another owner since, all that this one published is here; of one that was left to this one, and
            // that it has not said to have taken, nothing that it publishes. Where no worker is left, nobody reads a group but those that
            // are to come here, and others are not sent: a clock that waited for them would hold up those that come.
            let is_here = |(group, round): &(GroupId, u64)| match self.inbound.get(group) {
                Some(_) if is_deserted && !handovers.expects(*group) => true,
                Some(inbound) if inbound.has_any() && handovers.owner_of(*group) == host => {
                    inbound.round >= *round
                }
                _ => !handovers.is_left_to(*group, host),
            };
            if !claim.covers.iter().all(is_here) {
                return true;
            }
            counted = claim.clock;
            for (group, round) in &claim.covers {
                if let Some(inbound) = self.inbound.get_mut(group)
                    && !inbound.has_any()
                {
                    inbound.floor = inbound.floor.max(*round);
                }
            }
            false
        });
        if counted > heard.counted {
            heard.counted = counted;
            cx.memory.set_clock(host, counted);
        }
    }
}
