//! Creating areas: a slot, a name and a range are taken under the directory mutex, memory outside of it.
//!
//! In between, the slot is `CREATING` and belongs to its creator: `AboutLines::creator` says which worker that is, and
//! the kernel, as for every worker, whether it is alive. So a creator that stalls keeps its own name and range and
//! nothing else. What a dead one leaves is treated as a deleted area by whoever next holds the directory, after a round
//! or to create an area. The name is taken from the beginning: another worker that creates an area of this name is
//! refused at once, and told who is creating it; one that attaches finds nothing, or waits, until the area is complete.
use super::find;
use super::heap::Source;
use super::spec::{AreaSpec, Tracking};
use crate::engine::directory::{
    AGENT, AreaId, CREATING, DELETED, Directory, LIVE, extent_of, set_state, state_of,
};
use crate::engine::shared::Shared;
use crate::error::{Error, Rank, Result};
use crate::memory::LINE;
use crate::memory::allocator::Extent;
use crate::memory::clock;
use crate::memory::limits::{self, ReserveError};
use crate::primitive::fault_point;
use crate::protocol::index::{Kind, hash};
use crate::protocol::label;
use crate::protocol::{area_state, ownership};
use crate::segment::about::About;
use crate::segment::element::ElementType;
use crate::segment::layout::{AreaLayout, Config, HUGE, Mark, bits};
use crate::segment::mapping::Segment;
use crate::segment::parts::Parts;
use crate::segment::pins::is_agent_there;
use std::sync::atomic::{AtomicU32, Ordering};

/// Bytes that are collapsed into huge pages at a time: some ten milliseconds.
const COLLAPSE_PIECE: u64 = 16 << 20;

/// A line number has 32 bits: 256 GiB.
const MOST_LINES: u64 = u32::MAX as u64;

/// An area to create, found possible as far as that can be said without the directory.
#[derive(Debug)]
pub(crate) struct Draft<'s> {
    spec: &'s AreaSpec,
    element: ElementType,
    len: usize,
    layout: AreaLayout,
    /// How many reader copies have memory from the beginning, if the area takes its own.
    present: u32,
    /// Whether no more may be reserved than the area needs.
    own_memory: bool,
    /// Whether its owner is on another host, and on which, if that is known.
    remote: Option<Option<usize>>,
    /// The agents' note on it, if nobody is to find it yet.
    hidden: Option<[u64; 3]>,
}

impl Draft<'_> {
    pub(crate) fn of<'s>(
        spec: &'s AreaSpec,
        element: ElementType,
        len: usize,
        config: &Config,
    ) -> Result<Draft<'s>> {
        spec.check(config.max_name_bytes as usize)?;
        let copies = if spec.copies == 0 { 0 } else { spec.copies.max(config.min_copies) };
        let logged = spec.tracking != Tracking::Whole;
        let layout = (len as u64)
            .checked_mul(u64::from(element.size))
            .and_then(|bytes| AreaLayout::of(bytes, copies, logged, config))
            .filter(|layout| layout.lines <= MOST_LINES)
            .ok_or_else(|| {
                let most = MOST_LINES * LINE;
                Error::AreaTooLong { name: spec.name.clone(), len, size: element.size, most }
            })?;
        let present = spec.copies;
        Ok(Draft { spec, element, len, layout, present, own_memory: false, remote: None, hidden: None })
    }

    /// Gives the area to a worker of another host: of that one, if it is known.
    pub(crate) fn for_elsewhere(self, host: Option<usize>) -> Self {
        Self { remote: Some(host), ..self }
    }

    /// Hides the area until its agent shows it, with what that one notes of it.
    pub(crate) fn hidden(self, note: [u64; 3]) -> Self {
        Self { hidden: Some(note), ..self }
    }

    /// Does without memory for further areas: there is none.
    pub(crate) fn with_own_memory(self) -> Self {
        Self { own_memory: true, ..self }
    }
}

fn no_memory(spec: &AreaSpec, asked: u64, free: u64, limit: u64, payer: &str) -> Error {
    // The range is the limit in whole pages, of whatever size.
    let free = free.min(limit);
    Error::OutOfMemory { name: spec.name.clone(), asked, free, limit, payer: payer.to_owned() }
}

