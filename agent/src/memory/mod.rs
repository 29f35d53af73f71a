//! A job's memory on this host as the node sees it, and what the node is told of it.
mod handover;
mod naming;

use self::naming::Asked;
use crate::forcing::Forcing;
use crate::local::{self, Local};
use crate::own::{Entered, Own};
use crate::placer::{self, Placer};
use crate::received::{Committed, Received};
use crate::trace::Trace;
use hectare_dsm as dsm;
use hectare_dsm::agent::{Agent, Bell, RemoteWorker};
use hectare_net::wire::{Handover, Stage};
use hectare_net::{
    AreaId, Arrival, Description, Event, GroupId, HostId, Lines, Memory, NameError, PinId, Pinned, Place,
    Run, Version,
};
use hectare_wire::{TraceStep, TraceWhat};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;
use std::time::Duration;
use tracing::{debug, warn};

/// The memory of a job on this host.
#[derive(Debug)]
pub struct SegmentMemory {
    // First: they hold areas of the agent.
    placer: Placer,
    /// Groups of which a peer may be writing lines by itself.
    written: BTreeMap<GroupId, HostId>,
    own: Own,
    local: Local,
    received: Received,
    forcing: Forcing,
    host: HostId,
    now_ns: u64,
    /// How long what came last was on its way, by half the time there and back.
    way_ns: u64,
    events: VecDeque<Event<'static>>,
    heard: Vec<dsm::agent::Event>,
    /// Names that workers wait for, by the tickets of their questions.
    wanted: BTreeMap<u64, Asked>,
    last_ticket: u64,
    /// As what areas of other hosts were taken, as far as their owners were told.
    taken_for: BTreeSet<(AreaId, [u32; 3])>,
    is_new: bool,
    ranks: Vec<Range<u32>>,
    /// Workers of other hosts that have left, as the agents there say.
    left: BTreeSet<u32>,
    /// Areas that are sent on demand and were given to workers of other hosts, until all that was written is published: what was
    /// published before is sent to nobody.
    going: BTreeMap<dsm::AreaId, (dsm::Rank, u64)>,
    /// Groups of this host whose newest state could not be told, since a round was publishing it.
    untold: BTreeSet<GroupId>,
    /// Clocks that are told after those.
    clocks: Option<(u64, u64)>,
    /// This host's part of the program has ended.
    leaves: bool,
    /// Nobody is in the clocks any more, as has been told.
    is_out: bool,
    /// All workers of this host have come and gone, as has been told.
    is_deserted: bool,
    trace: Trace,
    agent: Agent,
}

impl SegmentMemory {
    /// The memory to which `agent` belongs.
    pub fn new(agent: Agent, host: HostId) -> SegmentMemory {
        SegmentMemory::with_ranks(agent, host, Vec::new())
    }

    /// The same of a job that knows its hosts, by the ranks of each ([`hectare_dsm::Job::hosts`]).
    pub fn with_ranks(agent: Agent, host: HostId, ranks: Vec<Range<u32>>) -> SegmentMemory {
        agent.ring_for_chosen();
        SegmentMemory {
            placer: Placer::default(),
            written: BTreeMap::new(),
            own: Own::default(),
            local: Local::default(),
            received: Received::default(),
            forcing: Forcing::default(),
            host,
            now_ns: 0,
            way_ns: 0,
            events: VecDeque::new(),
            heard: Vec::new(),
            wanted: BTreeMap::new(),
            last_ticket: 0,
            taken_for: BTreeSet::new(),
            is_new: true,
            ranks,
            left: BTreeSet::new(),
            going: BTreeMap::new(),
            untold: BTreeSet::new(),
            clocks: None,
            leaves: false,
            is_out: false,
            is_deserted: false,
            trace: Trace::default(),
            agent,
        }
    }

    /// The bell that rings when something changes in it.
    pub(crate) fn bell(&self) -> Bell {
        let looks_again = !self.untold.is_empty() || !self.going.is_empty();
        self.agent.bell(self.received.waits() || self.forcing.waits() || looks_again)
    }

