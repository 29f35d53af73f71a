//! Death between any two steps of a round.
use super::super::round::Pause;
use super::{Hand, Memory, explore};
use crate::primitive::Ordering;
use loom::sync::Arc;
use loom::thread;

/// Worker 1 dies after `steps` fault points of a round that it takes part in; worker 0, the owner, goes on.
fn helper_dies(steps: u32) {
    explore(2, move || {
        let memory = Arc::new(Memory::new(2, 1));
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                memory.mortal(1, steps, || {
                    hand.sync(1);
                    memory.read(1);
                })
            })
        };
        memory.write(7);
        let hand = Hand { memory: &memory, pause: Pause::Check };
        let mut tries = 0;
        // The other's own round may have come first and found nothing to publish yet.
        while memory.dirty.load(Ordering::Relaxed) != 0 {
            hand.sync(0);
            tries += 1;
            assert!(tries < 4, "the area stays dirty");
            if memory.dirty.load(Ordering::Relaxed) == 0 {
                break;
            }
        }
        assert_eq!(memory.read(0), 7);
        other.join().unwrap();
    });
}

#[test]
fn a_helper_dies_at_every_step() {
    for steps in 0..14 {
        helper_dies(steps);
    }
}

/// The owner dies; the other goes on. What it sees is the old version or the new one, whole.
fn owner_dies(steps: u32) {
    explore(2, move || {
        let memory = Arc::new(Memory::new(2, 1));
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
fn the_owner_dies_at_every_step() {
    for steps in 0..14 {
        owner_dies(steps);
    }
}