/// Where it stands which area worker `rank`, or the agent, is creating.
fn creating_of(segment: &Segment, rank: Rank) -> &AtomicU32 {
    match segment.workers().get(rank as usize) {
        Some(record) => &record.creating,
        None => &segment.header().agent.creating,
    }
}

/// `incarnation << 32 | rank` of a worker that creates, or the number of the agent with [`AGENT`].
fn creator_word(segment: &Segment, rank: Rank) -> u64 {
    if rank == AGENT {
        return segment.header().agent.attached.load(Ordering::Relaxed) << 32 | u64::from(AGENT);
    }
    let incarnation = segment.all_seats()[rank as usize].incarnation.load(Ordering::Relaxed);
    u64::from(incarnation) << 32 | u64::from(rank)
}

/// Whether the worker, or the agent, that this word names lives.
fn lives(shared: &Shared, creator: u64) -> bool {
    let rank = creator as u32;
    if rank == AGENT {
        // The word of none is that of a dead one whose number was taken away.
        return creator >> 32 != 0
            && creator_word(&shared.segment, AGENT) == creator
            && is_agent_there(&shared.segment);
    }
    let known = (rank as usize) < shared.segment.all_seats().len();
    known && creator_word(&shared.segment, rank) == creator && !shared.is_gone(rank)
}

