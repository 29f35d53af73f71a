//! Observers against rounds: a pinned copy stays as it is, and nobody waits for it.
use super::super::round::Pause;
use super::{Hand, Memory, explore};
use loom::sync::Arc;
use loom::thread;

fn observed(copies: usize, looks: usize) {
    explore(3, move || {
        let memory = Arc::new(Memory::new(1, copies));
        let observer = {
            let memory = memory.clone();
            thread::spawn(move || {
                let mut last = 0;
                for _ in 0..looks {
                    if let Some(seen) = memory.observe() {
                        assert!(seen >= last, "{seen} after {last}");
                        last = seen;
                    }
                }
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        for value in [7, 8] {
            memory.write(value);
            hand.sync(0);
        }
        observer.join().unwrap();
    });
}

#[test]
fn a_pinned_copy_is_not_written() {
    observed(1, 2);
}

#[test]
fn with_two_copies_an_observer_sees_versions_in_order() {
    observed(2, 2);
}

/// The planner dies with a copy marked; the other worker, which does not own the area, takes the mark back.
#[test]
fn a_dead_planner_leaves_no_mark() {
    for steps in 0..12 {
        explore(1, move || {
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
            let lived = owner.join().unwrap();
            // The owner may die in the next round too, which the survivor then finishes.
            if lived || memory.rounds().load().phase() == super::Phase::Idle {
                let seen = memory.observe();
                assert!(matches!(seen, Some(0 | 7)), "{seen:?}");
            }
        });
    }
}
