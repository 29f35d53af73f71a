//! Areas of other hosts: created here, written line by line, and passed to the rounds of this host, which publish them.
//!
//! An area is hidden from lookups until data of it is published here: otherwise workers would find zeros where the owner has other
//! values. Its note has its identity between hosts.
use crate::force_requests::Requests;
use crate::names;
use crate::note::Note;
use hectare_dsm as dsm;
use hectare_dsm::AreaSpec;
use hectare_dsm::agent::{Agent, Receiving, Refusal, Source};
use hectare_net::{AreaId, Arrival, Description, GroupId, HostId, NameError, Run, Version};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tracing::{error, warn};

/// The areas of other hosts that are here.
#[derive(Debug, Default)]
pub(crate) struct Received {
    groups: BTreeMap<GroupId, Group>,
    areas: HashMap<dsm::AreaId, AreaId>,
    /// Why members of groups could not be made the last time.
    refusals: BTreeMap<GroupId, (AreaId, String, Refusal)>,
}

#[derive(Debug, Default)]
struct Group {
    /// In order; `None` for those that were deleted.
    members: Vec<Option<dsm::AreaId>>,
    /// The terms of the cut under way.
    terms: Vec<u64>,
    /// Rises when what was written is taken back: the lines that come then are of another source.
    restored: u64,
    receiving: Option<Receiving>,
    /// Lines of the cut under way could not be written.
    failed: bool,
    /// The number of members of which something is handed over and not published. Of those that came since, nothing has arrived.
    waits: Option<usize>,
    requests: Requests,
}

/// A group that an agent before this one received.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) group: GroupId,
    pub(crate) members: Vec<Option<(Description, Option<Version>)>>,
    pub(crate) arrived: bool,
}

/// The outcome of a cut that is whole.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Committed {
    /// It waits for a round.
    Waits,
    /// There was nothing new in it: these versions are published.
    Visible(Vec<Version>),
    /// It could not be handed over, as an area is gone.
    Failed,
}

impl Received {
    /// Enters an area of another host that an agent before this one made.
    pub(crate) fn enter_noted(&mut self, agent: &Agent, area: dsm::AreaId) -> Option<AreaId> {
        let id = Note::read(agent, area)?.id;
        self.insert(id, area);
        Some(id)
    }

    /// Enters an area.
    pub(crate) fn insert(&mut self, id: AreaId, area: dsm::AreaId) {
        let members = &mut self.groups.entry(id.group).or_default().members;
        let place = usize::from(id.member);
        if members.len() <= place {
            members.resize(place + 1, None);
        }
        members[place] = Some(area);
        self.areas.insert(area, id);
    }

    /// Lets a group of one area go, which has come to this host; or any that is received no more. Requests that are not answered, some
    /// of which the node has not heard of.
    pub(crate) fn take(&mut self, id: GroupId) -> impl Iterator<Item = (dsm::AreaId, u64)> + use<> {
        let group = self.groups.remove(&id).unwrap_or_default();
        for area in group.members.into_iter().flatten() {
            self.areas.remove(&area);
        }
        group.requests.all()
    }

    /// The areas of a group.
    pub(crate) fn areas_of(&self, id: GroupId) -> Vec<dsm::AreaId> {
        self.groups
            .get(&id)
            .map(|group| group.members.iter().copied().flatten().collect())
            .unwrap_or_default()
    }