impl Directory<'_> {
    /// Takes what an area needs but memory: its slot is `CREATING` from now on, and worker `rank`'s.
    pub(crate) fn begin(&self, draft: &Draft<'_>, rank: Rank) -> Result<Creation> {
        let segment = self.segment();
        let own = creator_word(segment, rank);
        // Creations that this worker could not give up because the directory was held count as those of a dead one.
        self.give_up_creations(|creator| creator == own || !lives(self.shared, creator));
        let name = &draft.spec.name;
        if let Some(index) = self.holder_of(name) {
            return Err(Error::NameTaken { name: name.clone(), holder: self.describe_holder(index) });
        }
        let layout = &draft.layout;
        // The slot last: nothing after it fails.
        let Some((extent, source)) = self.take_range(layout, draft.own_memory) else {
            let limit = segment.config().reserve_bytes;
            let payer = "the job's reserved range (`JobBuilder::reserve`)";
            return Err(no_memory(draft.spec, layout.end, self.free_bytes().1, limit, payer));
        };
        let index = self.take_slot().inspect_err(|_| self.return_range(extent, source, layout))?;
        let slot = &segment.areas()[index];
        area_state::begin();
        slot.about.extent_offset.store(extent.offset, Ordering::Relaxed);
        slot.about.extent_len.store(extent.len, Ordering::Relaxed);
        slot.about.backed.store(u32::from(source == Source::Ahead), Ordering::Relaxed);
        let small = if source == Source::Own { 0 } else { layout.end };
        slot.about.small.store(small, Ordering::Relaxed);
        slot.about.creator.store(own, Ordering::Relaxed);
        slot.set_layout(layout);
        self.describe(index, draft, rank);
        self.enter_name(index);
        creating_of(segment, rank).store(index as u32 + 1, Ordering::Relaxed);
        segment.header().creations.store(1, Ordering::Relaxed);
        set_state(slot, CREATING);
        // Also if this creator dies as soon as the area lives: the agent looks again while it finds it being created.
        self.shared.tell_agent(index);
        fault_point();
        Ok(Creation { index, rank, source })
    }

    /// The slot that has a name: of an area, or of one that is being created.
    pub(crate) fn holder_of(&self, name: &str) -> Option<usize> {
        let segment = self.segment();
        segment.index().find(Kind::Name, hash(name), |index| {
            matches!(state_of(&segment.areas()[index]), LIVE | CREATING)
                && find::has_name(segment, index, name)
        })
    }

    fn describe_holder(&self, index: usize) -> String {
        let slot = &self.segment().areas()[index];
        if state_of(slot) == LIVE {
            return ownership::load(&slot.own.ownership).to_string();
        }
        find::creator_text(self.shared, slot)
    }

    fn describe(&self, index: usize, draft: &Draft<'_>, rank: Rank) {
        let segment = self.segment();
        let slot = &segment.areas()[index];
        let (about, spec, element) = (&slot.about, draft.spec, draft.element);
        about.describe(&About {
            element,
            len: draft.len,
            row: spec.row,
            copies: draft.layout.copies,
            automatic: spec.tracking == Tracking::Automatic,
            interval: spec.interval,
            external_interval: spec.external_interval,
            on_demand: spec.on_demand,
        });
        find::set_text(segment, false, index, &spec.name);
        let id = spec.group.as_ref().map_or(0, |group| {
            let id = self.group_id(group);
            find::set_text(segment, true, index, group);
            id
        });
        about.group.store(id, Ordering::Relaxed);
        let round = &slot.round;
        round.term.store(1, Ordering::Relaxed);
        round.lock.store(0, Ordering::Relaxed);
        round.generations.reset();
        round.postponed.store(0, Ordering::Relaxed);
        round.kept.store(label::NONE, Ordering::Relaxed);
        slot.own.raw.store(0, Ordering::Relaxed);
        slot.own.scanned.store(0, Ordering::Relaxed);
        slot.own.lent.store(0, Ordering::Relaxed);
        let owner = match draft.remote {
            Some(host) => ownership::OwnershipWord::remote(host, 1),
            None => ownership::OwnershipWord::held(rank, 1),
        };
        slot.own.ownership.store(owner.0, Ordering::Relaxed);
        slot.agent.arrival.reset();
        slot.agent.request.reset();
        slot.agent.viewed.reset();
        slot.agent.conflicts.reset();
        slot.agent.hidden.store(u32::from(draft.hidden.is_some()), Ordering::Relaxed);
        slot.agent.wanted_lent.store(0, Ordering::Relaxed);
        let note = draft.hidden.unwrap_or_default();
        slot.agent.note.iter().zip(note).for_each(|(place, word)| place.store(word, Ordering::Relaxed));
        slot.read.current.store(0, Ordering::Relaxed);
        segment.dirty(index).clear();
        segment.forced(index).clear();
        let marks = &segment.marks()[index / 64];
        Mark::new(&marks.grouped, index).put(spec.group.is_some());
        Mark::new(&marks.timed, index).clear();
        // Arrivals are the agent's affair. Before the area lives, nobody publishes it.
        Mark::new(&marks.chosen, index).put(draft.remote.is_some());
    }

    /// The number of a group: that of its areas, if it has any.
    fn group_id(&self, group: &str) -> u32 {
        let segment = self.segment();
        let member = segment.index().find(Kind::Group, hash(group), |index| {
            let slot = &segment.areas()[index];
            slot.about.group.load(Ordering::Relaxed) != 0
                && matches!(state_of(slot), LIVE | CREATING)
                && find::has_text(segment, true, index, group)
        });
        match member {
            Some(index) => segment.areas()[index].about.group.load(Ordering::Relaxed),
            None => segment.header().next_group.fetch_add(1, Ordering::Relaxed) + 1,
        }
    }

    /// Enters a slot's name into the index, and its group, if it is the first there.
    pub(crate) fn enter_name(&self, index: usize) {
        let segment = self.segment();
        segment.index().insert(Kind::Name, hash(&find::name(segment, index)), index);
        if let Some(group) = find::group(segment, index) {
            self.enter_group(&group, index);
        }
    }

    fn enter_group(&self, group: &str, index: usize) {
        let segment = self.segment();
        let number = |index: usize| segment.areas()[index].about.group.load(Ordering::Relaxed);
        let is_it =
            |other: usize| number(other) == number(index) && find::has_text(segment, true, other, group);
        if segment.index().find(Kind::Group, hash(group), is_it).is_none() {
            segment.index().insert(Kind::Group, hash(group), index);
        }
    }

    /// Removes a slot's name from the index. If the slot stood for its group there, another of the group does from now
    /// on. To be called while its mark says that it is in a group.
    pub(crate) fn remove_name(&self, index: usize) {
        let segment = self.segment();
        segment.index().remove(Kind::Name, hash(&find::name(segment, index)), index);
        let Some(group) = find::group(segment, index) else { return };
        if !segment.index().remove(Kind::Group, hash(&group), index) {
            return;
        }
        let number = segment.areas()[index].about.group.load(Ordering::Relaxed);
        let words = segment.marks()[..segment.used_areas().div_ceil(64)].iter().enumerate();
        let mut grouped = words.flat_map(|(word, marks)| {
            bits(marks.grouped.load(Ordering::Relaxed)).map(move |bit| word * 64 + bit)
        });
        let heir = grouped.find(|other| {
            let slot = &segment.areas()[*other];
            *other != index
                && slot.about.group.load(Ordering::Relaxed) == number
                && matches!(state_of(slot), LIVE | CREATING)
        });
        if let Some(heir) = heir {
            segment.index().insert(Kind::Group, hash(&group), heir);
        }
    }

    /// Gives up what dead creators left.
    pub(crate) fn give_up_dead_creations(&self) {
        self.give_up_creations(|creator| !lives(self.shared, creator));
    }

    fn give_up_creations(&self, is_abandoned: impl Fn(u64) -> bool) {
        let segment = self.segment();
        let header = segment.header();
        if header.creations.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut left = 0;
        let ranks = (0..segment.seats().len() as Rank).chain([AGENT]);
        for (rank, creating) in ranks.map(|rank| (rank, creating_of(segment, rank))) {
            let Some(index) = creating.load(Ordering::Relaxed).checked_sub(1) else { continue };
            let under_way = self.slots().get(index as usize).filter(|slot| {
                state_of(slot) == CREATING && slot.about.creator.load(Ordering::Relaxed) as u32 == rank
            });
            if let Some(slot) = under_way {
                if !is_abandoned(slot.about.creator.load(Ordering::Relaxed)) {
                    left = 1;
                    continue;
                }
                self.give_up(index as usize);
                tracing::warn!(rank, area = index, "an area was given up that a dead worker was creating");
            }
            creating.store(0, Ordering::Relaxed);
        }
        header.creations.store(left, Ordering::Relaxed);
    }

    /// Turns a half made area into a deleted one that nobody has seen.
    fn give_up(&self, index: usize) {
        let slot = &self.segment().areas()[index];
        slot.about.copies.store(0, Ordering::Relaxed);
        slot.about.deleted_round.store(0, Ordering::Relaxed);
        set_state(slot, DELETED);
        fault_point();
        self.put_away(index);
    }
}