    /// Has lines of large cuts written and read by a device.
    #[must_use]
    pub fn with_placer(self, placer: Placer) -> SegmentMemory {
        SegmentMemory { placer, ..self }
    }

    pub(crate) fn placer(&self) -> &Placer {
        &self.placer
    }

    pub(crate) fn placer_mut(&mut self) -> &mut Placer {
        &mut self.placer
    }

    /// Writes lines of a pinned state into a peer's memory.
    pub(crate) fn place(&mut self, peer: HostId, what: placer::Lines) {
        self.placer.place(&self.own, peer, what);
    }

    /// Something else comes to write a group, or it goes: what its owner's host was allowed to write itself and has not is never
    /// seen any more.
    fn end_writes(&mut self, group: GroupId) {
        if let Some(peer) = self.written.remove(&group) {
            // Nothing of the pair is on its way any more, of whatever group.
            self.written.retain(|_, other| *other != peer);
            self.placer.close(peer, "a cut was given up, of which lines may have been on their way");
        }
    }

    /// Areas of a group are gone, or change hands: nobody writes or reads them by a device any more.
    fn forget_places(&mut self, group: GroupId) {
        self.end_writes(group);
        for area in self.received.areas_of(group) {
            self.placer.forget(area);
        }
    }

    /// The agent of the job, by which the memory of this host is read and changed.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// It is `now_ns`, in nanoseconds that the node counts, too.
    pub(crate) fn at(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// Notes how long the next event was on its way.
    pub(crate) fn took(&mut self, way_ns: u64) {
        self.way_ns = way_ns;
    }

    /// The next event for the node.
    pub(crate) fn next_event(&mut self) -> Option<Event<'static>> {
        self.events.pop_front()
    }

    /// This host's part of the program has ended.
    pub(crate) fn leave(&mut self) {
        self.leaves = true;
        self.agent.leave_job();
    }

    /// Whether this host's part has ended, and the events that say so, and all before them, were there: those, too, of what was given away.
    pub(crate) fn has_left(&self) -> bool {
        self.leaves && self.is_out && self.events.is_empty() && self.going.is_empty()
    }

    /// Whether all workers of this host have come and gone: nobody joins any more.
    pub(crate) fn is_deserted(&self) -> bool {
        self.is_deserted
    }

    /// Looks at what changed in the memory.
    pub(crate) fn look(&mut self) {
        self.forcing.look(&self.agent);
        let mut heard = std::mem::take(&mut self.heard);
        self.agent.look(&mut heard);
        if std::mem::take(&mut self.is_new) {
            self.find_noted(&heard);
        }
        for event in heard.drain(..) {
            self.hear(event);
        }
        for group in std::mem::take(&mut self.untold) {
            self.tell_state(group);
        }
        self.let_go();
        let made = self.forcing.take_made(|group| self.untold.contains(group));
        self.events.extend(made.into_iter().map(|(group, postponed)| Event::Forced { group, postponed }));
        if self.untold.is_empty()
            && let Some((clock, lowest)) = self.clocks.take()
        {
            self.is_out = clock == u64::MAX;
            // The node adds one to it.
            self.events.push_back(Event::Clocks { clock, lowest: lowest.min(u64::MAX - 1) });
        }
        self.heard = heard;
        for (group, versions) in self.received.visible(&self.agent) {
            self.trace.note(group, &versions, self.now_ns, TraceWhat::Visible);
            self.events.push_back(Event::Visible { group, versions });
        }
    }