    /// Lines of a cut under way are part of it no more.
    pub(crate) fn end_cut(&mut self, id: GroupId) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.receiving = None;
        }
    }

    /// All groups as they are, for the node of an agent that has just started.
    pub(crate) fn kept(&mut self, agent: &Agent) -> Vec<Kept> {
        let mut all = Vec::new();
        for (id, group) in &mut self.groups {
            let of = |area: &Option<dsm::AreaId>| {
                let area = (*area)?;
                let description = names::description(&agent.describe(area)?);
                let arrived = agent.arrived(area).filter(|_| description.on_demand).map(names::version);
                Some((description, shown(agent, area).max(arrived)))
            };
            let members = group.members.iter().map(of).collect();
            // Which of them have something is known of those that are handed over or shown.
            let has = |area: &Option<dsm::AreaId>| {
                area.is_none_or(|area| !agent.may_receive(area) || shown(agent, area).is_some())
            };
            let count = group.members.iter().rposition(has).map_or(0, |last| last + 1);
            group.waits = (!may_receive(agent, &group.members)).then_some(count);
            all.push(Kept { group: *id, members, arrived: group.waits.is_some() });
        }
        all
    }

    /// All areas, by what they are called here.
    pub(crate) fn all(&self) -> impl Iterator<Item = (dsm::AreaId, AreaId)> {
        self.areas.iter().map(|(area, id)| (*area, *id))
    }

    pub(crate) fn id_of(&self, area: dsm::AreaId) -> Option<AreaId> {
        self.areas.get(&area).copied()
    }

    pub(crate) fn knows(&self, area: dsm::AreaId) -> bool {
        self.areas.contains_key(&area)
    }

    /// The area here.
    pub(crate) fn area(&self, id: AreaId) -> Option<dsm::AreaId> {
        *self.groups.get(&id.group)?.members.get(usize::from(id.member))?
    }

    /// The group of an area of another host.
    pub(crate) fn group_of(&self, area: dsm::AreaId) -> Option<GroupId> {
        self.areas.get(&area).map(|id| id.group)
    }

    /// Somebody here deleted an area of another host; its group, if none of its areas is left.
    pub(crate) fn forget(&mut self, area: dsm::AreaId) -> Option<GroupId> {
        let id = self.areas.remove(&area)?;
        let group = self.groups.get_mut(&id.group)?;
        group.receiving = None;
        group.members[usize::from(id.member)] = None;
        group.members.iter().all(Option::is_none).then_some(id.group)
    }

    /// The owner deleted an area.
    pub(crate) fn delete(&mut self, agent: &Agent, id: AreaId) {
        if let Some(area) = self.area(id) {
            self.forget(area);
            delete(agent, area);
        }
    }

    /// Groups that waited for a round and are published, with their versions.
    pub(crate) fn visible(&mut self, agent: &Agent) -> Vec<(GroupId, Vec<Version>)> {
        let mut visible = Vec::new();
        for (id, group) in &mut self.groups {
            let Some(count) = group.waits else { continue };
            let members = &group.members[..count.min(group.members.len())];
            if may_receive(agent, members)
                && let Some(versions) = versions(agent, members)
            {
                group.waits = None;
                visible.push((*id, versions));
            }
        }
        visible
    }

    /// A worker of this host wants what an area is now: the group, and the number by which it is asked for. None if the area is
    /// of no other host.
    pub(crate) fn request(&mut self, area: dsm::AreaId, request: u64) -> Option<(GroupId, u32)> {
        let id = self.areas.get(&area)?.group;
        Some((id, self.groups.get_mut(&id)?.requests.make(area, request)))
    }

    /// All requests for a group up to that number are answered. At `as_of` before now, what is published here was all that the owner
    /// had written.
    pub(crate) fn answer(
        &mut self,
        agent: &Agent,
        id: GroupId,
        request: u32,
        as_of: Option<Duration>,
        postponed: bool,
    ) {
        let Some(group) = self.groups.get_mut(&id) else { return };
        for area in group.members.iter().flatten().filter(|_| as_of.is_some()) {
            if let (Some(version), Some(age)) = (agent.newest(*area), as_of) {
                agent.confirm(*area, version, age);
            }
        }
        for (area, request) in group.requests.answer(request) {
            agent.answer(area, request, postponed);
        }
    }

    /// Whether something waits for a round.
    pub(crate) fn waits(&self) -> bool {
        self.groups.values().any(|group| group.waits.is_some())
    }

    /// Makes an area; which version of it is published here.
    pub(crate) fn reserve(
        &mut self,
        agent: &Agent,
        host: HostId,
        id: AreaId,
        description: &Description,
    ) -> Result<Option<Version>, NameError> {
        if let Some(area) = self.area(id) {
            return Ok(shown(agent, area));
        }
        let there = description.element;
        let Some((element, len)) = names::elements(description) else {
            return Err(NameError::Type { there, here: there, asked_by: host });
        };
        // The areas of a group are received together, so they are one group here, too; of a name that no program uses.
        let spec = AreaSpec::new(&description.name).copies(3).row(description.row as usize);
        let spec = match description.group.is_empty() {
            true if description.on_demand => spec.on_demand(),
            true => spec,
            false => spec.group(format!("{}, group {:x}", id.group.home(), id.group.0)),
        };
        let note = Note { id, accepted: false, last: 0 }.words();
        match agent.create_hidden(&spec, element, len, usize::from(id.group.home().0), note) {
            Ok(area) => {
                self.insert(id, area);
                self.groups.get_mut(&id.group).expect("just entered").receiving = None;
                self.refusals.remove(&id.group);
                Ok(None)
            }
            Err(error) => {
                warn!(area = description.name, %error, "an area of another host cannot be made here");
                let reason = match error {
                    dsm::Error::NameTaken { .. } => NameError::Taken { by: host },
                    dsm::Error::InvalidName { .. } => NameError::Long { by: host },
                    _ => NameError::Memory,
                };
                let refusal = refusal(id.group.home(), error);
                self.refusals.insert(id.group, (id, description.name.clone(), refusal));
                Err(reason)
            }
        }
    }

    /// Why an area that was found at its owner's host cannot be had here.
    pub(crate) fn refusal(&self, id: AreaId, error: NameError) -> Refusal {
        let host = usize::from(id.group.home().0);
        match self.refusals.get(&id.group) {
            Some((refused, _, refusal)) if *refused == id => refusal.clone(),
            Some((_, name, refusal)) => {
                let why = match refusal {
                    Refusal::NotReceived { why, .. } => why.clone(),
                    Refusal::OutOfMemory { asked, free, .. } => {
                        format!("it needs {asked} bytes, {free} are free")
                    }
                    other => format!("{other:?}"),
                };
                Refusal::NotReceived { host, why: format!("no place for {name:?}, of the same group: {why}") }
            }
            None => Refusal::NotReceived { host, why: error.to_string() },
        }
    }

    /// Marks lines that were written and not published to be taken back, which is done before the next lines are written.
    pub(crate) fn restore(&mut self, id: GroupId) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.receiving = None;
            group.restored += 1;
        }
    }

    pub(crate) fn begin(&mut self, id: GroupId, versions: &[Version]) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.receiving = None;
            group.failed = false;
            group.terms = versions.iter().map(|version| version.term).collect();
        }
    }

    /// Writes lines. If that is not possible, the cut cannot be committed.
    pub(crate) fn write(&mut self, agent: &Agent, id: AreaId, run: Run, bytes: &[u8]) {
        let area = self.area(id);
        let Some(group) = self.groups.get_mut(&id.group) else { return };
        let written = match (area, group.receive(agent, id.group)) {
            (Some(area), Some(receiving)) => receiving.write(area, u64::from(run.first), bytes),
            _ => Err(dsm::Error::Deleted { name: format!("{id:?}") }),
        };
        if let Err(error) = written {
            error!(%error, "lines of another host cannot be written");
            group.failed = true;
        }
    }

    /// Begins to receive lines that the owner's host writes itself: the areas of the first `members`. None if they cannot be received.
    pub(crate) fn let_write(
        &mut self,
        agent: &Agent,
        id: GroupId,
        members: usize,
    ) -> Option<Vec<Option<dsm::AreaId>>> {
        let group = self.groups.get_mut(&id)?;
        group.receive(agent, id)?;
        group.members.get(..members).map(<[_]>::to_vec)
    }

    /// Marks lines that the owner's host writes itself. If that is not possible, the cut cannot be committed.
    pub(crate) fn announce(&mut self, agent: &Agent, id: AreaId, run: Run) {
        let area = self.area(id);
        let Some(group) = self.groups.get_mut(&id.group) else { return };
        let lines = u64::from(run.first)..u64::from(run.first) + u64::from(run.count);
        let marked = match (area, group.receive(agent, id.group)) {
            (Some(area), Some(receiving)) => receiving.mark(area, lines),
            _ => Err(dsm::Error::Deleted { name: format!("{id:?}") }),
        };
        if let Err(error) = marked {
            error!(%error, "lines of another host cannot be written");
            group.failed = true;
        }
    }

    /// Hands a state over to the rounds.
    pub(crate) fn commit(&mut self, agent: &Agent, id: GroupId, arrival: &Arrival) -> Committed {
        let Some(group) = self.groups.get_mut(&id) else { return Committed::Failed };
        let mut arrivals = Vec::new();
        for (area, version) in group.members.iter().zip(&arrival.versions) {
            let Some(area) = *area else { continue };
            let version = names::version_here(*version);
            match agent.newest(area) {
                // A version that is there already needs no round.
                Some(newest) if newest >= version => {}
                _ => arrivals.push(dsm::agent::Arrival {
                    area,
                    version,
                    // The lowest clock of its host then, which the owner's is not below.
                    clock: arrival.label.saturating_sub(1),
                    label: arrival.label,
                    age: Duration::from_nanos(arrival.age_ns),
                }),
            }
        }
        if arrivals.is_empty() {
            group.receiving = None;
            return Committed::Visible(arrival.versions.clone());
        }
        if group.failed || group.receive(agent, id).is_none() {
            return Committed::Failed;
        }
        let receiving = group.receiving.take().expect("just begun");
        match receiving.commit(&arrivals, true) {
            Ok(()) => {
                group.waits = Some(arrival.versions.len());
                Committed::Waits
            }
            Err(error) => {
                error!(%error, "a version of another host cannot be handed over");
                Committed::Failed
            }
        }
    }

    /// Deletes all areas of a group.
    pub(crate) fn release(&mut self, agent: &Agent, id: GroupId) {
        self.refusals.remove(&id);
        for area in self.groups.remove(&id).into_iter().flat_map(|group| group.members).flatten() {
            self.areas.remove(&area);
            delete(agent, area);
        }
    }
}

