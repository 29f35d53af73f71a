//! A host's shared memory as the node's contract sees it: copies, rounds, arrivals, clocks, and one worker per host.
mod areas;
mod asking;
mod contract;
mod done;
mod handover;
mod leaving;
mod placing;

use self::areas::Copied;
pub(crate) use self::areas::{Own, OwnArea, Remote, RemoteArea};
use self::handover::FIRST_EPOCH;
use self::leaving::Stay;
use crate::groups::is_given;
use crate::judge::{Judge, Promise, Published, key};
use crate::options::{MS, Mode};
use crate::random::Random;
use hectare_net::{AreaId, Description, Event, GroupId, HostId, LINE, PinId, State, Version};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// The longest time until a host's statement is heard, in nanoseconds, by links that come back, too.
const SAYS_LATE: u64 = 3000 * MS;

/// The worker of a host.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The iteration it is at; what it writes is stamped with it.
    pub(crate) iteration: u64,
    /// The clock that it has reached.
    pub(crate) clock: u64,
    /// It has written this iteration and waits for others.
    pub(crate) waits: bool,
    /// It has all that it attaches to.
    pub(crate) started: bool,
    /// It writes again at this time.
    pub(crate) writes_at: u64,
}

/// The shared memory of a host. It outlives agents.
#[derive(Debug)]
pub(crate) struct HostMemory {
    /// Which host.
    pub(crate) host: HostId,
    judge: Rc<RefCell<Judge>>,
    mode: Mode,
    iterations: u64,
    /// Groups of this host.
    pub(crate) own: BTreeMap<GroupId, Own>,
    /// Reader copies of an area.
    copies: usize,
    /// Groups that were deleted, whose pinned states are still sent.
    gone: Vec<Own>,
    /// The newest version that this host published of groups that go from host to host.
    published: BTreeMap<GroupId, u64>,
    /// Areas of this host alone, and whether the directory knows of them.
    pub(crate) kept: BTreeMap<AreaId, (Description, bool)>,
    /// Groups that are received.
    pub(crate) remote: BTreeMap<GroupId, Remote>,
    clocks: BTreeMap<HostId, u64>,
    /// Which workers of each host have failed, and which have left, as it says; of this host, if any has.
    workers: BTreeMap<HostId, (u64, u64)>,
    /// Groups that a peer may be writing itself.
    written: BTreeMap<GroupId, HostId>,
    /// The peers that may write here no more.
    pub(crate) shut: Vec<HostId>,
    /// Groups of this host that others want published.
    forcing: BTreeSet<GroupId>,
    /// Rounds in a thousand that find a worker that wants a group of another host.
    pub(crate) requests: u64,
    /// Of those that want one that is sent on demand, in a thousand: no round of this host takes place before it is answered.
    pub(crate) awaits: u64,
    awaited: Option<GroupId>,
    /// No agent begins anew.
    pub(crate) is_whole: bool,
    /// No agent and no session begins anew.
    pub(crate) is_steady: bool,
    /// Nothing is sent twice.
    pub(crate) is_sent_once: bool,
    /// The worker.
    pub(crate) worker: Worker,
    round: u64,
    /// The lowest clock of this host's workers, and of all.
    pub(crate) local: u64,
    /// The lowest clock of all.
    pub(crate) lowest: u64,
    last_pin: u64,
    /// Events for the agent.
    pub(crate) events: VecDeque<Event<'static>>,
    /// It has no memory for the copies that it would send until then.
    pub(crate) short_until: u64,
    /// States in a thousand that arrive until then and cannot be handed over to the rounds.
    pub(crate) failing: u64,
    pub(crate) fails_until: u64,
    /// The groups of those.
    pub(crate) failed: Vec<GroupId>,
    /// Groups that this host has left to others: they stay known here.
    left: BTreeSet<GroupId>,
    /// The worker gives an area to the worker of that host right after it has written it.
    pub(crate) gives_written: Option<HostId>,
    /// How long the worker is there.
    stay: Stay,
    /// The calls of the agent that do something before it dies.
    pub(crate) fuel: Option<u32>,
    random: Random,
}