    /// Finds the groups that agents before this one noted.
    fn find_noted(&mut self, heard: &[dsm::agent::Event]) {
        for event in heard {
            let dsm::agent::Event::Created { area } = *event else { continue };
            let Some(about) = self.agent.describe(area) else { continue };
            self.events.extend(handover::noted(&self.agent, self.host, area, &about));
            if local::is_local(&about) {
                self.events.extend(self.local.enter_noted(&self.agent, area));
            } else if !about.remote || about.left_to.is_some() {
                // It is sent from here until the next owner's host has taken it.
                if about.left_to.is_some() {
                    self.received.enter_noted(&self.agent, area);
                }
                let entered = self.own.enter_noted(&self.agent, area);
                self.tell_created(entered);
            } else if self.received.enter_noted(&self.agent, area).is_none() {
                warn!(area = about.name, "an area of another host that nobody knows");
            }
        }
        for group in self.own.groups() {
            self.tell_state(group);
        }
        for kept in self.received.kept(&self.agent) {
            if !self.own.areas_of(kept.group).is_empty() {
                continue;
            }
            let (group, members, arrived) = (kept.group, kept.members, kept.arrived);
            self.events.push_back(Event::Kept { group, members, arrived, interval_us: 0 });
        }
    }

    fn tell_created(&mut self, entered: Option<Entered>) {
        if let Some(Entered { area, description, accepted, interval_us }) = entered {
            self.events.push_back(Event::Created { area, description, accepted, interval_us });
        }
    }

    pub(super) fn tell_state(&mut self, group: GroupId) {
        match self.own.untold_states(&self.agent, group) {
            Some(states) => {
                for state in &states {
                    self.trace.note(group, &state.versions, self.now_ns, TraceWhat::PickedUp);
                }
                let told = states.into_iter().map(|state| Event::Published { group, state });
                self.events.extend(told);
            }
            None if self.own.areas_of(group).is_empty() => {}
            None => drop(self.untold.insert(group)),
        }
    }

    fn hear(&mut self, event: dsm::agent::Event) {
        match event {
            dsm::agent::Event::Created { area } => {
                let is_known =
                    self.own.id_of(area).is_some() || self.received.knows(area) || self.local.knows(area);
                let Some(about) = self.agent.describe(area).filter(|about| !is_known && !about.remote) else {
                    return;
                };
                if local::is_local(&about) {
                    self.events.extend(self.local.enter(&self.agent, self.host, area));
                    return;
                }
                let entered = self.own.enter(&self.agent, self.host, area);
                let group = entered.as_ref().map(|entered| entered.area.group);
                self.tell_created(entered);
                group.into_iter().for_each(|group| self.tell_state(group));
            }
            dsm::agent::Event::Deleted { area } => {
                if let Some(group) = self.received.group_of(area) {
                    self.end_writes(group);
                }
                self.placer.forget(area);
                let own = self.own.forget(area).or_else(|| self.local.forget(area));
                let received = self.received.forget(area);
                if let Some(area) = own {
                    self.events.push_back(Event::Deleted { area });
                } else if let Some(group) = received {
                    self.events.push_back(Event::Detach { group });
                }
            }
            dsm::agent::Event::Published { area, .. } => {
                if let Some(id) = self.own.id_of(area) {
                    self.tell_state(id.group);
                }
            }
            dsm::agent::Event::Given { area, to, epoch } => self.given(area, to, epoch),
            dsm::agent::Event::Ownerless { area, is } => {
                self.events.extend(self.own.id_of(area).map(|area| Event::Ownerless { area, is }));
            }
            dsm::agent::Event::Workers { first, failed, left } => {
                self.events.push_back(Event::Workers { first, failed, left });
            }
            dsm::agent::Event::Deserted => {
                self.is_deserted = true;
                self.events.push_back(Event::Deserted);
            }
            dsm::agent::Event::Wanted { name } => self.want(name),
            dsm::agent::Event::TakenFor { name, element } => self.taken_for(&name, element),
            dsm::agent::Event::Requested { area, request } => match self.received.request(area, request) {
                Some((group, request)) => self.events.push_back(Event::Force { group, request }),
                // It is gone, or was never another host's.
                None => self.agent.answer(area, request, true),
            },
            dsm::agent::Event::Clock { local, lowest } => self.clocks = Some((local, lowest)),
            _ => {}
        }
    }

    /// There is a session with the agent of a host: its workers count as there, which is what those who wait for them wait for. Those
    /// that it has said to have left stay so: it does not say so again.
    pub(crate) fn connected(&mut self, host: HostId) {
        let its = self.ranks.get(usize::from(host.0)).cloned().unwrap_or_default();
        its.for_each(|rank| self.stands(rank, self.left.contains(&rank)));
    }