/// The refusal for workers of an area of `owner` that cannot be made here.
fn refusal(owner: HostId, error: dsm::Error) -> Refusal {
    match error {
        dsm::Error::OutOfMemory { asked, free, limit, payer, .. } => {
            Refusal::OutOfMemory { asked, free, limit, payer }
        }
        other => Refusal::NotReceived { host: usize::from(owner.0), why: other.to_string() },
    }
}

impl Group {
    fn receive(&mut self, agent: &Agent, id: GroupId) -> Option<&mut Receiving> {
        if self.receiving.is_none() {
            let (mut areas, mut sources) = (Vec::new(), Vec::new());
            for (place, area) in self.members.iter().enumerate() {
                if let Some(area) = *area {
                    let term = self.terms.get(place).copied().unwrap_or_default();
                    areas.push(area);
                    sources.push(Source { term, sender: u64::from(id.home().0) << 48 | self.restored });
                }
            }
            match agent.receive_each(&areas, &sources) {
                Ok(receiving) => self.receiving = receiving,
                Err(error) => warn!(%error, "areas of another host cannot be received into"),
            }
        }
        self.receiving.as_mut()
    }
}

/// The version that is published here; none if no data has come.
fn shown(agent: &Agent, area: dsm::AreaId) -> Option<Version> {
    let version = agent.newest(area)?;
    (!agent.is_hidden(area) || version > dsm::Version::default()).then(|| names::version(version))
}

