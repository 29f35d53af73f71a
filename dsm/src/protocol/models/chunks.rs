//! Claims of a worker that stands still while its area is abandoned and the next round is planned over the plan that it
//! reads: what it copies in the name of a round is what that round's plan said.
use super::super::claim;
use super::explore;
use crate::primitive::model::without_fences;
use crate::primitive::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// A chunk of rounds 5 and 6, of which the plan says the number of the round.
struct Chunk {
    claim: AtomicU64,
    plan: AtomicU64,
}

impl Chunk {
    /// Worker `me` copies its part in `round`.
    fn copy(&self, round: u64, me: u32) {
        let piece = |chunk: &Chunk| chunk.plan.load(Ordering::Relaxed);
        claim::copy_all(
            std::slice::from_ref(self),
            |chunk| &chunk.claim,
            (0, round, me),
            piece,
            |_, plan| {
                assert_eq!(*plan, round, "what is copied is another round's");
            },
        );
    }
}

/// Worker 1 copies in round 5, where the chunk is free or its own, while worker 0 abandons it and plans round 6.
fn left_behind(planned: u64) {
    explore(3, move || {
        let chunk = Arc::new(Chunk { claim: AtomicU64::new(planned), plan: AtomicU64::new(5) });
        let worker = {
            let chunk = chunk.clone();
            thread::spawn(move || chunk.copy(5, 1))
        };
        claim::abandon(&chunk.claim, 5);
        claim::begin_plan();
        chunk.plan.store(6, Ordering::Relaxed);
        chunk.claim.store(claim::free(6), Ordering::Relaxed);
        chunk.copy(6, 0);
        worker.join().unwrap();
    });
}

#[test]
fn who_is_left_behind_copies_nothing_of_the_next_round() {
    left_behind(claim::free(5));
    left_behind(claim::claimed(5, 1));
}

#[test]
#[should_panic(expected = "another round's")]
fn mutant_a_plan_without_a_release_fence() {
    let _mutant = without_fences(Ordering::Release);
    left_behind(claim::claimed(5, 1));
}

#[test]
#[should_panic(expected = "another round's")]
fn mutant_a_second_look_without_an_acquire_fence() {
    let _mutant = without_fences(Ordering::Acquire);
    left_behind(claim::claimed(5, 1));
}
