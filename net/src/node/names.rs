//! Names of this host's areas, and names that its workers look up: the directory's clients.
use super::{Action, Cx, Mutant, Node};
use crate::types::{AreaId, Description, ElementType, HostId, NameError};
use crate::wire::{self, Key, Register, Wanted};
use std::collections::{BTreeMap, BTreeSet};

/// This host's questions to the directory.
#[derive(Debug, Default)]
pub(super) struct Names {
    areas: BTreeMap<AreaId, Stated>,
    /// Those that were refused since another host has the name or the group. A new directory tells that host, as the one that refused
    /// them may not have.
    refused: BTreeMap<AreaId, wire::Stated>,
    lookups: BTreeMap<u32, Lookup>,
    /// Accepted ones that were deleted before the directory has heard of them again. Of these it is told first: it counts them
    /// before it decides anything.
    withdrawn: BTreeSet<AreaId>,
    /// Those of which the directory is told when it has heard that another area of that name is gone (`Deletions`).
    held: BTreeSet<AreaId>,
}

#[derive(Debug)]
struct Stated {
    said: wire::Stated,
    /// The lowest clock of this host's workers when it was created.
    clock: u64,
}

#[derive(Debug)]
struct Lookup {
    ticket: u64,
    serial: u64,
    interval_us: u64,
    /// The area, when the directory has answered; its first cut is waited for.
    found: Option<AreaId>,
}

impl Node {
    /// Says what an area of this host is; `kept`: why other hosts cannot have it.
    pub(super) fn state_name(
        &mut self,
        area: AreaId,
        description: Description,
        accepted: bool,
        kept: Option<NameError>,
    ) {
        let (clock, said) = (self.clocks.own(), wire::Stated { description, accepted, kept });
        let name = &said.description.name;
        let waits = !said.accepted && said.kept.is_none() && self.deletions.holds(self.config.host, name);
        self.names.areas.insert(area, Stated { said: said.clone(), clock });
        if waits && !self.mutant(Mutant::HastyName) {
            self.names.held.insert(area);
        } else {
            self.tell(HostId::FIRST, Register::Name(area, Some(said)));
        }
    }

    /// Tells the directory of areas that waited until another one of their name was gone, if it is.
    pub(super) fn state_held_names(&mut self) {
        for area in self.names.held.clone() {
            let Some(Stated { said, .. }) = self.names.areas.get(&area) else { continue };
            if !self.deletions.holds(self.config.host, &said.description.name) {
                let said = said.clone();
                self.names.held.remove(&area);
                self.tell(HostId::FIRST, Register::Name(area, Some(said)));
            }
        }
    }

    /// Whether the directory has still to hear something of a name.
    pub(super) fn has_to_say_name(&self, area: AreaId) -> bool {
        let directory = self.peers.get(&HostId::FIRST);
        self.names.withdrawn.contains(&area)
            || directory.is_some_and(|peer| peer.outbox.is_unheard(Key::Name(area)))
    }

    /// Whether the directory has still to accept the name of an area of this host.
    pub(super) fn is_unnamed(&self, area: AreaId) -> bool {
        self.names.areas.get(&area).is_some_and(|stated| !stated.said.accepted)
    }

    pub(super) fn withdraw_name(&mut self, area: AreaId) {
        let was_refused = self.names.refused.remove(&area).is_some();
        self.names.held.remove(&area);
        let Some(stated) = self.names.areas.remove(&area) else {
            // A new directory may have been told of it.
            if was_refused {
                self.tell(HostId::FIRST, Register::Name(area, None));
            }
            return;
        };
        self.clocks.stir_all();
        let directory = self.peers.get(&HostId::FIRST);
        if stated.said.accepted && directory.is_some_and(|peer| !peer.outbox.is_known(Key::Name(area))) {
            self.names.withdrawn.insert(area);
        } else {
            self.tell(HostId::FIRST, Register::Name(area, None));
        }
    }

    /// The directory has heard the last that this host said of an area: now that it is deleted, if it is.
    pub(super) fn name_is_known(&mut self, area: AreaId) {
        if self.names.withdrawn.remove(&area) {
            self.tell(HostId::FIRST, Register::Name(area, None));
        }
    }

    /// The lowest clock at which a name was created that the directory has not accepted yet.
    pub(super) fn unnamed_since(&self) -> Option<u64> {
        self.names.areas.values().filter(|stated| !stated.said.accepted).map(|stated| stated.clock).min()
    }

    /// The agent of the directory or this one is another one: the directory is told what there is.
    pub(super) fn restate_names(&mut self) {
        for area in std::mem::take(&mut self.names.withdrawn) {
            self.tell(HostId::FIRST, Register::Name(area, None));
        }
        let stated = self.names.areas.iter().filter(|(area, _)| !self.names.held.contains(area));
        let areas: Vec<_> = stated.map(|(area, stated)| (*area, stated.said.clone())).collect();
        let count = areas.iter().filter(|(_, said)| said.accepted).count() as u32;
        let refused: Vec<_> = self.names.refused.iter().map(|(area, said)| (*area, said.clone())).collect();
        for (area, said) in areas.into_iter().chain(refused) {
            self.tell(HostId::FIRST, Register::Name(area, Some(said)));
        }
        self.tell(HostId::FIRST, Register::Restated(count));
    }

