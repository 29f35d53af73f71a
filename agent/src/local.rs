//! Areas of this host without reader copies, which other hosts cannot use. Other hosts are told that they exist, so that a worker that
//! asks for one is told why it cannot have it.
//!
//! Each is a group of its own. Its note is like that of an area that others can use.
use crate::names;
use crate::note::Note;
use hectare_dsm as dsm;
use hectare_dsm::agent::{Agent, AreaDescription};
use hectare_net::{AreaId, Event, GroupId, HostId};
use std::collections::{BTreeMap, HashMap};

/// The areas of this host alone.
#[derive(Debug, Default)]
pub(crate) struct Local {
    groups: BTreeMap<GroupId, dsm::AreaId>,
    areas: HashMap<dsm::AreaId, GroupId>,
}

/// Whether an area is of its host alone.
pub(crate) fn is_local(about: &AreaDescription) -> bool {
    !about.remote && about.copies == 0
}

fn id(group: GroupId) -> AreaId {
    AreaId { group, member: 0 }
}

impl Local {
    /// Enters an area that an agent before this one noted; what the node is told.
    pub(crate) fn enter_noted(&mut self, agent: &Agent, area: dsm::AreaId) -> Option<Event<'static>> {
        let note = Note::read(agent, area)?;
        self.enter_as(agent, area, note.id.group, note.accepted)
    }

    /// Enters a new area; what the node is told.
    pub(crate) fn enter(&mut self, agent: &Agent, host: HostId, area: dsm::AreaId) -> Option<Event<'static>> {
        let group = GroupId::new(host, agent.draw());
        Note { id: id(group), accepted: false, last: 0 }.write(agent, area);
        self.enter_as(agent, area, group, false)
    }

    fn enter_as(
        &mut self,
        agent: &Agent,
        area: dsm::AreaId,
        group: GroupId,
        accepted: bool,
    ) -> Option<Event<'static>> {
        let description = names::description(&agent.describe(area)?);
        self.groups.insert(group, area);
        self.areas.insert(area, group);
        Some(Event::Local { area: id(group), description, accepted })
    }

    /// The directory knows of it.
    pub(crate) fn accept(&self, agent: &Agent, area: AreaId) {
        if let Some(area) = self.groups.get(&area.group) {
            Note::accept(agent, *area);
        }
    }

    /// The area here.
    pub(crate) fn area(&self, area: AreaId) -> Option<dsm::AreaId> {
        self.groups.get(&area.group).copied()
    }

    pub(crate) fn knows(&self, area: dsm::AreaId) -> bool {
        self.areas.contains_key(&area)
    }

    /// An area was deleted; what it was called.
    pub(crate) fn forget(&mut self, area: dsm::AreaId) -> Option<AreaId> {
        let group = self.areas.remove(&area)?;
        self.groups.remove(&group);
        Some(id(group))
    }
}
