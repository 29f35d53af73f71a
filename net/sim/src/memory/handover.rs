//! Groups that workers give to workers of other hosts.
use super::{Copied, HostMemory, Own, OwnArea, Remote, RemoteArea};
use crate::groups::is_given;
use crate::judge::{Promise, Published};
use hectare_net::{AreaId, Description, Event, GroupId, HostId, State, Version};
use std::collections::BTreeSet;
use std::rc::Rc;

/// The epoch of an area that never changed its owner.
pub(super) const FIRST_EPOCH: u64 = 1;

/// Where the owner of a group is that is received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    /// The host.
    pub(crate) host: HostId,
    /// Of the hand-over by which it is there, as far as it was heard of.
    pub(crate) epoch: u64,
    /// The rank that this host gave it to.
    pub(crate) given: Option<u32>,
}

impl Owner {
    /// Of a group of which nothing is known but who created it.
    pub(super) fn home(group: GroupId) -> Owner {
        Owner { host: group.home(), epoch: FIRST_EPOCH, given: None }
    }
}

impl Own {
    /// The epoch of a group that is given from host to host, which has one area.
    fn epoch(&self) -> u64 {
        self.members[0].epoch
    }

    fn raise_epochs(&mut self) {
        self.members.iter_mut().for_each(|area| area.epoch += 1);
    }
}

impl HostMemory {
    /// The worker gives a group to the worker of another host, which has the host's number.
    pub(crate) fn give(&mut self, to: HostId) {
        let here = self.host;
        let mut free = self
            .own
            .iter_mut()
            .filter(|(group, own)| is_given(**group) && own.given.is_none() && !own.is_dropped);
        let may_be_given = to != here && self.clocks.get(&to) != Some(&u64::MAX);
        let Some((&group, own)) = free.next().filter(|_| may_be_given) else { return };
        own.raise_epochs();
        own.given = Some(to);
        own.given_is_told = false;
        if own.is_on_demand() {
            self.judge.borrow_mut().given(group, to);
        }
        self.tell_given_published();
    }

    /// The worker deletes a group that goes from host to host, if it owns one: what it was.
    pub(crate) fn delete_given(&mut self) -> Option<Description> {
        let free =
            |(group, own): &(&GroupId, &Own)| is_given(**group) && own.given.is_none() && !own.is_dropped;
        let (&group, own) = self.own.iter().find(free)?;
        let description = own.members[0].description.clone();
        self.delete(group);
        Some(description)
    }

    /// Tells of what was given when all that was written is published.
    pub(super) fn tell_given_published(&mut self) {
        for (&group, own) in &mut self.own {
            let is_published = own.members.iter().all(|area| area.dirty.is_empty());
            if let Some(to) = own.given.filter(|_| is_published && !own.given_is_told) {
                own.given_is_told = true;
                let epoch = own.epoch();
                self.events.push_back(Event::Given { group, to, rank: to.0.into(), epoch });
            }
        }
    }

    /// The worker drops a group, or claims one that it has dropped.
    pub(crate) fn drop_or_claim(&mut self) {
        let all: Vec<GroupId> =
            self.own.iter().filter(|(_, own)| own.given.is_none()).map(|(group, _)| *group).collect();
        if all.is_empty() {
            return;
        }
        let group = self.random.pick(&all);
        let own = self.own.get_mut(&group).expect("just listed");
        own.is_dropped = !own.is_dropped;
        if !own.is_dropped {
            own.raise_epochs();
        }
        let (is, members) = (own.is_dropped, own.members.len() as u16);
        self.judge.borrow_mut().dropped(group, is);
        self.tell_dropped(group, is, members);
    }

    /// Workers of this host hand an area to each other, of which other hosts hear nothing.
    pub(crate) fn give_here(&mut self) {
        let free = self.own.values_mut().filter(|own| own.given.is_none() && !own.is_dropped);
        let mut areas: Vec<_> = free.flat_map(|own| &mut own.members).collect();
        if !areas.is_empty() {
            let which = self.random.below(areas.len() as u64);
            areas[which as usize].epoch += 1;
        }
    }

    /// One of 64 workers of this host fails, or somebody takes its rank again; with each second change, another one leaves or comes.
    pub(crate) fn fail_or_live(&mut self) {
        let (failed, left) = self.workers.entry(self.host).or_default();
        *failed ^= 1 << ((failed.count_ones() * 5 + 1) % 64);
        if failed.count_ones() % 2 == 1 {
            *left ^= 1 << ((left.count_ones() * 7 + 2) % 64);
        }
        self.judge.borrow_mut().set_workers(self.host, (*failed, *left));
        self.tell_workers();
    }

    /// Which workers have failed and left, also for a new agent.
    pub(super) fn tell_workers(&mut self) {
        if let Some(&(failed, left)) = self.workers.get(&self.host) {
            self.events.push_back(Event::Workers { first: 64 * u32::from(self.host.0), failed, left });
        }
    }

    pub(super) fn tell_dropped(&mut self, group: GroupId, is: bool, members: u16) {
        for member in 0..members {
            self.events.push_back(Event::Ownerless { area: AreaId { group, member }, is });
        }
    }