impl HostMemory {
    /// The memory of a host of `hosts`.
    pub(crate) fn new(
        host: HostId,
        hosts: u16,
        mode: Mode,
        iterations: u64,
        judge: Rc<RefCell<Judge>>,
        random: Random,
    ) -> HostMemory {
        let others = (0..hosts).map(HostId).filter(|other| *other != host);
        HostMemory {
            host,
            judge,
            mode,
            iterations,
            own: BTreeMap::new(),
            copies: 0,
            gone: Vec::new(),
            published: BTreeMap::new(),
            kept: BTreeMap::new(),
            remote: BTreeMap::new(),
            clocks: others.map(|other| (other, 0)).collect(),
            workers: BTreeMap::new(),
            written: BTreeMap::new(),
            shut: Vec::new(),
            forcing: BTreeSet::new(),
            requests: 0,
            awaits: 0,
            awaited: None,
            is_whole: false,
            is_steady: false,
            is_sent_once: false,
            worker: Worker { iteration: 0, clock: 0, waits: false, started: false, writes_at: 0 },
            round: 0,
            local: 0,
            lowest: 0,
            last_pin: 0,
            events: VecDeque::new(),
            short_until: 0,
            failing: 0,
            fails_until: 0,
            failed: Vec::new(),
            left: BTreeSet::new(),
            gives_written: None,
            stay: Stay::Ever,
            fuel: None,
            random,
        }
    }

    /// Creates an area.
    pub(crate) fn create(&mut self, area: AreaId, description: Description, copies: usize) {
        let (bytes, lines) = (description.bytes as usize, description.lines() as usize);
        self.copies = copies;
        if is_given(area.group) {
            self.judge.borrow_mut().owned(area.group, Some(self.host));
        }
        let own = self.own.entry(area.group).or_default();
        own.copies.resize_with(copies, || Copied {
            published: None,
            published_ns: 0,
            pin: None,
            dead: false,
        });
        own.members.push(OwnArea {
            description: description.clone(),
            accepted: false,
            interval_us: 0,
            epoch: FIRST_EPOCH,
            writer: vec![0; bytes],
            // The content at creation is a version as well.
            dirty: BTreeSet::from([0]),
            version: Version { term: 1, counter: 0 },
            changed: vec![0; lines],
        });
        let interval_us = self.random.pick(&[0, 0, 4000, 9000]);
        own.members.last_mut().expect("just made").interval_us = interval_us;
        self.events.push_back(Event::Created { area, description, accepted: false, interval_us });
    }

    /// Deletes a group.
    pub(crate) fn delete(&mut self, group: GroupId) {
        let Some(own) = self.own.remove(&group) else { return };
        for member in 0..own.members.len() {
            self.events.push_back(Event::Deleted { area: AreaId { group, member: member as u16 } });
        }
        let names = own.members.iter().map(|member| member.description.name.clone()).collect();
        self.gone.push(own);
        let clock = if self.mode == Mode::Free { u64::MAX } else { self.worker.clock };
        self.judge.borrow_mut().delete(group, names, clock);
    }

    /// Copies of all groups of this host.
    fn copies(&self) -> impl Iterator<Item = &Copied> {
        self.own.values().chain(&self.gone).flat_map(|own| &own.copies)
    }

    /// Creates an area without reader copies.
    pub(crate) fn create_local(&mut self, area: AreaId, description: Description) {
        self.kept.insert(area, (description.clone(), false));
        self.events.push_back(Event::Local { area, description, accepted: false });
    }

    /// Bytes of a pinned state.
    pub(crate) fn pinned(&self, pin: PinId, member: u16) -> Rc<Vec<u8>> {
        let copy = self.copies().find(|copy| copy.pin == Some(pin)).expect("a packet is of a pinned state");
        copy.published.as_ref().expect("it was published").contents[usize::from(member)].clone()
    }

    /// An agent starts: what it is told first. Pins of the former one end with `Ready`.
    pub(crate) fn start_agent(&mut self) {
        self.fuel = None;
        self.written.clear();
        self.events.clear();
        self.forcing.clear();
        self.gone.clear();
        self.tell_owners();
        for (&area, (description, accepted)) in &self.kept {
            self.events.push_back(Event::Local {
                area,
                description: description.clone(),
                accepted: *accepted,
            });
        }
        for (&group, own) in &mut self.own {
            for (member, area) in own.members.iter().enumerate() {
                let area_id = AreaId { group, member: member as u16 };
                self.events.push_back(Event::Created {
                    area: area_id,
                    description: area.description.clone(),
                    accepted: area.accepted,
                    interval_us: area.interval_us,
                });
            }
            let mut last = BTreeMap::new();
            for copy in &mut own.copies {
                copy.dead |= copy.pin.take().is_some();
                if let Some(published) = &copy.published {
                    let round = published.state.round;
                    let kept: &mut State =
                        last.entry(published.state.label).or_insert_with(|| published.state.clone());
                    if kept.round < round {
                        *kept = published.state.clone();
                    }
                }
            }
            // Of older labels the last state may be gone, and an earlier one be left.
            let skipped = last.len().saturating_sub(2);
            self.events
                .extend(last.into_values().skip(skipped).map(|state| Event::Published { group, state }));
        }
        for (&group, remote) in &mut self.remote {
            let again = remote.requests.restart();
            if self.own.contains_key(&group) {
                self.events.extend(again.map(|request| Event::Force { group, request }));
                continue;
            }
            let members = remote.kept();
            self.events.push_back(Event::Kept {
                group,
                members,
                arrived: remote.arrival.is_some(),
                interval_us: remote.interval_us,
            });
            self.events.extend(again.map(|request| Event::Force { group, request }));
        }
        self.tell_given();
        self.tell_all_dropped();
        self.tell_workers();
        self.tell_deserted();
        self.events.push_back(Event::Clocks { clock: self.local, lowest: self.lowest });
    }

