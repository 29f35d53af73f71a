//! Areas that are owned on this host: their ids between hosts, and the states that are pinned for sending.
#[cfg(test)]
mod tests;

use crate::names;
use crate::note::Note;
use hectare_dsm as dsm;
use hectare_dsm::agent::{Agent, AreaDescription, Held};
use hectare_net::{
    AreaId, Description, GroupId, HostId, Lines, NameError, PinId, Pinned, Run, State, Version,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use tracing::error;

/// The areas of this host that others may have.
#[derive(Debug, Default)]
pub(crate) struct Own {
    groups: BTreeMap<GroupId, Group>,
    areas: HashMap<dsm::AreaId, AreaId>,
    pins: BTreeMap<PinId, Pin>,
    last_pin: u64,
    /// Groups of which the log says that there is no memory to send them from.
    without_memory: BTreeSet<GroupId>,
}

#[derive(Debug, Default)]
struct Group {
    /// Its name in the job, if it has one.
    name: Option<String>,
    members: BTreeMap<u16, dsm::AreaId>,
    last: u16,
    /// The newest state that was told, by its place among the states.
    told: u64,
}

impl Group {
    /// The state in which the members have these versions.
    fn state(&self, round: u64, label: u64, versions: &[dsm::Version]) -> State {
        let mut all = vec![Version::default(); usize::from(self.last) + 1];
        for (member, version) in self.members.keys().zip(versions) {
            all[usize::from(*member)] = names::version(*version);
        }
        State { round, label, versions: all }
    }
}

#[derive(Debug)]
struct Pin {
    group: GroupId,
    state: State,
    held: BTreeMap<u16, Held>,
}

/// An area that others may have from now on.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) area: AreaId,
    pub(crate) description: Description,
    pub(crate) accepted: bool,
    pub(crate) interval_us: u64,
}

impl Entered {
    fn of(area: AreaId, about: &AreaDescription, accepted: bool) -> Entered {
        let interval_us = about.external_interval.map_or(0, |interval| {
            // One that is set is not zero.
            u64::try_from(interval.as_micros()).unwrap_or(u64::MAX).max(1)
        });
        Entered { area, description: names::description(about), accepted, interval_us }
    }
}

impl Own {
    /// Enters an area that was noted by an agent before; none if it was not, or not whole.
    pub(crate) fn enter_noted(&mut self, agent: &Agent, area: dsm::AreaId) -> Option<Entered> {
        let Note { id, accepted, last } = Note::read(agent, area)?;
        let about = agent.describe(area)?;
        self.insert(id, area, about.group.clone(), last);
        Some(Entered::of(id, &about, accepted))
    }

    /// Enters a new area. None if it was deleted meanwhile.
    pub(crate) fn enter(&mut self, agent: &Agent, host: HostId, area: dsm::AreaId) -> Option<Entered> {
        let about = agent.describe(area)?;
        let found = about.group.as_ref().and_then(|name| {
            self.groups.iter().find(|(_, group)| group.name.as_ref() == Some(name)).map(|(id, _)| *id)
        });
        let group = found.unwrap_or_else(|| GroupId::new(host, agent.draw()));
        let member = match found {
            None => 0,
            Some(_) => {
                let of = &self.groups[&group];
                let member = of.last.checked_add(1)?;
                // Before the area has it: no number is given twice, whenever an agent ends.
                for other in of.members.values() {
                    if let Some(note) = Note::read(agent, *other) {
                        Note { last: member, ..note }.write(agent, *other);
                    }
                }
                member
            }
        };
        let id = AreaId { group, member };
        Note { id, accepted: false, last: member }.write(agent, area);
        self.insert(id, area, about.group.clone(), member);
        Some(Entered::of(id, &about, false))
    }

    fn insert(&mut self, id: AreaId, area: dsm::AreaId, name: Option<String>, last: u16) {
        let group = self.groups.entry(id.group).or_default();
        group.name = name;
        group.members.insert(id.member, area);
        group.last = group.last.max(id.member).max(last);
        // With another member, what is published is another state.
        group.told = 0;
        self.areas.insert(area, id);
    }

    /// The directory has accepted the name.
    pub(crate) fn accept(&self, agent: &Agent, id: AreaId) {
        let area = self.groups.get(&id.group).and_then(|group| group.members.get(&id.member));
        if let Some(area) = area {
            Note::accept(agent, *area);
        }
    }

    /// An area was deleted; what it was called, if others knew of it.
    pub(crate) fn forget(&mut self, area: dsm::AreaId) -> Option<AreaId> {
        let id = self.areas.remove(&area)?;
        if let Some(group) = self.groups.get_mut(&id.group) {
            group.members.remove(&id.member);
            if group.members.is_empty() {
                self.groups.remove(&id.group);
            }
        }
        Some(id)
    }

    /// The area here.
    pub(crate) fn area(&self, id: AreaId) -> Option<dsm::AreaId> {
        self.groups.get(&id.group)?.members.get(&id.member).copied()
    }

    pub(crate) fn id_of(&self, area: dsm::AreaId) -> Option<AreaId> {
        self.areas.get(&area).copied()
    }

