//! Lookups without the directory mutex (`protocol/area_state.rs`, `protocol/lookup.rs`, `protocol/index.rs`): what is read of a slot belongs to
//! the area that was found, and an area that was there all the time is found, also while the index is rebuilt.
//!
//! All names have one hash, so that each entry is behind those that were there before it.
use super::{explore, lives};
use crate::primitive::model::{Access, without_fences};
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point};
use crate::protocol::area_state::{self as state, AreaId};
use crate::protocol::index::{Index, Kind};
use crate::protocol::lookup::{self, Table};
use loom::sync::Arc;
use loom::thread;

const SLOTS: usize = 2;
const HASH: u64 = 0;

struct Directory {
    states: [AtomicU64; SLOTS],
    names: [AtomicU32; SLOTS],
    /// All else that a slot says of its area: its name again.
    abouts: [AtomicU32; SLOTS],
    cells: Vec<AtomicU32>,
    made: AtomicU64,
}

/// The table, for one who looks for this name.
struct Named<'d>(&'d Directory, u32);

impl Table for Named<'_> {
    fn used(&self) -> usize {
        SLOTS
    }

    fn state(&self, slot: usize) -> &AtomicU64 {
        &self.0.states[slot]
    }

    fn has_name(&self, slot: usize) -> bool {
        self.0.names[slot].load(Ordering::Relaxed) == self.1
    }
}

impl Directory {
    /// Area 1 in slot 0, area 2 in slot 1.
    fn new() -> Directory {
        let live = || AtomicU64::new(state::LIVE);
        let directory = Directory {
            states: [live(), live()],
            names: [AtomicU32::new(1), AtomicU32::new(2)],
            abouts: [AtomicU32::new(1), AtomicU32::new(2)],
            cells: (0..4).map(|_| AtomicU32::new(0)).collect(),
            made: AtomicU64::new(0),
        };
        directory.enter_all();
        directory
    }

    fn index(&self) -> Index<'_> {
        Index::new(&self.cells)
    }

    fn enter_all(&self) {
        (0..SLOTS).for_each(|slot| self.index().insert(Kind::Name, HASH, slot));
    }

    fn find(&self, name: u32) -> Option<AreaId> {
        lookup::find(&Named(self, name), self.index(), &self.made, HASH)
    }

    /// `Worker::attach`: finds an area, and reads what its slot says.
    fn attach(&self, name: u32) {
        let Some(id) = self.find(name) else { return };
        let slot = id.index as usize;
        let about = self.abouts[slot].load(Ordering::Relaxed);
        if id.is_unchanged(&self.states[slot]) {
            assert_eq!(about, name, "what belongs to another area");
        }
    }

    /// `Directory::delete` and `Directory::reclaim`, of the area in slot 0.
    fn delete(&self, mutant: Mutant) {
        let id = AreaId::of(0, &self.states[0]).unwrap();
        id.delete(&self.states[0]);
        match mutant {
            // No search needs to go on from here, it says.
            Mutant::EmptiesCells => self.cells[0].store(0, Ordering::Relaxed),
            _ => assert!(self.index().remove(Kind::Name, HASH, 0)),
        }
        match mutant {
            Mutant::KeepsGeneration => state::set(&self.states[0], state::FREE),
            _ => state::free(&self.states[0]),
        }
    }

    /// `Directory::begin` and `Creation::finish`, in slot 0.
    fn create(&self, name: u32) {
        state::begin();
        self.abouts[0].store(name, Ordering::Relaxed);
        self.names[0].store(name, Ordering::Relaxed);
        self.index().insert(Kind::Name, HASH, 0);
        state::set(&self.states[0], state::CREATING);
        state::set(&self.states[0], state::LIVE);
    }

    /// `Directory::make_index`, which dies with its caller.
    fn make_index(&self, mutant: Mutant) {
        let make = || {
            self.cells.iter().for_each(|cell| cell.store(0, Ordering::Relaxed));
            fault_point();
            self.enter_all();
        };
        match mutant {
            Mutant::SaysNothing => make(),
            _ => lookup::make_anew(&self.made, make),
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// A slot is another area's under the same generation.
    KeepsGeneration,
    /// A cell whose entry is removed ends searches.
    EmptiesCells,
    /// The index is rebuilt without a word.
    SaysNothing,
}

/// Area 1 is deleted and its slot area 3's, while another attaches to `name` and to area 2.
fn reused(name: u32, mutant: Mutant, weaken: impl Fn(&Directory) + Sync + Send + 'static) {
    explore(3, move || {
        let directory = Arc::new(Directory::new());
        weaken(&directory);
        let other = {
            let directory = directory.clone();
            thread::spawn(move || {
                directory.attach(name);
                assert!(directory.find(2).is_some(), "what was there all the time is not found");
            })
        };
        directory.delete(mutant);
        directory.create(3);
        other.join().unwrap();
        assert!(directory.find(1).is_none() && directory.find(3).is_some());
    });
}

#[test]
fn what_is_read_of_a_slot_belongs_to_one_area() {
    reused(1, Mutant::None, |_| {});
    reused(3, Mutant::None, |_| {});
}

#[test]
#[should_panic(expected = "belongs to another area")]
fn mutant_a_slot_that_is_written_without_a_release_fence() {
    let _mutant = without_fences(Ordering::Release);
    reused(1, Mutant::None, |_| {});
}

#[test]
#[should_panic(expected = "belongs to another area")]
fn mutant_a_second_look_without_an_acquire_fence() {
    let _mutant = without_fences(Ordering::Acquire);
    reused(1, Mutant::None, |_| {});
}

#[test]
#[should_panic(expected = "belongs to another area")]
fn mutant_a_slot_whose_generation_stays() {
    reused(1, Mutant::KeepsGeneration, |_| {});
}

#[test]
#[should_panic(expected = "belongs to another area")]
fn mutant_an_area_that_is_made_live_weakly() {
    reused(3, Mutant::None, |directory| {
        directory.states[0].weaken(Access::Store, Ordering::Release, Ordering::Relaxed);
    });
}

#[test]
#[should_panic(expected = "is not found")]
fn mutant_a_cell_that_is_emptied() {
    reused(1, Mutant::EmptiesCells, |_| {});
}

/// The index is rebuilt, by one who dies at it if `steps` says so, and then by another; a third looks up what was there all
/// the time.
fn made_anew(steps: u32, mutant: Mutant) {
    explore(3, move || {
        let directory = Arc::new(Directory::new());
        let other = {
            let directory = directory.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    assert!(directory.find(2).is_some(), "what was there all the time is not found");
                }
            })
        };
        if !lives(steps, || directory.make_index(mutant)) {
            directory.make_index(mutant);
        }
        other.join().unwrap();
        assert!(directory.find(1).is_some());
        assert!(directory.made.load(Ordering::Relaxed).is_multiple_of(2));
    });
}

#[test]
fn what_is_there_is_found_while_the_index_is_made_anew() {
    (0..2).for_each(|steps| made_anew(steps, Mutant::None));
}

#[test]
#[should_panic(expected = "is not found")]
fn mutant_an_index_that_is_made_anew_without_a_word() {
    made_anew(1, Mutant::SaysNothing);
}

#[test]
#[should_panic(expected = "is not found")]
fn mutant_an_index_that_is_made_anew_without_a_release_fence() {
    let _mutant = without_fences(Ordering::Release);
    made_anew(1, Mutant::None);
}

#[test]
#[should_panic(expected = "is not found")]
fn mutant_a_search_without_an_acquire_fence() {
    let _mutant = without_fences(Ordering::Acquire);
    made_anew(1, Mutant::None);
}