    /// The agent was told all; pins of its predecessor are void.
    pub(crate) fn agent_is_ready(&mut self) {
        self.own.values_mut().flat_map(|own| &mut own.copies).for_each(|copy| copy.dead = false);
    }

    fn works(&mut self) -> bool {
        match &mut self.fuel {
            Some(0) => false,
            Some(fuel) => {
                *fuel -= 1;
                true
            }
            None => true,
        }
    }

    /// Whether others may have heard a moment ago that it has no memory for the copies that it would send.
    pub(crate) fn was_short(&self, now: u64) -> bool {
        self.short_until > 0 && now < self.short_until + SAYS_LATE
    }

    fn broke(&self, promise: Promise, what: String) {
        self.judge.borrow_mut().broke(promise, what);
    }

    /// The worker goes on if it can; at a synchronization point.
    fn work(&mut self, now: u64) {
        let worker = &mut self.worker;
        if worker.waits {
            let may_go = match self.mode {
                Mode::Barrier => self.lowest >= worker.clock,
                Mode::Stale(staleness) => self.lowest + staleness >= worker.clock,
                Mode::Free => true,
            };
            if !may_go {
                return;
            }
            worker.waits = false;
        }
        if !worker.started || worker.iteration == self.iterations || now < worker.writes_at {
            return;
        }
        worker.iteration += 1;
        let iteration = worker.iteration;
        worker.writes_at = now + self.random.below(3_000_000);
        for own in self.own.values_mut().filter(|own| own.given.is_none() && !own.is_dropped) {
            for area in &mut own.members {
                // Iterations are seen in the first line; the others change here and there.
                let lines = area.description.lines();
                let some = self.random.between(0, lines.min(12));
                let lines: Vec<u64> =
                    std::iter::once(0).chain((0..some).map(|_| self.random.below(lines))).collect();
                for line in lines {
                    let start = (line * LINE) as usize;
                    let end = (start + LINE as usize).min(area.writer.len());
                    let mut content = Random::new(iteration << 32 ^ line ^ u64::from(self.host.0) << 20);
                    area.writer[start..end].fill_with(|| content.next() as u8);
                    if line == 0 {
                        area.writer[..8].copy_from_slice(&iteration.to_le_bytes());
                    }
                    area.dirty.insert(line as u32);
                }
            }
        }
        if self.mode != Mode::Free {
            worker.clock += 1;
            worker.waits = true;
        }
        if let Some(to) = self.gives_written.take() {
            self.give(to);
        }
    }

    /// A round.
    pub(crate) fn round(&mut self, now: u64) {
        if self.waits_for_an_answer() {
            return;
        }
        self.work(now);
        self.leave_if_done();
        self.round += 1;
        let lowest = self.lowest;
        let label = if self.mode == Mode::Free { 0 } else { lowest + 1 };
        let mut postponed = false;
        let mut stuck = BTreeSet::new();
        for (&group, own) in &mut self.own {
            if own.members.iter().all(|area| area.dirty.is_empty()) {
                continue;
            }
            // The last state of the label before this one is waited for elsewhere.
            let label_of =
                |copy: &Copied| copy.published.as_ref().map_or(0, |published| published.state.label);
            let newest_round = |which: u64| {
                own.copies
                    .iter()
                    .filter(|copy| label_of(copy) == which)
                    .filter_map(|copy| Some(copy.published.as_ref()?.state.round))
                    .max()
            };
            let before = own.copies.iter().map(label_of).filter(|other| *other < label).max();
            let keep = before.and_then(newest_round);
            let free = |index: &usize| {
                let copy = &own.copies[*index];
                let round = copy.published.as_ref().map(|published| published.state.round);
                copy.pin.is_none()
                    && !copy.dead
                    && own.newest != Some(*index)
                    && (round.is_none() || round != keep)
            };
            let oldest =
                |index: &usize| own.copies[*index].published.as_ref().map(|published| published.state.round);
            let Some(target) = (0..own.copies.len()).filter(free).min_by_key(oldest) else {
                postponed = true;
                stuck.insert(group);
                continue;
            };
            for area in &mut own.members {
                if !area.dirty.is_empty() {
                    area.version.counter += 1;
                    for line in std::mem::take(&mut area.dirty) {
                        area.changed[line as usize] = area.version.counter;
                    }
                }
            }
            let state = State {
                round: self.round,
                label,
                versions: own.members.iter().map(|area| area.version).collect(),
            };
            let contents = own.members.iter().map(|area| Rc::new(area.writer.clone())).collect();
            let published = Rc::new(Published { state: state.clone(), contents });
            own.copies[target].published = Some(published.clone());
            own.copies[target].published_ns = now;
            own.newest = Some(target);
            if is_given(group) {
                self.published.insert(group, key(group, &state));
            }
            self.judge.borrow_mut().published(group, published);
            self.events.push_back(Event::Published { group, state });
        }
        self.tell_given_published();
        for group in std::mem::take(&mut self.forcing) {
            self.events.push_back(Event::Forced { group, postponed: stuck.contains(&group) });
        }
        if self.has_left() {
            if self.stay == Stay::Leaving && !postponed {
                self.desert();
            }
            return self.run_deserted();
        }
        postponed |= self.publish_arrivals(lowest);
        self.request();
        if postponed {
            return;
        }
        let local = self.worker.clock;
        if local > self.local {
            self.judge.borrow_mut().local_clock(self.host, self.local, local, &self.rounds());
        }
        let lowest = self.clocks.values().copied().fold(local, u64::min);
        if local > self.local || lowest > self.lowest {
            let passed = lowest > self.lowest;
            (self.local, self.lowest) = (local, lowest.max(self.lowest));
            if passed {
                self.check_barrier(self.lowest, Promise::Barrier);
            }
            self.events.push_back(Event::Clocks { clock: self.local, lowest: self.lowest });
        }
    }

