//! The judge: knows what every host published, and holds against it what others show.
use crate::groups::is_given;
use hectare_net::{AreaId, GroupId, HostId, PeerFailed, State, Version};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::rc::Rc;

/// The promises of a job over its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// The visible bytes of a version are the owner's bytes of it.
    Whole,
    /// Versions never go back.
    Order,
    /// Only the owner's versions are seen.
    OneWriter,
    /// The areas of a group are seen in one state.
    Groups,
    /// Versions published before a barrier are seen after it, and none from behind it.
    Barrier,
    /// A clock counts when the data it covers is there.
    Clocks,
    /// After the faults, everybody gets on and has the newest version in time.
    Progress,
    /// Who asks for what a group is now is answered when that is there.
    Requests,
    /// A group on demand is sent to those who ask for it, and to the worker that it is given to.
    Demand,
    /// A name has one area, and the areas of a group have one host; who asks gets the answer that fits.
    Names,
    /// Both hosts hear of what conflicts, and who has copies when an area is dropped.
    Told,
    /// One host decides who failed, and all end by that.
    OneDecision,
    /// The node uses its host's memory as agreed.
    Contract,
}

/// A promise that was not kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which.
    pub promise: Promise,
    /// When, in nanoseconds, and where.
    pub at: u64,
    /// The observation that breaks it.
    pub what: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} broken after {:.6} s: {}", self.promise, self.at as f64 / 1e9, self.what)
    }
}

/// A state as its owner published it.
#[derive(Debug)]
pub(crate) struct Published {
    /// Which.
    pub(crate) state: State,
    /// The bytes of each member.
    pub(crate) contents: Vec<Rc<Vec<u8>>>,
}

/// All that was published, and what was found.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    /// Virtual time.
    pub(crate) now: u64,
    /// Hosts of the job.
    pub(crate) hosts: u16,
    /// Promises that were not kept.
    pub(crate) broken: Vec<Broken>,
    states: BTreeMap<GroupId, BTreeMap<u64, Rc<Published>>>,
    contents: BTreeMap<(AreaId, Version), Rc<Vec<u8>>>,
    /// Each group's newest round when its host's clock came there.
    at_clock: BTreeMap<(HostId, u64), BTreeMap<GroupId, u64>>,
    names: BTreeMap<String, AreaId>,
    /// The first area of each name.
    first_of_name: BTreeMap<String, AreaId>,
    groups: BTreeMap<String, HostId>,
    /// Which host has still to hear that another one conflicts with an area.
    unheard: BTreeSet<(AreaId, HostId)>,
    heard: BTreeSet<(AreaId, HostId)>,
    /// Areas whose hosts were told themselves that the name is another's.
    refused: BTreeSet<AreaId>,
    ends: BTreeMap<HostId, PeerFailed>,
    /// Groups that their owners have deleted, and their clocks then.
    deleted: BTreeMap<GroupId, u64>,
    /// Groups that were dropped, and whether they still are.
    dropped: BTreeMap<GroupId, bool>,
    /// Which workers have failed, and which have left, of each host where some did.
    workers: BTreeMap<HostId, (u64, u64)>,
    /// To whose worker a group was given that is sent on demand, until that one has it.
    given_to: BTreeMap<GroupId, HostId>,
    /// The last clock of hosts without workers, and each group's newest round then.
    last_clocks: BTreeMap<HostId, (u64, BTreeMap<GroupId, u64>)>,
    /// The host whose worker owns a group that is given from host to host; `None` while it is on its way.
    owners: BTreeMap<GroupId, Option<HostId>>,
}

/// The order of a group's states: the owner's rounds, or, where owners change, the versions.
pub(crate) fn key(group: GroupId, state: &State) -> u64 {
    if is_given(group) { state.versions[0].counter } else { state.round }
}

impl Judge {
    /// Notes a promise that was not kept.
    pub(crate) fn broke(&mut self, promise: Promise, what: String) {
        if self.broken.len() < 20 {
            self.broken.push(Broken { promise, at: self.now, what });
        }
    }

    /// An owner published a state.
    pub(crate) fn published(&mut self, group: GroupId, published: Rc<Published>) {
        for (member, (version, bytes)) in published.state.versions.iter().zip(&published.contents).enumerate()
        {
            self.contents.insert((AreaId { group, member: member as u16 }, *version), bytes.clone());
        }
        self.states.entry(group).or_default().insert(key(group, &published.state), published);
    }

    /// The lowest clock of a host's own workers rose.
    pub(crate) fn local_clock(
        &mut self,
        host: HostId,
        before: u64,
        clock: u64,
        rounds: &BTreeMap<GroupId, u64>,
    ) {
        for clock in before + 1..=clock {
            self.at_clock.insert((host, clock), rounds.clone());
        }
    }

