//! News for an agent: areas that came, went or were published, clocks, and names that are wanted.
use super::Agent;
use crate::engine::directory::{AreaId, CREATING, Directory, state_of};
use crate::engine::shared::Shared;
use crate::error::Rank;
use crate::protocol::doorbell;
use crate::protocol::label;
use crate::protocol::ownership;
use crate::protocol::publication::Version;
use crate::protocol::round::slot_state;
use crate::segment::element::ElementType;
use crate::segment::layout::bits;
use crate::segment::mapping::Segment;
use crate::segment::parts::Parts;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

/// Something that the agent has to know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// There is an area: [`Agent::describe`].
    Created {
        /// The area.
        area: AreaId,
    },
    /// The area was deleted. Comes before the creation of whatever has its name now.
    Deleted {
        /// The area.
        area: AreaId,
    },
    /// An area has a newer version, or has been created: what it is created with is published, too. Several that followed each other are one event, of the last. Of an area that is received
    /// into, the round is past that published it: [`Agent::receive`] may go on.
    Published {
        /// The area.
        area: AreaId,
        /// The newest version.
        version: Version,
        /// Its label ([`Held::label`](super::held::Held::label)).
        label: u64,
    },
    /// A worker of this host wants what an area is on its owner's host now: to be answered with [`Agent::answer`].
    Requested {
        /// The area.
        area: AreaId,
        /// The number of the last request.
        request: u64,
    },
    /// The owner of an area of this host has dropped it, or has failed, as its launcher says, so that nobody gives it; or there is one
    /// again. So is one told of by which a worker that has died sent what its tasks wrote. Not told of one that always had one.
    Ownerless {
        /// The area.
        area: AreaId,
        /// Whether nobody owns it.
        is: bool,
    },
    /// A worker of this host has given an area to one of another. What it had written is published by the next round.
    Given {
        /// The area.
        area: AreaId,
        /// The other worker.
        to: Rank,
        /// The epoch of its ownership.
        epoch: u64,
    },
    /// Somebody waits for an area of a name that no area here has. Heard again while somebody waits.
    Wanted {
        /// The name.
        name: String,
    },
    /// Somebody attached to an area of another host with elements of another type, and was refused.
    TakenFor {
        /// The area's name.
        name: String,
        /// The type that was asked for.
        element: ElementType,
    },
    /// How workers of this host stand to the job. An agent that is not the first one is told of all, since other hosts may have heard
    /// otherwise.
    Workers {
        /// The first of 64 workers that this is about, or of less if this host has less.
        first: Rank,
        /// A bit for each of them that has failed, as their launcher says ([`Job::note_failure`](crate::Job::note_failure)).
        failed: u64,
        /// A bit for each of them that was there and is no more.
        left: u64,
    },
    /// No worker of this host is left, and none will come ([`Error::HostLeft`](crate::Error::HostLeft)): nobody writes or reads here any more.
    /// Not told in a job that has ended on this host, whose workers have not done their part.
    Deserted,
    /// The lowest clock that all workers of this host have reached, by [`Worker::tick`](crate::Worker::tick), and the lowest
    /// that all workers are known here to have reached. Comes after the events of all that they cover.
    Clock {
        /// The clock of this host; `u64::MAX`: none of its workers is in the clocks.
        local: u64,
        /// The clock of all.
        lowest: u64,
    },
}

impl Event {
    fn created(&self) -> Option<AreaId> {
        match self {
            Event::Created { area } => Some(*area),
            _ => None,
        }
    }
}

/// The reported state of a slot.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    area: Option<AreaId>,
    version: Option<Version>,
    /// The last request that was told.
    requested: u64,
    /// The last epoch in which it was given away, as was told.
    given: u64,
    /// It was told to be without an owner.
    is_ownerless: bool,
}

impl Known {
    /// Reports the end of the area that was reported, if another one was `found` in its slot, or none.
    fn end_unless(&mut self, found: Option<AreaId>, events: &mut Vec<Event>) {
        if let Some(area) = self.area.filter(|area| found != Some(*area)) {
            *self = Known::default();
            events.push(Event::Deleted { area });
        }
    }
}