    /// A worker of another host is there, or has left.
    fn stands(&self, rank: u32, has_left: bool) {
        let stands = if has_left { RemoteWorker::Left } else { RemoteWorker::There };
        if let Err(error) = self.agent.set_worker(rank, stands) {
            warn!(rank, %error, "a worker of another host");
        }
    }

    /// The owner of an area has deleted it.
    pub(crate) fn deleted(&mut self, area: AreaId) {
        if let Some(here) = self.received.area(area) {
            self.end_writes(area.group);
            self.placer.forget(here);
        }
        self.received.delete(&self.agent, area);
    }

    /// Bytes of a pinned member of a group.
    pub(crate) fn bytes(&self, pin: PinId, member: u16) -> &[u8] {
        self.own.bytes(pin, member)
    }

    /// Follows the area of this name for a while: whose it is, its steps from number `after` on, where the next begin, and whether
    /// some were dropped. None if there is no such area.
    pub(crate) fn follow(&mut self, name: &str, after: u64) -> Option<(HostId, Vec<TraceStep>, u64, bool)> {
        let all = self.own.all().chain(self.received.all());
        let named = |area| self.agent.describe(area).is_some_and(|about| about.name == name);
        let id = all.into_iter().find(|(area, _)| named(*area)).map(|(_, id)| id)?;
        let (steps, next, dropped) = self.trace.follow(id, self.now_ns, after);
        Some((id.group.home(), steps, next, dropped))
    }

    /// Whether steps of versions are noted.
    pub(crate) fn is_traced(&self) -> bool {
        self.trace.is_on()
    }

    /// Bytes of a pinned member go to a host.
    pub(crate) fn trace_sent(&mut self, pin: PinId, to: HostId, member: u16, bytes: u64) {
        if let Some((group, versions)) = self.own.pinned(pin) {
            self.trace.note_sent(group, versions, to, self.now_ns, (member, bytes));
        }
    }

    /// Notes the latest reports of subscribers.
    pub(crate) fn trace_said<'s>(
        &mut self,
        said: impl Fn(GroupId) -> Vec<(HostId, Stage, u64, &'s [Option<Version>])>,
    ) {
        self.trace.note_said(self.now_ns, said);
        self.trace.forget_late(self.now_ns);
    }

    /// Another host wants a group of this one.
    fn note_wanted(&mut self, group: GroupId) -> Result<(), NameError> {
        for area in self.own.areas_of(group) {
            self.agent.choose(area);
        }
        self.own.complete(&self.agent, self.host, group)
    }
}

impl Memory for SegmentMemory {
    fn pin(&mut self, group: GroupId, label: Option<u64>) -> Result<Option<Pinned>, NameError> {
        self.note_wanted(group)?;
        let pinned = self.own.pin(&self.agent, group, label, self.now_ns);
        if let Some(pinned) = &pinned {
            self.trace.note(group, &pinned.state.versions, pinned.published_ns, TraceWhat::Published);
        }
        Ok(pinned)
    }

    fn unpin(&mut self, pin: PinId) {
        self.own.unpin(pin);
    }

    fn changed(&mut self, pin: PinId, member: u16, base: Option<Version>) -> Lines {
        self.own.changed(pin, member, base)
    }

    fn reserve(&mut self, area: AreaId, description: &Description) -> Result<Option<Version>, NameError> {
        self.received.reserve(&self.agent, self.host, area, description)
    }

    fn restore(&mut self, group: GroupId) {
        self.end_writes(group);
        self.received.restore(group);
    }

    fn begin(&mut self, group: GroupId, versions: &[Version]) {
        self.trace.note(group, versions, self.now_ns, TraceWhat::Begins);
        self.received.begin(group, versions);
    }

    fn write(&mut self, area: AreaId, run: Run, bytes: &[u8]) {
        self.end_writes(area.group);
        self.received.write(&self.agent, area, run, bytes);
    }

