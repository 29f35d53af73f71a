//! Names of this host's areas, and names that its workers look up: the directory's clients.
use super::{Action, Cx, Node};
use crate::types::{AreaId, Description, HostId, NameError};
use crate::wire::{Register, Wanted};
use std::collections::BTreeMap;

/// What this host asked of the directory.
#[derive(Debug, Default)]
pub(super) struct Names {
    areas: BTreeMap<AreaId, Stated>,
    lookups: BTreeMap<u32, Lookup>,
}

#[derive(Debug)]
struct Stated {
    description: Description,
    accepted: bool,
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
    pub(super) fn state_name(&mut self, area: AreaId, description: Description, accepted: bool) {
        let clock = self.clocks.own();
        self.names.areas.insert(area, Stated { description: description.clone(), accepted, clock });
        self.tell(HostId::FIRST, Register::Name(area, Some((description, accepted))));
    }

    pub(super) fn withdraw_name(&mut self, area: AreaId) {
        if self.names.areas.remove(&area).is_some() {
            self.tell(HostId::FIRST, Register::Name(area, None));
            self.clocks.stir_all();
        }
    }

    /// The lowest clock at which a name was created that the directory has not accepted yet.
    pub(super) fn unnamed_since(&self) -> Option<u64> {
        self.names.areas.values().filter(|stated| !stated.accepted).map(|stated| stated.clock).min()
    }

    /// The agent of the directory or this one is another one: the directory is told what there is.
    pub(super) fn restate_names(&mut self) {
        let areas: Vec<_> = self
            .names
            .areas
            .iter()
            .map(|(area, stated)| (*area, stated.description.clone(), stated.accepted))
            .collect();
        let count = areas.iter().filter(|(.., accepted)| *accepted).count() as u32;
        for (area, description, accepted) in areas {
            self.tell(HostId::FIRST, Register::Name(area, Some((description, accepted))));
        }
        self.tell(HostId::FIRST, Register::Restated(count));
    }

    pub(super) fn on_named(&mut self, cx: &mut Cx<'_>, area: AreaId, result: Result<(), NameError>) {
        let Some(stated) = self.names.areas.get_mut(&area) else { return };
        match result {
            Ok(()) if !stated.accepted => {
                stated.accepted = true;
                cx.out.push(Action::Accepted { area });
            }
            Ok(()) => {}
            Err(error) => {
                self.withdraw_name(area);
                self.counters.names_refused += 1;
                cx.out.push(Action::Refused { area, error });
            }
        }
        self.clocks.stir_all();
    }

    pub(super) fn attach(&mut self, cx: &mut Cx<'_>, ticket: u64, wanted: Wanted, interval_us: u64) {
        if wanted.name.len() > crate::types::MAX_NAME {
            cx.out.push(Action::Attached { ticket, result: Err(NameError::Long) });
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
            Ok(area) if area.group.owner() != self.config.host => {
                lookup.found = Some(area);
                let interval_us = lookup.interval_us;
                self.subscribe(area.group, interval_us);
                self.answer_attached(cx, area.group);
            }
            // The directory answers again when there is one.
            Err(NameError::Unknown) => {
                cx.out.push(Action::Attached { ticket: lookup.ticket, result: Err(NameError::Unknown) });
            }
            result => self.answer(cx, index, result),
        }
    }

    fn answer(&mut self, cx: &mut Cx<'_>, index: u32, result: Result<AreaId, NameError>) {
        if let Some(lookup) = self.names.lookups.remove(&index) {
            self.tell(HostId::FIRST, Register::Lookup(index, None));
            cx.out.push(Action::Attached { ticket: lookup.ticket, result });
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

    pub(super) fn answer_attached(&mut self, cx: &mut Cx<'_>, group: crate::GroupId) {
        let Some(inbound) = self.inbound.get(&group) else { return };
        let late = inbound.round < inbound.floor;
        let found = self.names.lookups.values().filter_map(|lookup| lookup.found);
        let there: Vec<AreaId> =
            found.filter(|area| area.group == group && inbound.has(area.member) && !late).collect();
        for area in there {
            self.answer_lookups(cx, area, Ok(area));
        }
    }
}