    /// The states of a group that were not told yet, in order: the newest, and the last one of the label before. None while
    /// rounds publish it too fast to be read; then ask again.
    pub(crate) fn untold_states(&mut self, agent: &Agent, id: GroupId) -> Option<Vec<State>> {
        let group = self.groups.get_mut(&id)?;
        let areas: Vec<dsm::AreaId> = group.members.values().copied().collect();
        let found = agent.states(&areas).ok().filter(|states| !states.is_empty())?;
        let untold = found.iter().filter(|state| state.sequence > group.told);
        let states = untold.map(|it| group.state(it.sequence, it.label, &it.versions)).collect();
        group.told = found.iter().map(|state| state.sequence).fold(group.told, u64::max);
        Some(states)
    }

    /// All groups.
    pub(crate) fn groups(&self) -> Vec<GroupId> {
        self.groups.keys().copied().collect()
    }

    /// Enters an area that was another host's.
    pub(crate) fn take(&mut self, id: AreaId, area: dsm::AreaId) {
        self.insert(id, area, None, id.member);
    }

    /// The areas of a group.
    pub(crate) fn areas_of(&self, id: GroupId) -> Vec<dsm::AreaId> {
        self.groups.get(&id).map(|group| group.members.values().copied().collect()).unwrap_or_default()
    }

    /// Gives memory to the copies of a group that other hosts are sent.
    ///
    /// # Errors
    /// [`NameError::Unsent`] if there is none, with a line in the log when it happens first.
    pub(crate) fn complete(&mut self, agent: &Agent, host: HostId, id: GroupId) -> Result<(), NameError> {
        let completed = self.areas_of(id).iter().try_for_each(|area| match agent.complete(*area) {
            // The others still go to other hosts.
            Err(dsm::Error::Deleted { .. }) => Ok(()),
            other => other,
        });
        match completed {
            Ok(()) => {
                self.without_memory.remove(&id);
                Ok(())
            }
            Err(error) => {
                if self.without_memory.insert(id) {
                    error!(group = id.0, %error, "no memory for the copies that other hosts are sent");
                }
                Err(NameError::Unsent { by: host })
            }
        }
    }

    /// Pins the newest state of a group, or the last one of a label. If that was published over, since observers or workers outside
    /// of the rounds had all other copies, the first later one that is there: nobody publishes it again, and hosts wait for it.
    pub(crate) fn pin(
        &mut self,
        agent: &Agent,
        id: GroupId,
        label: Option<u64>,
        now_ns: u64,
    ) -> Option<Pinned> {
        let group = self.groups.get(&id)?;
        let areas: Vec<dsm::AreaId> = group.members.values().copied().collect();
        let held = match label {
            None => agent.hold(&areas).ok()?,
            Some(label) => match agent.hold_label(&areas, label).ok()? {
                Some(held) => held,
                None => {
                    let there = agent.states(&areas).ok()?;
                    let later = there.iter().map(|state| state.label).find(|later| *later > label)?;
                    agent.hold_label(&areas, later).ok()??
                }
            },
        };
        let age = held.iter().map(Held::age).min().unwrap_or_default();
        let last = held.iter().max_by_key(|held| held.sequence())?;
        let versions: Vec<dsm::Version> = held.iter().map(Held::version).collect();
        let state = group.state(last.sequence(), last.label(), &versions);
        let published_ns = now_ns.saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX));
        if let Some((pin, it)) = self.pins.iter().find(|(_, it)| it.group == id && it.state == state) {
            return Some(Pinned { pin: *pin, state: it.state.clone(), published_ns });
        }
        // The host that receives the cut has it as a base then.
        held.iter().for_each(Held::seal);
        self.last_pin += 1;
        let pin = PinId(self.last_pin);
        let held = group.members.keys().copied().zip(held).collect();
        self.pins.insert(pin, Pin { group: id, state: state.clone(), held });
        Some(Pinned { pin, state, published_ns })
    }

    /// Of which group a pin is, and its versions.
    pub(crate) fn pinned(&self, pin: PinId) -> Option<(GroupId, &[Version])> {
        self.pins.get(&pin).map(|pin| (pin.group, pin.state.versions.as_slice()))
    }

    /// All areas, by what they are called here.
    pub(crate) fn all(&self) -> impl Iterator<Item = (dsm::AreaId, AreaId)> {
        self.areas.iter().map(|(area, id)| (*area, *id))
    }

    pub(crate) fn unpin(&mut self, pin: PinId) {
        self.pins.remove(&pin);
    }

    /// Lines of a pinned member that may differ from `base`.
    pub(crate) fn changed(&self, pin: PinId, member: u16, base: Option<Version>) -> Lines {
        let Some(held) = self.pins.get(&pin).and_then(|pin| pin.held.get(&member)) else {
            return Lines::default();
        };
        // As it was created it is zero everywhere.
        if held.version() == dsm::Version::default() {
            return Lines::default();
        }
        let lines = held.changed_since(base.map(names::version_here));
        let runs = lines.runs().flat_map(|run| {
            // A run between hosts has fewer than 2^32 lines; an area may have as many.
            const MOST: u64 = u32::MAX as u64;
            (run.start..run.end)
                .step_by(MOST as usize)
                .map(move |first| Run { first: first as u32, count: (run.end - first).min(MOST) as u32 })
        });
        runs.collect()
    }

    /// A pinned member.
    #[cfg(feature = "rdma")]
    pub(crate) fn held(&self, pin: PinId, member: u16) -> Option<&Held> {
        self.pins.get(&pin)?.held.get(&member)
    }

    /// Bytes of a pinned member.
    pub(crate) fn bytes(&self, pin: PinId, member: u16) -> &[u8] {
        self.pins.get(&pin).and_then(|pin| pin.held.get(&member)).map_or(&[], Held::bytes)
    }
}
