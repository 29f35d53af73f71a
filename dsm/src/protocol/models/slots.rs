//! Slots that change hands (`round/burial.rs`): a dead worker's goes to a new one, while others are in a round in which
//! claims and the actor word may name the dead one.
use super::super::claim;
use super::super::round::{Pause, slot_state};
use super::{Hand, Memory, Phase, Word, explore, lives};
use crate::primitive::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

/// What a reaper does wrong.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Frees the slot in the middle of a round.
    DoesNotWait,
}

/// Worker 1 has claimed a chunk of round 2 and died; worker 0, the owner, is in the round. A new worker wants the slot, frees it,
/// and joins. The round ends, and the new worker takes nothing for its own that was the dead one's.
fn reused(mutant: Mutant) {
    explore(2, move || {
        let memory = Memory::new(2, 1);
        memory.write(7);
        memory.word.store(Word::new(2, Phase::Copy).0, Ordering::SeqCst);
        memory.actor.store(super::super::word::Actor::new(2, 0).at_work().0, Ordering::SeqCst);
        memory.seats.iter().for_each(|seat| seat.arrived.store(2, Ordering::SeqCst));
        let hand = Hand { memory: &memory, pause: Pause::Check };
        assert!(super::Work::plan(&hand, 2, 0) && claim::take(&memory.claims[0], 2, 1));
        memory.alive[1].store(0, Ordering::SeqCst);
        let memory = Arc::new(memory);
        let joiner = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                let (rounds, seat) = (memory.rounds(), &memory.seats[1]);
                while !memory.begin_reaping() {
                    thread::yield_now();
                }
                assert!(super::Work::is_dead(&hand, 1));
                match mutant {
                    Mutant::None => rounds.bury(&[1], 2, &hand, |_| {}, thread::yield_now),
                    Mutant::DoesNotWait => seat.set_state(slot_state::FREE),
                }
                memory.end_reaping();
                // `try_slot` and `Worker::join`: the life mutex is the new worker's.
                memory.alive[1].store(1, Ordering::SeqCst);
                seat.missed.store(0, Ordering::Relaxed);
                seat.set_state(slot_state::JOINING);
                seat.set_state(slot_state::LIVE);
                rounds.settle(1, &hand);
                assert_eq!(memory.read(1), 7);
                rounds.leave(1, &hand);
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        memory.rounds().drive(0, 2, &hand);
        assert_eq!(memory.read(0), 7);
        memory.rounds().leave(0, &hand);
        joiner.join().unwrap();
    });
}

#[test]
fn a_slot_changes_hands_between_rounds() {
    reused(Mutant::None);
}

#[test]
#[should_panic(expected = "stand still")]
fn mutant_a_slot_that_changes_hands_in_a_round() {
    reused(Mutant::DoesNotWait);
}

/// One joins, one leaves, and the one that leaves dies before it counts if `steps` says so; then the joiner's is the last count.
fn counted(steps: u32, weaken: impl Fn(&AtomicU64) + Sync + Send + 'static) {
    explore(3, move || {
        let memory = Arc::new(Memory::new(3, 1));
        let count = Arc::new(AtomicU64::new(2));
        memory.seats[2].set_state(slot_state::FREE);
        weaken(&count);
        let leaver = {
            let (memory, count) = (memory.clone(), count.clone());
            thread::spawn(move || {
                lives(steps, || {
                    memory.seats[1].set_state(slot_state::FREE);
                    crate::primitive::fault_point();
                    memory.rounds().recount(&count);
                })
            })
        };
        memory.seats[2].set_state(slot_state::JOINING);
        memory.rounds().recount(&count);
        let lived = leaver.join().unwrap();
        if !lived {
            memory.rounds().recount(&count);
        }
        assert_eq!(count.load(Ordering::Relaxed) as u32, 2, "miscounted");
    });
}

#[test]
fn the_last_count_is_right() {
    (0..2).for_each(|steps| counted(steps, |_| {}));
}