fn may_receive(agent: &Agent, members: &[Option<dsm::AreaId>]) -> bool {
    members.iter().flatten().all(|area| agent.may_receive(*area) || agent.describe(*area).is_none())
}

fn versions(agent: &Agent, members: &[Option<dsm::AreaId>]) -> Option<Vec<Version>> {
    let of = |area: &Option<dsm::AreaId>| match area {
        Some(area) if agent.describe(*area).is_some() => agent.newest(*area).map(names::version),
        _ => Some(Version::default()),
    };
    members.iter().map(of).collect()
}

fn delete(agent: &Agent, area: dsm::AreaId) {
    match agent.delete(area) {
        Ok(()) | Err(dsm::Error::Deleted { .. }) => {}
        Err(error) => warn!(%error, "an area of another host cannot be deleted here"),
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::SegmentMemory;
    use hectare_dsm::Job;
    use hectare_net::{
        AreaId, Arrival, Description, ElementType, Event, GroupId, HostId, Memory, Run, Version,
    };

    /// The giver of a group lets its last state go when a host has taken it: what cannot be handed over to the rounds is never
    /// said to be there, neither at once nor after a round or by the next agent.
    #[test]
    fn a_state_that_cannot_be_handed_over_is_never_visible() {
        let job = Job::builder().hosts(&[1, 1], 0).reserve(1 << 26).embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let memory = || SegmentMemory::with_ranks(job.agent().unwrap(), HostId(0), job.hosts());
        let group = GroupId::new(HostId(1), 7);
        let area = AreaId { group, member: 0 };
        let [size, align, kind] = hectare_dsm::ElementType::of::<u64>().to_parts();
        let description = Description {
            name: "theirs".into(),
            group: String::new(),
            element: ElementType { kind, size, align },
            bytes: 64,
            row: 1,
            on_demand: false,
        };
        let versions = vec![Version { term: 1, counter: 1 }];
        let mut first = memory();
        assert_eq!(first.reserve(area, &description), Ok(None));
        first.begin(group, &versions);
        first.write(area, Run { first: 0, count: 1 }, &[1; 64]);
        // There is no such line.
        first.write(area, Run { first: 1, count: 1 }, &[1; 64]);
        assert!(!first.commit(group, Arrival { versions: versions.clone(), label: 0, age_ns: 0 }));
        let mut after_rounds = |memory: &mut SegmentMemory| {
            let mut events = Vec::new();
            for _ in 0..3 {
                worker.sync().unwrap();
                memory.look();
                events.extend(std::iter::from_fn(|| memory.next_event()));
            }
            events
        };
        let mut events = after_rounds(&mut first);
        drop(first);
        let mut next = memory();
        events.extend(after_rounds(&mut next));
        let says_it = |event: &Event<'_>| match event {
            Event::Visible { .. } | Event::Detach { .. } => true,
            Event::Kept { members, arrived, .. } => {
                *arrived || members.iter().flatten().any(|(_, version)| version.is_some())
            }
            _ => false,
        };
        assert!(!events.iter().any(says_it), "{events:?}");
        assert!(events.iter().any(|event| matches!(event, Event::Kept { .. })), "{events:?}");
        // The same state can be handed over when all of it can be written.
        next.restore(group);
        next.begin(group, &versions);
        next.write(area, Run { first: 0, count: 1 }, &[1; 64]);
        assert!(next.commit(group, Arrival { versions, label: 0, age_ns: 0 }));
        let events = after_rounds(&mut next);
        assert!(events.iter().any(|event| matches!(event, Event::Visible { .. })), "{events:?}");
    }
}