/// An area that its worker is creating.
#[derive(Debug)]
pub(crate) struct Creation {
    index: usize,
    rank: Rank,
    source: Source,
}

impl Creation {
    /// Whether more memory is reserved than the area needs: [`Creation::share`] is to follow.
    pub(crate) fn is_slab(&self) -> bool {
        self.source == Source::Slab
    }

    /// Leaves what the area does not need to others.
    pub(crate) fn share(&self, directory: &Directory<'_>, draft: &Draft<'_>) {
        directory.share_slab(&directory.segment().areas()[self.index], draft.layout.end);
    }

    /// Takes the memory, outside of the directory; `pause` is called every few milliseconds. After an error nothing
    /// of it stays taken, and [`Creation::abandon`] is to follow.
    pub(crate) fn fill(&self, shared: &Shared, draft: &Draft<'_>, pause: &mut dyn FnMut()) -> Result<()> {
        fault_point();
        let Extent { offset, len } = extent_of(&shared.segment.areas()[self.index]);
        let result = match self.source {
            Source::Ahead => {
                // SAFETY: the range is this creation's, and lies in memory that was reserved.
                unsafe { shared.segment.heap_at(offset, len).write_bytes(0, len as usize) };
                Ok(())
            }
            Source::Slab => limits::reserve(shared.segment.fd(), offset, len, pause),
            Source::Own => reserve(&shared.segment, offset, &draft.layout, draft.present, pause),
        };
        fault_point();
        result.map_err(|error| {
            if let Err(error) = limits::punch(shared.segment.fd(), offset, len) {
                tracing::warn!(%error, offset, len, "could not give memory back");
            }
            match error {
                ReserveError::OutOfMemory { free, limit, payer, .. } => {
                    no_memory(draft.spec, draft.layout.footprint(draft.present), free, limit, &payer)
                }
                ReserveError::Os { call, source } => Error::Os { call, source },
            }
        })
    }