    /// The newest rounds of this host's groups, and the newest versions that it published of those that go from host to host.
    fn rounds(&self) -> BTreeMap<GroupId, u64> {
        let rounds = self.own.iter().filter_map(|(group, own)| {
            Some((*group, own.copies[own.newest?].published.as_ref()?.state.round))
        });
        let given = self.published.iter().map(|(group, version)| (*group, *version));
        rounds.filter(|(group, _)| !is_given(*group)).chain(given).collect()
    }

    /// Publishes what arrived and may be. Whether anything was postponed.
    fn publish_arrivals(&mut self, lowest: u64) -> bool {
        let mut postponed = false;
        for (&group, remote) in &mut self.remote {
            let Some(arrival) = &remote.arrival else { continue };
            if arrival.label > lowest + 1 {
                continue;
            }
            // A reader holds the copy.
            if self.random.chance(50) {
                postponed = true;
                continue;
            }
            let arrival = remote.arrival.take().expect("just seen");
            remote.label = arrival.label;
            let before: Vec<_> = remote.members.iter().map(|member| member.version).collect();
            for (member, version) in remote.members.iter_mut().zip(&arrival.versions) {
                for line in std::mem::take(&mut member.log) {
                    let start = line as usize * LINE as usize;
                    let end = (start + LINE as usize).min(member.reader.len());
                    member.reader[start..end].copy_from_slice(&member.writer[start..end]);
                }
                member.version = Some(*version);
            }
            let bytes: Vec<&[u8]> = remote.members.iter().map(|member| &member.reader[..]).collect();
            // It may have no version yet of the last ones.
            let shown: Vec<_> = remote.members.iter().map_while(|member| member.version).collect();
            remote.round = self.judge.borrow_mut().visible(self.host, group, &before, &shown, &bytes);
            self.events.push_back(Event::Visible { group, versions: arrival.versions });
        }
        postponed
    }

    /// Checks what workers may rely on when a clock of all is reached.
    fn check_barrier(&self, clock: u64, promise: Promise) {
        for (group, remote) in &self.remote {
            if self.is_whole
                && !remote.is_on_demand()
                && self.judge.borrow().was_deleted_before(*group, clock)
                && remote.attached
            {
                self.broke(
                    promise,
                    format!("{} is at clock {clock} and has {group:?}, which was deleted", self.host),
                );
            }
            let Some(first) =
                remote.members.first().filter(|first| remote.attached && first.version.is_some())
            else {
                continue;
            };
            if !remote.is_on_demand() && !self.judge.borrow().covers(*group, remote.round, clock) {
                let what = format!(
                    "{} is at clock {clock} and shows round {:?} of {group:?}",
                    self.host, remote.round
                );
                self.broke(promise, what);
            }
            let stamp = u64::from_le_bytes(*first.reader.first_chunk().expect("areas have 8 bytes"));
            let is_judged = self.mode == Mode::Barrier && promise == Promise::Barrier;
            if is_judged && stamp > clock {
                let what =
                    format!("{} leaves barrier {clock} and sees iteration {stamp} of {group:?}", self.host);
                self.broke(promise, what);
            }
        }
    }
}
