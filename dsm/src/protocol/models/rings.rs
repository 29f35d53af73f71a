//! Rings of slots (`protocol/words.rs`), as the loop layer's contributions go through them: each clock is read once, in order and
//! whole, and no slot is written while it is read.
use super::{explore, get, put};
use crate::primitive::model::Access;
use crate::primitive::{AtomicU64, Ordering};
use crate::protocol::words;
use crate::protocol::words::SlotRing;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

const CLOCKS: u64 = 3;

/// A worker's slots and the word of its clocks, and the word of another that tells how many it has read.
struct Shared {
    ring: SlotRing,
    slots: Vec<UnsafeCell<u64>>,
    published: AtomicU64,
    applied: AtomicU64,
}

/// `room` says how many clocks have to be applied before one is written.
fn passed_on(room: fn(SlotRing, u64) -> u64, weaken: impl Fn(&Shared) + Sync + Send + 'static) {
    explore(3, move || {
        let ring = SlotRing::new(2);
        let shared = Arc::new(Shared {
            ring,
            slots: (0..ring.slots()).map(|_| UnsafeCell::new(0)).collect(),
            published: AtomicU64::new(0),
            applied: AtomicU64::new(0),
        });
        weaken(&shared);
        let reader = {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut applied = 0;
                while applied < CLOCKS {
                    if words::observe(&shared.published) == applied {
                        thread::yield_now();
                        continue;
                    }
                    assert_eq!(get(&shared.slots[shared.ring.slot(applied)]), 100 + applied);
                    applied += 1;
                    words::publish(&shared.applied, applied);
                }
            })
        };
        for clock in 0..CLOCKS {
            while words::observe(&shared.applied) < room(ring, clock) {
                thread::yield_now();
            }
            put(&shared.slots[ring.slot(clock)], 100 + clock);
            words::publish(&shared.published, clock + 1);
        }
        reader.join().unwrap();
    });
}

#[test]
fn every_clock_is_read_whole() {
    passed_on(SlotRing::needed, |_| {});
}

#[test]
#[should_panic]
fn mutant_a_slot_that_is_written_too_early() {
    passed_on(|ring, clock| ring.needed(clock).saturating_sub(1), |_| {});
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_clock_that_is_published_weakly() {
    passed_on(SlotRing::needed, |shared| {
        shared.published.weaken(Access::Store, Ordering::Release, Ordering::Relaxed);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_clock_that_is_observed_weakly() {
    passed_on(SlotRing::needed, |shared| {
        shared.published.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_reader_that_says_weakly_how_far_it_is() {
    passed_on(SlotRing::needed, |shared| {
        shared.applied.weaken(Access::Store, Ordering::Release, Ordering::Relaxed);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_writer_that_looks_weakly_for_room() {
    passed_on(SlotRing::needed, |shared| {
        shared.applied.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed);
    });
}
