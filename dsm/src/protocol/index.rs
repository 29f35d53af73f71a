//! Which slot has a name: a hash table in shared memory, by open addressing.
//!
//! It is a cache of the table of areas: what it answers is compared with the table, and it is rebuilt after a death
//! in the middle of a change. It is changed under the directory mutex and read without: an entry never moves, and a
//! cell before it does not become empty as long as it is there, so that a reader does not miss an entry that was there
//! all the time, unless the whole is being rebuilt.
use crate::primitive::{AtomicU32, Ordering};
use fnv::FnvHasher;
use std::hash::Hasher;

/// A cell that no search has to go beyond.
const EMPTY: u32 = 0;
/// A cell whose entry was removed: searches go on behind it.
const GONE: u32 = u32::MAX;

/// The kind of an entry. Both lie in one table, and a slot may have one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The name of the area in the slot.
    Name = 0,
    /// The name of its group.
    Group = 1 << 30,
}

/// The table, with a power of two of cells, at least twice as many as there can be entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Index<'s> {
    cells: &'s [AtomicU32],
}

/// A hash of a text (FNV-1a, with the high bits mixed into the low ones): the same in every process of a job.
pub(crate) fn hash(text: &str) -> u64 {
    let mut fnv = FnvHasher::default();
    fnv.write(text.as_bytes());
    let hash = fnv.finish();
    (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl<'s> Index<'s> {
    pub(crate) fn new(cells: &'s [AtomicU32]) -> Index<'s> {
        Index { cells }
    }

    /// The cells in which an entry of this hash may be, in the order of a search.
    fn path(self, hash: u64) -> impl Iterator<Item = usize> {
        let mask = self.cells.len() - 1;
        let first = (hash >> 32) as usize;
        (0..self.cells.len()).map(move |step| (first + step) & mask)
    }

    // Relaxed, here and below: what an entry leads to is looked at by itself.
    fn get(self, at: usize) -> u32 {
        self.cells[at].load(Ordering::Relaxed)
    }

    fn set(self, at: usize, cell: u32) {
        self.cells[at].store(cell, Ordering::Relaxed);
    }

    /// The first slot of this hash and kind that `is_it` accepts.
    pub(crate) fn find(self, kind: Kind, hash: u64, mut is_it: impl FnMut(usize) -> bool) -> Option<usize> {
        let cells = self.path(hash).map(|at| self.get(at)).take_while(|cell| *cell != EMPTY);
        let of_kind = cells.filter(|cell| *cell != GONE && cell & Kind::Group as u32 == kind as u32);
        of_kind.map(|cell| (cell & !(Kind::Group as u32)) as usize - 1).find(|slot| is_it(*slot))
    }

    /// Adds an entry; under the directory mutex, as all changes.
    pub(crate) fn insert(self, kind: Kind, hash: u64, slot: usize) {
        let free = self.path(hash).find(|at| matches!(self.get(*at), EMPTY | GONE));
        self.set(free.expect("there are fewer entries than cells"), (slot as u32 + 1) | kind as u32);
    }

    /// Removes an entry; false if there is none.
    pub(crate) fn remove(self, kind: Kind, hash: u64, slot: usize) -> bool {
        let entry = (slot as u32 + 1) | kind as u32;
        let found = self.path(hash).take_while(|at| self.get(*at) != EMPTY).find(|at| self.get(*at) == entry);
        let Some(mut at) = found else { return false };
        self.set(at, GONE);
        let mask = self.cells.len() - 1;
        // No search needs to go on from here, if none goes on behind it.
        if self.get((at + 1) & mask) == EMPTY {
            while self.get(at) == GONE {
                self.set(at, EMPTY);
                at = at.wrapping_sub(1) & mask;
            }
        }
        true
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn cells(count: usize) -> Vec<AtomicU32> {
        (0..count).map(|_| AtomicU32::new(0)).collect()
    }

    proptest! {
        /// Entries come and go, many with one hash: what is there is found, and nothing else.
        #[test]
        fn finds_what_is_there(
            steps in prop::collection::vec((any::<bool>(), any::<bool>(), 0usize..12, 0u64..5), 1..200),
        ) {
            let cells = cells(64);
            let index = Index::new(&cells);
            let mut model: HashSet<(bool, u64, usize)> = HashSet::new();
            let kind = |group: bool| if group { Kind::Group } else { Kind::Name };
            // Close to each other, and over the end of the table.
            let hash = |key: u64| (62 + key) << 32;
            for (add, group, slot, key) in steps {
                // A slot has one entry of a kind.
                let has = model.iter().any(|(other, _, at)| (*other, *at) == (group, slot));
                if add && !has {
                    model.insert((group, key, slot));
                    index.insert(kind(group), hash(key), slot);
                } else if !add {
                    let was = model.remove(&(group, key, slot));
                    prop_assert!(!was || index.remove(kind(group), hash(key), slot));
                }
                for (group, key, slot) in &model {
                    prop_assert_eq!(index.find(kind(*group), hash(*key), |found| found == *slot), Some(*slot));
                }
                let there = cells.iter().filter(|cell| !matches!(cell.load(Ordering::Relaxed), EMPTY | GONE));
                prop_assert_eq!(there.count(), model.len());
            }
            model.drain().for_each(|(group, key, slot)| assert!(index.remove(kind(group), hash(key), slot)));
            prop_assert!(cells.iter().all(|cell| cell.load(Ordering::Relaxed) == EMPTY));
        }
    }

    #[test]
    fn processes_of_other_versions_find_the_same_cells() {
        assert_eq!(hash(""), 0x8570_e254_d5cb_36d5);
        assert_eq!(hash("model/layer/7"), 0x3f07_c12a_7d48_6ada);
    }

    #[test]
    fn hashes_of_numbered_names_spread() {
        let cells = cells(1 << 14);
        let index = Index::new(&cells);
        for number in 0..4096 {
            index.insert(Kind::Name, hash(&format!("model/layer/{number}")), number);
        }
        let mut looks = 0;
        for number in 0..4096 {
            let name = format!("model/layer/{number}");
            index.find(Kind::Name, hash(&name), |slot| {
                looks += 1;
                slot == number
            });
        }
        assert!(looks < 2 * 4096, "{looks}");
    }
}
