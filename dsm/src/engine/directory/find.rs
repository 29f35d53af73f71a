//! Looking areas up without the directory mutex, so that a lookup never waits for workers that create or delete areas.
//!
//! `area_state` says how a lookup knows that what it has read of a slot belongs to one area, `lookup` what it does while the
//! index is rebuilt.
use crate::engine::directory::{AGENT, AreaId, CREATING, state_of};
use crate::engine::shared::Shared;
use crate::error::Error;
use crate::protocol::index::hash;
use crate::protocol::lookup::{self, Table};
use crate::segment::layout::AreaSlot;
use crate::segment::mapping::Segment;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Whether what was just read of a slot belongs to this area.
pub(crate) fn unchanged(id: AreaId, slot: &AreaSlot) -> bool {
    id.is_unchanged(&slot.read.state)
}

/// The areas, for one who looks for a name.
struct Named<'s>(&'s Segment, &'s str);

impl Table for Named<'_> {
    fn used(&self) -> usize {
        self.0.used_areas()
    }

    fn state(&self, slot: usize) -> &AtomicU64 {
        &self.0.areas()[slot].read.state
    }

    fn has_name(&self, slot: usize) -> bool {
        has_name(self.0, slot, self.1)
    }
}

/// The live area of this name.
pub(crate) fn find(segment: &Segment, name: &str) -> Option<AreaId> {
    lookup::find(&Named(segment, name), segment.index(), &segment.header().index_made, hash(name))
}

/// The live area of this name, unless it is hidden: no data of it has come from its owner's host yet.
pub(crate) fn find_shown(segment: &Segment, name: &str) -> Option<AreaId> {
    // Acquire: pairs with the release in `Agent::show`. If the slot is another area's by now, whoever goes on finds that.
    let is_shown =
        |area: &AreaId| segment.areas()[area.index as usize].agent.hidden.load(Ordering::Acquire) == 0;
    find(segment, name).filter(is_shown)
}

/// All live areas.
pub(crate) fn all(segment: &Segment) -> impl Iterator<Item = AreaId> {
    (0..segment.used_areas()).filter_map(|index| AreaId::of(index, &segment.areas()[index].read.state))
}

/// Who is creating an area of this name, for people.
pub(crate) fn creator(shared: &Shared, name: &str) -> Option<String> {
    let segment = &shared.segment;
    let mut slots = segment.areas()[..segment.used_areas()].iter().enumerate();
    slots
        .find(|(index, slot)| state_of(slot) == CREATING && has_name(segment, *index, name))
        .map(|(_, slot)| creator_text(shared, slot))
}

/// Who is creating the area in a slot, for people.
pub(crate) fn creator_text(shared: &Shared, slot: &AreaSlot) -> String {
    let rank = slot.about.creator.load(Ordering::Relaxed) as u32;
    if rank == AGENT {
        let pid = shared.segment.header().agent.pid.load(Ordering::Relaxed);
        return format!("the agent (process {pid}) is creating it, for a worker of another host");
    }
    format!("worker {rank} (process {}) is creating it", shared.process_of(rank).0)
}

/// Nobody created the area that was waited for.
pub(crate) fn attach_timed_out(shared: &Shared, name: &str, waited: Duration) -> Error {
    let missing = creator(shared, name).unwrap_or_else(|| "nobody created it".into());
    Error::TimedOut { what: format!("area {name:?}"), waited, missing }
}

/// Whether a slot's row has this name. True only means something if the slot is [`unchanged`], or under the directory
/// mutex.
pub(crate) fn has_name(segment: &Segment, index: usize, name: &str) -> bool {
    has_text(segment, false, index, name)
}

/// [`has_name`], of a slot's group with `groups`.
pub(crate) fn has_text(segment: &Segment, groups: bool, index: usize, text: &str) -> bool {
    let row = &segment.name_row(groups, index)[..text_len(segment, groups, index)];
    row.len() == text.len() && row.iter().zip(text.bytes()).all(|(a, b)| a.load(Ordering::Relaxed) == b)
}

fn text_len(segment: &Segment, groups: bool, index: usize) -> usize {
    let about = &segment.areas()[index].about;
    let len = if groups { &about.group_len } else { &about.name_len }.load(Ordering::Relaxed);
    len.min(segment.config().max_name_bytes) as usize
}

fn text(segment: &Segment, groups: bool, index: usize) -> String {
    let row = &segment.name_row(groups, index)[..text_len(segment, groups, index)];
    let bytes: Vec<u8> = row.iter().map(|byte| byte.load(Ordering::Relaxed)).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The name in a slot's row; see [`has_name`].
pub(crate) fn name(segment: &Segment, index: usize) -> String {
    text(segment, false, index)
}

/// The name of the group in a slot's row, if it is in one; see [`has_name`].
pub(crate) fn group(segment: &Segment, index: usize) -> Option<String> {
    let about = &segment.areas()[index].about;
    (about.group.load(Ordering::Relaxed) != 0).then(|| text(segment, true, index))
}

/// Writes a slot's name, or that of its group; under the directory mutex. The text is no longer than a row.
pub(crate) fn set_text(segment: &Segment, groups: bool, index: usize, text: &str) {
    let about = &segment.areas()[index].about;
    for (place, byte) in segment.name_row(groups, index).iter().zip(text.bytes()) {
        place.store(byte, Ordering::Relaxed);
    }
    let len = if groups { &about.group_len } else { &about.name_len };
    len.store(text.len() as u32, Ordering::Relaxed);
}