    /// A host made a received state visible. The round of its owner, if there was such a state.
    pub(crate) fn visible(
        &mut self,
        host: HostId,
        group: GroupId,
        before: &[Option<Version>],
        versions: &[Version],
        bytes: &[&[u8]],
    ) -> Option<u64> {
        for (member, (version, bytes)) in versions.iter().zip(bytes).enumerate() {
            let area = AreaId { group, member: member as u16 };
            match self.contents.get(&(area, *version)) {
                None => self.broke(
                    Promise::OneWriter,
                    format!("{host} shows version {version:?} of {area:?}, which its owner never published"),
                ),
                Some(owners) if owners[..] != **bytes => {
                    let line = owners.iter().zip(*bytes).position(|(a, b)| a != b).unwrap_or(0) / 64;
                    self.broke(
                        Promise::Whole,
                        format!(
                            "{host} shows version {version:?} of {area:?} with other bytes in line {line}"
                        ),
                    );
                }
                Some(_) => {}
            }
            if before.get(member).copied().flatten().is_some_and(|before| before > *version) {
                self.broke(
                    Promise::Order,
                    format!("{host} shows {version:?} of {area:?} after {:?}", before[member]),
                );
            }
        }
        let states = self.states.get(&group)?;
        let round = states
            .iter()
            .rev()
            .find(|(_, published)| published.state.versions.starts_with(versions))
            .map(|(key, _)| *key);
        if round.is_none() && self.broken.is_empty() {
            self.broke(
                Promise::Groups,
                format!("{host} shows {versions:?} of {group:?}, which were never together"),
            );
        }
        round
    }

    /// Whether the state of `round` has what the owner had published when its clock was `clock`.
    pub(crate) fn covers(&self, group: GroupId, round: Option<u64>, clock: u64) -> bool {
        // Its newest states need not come any more.
        if self.is_deleted(group) {
            return true;
        }
        match is_given(group) {
            // By whoever it was owned then.
            true => (0..self.hosts).all(|host| self.covers_of(HostId(host), group, round, clock)),
            false => self.covers_of(group.home(), group, round, clock),
        }
    }

    /// The same of what one owner had published.
    pub(crate) fn covers_of(&self, host: HostId, group: GroupId, round: Option<u64>, clock: u64) -> bool {
        let needed = self.rounds_at(host, clock).and_then(|rounds| rounds.get(&group)).copied();
        self.is_deleted(group) || needed.is_none_or(|needed| self.has(group, round, needed))
    }

    /// The state of a group that a host shows which has reached a clock of all and asks: the latest that its owners had published by
    /// then.
    pub(crate) fn at_clock(&self, group: GroupId, clock: u64) -> u64 {
        let of = |host| self.rounds_at(HostId(host), clock)?.get(&group).copied();
        (0..self.hosts).filter_map(of).max().unwrap_or(0)
    }

    /// The newest rounds of a host when its clock came there.
    fn rounds_at(&self, host: HostId, clock: u64) -> Option<&BTreeMap<GroupId, u64>> {
        let last = self.last_clocks.get(&host).filter(|(last, _)| clock > *last).map(|(_, rounds)| rounds);
        last.or_else(|| self.at_clock.get(&(host, clock)))
    }

    /// A host without workers is out of all clocks after this one.
    pub(crate) fn last_clock(&mut self, host: HostId, clock: u64, rounds: BTreeMap<GroupId, u64>) {
        self.last_clocks.insert(host, (clock, rounds));
    }

    /// A group was given to a host's worker.
    pub(crate) fn given(&mut self, group: GroupId, to: HostId) {
        self.given_to.insert(group, to);
    }

    /// A host is sent a group on demand; `asked`: one of its workers has asked.
    pub(crate) fn sent(&mut self, host: HostId, group: GroupId, asked: bool) {
        if !asked && self.given_to.get(&group) != Some(&host) {
            self.broke(Promise::Demand, format!("{host} is sent {group:?}, and did not ask"));
        }
    }

    /// The order of the state that has these versions and bytes, of a group of one area.
    pub(crate) fn arrived(
        &mut self,
        host: HostId,
        group: GroupId,
        versions: &[Version],
        bytes: &[u8],
    ) -> Option<u64> {
        let none: &[Option<Version>] = &[None];
        self.visible(host, group, none, versions, &[bytes])
    }

    /// A group has an owner from now on, or is on its way.
    pub(crate) fn owned(&mut self, group: GroupId, owner: Option<HostId>) {
        if let (Some(before), Some(now)) = (self.owners.insert(group, owner).flatten(), owner) {
            self.broke(Promise::OneWriter, format!("{group:?} is of {before} and of {now}"));
        }
    }

    /// Whether every group that is given from host to host has an owner.
    pub(crate) fn all_are_owned(&self) -> bool {
        self.owners.values().all(Option::is_some)
    }

    /// Whether who shows the state of `round` has that of round `needed`.
    pub(crate) fn has(&self, group: GroupId, round: Option<u64>, needed: u64) -> bool {
        needed == 0 || round.is_some_and(|round| round >= needed || self.same(group, round, needed))
    }

    fn same(&self, group: GroupId, a: u64, b: u64) -> bool {
        let states = &self.states[&group];
        matches!((states.get(&a), states.get(&b)), (Some(a), Some(b)) if a.state.versions == b.state.versions)
    }

