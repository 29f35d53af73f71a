//! Areas that workers give to workers of other hosts.
use super::SegmentMemory;
use crate::names;
use crate::note::Note;
use hectare_dsm as dsm;
use hectare_dsm::agent::{Agent, AreaDescription};
use hectare_net::wire::Handover;
use hectare_net::{Event, GroupId, HostId, Version};
use tracing::{debug, warn};

/// Where the owner of an area is that an agent before this one noted.
pub(super) fn noted(
    agent: &Agent,
    here: HostId,
    area: dsm::AreaId,
    about: &AreaDescription,
) -> Option<Event<'static>> {
    let note = Note::read(agent, area)?;
    let host = match about.remote {
        true => HostId(u16::try_from(about.owner?).ok()?),
        false => here,
    };
    let (epoch, leaving) = (about.epoch, about.given_to.is_some());
    Some(Event::Owner { group: note.id.group, host, epoch, given: about.left_to, leaving })
}

impl SegmentMemory {
    /// A worker of this host has given an area to one of another. The node is told when all that was written is published and told: it
    /// lets other hosts go to the next owner as soon as they have what it takes to be the last state.
    pub(super) fn given(&mut self, area: dsm::AreaId, to: dsm::Rank, epoch: u64) {
        // Its publication is waited for.
        self.agent.choose(area);
        self.going.insert(area, (to, epoch));
    }

    /// Tells of what was given to workers of other hosts and is published by now.
    pub(super) fn let_go(&mut self) {
        let agent = &self.agent;
        let published: Vec<_> = self.going.extract_if(.., |area, _| agent.is_all_published(*area)).collect();
        for (area, (to, epoch)) in published {
            if let Some(id) = self.own.id_of(area) {
                self.tell_state(id.group);
                if self.untold.contains(&id.group) {
                    self.going.insert(area, (to, epoch));
                } else {
                    self.tell_given(area, to, epoch);
                }
            }
        }
    }

    fn tell_given(&mut self, area: dsm::AreaId, to: dsm::Rank, epoch: u64) {
        let host = self.ranks.iter().position(|ranks| ranks.contains(&to));
        let (Some(id), Some(host)) = (self.own.id_of(area), host) else {
            return warn!(?area, to, "an area was given to a worker of another host, and cannot go there");
        };
        let to_host = HostId(host as u16);
        self.events.push_back(Event::Given { group: id.group, to: to_host, rank: to, epoch });
    }

    pub(super) fn leave_group(
        &mut self,
        group: GroupId,
        to: HostId,
        handover: Handover,
        versions: &[Version],
    ) -> bool {
        let areas = self.own.areas_of(group);
        let (&[area], &[version]) = (areas.as_slice(), versions) else { return false };
        let Handover { epoch, rank } = handover;
        let Some(id) = self.own.id_of(area) else { return false };
        match self.agent.leave(area, rank, epoch, names::version_here(version)) {
            Ok(true) => {
                debug!(area = self.name_of(id), %to, rank, epoch, "an area goes to another host");
                // Workers' requests for it go there; versions are sent from here until it is taken (`has_gone`).
                self.received.insert(id, area);
                true
            }
            Ok(false) => false,
            Err(error) => {
                warn!(%error, "an area cannot go to another host");
                false
            }
        }
    }

    /// The next owner's host has taken a group that this one has left.
    pub(super) fn has_gone(&mut self, group: GroupId) {
        for area in self.own.areas_of(group) {
            self.placer.forget(area);
            self.own.forget(area);
        }
    }

    pub(super) fn take_group(&mut self, group: GroupId, handover: Handover) -> bool {
        // Lines of a cut that is not complete are no longer to come.
        self.forget_places(group);
        self.received.end_cut(group);
        let areas = self.received.areas_of(group);
        let &[area] = areas.as_slice() else { return false };
        let Some(id) = self.received.id_of(area) else { return false };
        let Handover { epoch, rank } = handover;
        match self.agent.take_over(area, rank, epoch) {
            Ok(true) => {
                for (area, request) in self.received.take(group) {
                    // All that was written is here.
                    self.agent.answer(area, request, false);
                }
                self.own.take(id, area);
                debug!(area = self.name_of(id), rank, epoch, "an area has come from another host");
                self.tell_state(group);
                true
            }
            Ok(false) => false,
            Err(error) => {
                warn!(%error, "an area that comes from another host cannot be taken");
                false
            }
        }
    }
}