impl Agent {
    /// Adds to `events` all that is new since the last look.
    pub fn look(&mut self, events: &mut Vec<Event>) {
        let shared = self.desk.shared.clone();
        let segment = &shared.segment;
        self.heard = self.desk.doorbell().listen();
        // Before everything that is looked at: a round that ends meanwhile is seen to have gone on.
        self.round = segment.rounds().load();
        let is_over = self.is_over();
        if is_over {
            self.run_due_round();
        }
        // Acquire, both: pairs with the release in `publish_plan`. The news that are taken below are of all that it covers.
        let acting = &segment.header().sync.acting;
        let lowest = acting.lowest_clock.load(Ordering::Acquire);
        let local = if is_over { u64::MAX } else { acting.local_clock.load(Ordering::Acquire) };
        let clocks = (local, lowest);
        let (used, first) = (segment.used_areas(), events.len());
        let looked_everywhere = self.known.len();
        self.known.resize(used.max(looked_everywhere), Known::default());
        // Before the areas, which may have no owner since.
        self.look_for_workers(events);
        self.look_for_dead();
        // If the last worker of this host died while it created an area, nobody else gives that up, and clocks are told when all
        // areas are made.
        if local == u64::MAX
            && !self.again.is_empty()
            && let Some(directory) = Directory::try_lock(&self.desk.shared)
        {
            directory.give_up_dead_creations();
        }
        for index in std::mem::take(&mut self.again) {
            self.look_at(index, events);
        }
        for (word, marks) in segment.marks()[..used.div_ceil(64)].iter().enumerate() {
            let news = doorbell::take_news(&marks.news);
            // Slots that this agent has not seen are looked at once without news.
            let fresh = (0..64).filter(|bit| (looked_everywhere..used).contains(&(word * 64 + bit)));
            let all = fresh.fold(news, |all, bit| all | 1 << bit);
            for index in bits(all).map(|bit| word * 64 + bit).filter(|index| *index < used) {
                self.look_at(index, events);
            }
        }
        self.put_ends_first(first, events);
        self.look_for_listed(events);
        self.tell_untold();
        self.ask_for_arrivals(lowest);
        if is_over && !self.told_deserted && shared.check_ending().is_ok() {
            self.told_deserted = true;
            events.push(Event::Deserted);
        }
        if self.again.is_empty() && clocks != self.clocks {
            self.clocks = clocks;
            events.push(Event::Clock { local: clocks.0, lowest: clocks.1 });
        }
    }

    /// Asks for a round if the clocks are where what has arrived may be published.
    fn ask_for_arrivals(&self, lowest: u64) {
        let mut due = self.desk.due_labels.borrow_mut();
        let before = due.len();
        due.retain(|label| !label::may_publish(*label, lowest));
        self.desk.ask_for_round(due.len() < before);
    }

    fn look_at(&mut self, index: usize, events: &mut Vec<Event>) {
        let shared = &self.desk.shared;
        let segment = &shared.segment;
        let slot = &segment.areas()[index];
        let found = AreaId::of(index, &slot.read.state);
        let known = &mut self.known[index];
        known.end_unless(found, events);
        let Some(area) = found else {
            if state_of(slot) == CREATING {
                self.again.push(index);
            }
            return;
        };
        if known.area.is_none() {
            known.area = Some(area);
            events.push(Event::Created { area });
        }
        // In use, so that its memory stays what it is.
        if self.desk.hold(area).is_err() {
            return self.again.push(index);
        }
        if let Some(request) = slot.agent.request.open()
            && request > known.requested
        {
            known.requested = request;
            events.push(Event::Requested { area, request });
        }
        let word = ownership::load(&slot.own.ownership);
        if word.is_transit() && word.epoch() > known.given && segment.host_of(word.rank()).is_some() {
            known.given = word.epoch();
            events.push(Event::Given { area, to: word.rank(), epoch: word.epoch() });
        }
        let is_ownerless = word.is_dropped()
            || word.holder().is_some_and(|rank| has_failed_here(shared, rank))
            || self.is_ring_of_dead(index, word);
        let known = &mut self.known[index];
        if is_ownerless != known.is_ownerless {
            known.is_ownerless = is_ownerless;
            events.push(Event::Ownerless { area, is: known.is_ownerless });
        }
        let parts = Parts::of(segment, index);
        let version = if parts.layout.copies == 0 { None } else { Some(parts.reader_copies().version()) };
        let may_receive = self.desk.is_free_of(area, version.flatten());
        let label = parts.copies().get(parts.current()).map_or(0, |copy| copy.label());
        self.desk.release(area);
        match version {
            // It has no copies.
            None => {}
            // It is being published.
            Some(None) => self.again.push(index),
            // The area cannot be received into yet.
            Some(version) if version > known.version && !may_receive => self.again.push(index),
            Some(Some(version)) if Some(version) > known.version => {
                known.version = Some(version);
                events.push(Event::Published { area, version, label });
            }
            Some(_) => {}
        }
    }