    /// The newest state of a group.
    pub(crate) fn newest(&self, group: GroupId) -> Option<&Rc<Published>> {
        self.states.get(&group)?.values().next_back()
    }

    /// The directory accepted a name.
    pub(crate) fn named(&mut self, name: &str, group: &str, area: AreaId) {
        if self.is_deleted(area.group) {
            return;
        }
        let holder = *self.names.entry(name.to_owned()).or_insert(area);
        if holder != area {
            self.broke(Promise::Names, format!("{name} is the name of {holder:?} and {area:?}"));
        }
        self.first_of_name.entry(name.to_owned()).or_insert(area);
        let owner = area.group.home();
        if !group.is_empty() && *self.groups.entry(group.to_owned()).or_insert(owner) != owner {
            self.broke(Promise::Names, format!("group {group} has areas of {owner} and another host"));
        }
    }

    /// The owner deleted a group: its names are free.
    pub(crate) fn delete(&mut self, group: GroupId, names: Vec<String>, clock: u64) {
        // Their host may not have heard yet that they were accepted.
        for (member, name) in names.into_iter().enumerate() {
            self.first_of_name.entry(name).or_insert(AreaId { group, member: member as u16 });
        }
        self.deleted.insert(group, clock);
        self.names.retain(|_, area| area.group != group);
        self.unheard.retain(|(area, _)| area.group != group);
        self.owners.remove(&group);
    }

    /// The owner has dropped a group, or somebody has claimed it.
    pub(crate) fn dropped(&mut self, group: GroupId, is: bool) {
        self.dropped.insert(group, is);
    }

    /// Whether nobody owns a group, as its owner dropped it.
    pub(crate) fn is_dropped(&self, group: GroupId) -> bool {
        self.dropped.get(&group) == Some(&true)
    }

    /// Whether its owner ever dropped a group.
    pub(crate) fn was_dropped(&self, group: GroupId) -> bool {
        self.dropped.contains_key(&group)
    }

    /// Workers of a host have failed, have left, or are there.
    pub(crate) fn set_workers(&mut self, host: HostId, (failed, left): (u64, u64)) {
        self.workers.insert(host, (failed, left));
    }

    /// Which workers have failed, and which have left, of hosts where some did.
    pub(crate) fn workers(&self) -> impl Iterator<Item = (&HostId, &(u64, u64))> {
        self.workers.iter()
    }

    /// Whether its owner has deleted a group.
    pub(crate) fn is_deleted(&self, group: GroupId) -> bool {
        self.deleted.contains_key(&group)
    }

    /// Whether a group was deleted before its owner's clock came to this one.
    pub(crate) fn was_deleted_before(&self, group: GroupId, clock: u64) -> bool {
        self.deleted.get(&group).is_some_and(|deleted| *deleted < clock)
    }

    /// The area of an accepted name, if no other one had it before: which of them an answer is about would not be known.
    pub(crate) fn only_area_of(&self, name: &str) -> Option<AreaId> {
        self.names.get(name).filter(|area| self.first_of_name.get(name) == Some(area)).copied()
    }

    /// The first accepted area of a host that another host's conflicts with, by what the latter was told.
    pub(crate) fn must_hear(&mut self, area: AreaId, by: HostId) {
        let is_here = !self.is_deleted(area.group);
        if is_here && !self.heard.contains(&(area, by)) && !self.refused.contains(&area) {
            self.unheard.insert((area, by));
        }
    }

    /// A host heard that another one conflicts with its area.
    pub(crate) fn heard(&mut self, area: AreaId, by: HostId) {
        self.unheard.remove(&(area, by));
        self.heard.insert((area, by));
    }

    /// A host heard that the name of its area is another's. The directory that refused others for this area's sake has been
    /// restarted since, and the one after it accepted another: nobody conflicts with this area now.
    pub(crate) fn refused(&mut self, area: AreaId) {
        self.unheard.retain(|(unheard, _)| *unheard != area);
        self.refused.insert(area);
    }

    /// Who has not heard.
    pub(crate) fn unheard(&self) -> &BTreeSet<(AreaId, HostId)> {
        &self.unheard
    }

    /// A host's job ended. `dead` is the one that died, if any did.
    pub(crate) fn ended(&mut self, host: HostId, failed: PeerFailed, dead: Option<HostId>) {
        if dead != Some(failed.host) {
            self.broke(Promise::OneDecision, format!("{host} ended since {failed}, and {dead:?} died"));
        }
        let is_first = host == HostId::FIRST || failed.host == HostId::FIRST;
        if !is_first && self.ends.get(&HostId::FIRST) != Some(&failed) {
            self.broke(
                Promise::OneDecision,
                format!("{host} ended since {failed}, which {} has not decided", HostId::FIRST),
            );
        }
        self.ends.insert(host, failed);
    }

    /// Whether a host's job ended.
    pub(crate) fn has_ended(&self, host: HostId) -> bool {
        self.ends.contains_key(&host)
    }
}
