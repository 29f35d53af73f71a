//! Looking a name up while the index of names changes or is rebuilt. Written over bare words, so that the models run it.
use super::area_state::AreaId;
use super::index::{Index, Kind};
use crate::primitive::{AtomicU64, Ordering, fence};

/// The table of areas, for one who looks for a name.
pub(crate) trait Table {
    /// How many slots were ever used.
    fn used(&self) -> usize;
    fn state(&self, slot: usize) -> &AtomicU64;
    /// Whether the slot seems to have the name.
    fn has_name(&self, slot: usize) -> bool;
}

/// The live area of the name, whose hash is `hash`. `made` says whether the index is being rebuilt.
pub(crate) fn find(table: &impl Table, index: Index<'_>, made: &AtomicU64, hash: u64) -> Option<AreaId> {
    let in_slot = |slot: usize| {
        let id = AreaId::of(slot, table.state(slot))?;
        (table.has_name(slot) && id.is_unchanged(table.state(slot))).then_some(id)
    };
    // Acquire: pairs with the release at the end of `make_anew`. What follows is not older than that.
    let before = made.load(Ordering::Acquire);
    let mut found = None;
    index.find(Kind::Name, hash, |slot| {
        // The slot found is the one compared: it may be another's a moment later.
        found = (slot < table.used()).then(|| in_slot(slot)).flatten();
        found.is_some()
    });
    if found.is_some() {
        return found;
    }
    // Acquire: pairs with the release fence in `make_anew`. If a cell was read that was rebuilt meanwhile, the number is
    // another now.
    fence(Ordering::Acquire);
    if before.is_multiple_of(2) && made.load(Ordering::Relaxed) == before {
        return None;
    }
    // It is being rebuilt, maybe by one who stands still: the table knows.
    (0..table.used()).find_map(in_slot)
}

/// Rebuilds the index, by `make`; under the directory mutex. Meanwhile, whoever does not find a name there looks at the
/// table. To be done again by the next, if one dies here.
pub(crate) fn make_anew(made: &AtomicU64, make: impl FnOnce()) {
    // Odd, also if one who died left it odd.
    let odd = made.load(Ordering::Relaxed) | 1;
    made.store(odd, Ordering::Relaxed);
    // Release: pairs with the acquire fence in `find`. Who sees anything that `make` writes sees the number odd, or later.
    fence(Ordering::Release);
    make();
    // Release: pairs with the acquire load in `find`. Who sees this number sees the index whole.
    made.store(odd.wrapping_add(1), Ordering::Release);
}
