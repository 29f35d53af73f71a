//! Mutants of the words that models share: the real code, with one ordering weaker. loom must refuse each.
use super::super::round::Pause;
use super::{Hand, Memory, explore};
use crate::primitive::Ordering;
use crate::primitive::model::Access;
use loom::sync::Arc;
use loom::thread;

/// A round of two, in which each may copy a chunk.
fn round_of_two(weaken: impl Fn(&Memory) + Sync + Send + 'static) {
    explore(3, move || {
        let memory = Arc::new(Memory::new(2, 1));
        weaken(&memory);
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Again };
                hand.sync(1);
                assert_eq!(memory.read(1), 7);
            })
        };
        memory.write(7);
        let hand = Hand { memory: &memory, pause: Pause::Again };
        hand.sync(0);
        assert_eq!(memory.read(0), 7);
        other.join().unwrap();
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_claims_that_are_read_weakly() {
    round_of_two(|memory| {
        memory
            .claims
            .iter()
            .for_each(|claim| claim.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
    });
}