    /// Which groups were dropped, for a new agent.
    pub(super) fn tell_all_dropped(&mut self) {
        let dropped: Vec<_> = self.own.iter().filter(|(_, own)| own.is_dropped).collect();
        let dropped: Vec<_> =
            dropped.into_iter().map(|(group, own)| (*group, own.members.len() as u16)).collect();
        for (group, members) in dropped {
            self.tell_dropped(group, true, members);
        }
    }

    /// Tells a new agent the owners of groups, before anything else.
    pub(super) fn tell_owners(&mut self) {
        for (&group, own) in self.own.iter().filter(|(_, own)| !own.is_left) {
            let (host, leaving) = (self.host, own.given.is_some());
            for epoch in own.members.iter().map(|area| area.epoch) {
                self.events.push_back(Event::Owner { group, host, epoch, given: None, leaving });
            }
        }
        for (&group, remote) in &self.remote {
            let Owner { host, epoch, given } = remote.owner;
            self.events.push_back(Event::Owner { group, host, epoch, given, leaving: false });
        }
    }

    /// Tells a new agent, after the areas, which groups are given to other hosts.
    pub(super) fn tell_given(&mut self) {
        for (&group, own) in &self.own {
            if let Some(to) = own.given.filter(|_| own.given_is_told && !own.is_left) {
                let epoch = own.epoch();
                self.events.push_back(Event::Given { group, to, rank: to.0.into(), epoch });
            }
        }
    }

    pub(super) fn leave_group(
        &mut self,
        group: GroupId,
        to: HostId,
        epoch: u64,
        versions: &[Version],
    ) -> bool {
        let Some(own) = self.own.get(&group).filter(|own| !own.is_left) else { return false };
        if own.given != Some(to) || own.epoch() != epoch {
            self.broke(Promise::Contract, format!("{group:?} is left to {to}, and nobody gave it"));
            return false;
        }
        let newest = own.newest.and_then(|newest| own.copies[newest].published.clone());
        let Some(newest) = newest.filter(|newest| newest.state.versions == versions) else { return false };
        if own.members.iter().any(|area| !area.dirty.is_empty()) {
            return false;
        }
        let of = |area: &OwnArea| RemoteArea {
            description: area.description.clone(),
            writer: area.writer.clone(),
            log: BTreeSet::new(),
            reader: area.writer.clone(),
            version: Some(area.version),
            is_ownerless: false,
        };
        let round = Some(crate::judge::key(group, &newest.state));
        let remote = Remote {
            members: own.members.iter().map(of).collect(),
            label: newest.state.label,
            round,
            attached: true,
            ..Remote::of(Owner { host: to, epoch, given: Some(to.0.into()) })
        };
        self.remote.insert(group, remote);
        // Its states are still pinned, until the new owner's host has the last one.
        self.own.get_mut(&group).expect("just seen").is_left = true;
        self.left.insert(group);
        self.judge.borrow_mut().owned(group, None);
        true
    }

    pub(super) fn take_group(&mut self, group: GroupId, rank: u32, epoch: u64) -> bool {
        let is_mine = rank == u32::from(self.host.0);
        if self.judge.borrow().is_deleted(group) {
            self.broke(Promise::Names, format!("{group:?} is taken after it was deleted"));
        }
        let Some(remote) = self.remote.get(&group).filter(|remote| remote.arrival.is_none()) else {
            self.broke(Promise::Contract, format!("{group:?} is taken and not here"));
            return false;
        };
        let versions: Option<Vec<Version>> = remote.members.iter().map(|area| area.version).collect();
        let newest = self.judge.borrow().newest(group).map(|newest| newest.state.versions.clone());
        if remote.owner.epoch >= epoch {
            self.broke(
                Promise::OneWriter,
                format!("{group:?} is taken as of epoch {epoch}: {:?}", remote.owner),
            );
            return false;
        }
        if !is_mine || versions.is_none() || versions != newest {
            let what = format!("{} takes {group:?} for {rank}: {versions:?} of {newest:?}", self.host);
            self.broke(Promise::OneWriter, what);
            return false;
        }
        let remote = self.remote.remove(&group).expect("just seen");
        let state = State { round: self.round, label: remote.label, versions: versions.unwrap_or_default() };
        let contents = remote.members.iter().map(|area| Rc::new(area.reader.clone())).collect();
        let of = |area: RemoteArea| OwnArea {
            changed: vec![
                area.version.map_or(0, |version| version.counter);
                area.description.lines() as usize
            ],
            description: area.description,
            accepted: true,
            interval_us: 0,
            epoch,
            writer: area.reader,
            dirty: BTreeSet::new(),
            version: area.version.unwrap_or_default(),
        };
        let published = Rc::new(Published { state: state.clone(), contents });
        let empty = || Copied { published: None, published_ns: 0, pin: None, dead: false };
        let first = Copied { published: Some(published), ..empty() };
        let copies = std::iter::once(first).chain((1..self.copies).map(|_| empty())).collect();
        let members = remote.members.into_iter().map(of).collect();
        let own = Own { members, copies, newest: Some(0), ..Own::default() };
        self.own.insert(group, own);
        self.judge.borrow_mut().owned(group, Some(self.host));
        self.events.push_back(Event::Published { group, state });
        if self.has_left() {
            self.drop_group(group);
        }
        true
    }
}
