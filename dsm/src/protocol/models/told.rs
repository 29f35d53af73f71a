//! Clocks and the numbers that are told with them (`protocol/clock_words.rs`), as the loop layer's table has them: whoever asks
//! for the number of a clock that all have applied gets that number, and no later clock's.
//!
//! Worker 0 publishes clocks, which workers 1 and 2 apply. Worker 1 asks; worker 2 may lag behind it.
use super::explore;
use crate::primitive::model::Access;
use crate::primitive::{AtomicU64, Ordering};
use crate::protocol::clock_words::ClockWords;
use crate::protocol::words::{self, SlotRing};
use loom::sync::Arc;
use loom::thread;

/// Every clock needs the one before it to be applied by all.
const RING: SlotRing = SlotRing::new(1);

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Has places for as many numbers as may be on their way twice over, and not one more.
    FewPlaces,
    /// Has a place for each slot of the ring.
    PlacePerSlot,
    /// Publishes the clock before its number.
    ClockFirst,
}

struct ClockTable {
    clocks: ClockWords,
    /// Worker 0's.
    words: Vec<AtomicU64>,
    /// How many clocks workers 1 and 2 have applied.
    applied: [AtomicU64; 2],
    mutant: Mutant,
}

impl ClockTable {
    fn new(mutant: Mutant) -> ClockTable {
        let clocks = match mutant {
            Mutant::FewPlaces => ClockWords::new(0, RING).with_places(2),
            Mutant::PlacePerSlot => ClockWords::new(0, RING).with_places(1),
            _ => ClockWords::new(0, RING),
        };
        let words = (0..clocks.end()).map(|_| AtomicU64::new(0)).collect();
        ClockTable { clocks, words, applied: [AtomicU64::new(0), AtomicU64::new(0)], mutant }
    }

    /// `Clocks::tick_once`, as far as it waits for nobody: publishes the next clock, if there is room.
    fn tick(&self) {
        let word = |index: usize| &self.words[index];
        let (clock, _) = self.clocks.get_words(word);
        if self.applied.iter().any(|applied| words::observe(applied) < RING.needed(clock)) {
            return thread::yield_now();
        }
        let (next, number) = (clock + 1, 100 * (clock + 1));
        if self.mutant == Mutant::ClockFirst {
            self.clocks.advance(word, next, false);
            self.clocks.tell(word, next, number);
        } else {
            self.clocks.set_words(word, next, false, number);
        }
    }

    fn clock(&self) -> u64 {
        self.clocks.get_words(|index| &self.words[index]).0
    }

    /// `Clocks::apply`: applies the next clock, if there is one. How many this server has applied.
    fn apply(&self, server: usize) -> u64 {
        let applied = words::observe(&self.applied[server]);
        if self.clock() <= applied {
            return applied;
        }
        words::publish(&self.applied[server], applied + 1);
        applied + 1
    }

    fn ask(&self) {
        let own = self.apply(0);
        let clock = self.clock();
        // `Clocks::published` and `StalenessMeter::note_merged`: what all have applied, though it may be less than this one.
        self.check_told(clock.min(own).min(words::observe(&self.applied[1])));
        // `StalenessMeter::is_due`: what it has published.
        self.check_told(clock);
    }

    fn check_told(&self, clock: u64) {
        let told = self.clocks.told_words(|index| &self.words[index], clock);
        assert_eq!(told, 100 * clock, "the number of another clock");
    }
}

fn told(mutant: Mutant, weaken: impl Fn(&ClockTable) + Sync + Send + 'static) {
    explore(3, move || {
        let table = Arc::new(ClockTable::new(mutant));
        weaken(&table);
        // Two clocks are published; all have applied the first.
        table.tick();
        (0..2).for_each(|server| assert_eq!(table.apply(server), 1));
        table.tick();
        assert_eq!(table.clock(), 2);
        let asker = {
            let table = table.clone();
            thread::spawn(move || (0..2).for_each(|_| table.ask()))
        };
        let other = {
            let table = table.clone();
            thread::spawn(move || table.apply(1))
        };
        (0..2).for_each(|_| table.tick());
        asker.join().unwrap();
        other.join().unwrap();
        table.ask();
    });
}

#[test]
fn who_asks_for_the_number_of_a_clock_gets_that_number() {
    told(Mutant::None, |_| {});
}

#[test]
#[should_panic(expected = "of another clock")]
fn mutant_one_place_too_few() {
    told(Mutant::FewPlaces, |_| {});
}

#[test]
#[should_panic(expected = "of another clock")]
fn mutant_as_many_places_as_slots() {
    told(Mutant::PlacePerSlot, |_| {});
}

#[test]
#[should_panic(expected = "of another clock")]
fn mutant_a_clock_before_its_number() {
    told(Mutant::ClockFirst, |_| {});
}

#[test]
#[should_panic(expected = "of another clock")]
fn mutant_a_clock_that_is_published_weakly() {
    told(Mutant::None, |table| {
        table.words[0].weaken(Access::Store, Ordering::Release, Ordering::Relaxed);
    });
}

#[test]
#[should_panic(expected = "of another clock")]
fn mutant_a_clock_that_is_read_weakly() {
    told(Mutant::None, |table| table.words[0].weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}
