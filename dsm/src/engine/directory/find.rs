//! Looking areas up without the directory mutex, so that nobody who creates or deletes keeps a reader waiting.
//!
//! A slot says in its state whether its area lives, and the generation there rises before the slot is another area's.
//! So whoever finds the same live state before and after has read what belongs to one area (`unchanged`).
use crate::api::job::Shared;
use crate::engine::directory::{AreaId, CREATING, state_of};
use crate::segment::index::{Kind, hash};
use crate::segment::layout::AreaSlot;
use crate::segment::mapping::Segment;
use std::sync::atomic::{Ordering, fence};

/// The area in a slot, if one lives there.
fn live(segment: &Segment, index: usize) -> Option<AreaId> {
    // SeqCst, hence acquire: pairs with the release of `set_state` after all that describes the area was written.
    let state = segment.areas()[index].read.state.load(Ordering::SeqCst);
    let id = AreaId { index: index as u32, generation: state >> 3 };
    crate::engine::directory::is_live(state).then_some(id)
}

/// Whether what was just read of a slot belongs to this area.
pub(crate) fn unchanged(id: AreaId, slot: &AreaSlot) -> bool {
    // Acquire: pairs with the release fence in `Directory::begin`; who has read something of a later area finds the
    // state of that one or a later.
    fence(Ordering::Acquire);
    id.is_live(slot)
}

/// The live area of this name.
pub(crate) fn find(segment: &Segment, name: &str) -> Option<AreaId> {
    let is_it = |id: &AreaId| {
        let index = id.index as usize;
        has_name(segment, index, name) && unchanged(*id, &segment.areas()[index])
    };
    let made = &segment.header().index_made;
    // SeqCst: pairs with the stores in `Directory::make_index`, here and below.
    let before = made.load(Ordering::SeqCst);
    let mut found = None;
    segment.index().find(Kind::Name, hash(name), |index| {
        // What was found is what was compared: the slot may be another's a moment later.
        found = (index < segment.used_areas()).then(|| live(segment, index)).flatten().filter(is_it);
        found.is_some()
    });
    if found.is_some() {
        return found;
    }
    // SeqCst: after what was read of the index; pairs with the stores in `Directory::make_index`.
    fence(Ordering::SeqCst);
    if before.is_multiple_of(2) && made.load(Ordering::SeqCst) == before {
        return None;
    }
    // It is being made anew, maybe by one who stands still: the table knows.
    all(segment).find(is_it)
}

/// All live areas.
pub(crate) fn all(segment: &Segment) -> impl Iterator<Item = AreaId> {
    (0..segment.used_areas()).filter_map(|index| live(segment, index))
}

/// Who is creating an area of this name, for people.
pub(crate) fn creator(shared: &Shared, name: &str) -> Option<String> {
    let segment = &shared.segment;
    let mut slots = segment.areas()[..segment.used_areas()].iter().enumerate();
    slots
        .find(|(index, slot)| state_of(slot) == CREATING && has_name(segment, *index, name))
        .map(|(_, slot)| super::create::creator_text(shared, slot))
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