    /// Makes the area live. Its bytes are zero, and `rank` owns it, or somebody elsewhere.
    pub(crate) fn finish(self, shared: &Shared, draft: &Draft<'_>) -> AreaId {
        let segment = &shared.segment;
        let slot = &segment.areas()[self.index];
        // Copy 0 holds version 0; the others hold nothing that a reader may come to. No two copies may name
        // the same round, or a reader and a planner might not mean the same one.
        for (copy, number) in Parts::of(segment, self.index).copies().iter().zip(0..).skip(1) {
            copy.round.store(u64::MAX, Ordering::Relaxed);
            if self.source == Source::Own && number >= draft.present {
                copy.leave_absent();
            }
        }
        let now = clock::now_ns();
        let due = now.saturating_add(draft.spec.interval.map_or(0, clock::nanos));
        slot.round.confirmed_ns.store(now, Ordering::Relaxed);
        slot.round.next_due_ns.store(due, Ordering::Relaxed);
        let generation = slot.read.state.load(Ordering::Relaxed) >> 3;
        set_state(slot, LIVE);
        fault_point();
        creating_of(segment, self.rank).store(0, Ordering::Relaxed);
        if draft.spec.interval.is_some() {
            let word = segment.marks()[self.index / 64].due_word();
            segment.header().sync.due().enter(word, self.index % 64, due);
        }
        shared.tell_agent(self.index);
        AreaId { index: self.index as u32, generation }
    }

    /// Gives back what [`Directory::begin`] took, after [`Creation::fill`] has failed.
    pub(crate) fn abandon(self, directory: &Directory<'_>) {
        let segment = directory.segment();
        let slot = &segment.areas()[self.index];
        directory.remove_name(self.index);
        directory.release_range(slot);
        directory.free_slot(self.index);
        creating_of(segment, self.rank).store(0, Ordering::Relaxed);
    }
}

/// Backs an area by memory: its records and bitmaps, the writer copy, and the reader copies that have memory from the start.
fn reserve(
    segment: &Segment,
    offset: u64,
    layout: &AreaLayout,
    present: u32,
    pause: &mut dyn FnMut(),
) -> Result<(), ReserveError> {
    if layout.align != HUGE {
        // Nothing lies between the parts.
        return limits::reserve(segment.fd(), offset, layout.footprint(present), pause);
    }
    if layout.meta_end != 0 {
        limits::reserve(segment.fd(), offset, layout.meta_end, pause)?;
    }
    let mut huge = true;
    for place in 0..=present.min(layout.copies) {
        huge &= reserve_copy(segment, offset, layout, place, pause)?;
    }
    tracing::info!(bytes = layout.footprint(present), huge_pages = huge, "area memory reserved");
    Ok(())
}

/// Backs one copy by memory: the writer copy is at place 0. Whether it lies in huge pages.
fn reserve_copy(
    segment: &Segment,
    offset: u64,
    layout: &AreaLayout,
    place: u32,
    pause: &mut dyn FnMut(),
) -> Result<bool, ReserveError> {
    let bytes = layout.data_bytes();
    if bytes == 0 {
        return Ok(true);
    }
    let start = offset + layout.writer + u64::from(place) * layout.stride;
    limits::reserve(segment.fd(), start, bytes, pause)?;
    let mut huge = true;
    if layout.align == HUGE {
        for piece in (0..bytes).step_by(COLLAPSE_PIECE as usize) {
            pause();
            huge &= segment.collapse(start + piece, COLLAPSE_PIECE.min(bytes - piece));
        }
    }
    Ok(huge)
}

/// Gives memory to the reader copies of a live area that have none; which nobody frees meanwhile.
///
/// # Errors
/// [`Error::OutOfMemory`], [`Error::Os`]; copies that got memory keep it.
pub(crate) fn complete(segment: &Segment, index: usize) -> Result<()> {
    let parts = Parts::of(segment, index);
    let offset = extent_of(&segment.areas()[index]).offset;
    for (copy, place) in parts.copies().iter().zip(1..).filter(|(copy, _)| copy.is_absent()) {
        let done = reserve_copy(segment, offset, parts.layout, place, &mut || {});
        fault_point();
        if let Err(error) = done {
            return Err(match error {
                ReserveError::OutOfMemory { asked, free, limit, payer } => {
                    Error::OutOfMemory { name: find::name(segment, index), asked, free, limit, payer }
                }
                ReserveError::Os { call, source } => Error::Os { call, source },
            });
        }
        copy.appear();
    }
    Ok(())
}
