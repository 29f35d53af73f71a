//! Copies that get memory from the agent while rounds run: nobody publishes into one before it has it.
use super::super::round::Pause;
use super::{Hand, Memory, explore, pin, put};
use crate::primitive::Ordering;
use crate::primitive::model::Access;
use loom::sync::Arc;
use loom::thread;

/// The newest copy is pinned throughout, and the other one appears while the owner publishes twice.
fn appearing(weaken: impl Fn(&Memory) + Sync + Send + 'static) {
    explore(3, move || {
        let memory = Arc::new(Memory::new(1, 2));
        memory.records[1].leave_absent();
        memory.pin.store(1, Ordering::SeqCst);
        weaken(&memory);
        let agent = {
            let memory = memory.clone();
            thread::spawn(move || {
                // The kernel gives memory, of zeros.
                memory.readers[1].iter().for_each(|cell| put(cell, 0));
                memory.records[1].appear();
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        let mut before = 0;
        for value in [7, 8] {
            memory.write(value);
            hand.sync(0);
            let seen = memory.read(0);
            assert!(seen == before || seen == value, "{seen} after {before}");
            if seen == value {
                // A copy more: rounds may publish into it from now on.
                pin::unpin(&memory.pin);
            }
            before = seen;
        }
        agent.join().unwrap();
        memory.write(9);
        hand.sync(0);
        assert_eq!(memory.read(0), 9, "it is postponed no more");
    });
}

#[test]
fn nobody_publishes_into_a_copy_that_has_no_memory() {
    appearing(|_| {});
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_copy_that_appears_weakly() {
    appearing(|memory| memory.records[1].state.weaken(Access::Store, Ordering::Release, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_copy_that_is_looked_at_weakly() {
    appearing(|memory| memory.records[1].state.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}
