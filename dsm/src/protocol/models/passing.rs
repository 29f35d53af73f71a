//! Actors that live, are slow, and are passed over.
//!
//! Whoever waits takes every round over from an actor that is not at work: each is one that "stands still" between any
//! two of its steps. `Memory::acting` tells of two who plan or publish at once, and of one who does so without seeing
//! what the other did.
use super::super::round::Pause;
use super::{Hand, Memory, explore, explore_up_to};
use crate::primitive::Ordering;
use loom::sync::Arc;
use loom::thread;

fn memory(workers: usize, copies: usize) -> Memory {
    Memory { passes_over: true, ..Memory::new(workers, copies) }
}

/// Two workers, each of whom passes over the other: the version that a round publishes is whole, seen by both, and
/// stays while the owner writes on.
#[test]
fn an_actor_is_passed_over_at_any_moment() {
    explore(3, || {
        let memory = Arc::new(memory(2, 1));
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                hand.sync(1);
                let seen = memory.read(1);
                assert!(matches!(seen, 0 | 7), "{seen}");
                memory.rounds().leave(1, &hand);
            })
        };
        memory.write(7);
        let hand = Hand { memory: &memory, pause: Pause::Check };
        // The other's own round may have come first and found nothing to publish yet.
        while memory.dirty.load(Ordering::Relaxed) != 0 {
            hand.sync(0);
        }
        assert_eq!(memory.read(0), 7);
        memory.write(8);
        other.join().unwrap();
    });
}

/// One who was passed over comes back in a later round, and does nothing of the earlier one's.
#[test]
fn who_was_passed_over_comes_back_rounds_later() {
    explore(2, || {
        let memory = Arc::new(memory(2, 2));
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::OutOfPatience };
                memory.rounds().open(false, &hand);
                memory.rounds().participate(1, &hand);
                let seen = memory.read(1);
                assert_eq!(memory.read(1), seen);
                memory.rounds().leave(1, &hand);
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::OutOfPatience };
        for value in [7, 8] {
            memory.write(value);
            hand.sync(0);
            let seen = memory.read(0);
            assert!(seen <= value, "{seen}");
        }
        other.join().unwrap();
    });
}

/// Three workers, each of whom passes over whoever is the actor.
#[test]
fn a_successor_is_passed_over_too() {
    explore_up_to(0, || {
        let memory = Arc::new(memory(3, 1));
        memory.write(7);
        let others: Vec<_> = [1, 2]
            .into_iter()
            .map(|me| {
                let memory = memory.clone();
                thread::spawn(move || {
                    let hand = Hand { memory: &memory, pause: Pause::Check };
                    memory.rounds().open(false, &hand);
                    memory.rounds().participate(me, &hand);
                    let seen = memory.read(me as usize);
                    assert!(matches!(seen, 0 | 7), "{seen}");
                    memory.rounds().leave(me, &hand);
                })
            })
            .collect();
        let hand = Hand { memory: &memory, pause: Pause::Check };
        hand.sync(0);
        let seen = memory.read(0);
        assert!(matches!(seen, 0 | 7), "{seen}");
        for other in others {
            other.join().unwrap();
        }
    });
}

/// The owner dies after `steps` fault points of a round in which both pass over each other.
fn owner_dies(steps: u32) {
    explore(2, move || {
        let memory = Arc::new(memory(2, 1));
        memory.write(7);
        let owner = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                memory.mortal(0, steps, || {
                    hand.sync(0);
                })
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        hand.sync(1);
        let seen = memory.read(1);
        assert!(seen == 0 || seen == 7, "{seen}");
        let lived = owner.join().unwrap();
        assert!(!lived || memory.dirty.load(Ordering::Relaxed) == 0);
    });
}

#[test]
fn an_owner_that_passes_over_dies_at_every_step() {
    for steps in 0..18 {
        owner_dies(steps);
    }
}
