//! Death between any two steps of a round.
use super::super::round::Pause;
use super::{Hand, Memory, explore, explore_up_to};
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

/// Two of three die, the owner and another, each at a step of its own: the third finishes what they began,
/// as the successor of a successor if need be.
fn two_die(owner_steps: u32, other_steps: u32) {
    explore_up_to(0, move || {
        let memory = Arc::new(Memory::new(3, 1));
        memory.write(7);
        let mortals: Vec<_> = [(0, owner_steps), (1, other_steps)]
            .into_iter()
            .map(|(me, steps)| {
                let memory = memory.clone();
                thread::spawn(move || {
                    let hand = Hand { memory: &memory, pause: Pause::Check };
                    memory.mortal(me, steps, || {
                        hand.sync(me as u32);
                        memory.rounds().leave(me as u32, &hand);
                    })
                })
            })
            .collect();
        let hand = Hand { memory: &memory, pause: Pause::Check };
        hand.sync(2);
        let seen = memory.read(2);
        assert!(seen == 0 || seen == 7, "{seen}");
        for mortal in mortals {
            mortal.join().unwrap();
        }
    });
}

#[test]
fn two_of_three_die_at_every_pair_of_steps() {
    let stride = if super::is_long() { 1 } else { 2 };
    for owner in (0..16).step_by(stride) {
        for other in (0..16).step_by(stride) {
            two_die(owner, other);
        }
    }
}
