//! The directory, at the job's first host: which host has the area of a name.
//!
//! It is kept in memory, and built from what the hosts report. When an agent is restarted, there or on another host, they report it
//! again; new names are decided only when all hosts have, so that none is given twice. Areas that other hosts cannot use take no name:
//! the directory knows them only to answer lookups.
use super::names::is_clash;
use super::table::Table;
use super::{Mutant, Node};
use crate::types::{AreaId, HostId, NameError};
use crate::wire::{Register, Stated, Wanted};
use std::collections::{BTreeMap, BTreeSet};

/// The names and areas that the hosts have stated.
#[derive(Debug, Default)]
pub(super) struct Directory {
    table: Table,
    /// How many accepted names each host has restated, and how many it has to.
    restated: BTreeMap<HostId, (BTreeSet<AreaId>, Option<u32>)>,
    /// New names that wait for all hosts, and names that the directory before this one refused, until it is known which are in their way.
    waiting: BTreeMap<AreaId, Stated>,
    lookups: BTreeMap<(HostId, u32), Lookup>,
}

#[derive(Debug)]
struct Lookup {
    serial: u64,
    wanted: Wanted,
    /// Whoever asks was told that there is no such area.
    told: bool,
}

impl Directory {
    fn is_ready(&self, hosts: u16) -> bool {
        let is_whole = |(areas, count): &(BTreeSet<AreaId>, Option<u32>)| {
            count.is_some_and(|count| areas.len() as u32 >= count)
        };
        (0..hosts).all(|host| self.restated.get(&HostId(host)).is_some_and(is_whole))
    }

    fn remove(&mut self, area: AreaId) {
        self.waiting.remove(&area);
        self.table.remove(area);
    }

    /// A host's agent is another one: it says again what it has.
    pub(super) fn forget(&mut self, host: HostId) {
        self.restated.remove(&host);
        self.waiting.retain(|area, _| area.group.home() != host);
        self.lookups.retain(|(of, _), _| *of != host);
        self.table.doubt(host);
    }

    fn enter(&mut self, area: AreaId, stated: Stated) {
        match stated.kept {
            None => self.table.enter(area, stated.description),
            Some(why) => self.table.keep(area, stated.description.name, why),
        }
    }

    /// The area of a name, for `from` who wants it, or why that one cannot have it, with the area that stands in the way; `None`
    /// if there is none.
    fn answer(&self, from: HostId, wanted: &Wanted) -> Option<(AreaId, Result<AreaId, NameError>)> {
        let Some(named) = self.table.named(&wanted.name) else {
            return self.table.kept(&wanted.name, from).map(|(area, why)| (area, Err(why)));
        };
        let (area, there) = (named.area, &named.description);
        let result = match wanted.bytes {
            _ if wanted.element.is_some_and(|here| here != there.element) => {
                let here = wanted.element.unwrap_or_default();
                Err(NameError::Type { there: there.element, here, asked_by: from })
            }
            Some(bytes) if bytes != there.bytes => {
                Err(NameError::Length { there: there.bytes, here: bytes, asked_by: from })
            }
            _ => Ok(area),
        };
        Some((area, result))
    }
}

impl Node {
    pub(super) fn on_name(&mut self, from: HostId, area: AreaId, name: Option<Stated>) {
        let Some(directory) = &mut self.directory else { return };
        if area.group.home() != from {
            self.counters.violations += 1;
            return;
        }
        match name {
            None => directory.remove(area),
            Some(stated) if stated.accepted => {
                directory.restated.entry(from).or_default().0.insert(area);
                directory.enter(area, stated);
            }
            Some(stated) => {
                directory.waiting.insert(area, stated);
            }
        }
        self.decide_names();
    }

    pub(super) fn on_restated(&mut self, from: HostId, count: u32) {
        let Some(directory) = &mut self.directory else { return };
        directory.restated.entry(from).or_default().1 = Some(count);
        self.decide_names();
    }

    /// Decides what waits, if all hosts have said what they have.
    fn decide_names(&mut self) {
        let (twice, group_twice) = (self.mutant(Mutant::NameTwice), self.mutant(Mutant::GroupTwice));
        let is_real = |(_, error): &(AreaId, NameError)| match error {
            NameError::Taken { .. } => !twice,
            _ => !group_twice,
        };
        let Some(directory) = &mut self.directory else { return };
        if !directory.is_ready(self.config.hosts) {
            return;
        }
        let waiting = std::mem::take(&mut directory.waiting);
        // Deleted while their host's agent was away.
        directory.table.remove_doubtful(|area| waiting.contains_key(&area));
        for (area, stated) in waiting {
            let directory = self.directory.as_mut().expect("it is here");
            let was_refused = stated.kept.is_some_and(is_clash);
            let takes_name = stated.kept.is_none() || was_refused;
            let holder = takes_name.then(|| directory.table.holder(area, &stated.description)).flatten();
            // The host has deleted the older one of two, of which it says so in another packet.
            let of_same = holder.filter(|(other, _)| other.group.home() == area.group.home());
            if of_same.is_some_and(|(other, _)| other > area) {
                continue;
            }
            match holder.filter(|_| of_same.is_none()).filter(is_real) {
                // By the directory before this one, which may not have told the other side.
                Some((holder, error)) if was_refused => self.tell_conflict(holder, area.group.home(), error),
                // The holder may not have restated its name yet.
                None if was_refused => {
                    directory.waiting.insert(area, stated);
                }
                None => {
                    directory.enter(area, stated);
                    self.tell(area.group.home(), Register::Named(area, Ok(())));
                }
                Some((holder, error)) => {
                    self.tell(area.group.home(), Register::Named(area, Err(error)));
                    self.tell_conflict(holder, area.group.home(), error);
                }
            }
        }
        self.answer_waiting();
    }

    fn tell_conflict(&mut self, area: AreaId, by: HostId, error: NameError) {
        if !self.mutant(Mutant::OneSided) {
            self.tell(area.group.home(), Register::Conflict(area, by, error));
        }
    }

    pub(super) fn on_lookup(&mut self, from: HostId, index: u32, serial: u64, wanted: Option<Wanted>) {
        let Some(directory) = &mut self.directory else { return };
        match wanted {
            Some(wanted) => directory.lookups.insert((from, index), Lookup { serial, wanted, told: false }),
            None => directory.lookups.remove(&(from, index)),
        };
        self.answer_waiting();
    }

    /// Answers lookups whose name is there, and once those whose name is not, if all hosts have said what they have.
    fn answer_waiting(&mut self) {
        let directory = self.directory.as_mut().expect("it is here");
        let is_ready = directory.is_ready(self.config.hosts);
        let (mut answers, mut unknown) = (Vec::new(), Vec::new());
        let mut lookups = std::mem::take(&mut directory.lookups);
        lookups.retain(|&(from, index), lookup| {
            let Lookup { serial, wanted, told } = lookup;
            let Some((area, result)) = directory.answer(from, wanted) else {
                if is_ready && !std::mem::replace(told, true) {
                    unknown.push((from, index, *serial));
                }
                return true;
            };
            answers.push((from, index, *serial, area, result));
            false
        });
        directory.lookups = lookups;
        for (from, index, serial) in unknown {
            self.tell(from, Register::Found(index, serial, Err(NameError::Unknown)));
        }
        for (from, index, serial, area, result) in answers {
            if let Err(error) = result {
                self.tell_conflict(area, from, error);
            }
            self.tell(from, Register::Found(index, serial, result));
        }
    }
}