    /// A created area may have the name of one that was deleted before it, and a slot that is looked at earlier: among the events from
    /// the `first` on, such deletions are put before it.
    fn put_ends_first(&mut self, first: usize, events: &mut Vec<Event>) {
        let place = (first..events.len()).find(|place| events[*place].created().is_some());
        let Some(place) = place else { return };
        let segment = &self.desk.shared.segment;
        for (word, marks) in segment.marks()[..self.known.len().div_ceil(64)].iter().enumerate() {
            // Left before the news of what was created, under the mutex of the directory. They are not taken: more may be new there.
            for index in bits(doorbell::see_news(&marks.news)).map(|bit| word * 64 + bit) {
                if index < self.known.len() {
                    let found = AreaId::of(index, &segment.areas()[index].read.state);
                    self.known[index].end_unless(found, events);
                }
            }
        }
        let created: HashSet<AreaId> = events[place..].iter().filter_map(Event::created).collect();
        let is_end = |event: &Event| matches!(event, Event::Deleted { area } if !created.contains(area));
        events[place..].sort_by_key(|event| !is_end(event));
    }

    fn look_for_workers(&mut self, events: &mut Vec<Event>) {
        let shared = &self.desk.shared;
        let segment = &shared.segment;
        let is_first_look = self.told_workers.is_empty();
        // Acquire: before the marks and seats; pairs with `Shared::note_worker_change`.
        let changes = segment.header().agent.worker_changes.load(Ordering::Acquire);
        if !segment.spans_hosts() || (changes == self.worker_changes && !is_first_look) {
            return;
        }
        self.worker_changes = changes;
        let here = segment.ranks_here();
        let others_may_know = is_first_look && self.desk.number() > 1;
        let has_ended = shared.check_ending().is_err();
        self.told_workers.resize((here.len().div_ceil(64)).max(1), (0, 0));
        for (first, told) in here.clone().step_by(64).zip(&mut self.told_workers) {
            let bits = |is: &dyn Fn(Rank) -> bool| {
                let ranks = (first..here.end).take(64).filter(|rank| is(*rank));
                ranks.fold(0, |ranks: u64, rank| ranks | 1 << (rank - first))
            };
            let failed = bits(&|rank| has_failed_here(shared, rank));
            // Who leaves since the job has ended has not done its part, which its host's agent does not say either.
            let left = if has_ended { told.1 } else { bits(&|rank| has_left_here(segment, rank)) };
            if (failed, left) != *told || others_may_know {
                *told = (failed, left);
                events.push(Event::Workers { first, failed, left });
            }
        }
        let owner = |index: usize| ownership::load(&segment.areas()[index].own.ownership).holder();
        let is_concerned = |index: &usize| owner(*index).is_some_and(|rank| here.contains(&rank));
        // Areas that came since this look began are told of as new.
        self.again.extend((0..self.known.len()).filter(is_concerned));
    }

    fn look_for_listed(&self, events: &mut Vec<Event>) {
        let shared = &self.desk.shared;
        if shared.segment.header().wanted.load(Ordering::Relaxed) == 0 {
            return;
        }
        // If somebody else has the directory, whoever waits asks again.
        if let Some(directory) = Directory::try_lock(shared) {
            events.extend(directory.take_listed().into_iter().map(|listed| match listed.taken_for {
                None => Event::Wanted { name: listed.name },
                Some(element) => Event::TakenFor { name: listed.name, element },
            }));
        }
    }
}

/// Whether a worker of this host was there, and none is that has its rank.
fn has_left_here(segment: &Segment, rank: Rank) -> bool {
    let seat = &segment.all_seats()[rank as usize];
    // Relaxed: who takes the rank tells of a change when the seat says so.
    seat.state() == slot_state::FREE && seat.incarnation.load(Ordering::Relaxed) != 0
}

/// Whether a worker of this host has failed, as its launcher says.
fn has_failed_here(shared: &Shared, rank: Rank) -> bool {
    shared.segment.host_of(rank).is_none() && shared.has_failed(rank)
}
