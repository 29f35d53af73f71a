//! How far the workers of each host are, with the data that a clock covers.
//!
//! A host's clock is told with the states that it covers, and counts at the receiver when those are published there. It is
//! told as the receiver can use it: as long as a state waits there for the receiver's own lowest clock, clocks beyond the
//! next would cover states that cannot be published before them.
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
    /// Peers to whom there may be more to say.
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
    /// A clock that covers too much to be told: it waits until the peer has most of it.
    waiting: Option<(u64, Vec<(GroupId, u64)>)>,
}

/// A peer's clock: the one that counts, and those that are to count when the versions that they cover are here.
#[derive(Debug, Default)]
struct Heard {
    counted: u64,
    /// The oldest and the newest, which suffices: when one counts, the next has come.
    pending: Vec<Claim>,
}

#[derive(Debug)]
struct Claim {
    clock: u64,
    subscriptions: u32,
    covers: Vec<(GroupId, u64)>,
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
            // Versions that it covers wait for no interval any more.
            let with_interval = self.outbound.iter().filter(|(_, outbound)| outbound.has_interval());
            self.stirred.extend(with_interval.map(|(group, _)| *group));
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
        // Names that were created before a clock are in the directory before it counts anywhere.
        let clock = self.clocks.clock.min(self.unnamed_since().unwrap_or(u64::MAX));
        let (lowest, subscriptions) = (self.clocks.lowest, peer.named.len() as u32);
        let named = peer.stated.hash();
        let limit = peer.lowest.map_or(0, |lowest| lowest + 1);
        let blocked = self.covered_for(host).any(|(_, outbound)| outbound.label() > limit);
        let clock = if blocked { clock.min(limit) } else { clock };
        let told = self.clocks.told.get(&host);
        let (last, known) = told.map_or((0, 0), |told| (told.clock, told.subscriptions));
        // A peer that has named more groups gets a new cover of the clock: the one it was told before does not count there.
        let mut next = told.filter(|_| known == subscriptions).and_then(|told| told.waiting.clone());
        if next.is_none() && (clock > last || known != subscriptions) {
            let covers = self
                .covered_for(host)
                .filter_map(|(group, outbound)| Some((group, outbound.covered_round(clock)?)));
            next = Some((clock, covers.collect()));
        }
        if let Some((_, covers)) = &mut next {
            covers.retain(|(group, round)| {
                self.outbound.get(group).is_some_and(|outbound| !outbound.has(host, *round))
            });
            if self.mutant(Mutant::BareClocks) {
                covers.clear();
            }
        }
        let told = self.clocks.told.entry(host).or_default();
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
        let register =
            Register::Clock { clock: told.clock, lowest, subscriptions, named, covers: told.covers.clone() };
        self.tell(host, register);
    }

    /// A host says which groups of this one it has named, by a hash of them.
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
        clock: u64,
        lowest: u64,
        subscriptions: u32,
        covers: Vec<(GroupId, u64)>,
    ) {
        let Some(peer) = self.peers.get_mut(&from) else { return };
        // No host says more (`Event::Clocks`); one that does gets no arithmetic out of its range here.
        let lowest = lowest.min(u64::MAX - 1);
        let stated = peer.stated.len();
        if peer.lowest.is_none_or(|before| lowest > before) {
            peer.lowest = Some(lowest);
            // States that waited for it may depart, and clocks be told.
            self.clocks.stir(from);
            let groups: Vec<GroupId> = self.subscribed_by(from).map(|(group, _)| group).collect();
            self.stirred.extend(groups);
        }
        let heard = self.clocks.heard.entry(from).or_default();
        heard.pending.retain(|claim| claim.clock != clock && claim.subscriptions as usize >= stated);
        heard.pending.truncate(1);
        if subscriptions as usize >= stated {
            self.set_floors(cx, from, &covers);
        }
        let heard = self.clocks.heard.entry(from).or_default();
        heard.pending.push(Claim { clock, subscriptions, covers });
        self.clocks.recount(from);
    }

    /// Lets a peer's clock count as far as what it covers is published here.
    fn count(&mut self, cx: &mut Cx<'_>, host: HostId) {
        let Some(heard) = self.clocks.heard.get_mut(&host) else { return };
        let Some(peer) = self.peers.get(&host) else { return };
        let (mut counted, handovers) = (heard.counted, &self.handovers);
        heard.pending.retain(|claim| {
            if claim.clock <= counted {
                return false;
            }
            // It was made by one who did not know of all that is received here.
            if (claim.subscriptions as usize) < peer.stated.len() {
                return true;
            }
            // Of a group that has gone to another owner since, all that this one published is here.
            let is_here = |(group, round): &(GroupId, u64)| match self.inbound.get(group) {
                Some(inbound) if inbound.has_any() && handovers.owner_of(*group) == host => {
                    inbound.round >= *round
                }
                _ => true,
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
