//! The directory, at the job's first host: which host has the area of a name.
//!
//! It is kept in memory and follows from what the hosts say. When its agent or that of a host starts, they say it again; new
//! names are decided when all have, so that none is given twice.
use super::{Cx, Mutant, Node};
use crate::types::{AreaId, Description, HostId, NameError};
use crate::wire::{Register, Wanted};
use std::collections::{BTreeMap, BTreeSet};

/// The table of names.
#[derive(Debug, Default)]
pub(super) struct Directory {
    names: BTreeMap<String, Named>,
    /// How many accepted names each host has restated, and how many it has to.
    restated: BTreeMap<HostId, (BTreeSet<AreaId>, Option<u32>)>,
    /// New names that wait for all hosts.
    waiting: BTreeMap<AreaId, Description>,
    lookups: BTreeMap<(HostId, u32), Lookup>,
}

#[derive(Debug)]
struct Lookup {
    serial: u64,
    wanted: Wanted,
    /// Whoever asks was told that there is no such area.
    told: bool,
}

#[derive(Debug)]
struct Named {
    area: AreaId,
    description: Description,
    /// Its host has said so since its agent started.
    confirmed: bool,
}

impl Directory {
    fn is_ready(&self, hosts: u16) -> bool {
        let is_whole = |(areas, count): &(BTreeSet<AreaId>, Option<u32>)| {
            count.is_some_and(|count| areas.len() as u32 >= count)
        };
        (0..hosts).all(|host| self.restated.get(&HostId(host)).is_some_and(is_whole))
    }

    /// Which area has the name that another one would have, or is of the same group and of another host.
    fn holder(&self, area: AreaId, description: &Description) -> Option<(AreaId, NameError)> {
        if let Some(named) = self.names.get(&description.name).filter(|named| named.area != area) {
            return Some((named.area, NameError::Taken { by: named.area.group.owner() }));
        }
        if description.group.is_empty() {
            return None;
        }
        let owner = area.group.owner();
        let is_elsewhere = |named: &&Named| {
            named.area.group.owner() != owner && named.description.group == description.group
        };
        let named = self.names.values().find(is_elsewhere)?;
        Some((named.area, NameError::Group { by: named.area.group.owner() }))
    }

    fn remove(&mut self, area: AreaId) {
        self.waiting.remove(&area);
        self.names.retain(|_, named| named.area != area);
    }

    /// A host's agent is another one: it says again what it has.
    pub(super) fn forget(&mut self, host: HostId) {
        self.restated.remove(&host);
        self.waiting.retain(|area, _| area.group.owner() != host);
        self.lookups.retain(|(of, _), _| *of != host);
        for named in self.names.values_mut().filter(|named| named.area.group.owner() == host) {
            named.confirmed = false;
        }
    }
}

impl Node {
    pub(super) fn on_name(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        area: AreaId,
        name: Option<(Description, bool)>,
    ) {
        let Some(directory) = &mut self.directory else { return };
        if area.group.owner() != from {
            self.counters.violations += 1;
            return;
        }
        match name {
            None => directory.remove(area),
            Some((description, true)) => {
                directory.restated.entry(from).or_default().0.insert(area);
                self.enter(area, description);
            }
            Some((description, false)) => {
                directory.waiting.insert(area, description);
            }
        }
        self.decide_names(cx);
    }

    pub(super) fn on_restated(&mut self, cx: &mut Cx<'_>, from: HostId, count: u32) {
        let Some(directory) = &mut self.directory else { return };
        directory.restated.entry(from).or_default().1 = Some(count);
        self.decide_names(cx);
    }

    /// Decides what waits, if all hosts have said what they have.
    fn decide_names(&mut self, cx: &mut Cx<'_>) {
        let twice = self.mutant(Mutant::NameTwice);
        let Some(directory) = &mut self.directory else { return };
        if !directory.is_ready(self.config.hosts) {
            return;
        }
        let waiting = std::mem::take(&mut directory.waiting);
        // Deleted while their host's agent was away.
        directory.names.retain(|_, named| named.confirmed || waiting.contains_key(&named.area));
        for (area, description) in waiting {
            let directory = self.directory.as_ref().expect("it is here");
            match directory.holder(area, &description).filter(|_| !twice) {
                None => {
                    self.enter(area, description);
                    self.tell(area.group.owner(), Register::Named(area, Ok(())));
                }
                Some((holder, error)) => {
                    self.tell(area.group.owner(), Register::Named(area, Err(error)));
                    self.tell(holder.group.owner(), Register::Clash(holder, area.group.owner(), error));
                }
            }
        }
        self.answer_waiting(cx);
    }

    fn enter(&mut self, area: AreaId, description: Description) {
        let directory = self.directory.as_mut().expect("it is here");
        let name = description.name.clone();
        directory.names.insert(name, Named { area, description, confirmed: true });
    }

    pub(super) fn on_lookup(
        &mut self,
        cx: &mut Cx<'_>,
        from: HostId,
        index: u32,
        serial: u64,
        wanted: Option<Wanted>,
    ) {
        let Some(directory) = &mut self.directory else { return };
        match wanted {
            Some(wanted) => directory.lookups.insert((from, index), Lookup { serial, wanted, told: false }),
            None => directory.lookups.remove(&(from, index)),
        };
        self.answer_waiting(cx);
    }

    /// Answers lookups whose name is there, and once those whose name is not, if all hosts have said what they have.
    fn answer_waiting(&mut self, _: &mut Cx<'_>) {
        let directory = self.directory.as_mut().expect("it is here");
        let is_ready = directory.is_ready(self.config.hosts);
        let (mut answers, mut unknown) = (Vec::new(), Vec::new());
        let names = &directory.names;
        directory.lookups.retain(|&(from, index), lookup| {
            let Lookup { serial, wanted, told } = lookup;
            let Some(named) = names.get(&wanted.name) else {
                if is_ready && !std::mem::replace(told, true) {
                    unknown.push((from, index, *serial));
                }
                return true;
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
            answers.push((from, index, *serial, area, result));
            false
        });
        for (from, index, serial) in unknown {
            self.tell(from, Register::Found(index, serial, Err(NameError::Unknown)));
        }
        for (from, index, serial, area, result) in answers {
            if let Err(error) = result {
                self.tell(area.group.owner(), Register::Clash(area, from, error));
            }
            self.tell(from, Register::Found(index, serial, result));
        }
    }
}