    pub(super) fn on_named(&mut self, cx: &mut Cx<'_>, area: AreaId, result: Result<(), NameError>) {
        let Some(stated) = self.names.areas.get_mut(&area) else { return };
        match result {
            Ok(()) if !stated.said.accepted => {
                stated.said.accepted = true;
                self.stirred.insert(area.group);
                cx.out.push(Action::Accepted { area });
            }
            Ok(()) => {}
            Err(error) => {
                let said = wire::Stated { kept: Some(error), ..stated.said.clone() };
                self.withdraw_name(area);
                if is_clash(error) && !self.mutant(Mutant::ForgetRefused) {
                    self.names.refused.insert(area, said);
                }
                self.counters.names_refused += 1;
                cx.out.push(Action::Refused { area, error });
            }
        }
        self.clocks.stir_all();
    }

    pub(super) fn attach(&mut self, cx: &mut Cx<'_>, ticket: u64, wanted: Wanted, interval_us: u64) {
        if wanted.name.len() > crate::types::MAX_NAME {
            let result = Err(NameError::Long { by: self.config.host });
            cx.out.push(Action::Attached { ticket, result, found: None });
            return;
        }
        let mut lookups = self.names.lookups.iter();
        let index = match lookups.find(|(_, lookup)| lookup.ticket == ticket) {
            Some((_, lookup)) if lookup.found.is_some() => return,
            Some((index, _)) => *index,
            None => (0..)
                .find(|index| !self.names.lookups.contains_key(index))
                .expect("fewer than 2^32 workers ask"),
        };
        let serial = self.tell(HostId::FIRST, Register::Lookup(index, Some(wanted)));
        self.names.lookups.insert(index, Lookup { ticket, serial, interval_us, found: None });
    }

    pub(super) fn on_found(
        &mut self,
        cx: &mut Cx<'_>,
        index: u32,
        serial: u64,
        result: Result<AreaId, NameError>,
    ) {
        let Some(lookup) = self.names.lookups.get_mut(&index) else { return };
        if lookup.serial != serial || lookup.found.is_some() {
            return;
        }
        match result {
            Ok(area) if self.handovers.owner_of(area.group) != self.config.host => {
                lookup.found = Some(area);
                let interval_us = lookup.interval_us;
                self.subscribe(area.group, interval_us);
                self.answer_attached(cx, area.group);
                // Those that found no place before may find one now.
                self.reserve(cx, area.group);
            }
            // The directory answers again when there is one.
            Err(NameError::Unknown) => {
                let (ticket, result) = (lookup.ticket, Err(NameError::Unknown));
                cx.out.push(Action::Attached { ticket, result, found: None });
            }
            result => self.answer(cx, index, result),
        }
    }

    fn answer(&mut self, cx: &mut Cx<'_>, index: u32, result: Result<AreaId, NameError>) {
        if let Some(lookup) = self.names.lookups.remove(&index) {
            self.tell(HostId::FIRST, Register::Lookup(index, None));
            cx.out.push(Action::Attached { ticket: lookup.ticket, result, found: lookup.found });
        }
    }

    /// Answers those who attach to an area that is there by now, or will not be.
    pub(super) fn answer_lookups(
        &mut self,
        cx: &mut Cx<'_>,
        area: AreaId,
        result: Result<AreaId, NameError>,
    ) {
        let asked = |(index, lookup): (&u32, &Lookup)| (lookup.found == Some(area)).then_some(*index);
        let indexes: Vec<u32> = self.names.lookups.iter().filter_map(asked).collect();
        for index in indexes {
            self.answer(cx, index, result);
        }
    }

    /// Answers those who attach to a member of a group, or to one after it, none of which has a place here.
    pub(super) fn refuse_from(&mut self, cx: &mut Cx<'_>, first: AreaId, error: NameError) {
        let of_it = |found: &AreaId| found.group == first.group && found.member >= first.member;
        let found = self.names.lookups.values().filter_map(|lookup| lookup.found);
        for area in found.filter(of_it).collect::<std::collections::BTreeSet<_>>() {
            self.answer_lookups(cx, area, Err(error));
        }
    }

    /// A worker of this host took an area of another one for something else: its owner hears of it.
    pub(super) fn taken_for(&mut self, area: AreaId, here: ElementType) {
        let Some(there) = self.inbound.get(&area.group).and_then(|inbound| inbound.element(area.member))
        else {
            return;
        };
        let asked_by = self.config.host;
        let error = NameError::Type { there, here, asked_by };
        self.tell(self.owner_of(area.group), Register::Conflict(area, asked_by, error));
    }

    pub(super) fn answer_attached(&mut self, cx: &mut Cx<'_>, group: crate::GroupId) {
        let Some(inbound) = self.inbound.get(&group) else { return };
        let found = self.names.lookups.values().filter_map(|lookup| lookup.found);
        let there: Vec<AreaId> =
            found.filter(|area| area.group == group && inbound.is_open(area.member)).collect();
        for area in there {
            self.answer_lookups(cx, area, Ok(area));
        }
    }
}

/// Whether a name was refused because of an area of another host, whose owner hears of it, too.
pub(super) fn is_clash(error: NameError) -> bool {
    matches!(error, NameError::Taken { .. } | NameError::Group { .. })
}