    fn grant(&mut self, group: GroupId, to: HostId, members: usize) -> Option<Vec<Place>> {
        if self.written.get(&group).is_some_and(|peer| *peer != to) {
            self.end_writes(group);
        }
        let areas = self.received.let_write(&self.agent, group, members)?;
        let places = self.placer.grant(&self.agent, to, &areas)?;
        self.written.insert(group, to);
        Some(places)
    }

    fn announce(&mut self, area: AreaId, run: Run) {
        self.received.announce(&self.agent, area, run);
    }

    fn placed(&mut self, group: GroupId) {
        self.written.remove(&group);
    }

    fn commit(&mut self, group: GroupId, arrival: Arrival) -> bool {
        self.end_writes(group);
        self.trace.note(group, &arrival.versions, self.now_ns, TraceWhat::Complete);
        let arrival = Arrival { age_ns: arrival.age_ns.saturating_add(self.way_ns), ..arrival };
        match self.received.commit(&self.agent, group, &arrival) {
            Committed::Waits => {}
            Committed::Visible(versions) => {
                self.trace.note(group, &versions, self.now_ns, TraceWhat::Visible);
                self.events.push_back(Event::Visible { group, versions });
            }
            // The node lets the group go: whoever uses its areas finds that they are deleted.
            Committed::Failed => return false,
        }
        true
    }

    fn set_clock(&mut self, host: HostId, clock: u64) {
        // A job that was made without its hosts has clocks of its own alone.
        if let Err(error) = self.agent.set_clock(usize::from(host.0), clock) {
            debug!(%host, %error, "a clock that counts nowhere");
        }
    }

    fn force(&mut self, group: GroupId) {
        self.forcing.begin(&self.agent, group, &self.own.areas_of(group));
    }

    fn show(&mut self, group: GroupId) -> bool {
        // Without memory for more copies there may be one to publish into all the same.
        let _ = self.note_wanted(group);
        self.forcing.show(&self.agent, group, &self.own.areas_of(group))
    }

    fn answer(&mut self, group: GroupId, request: u32, as_of_ns: Option<u64>, postponed: bool) {
        let as_of = as_of_ns.map(|as_of_ns| Duration::from_nanos(self.now_ns.saturating_sub(as_of_ns)));
        self.received.answer(&self.agent, group, request, as_of, postponed);
    }

    fn leave(&mut self, group: GroupId, to: HostId, handover: Handover, versions: &[Version]) -> bool {
        self.leave_group(group, to, handover, versions)
    }

    fn take(&mut self, group: GroupId, handover: Handover) -> bool {
        self.take_group(group, handover)
    }

    fn moved(&mut self, group: GroupId, owner: HostId, epoch: u64) {
        self.has_gone(group);
        // The last owner's host may no longer place lines here.
        self.forget_places(group);
        for area in self.received.areas_of(group) {
            self.agent.refer(area, usize::from(owner.0), epoch);
        }
    }

    fn unsubscribed(&mut self, group: GroupId, host: HostId) {
        for area in self.own.areas_of(group) {
            self.placer.forget_sent(host, area);
        }
    }

    fn ownerless(&mut self, area: AreaId, is: bool) {
        if let Some(here) = self.received.area(area) {
            self.agent.note_ownerless(here, is);
        }
    }

    fn workers(&mut self, host: HostId, first: u32, failed: u64, left: u64) {
        let its = self.ranks.get(usize::from(host.0)).cloned().unwrap_or_default();
        for rank in its.skip_while(|rank| *rank < first).take_while(|rank| rank - first < 64) {
            let is = |bits: u64| bits >> (rank - first) & 1 != 0;
            match is(left) {
                true => self.left.insert(rank),
                false => self.left.remove(&rank),
            };
            self.stands(rank, is(left));
            if let Err(error) = self.agent.set_failed(rank, is(failed)) {
                warn!(rank, %error, "a worker of another host");
            }
        }
    }

    fn release(&mut self, group: GroupId) {
        self.forget_places(group);
        self.received.release(&self.agent, group);
    }
}
