//! Claims of a dead owner's area, and rounds of the dead, against whoever takes such a round over.
use super::super::round::Pause;
use super::super::word::Actor;
use super::{Hand, Memory, Phase, RoundWord, explore};
use crate::primitive::Ordering;
use loom::sync::Arc;
use loom::thread;

/// Round 2 is under way in `phase`. Worker 0 has written 7, arrived, been elected and died. Whoever is in
/// `late` did not come to round 1 and is not waited for.
fn dead_owner(workers: usize, phase: Phase, late: &[usize]) -> Memory {
    let memory = Memory::new(workers, 2);
    memory.write(7);
    memory.word.store(RoundWord::new(2, phase).0, Ordering::SeqCst);
    memory.actor.store(Actor::new(2, 0).0, Ordering::SeqCst);
    memory.seats[0].arrived.store(2, Ordering::SeqCst);
    memory.alive[0].store(0, Ordering::SeqCst);
    for rank in late {
        memory.seats[*rank].missed.store(1, Ordering::SeqCst);
    }
    memory
}

/// A straggler claims the area while another worker runs the round in which its owner arrived and died. The
/// claimer does not write while the round copies, and the round publishes all of the old owner's or nothing.
#[test]
fn a_claimer_does_not_write_under_a_round() {
    for phase in [Phase::Open, Phase::Plan] {
        explore(3, move || {
            let memory = Arc::new(dead_owner(3, phase, &[2]));
            if phase == Phase::Plan {
                memory.seats[1].arrived.store(2, Ordering::SeqCst);
            }
            let claimer = {
                let memory = memory.clone();
                thread::spawn(move || {
                    let hand = Hand { memory: &memory, pause: Pause::Check };
                    assert!(memory.claim(2, 9, &hand));
                    memory.rounds().participate(2, &hand);
                    memory.rounds().leave(2, &hand);
                })
            };
            let hand = Hand { memory: &memory, pause: Pause::Check };
            if phase == Phase::Plan {
                memory.rounds().drive(1, 2, &hand);
            } else {
                memory.rounds().participate(1, &hand);
            }
            let seen = memory.read(1);
            assert!(matches!(seen, 0 | 7 | 9), "{seen}");
            claimer.join().unwrap();
        });
    }
}

/// All who were in the round are dead. A straggler that comes back and a joiner that wants the slot of one
/// of them both find that out; one of them finishes the round.
#[test]
fn a_round_of_the_dead_is_finished_by_one() {
    for phase in [Phase::Plan, Phase::Copy, Phase::Publish] {
        explore(3, move || {
            let memory = Arc::new(dead_owner(2, Phase::Plan, &[1]));
            if phase != Phase::Plan {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                assert!(super::Work::plan(&hand, 2, 0));
                memory.word.store(RoundWord::new(2, phase).0, Ordering::SeqCst);
            }
            if phase == Phase::Publish {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                super::Work::copy(&hand, 2, 0);
            }
            let straggler = {
                let memory = memory.clone();
                thread::spawn(move || {
                    let hand = Hand { memory: &memory, pause: Pause::Check };
                    memory.rounds().participate(1, &hand);
                    let seen = memory.read(1);
                    assert!(matches!(seen, 0 | 7), "{seen}");
                })
            };
            let hand = Hand { memory: &memory, pause: Pause::Check };
            let rounds = memory.rounds();
            assert!(memory.begin_reaping());
            // Nobody has rank 2: as the reaper, which waits until the round is past.
            while !rounds.load().is_past(2) {
                rounds.finish_for_the_dead(2, 2, &hand);
                thread::yield_now();
            }
            memory.end_reaping();
            straggler.join().unwrap();
        });
    }
}

/// The same when the straggler has taken the round over already: the reaper leaves it to the living.
#[test]
fn a_round_of_the_dead_is_not_taken_from_the_living() {
    explore(3, || {
        let memory = Arc::new(dead_owner(2, Phase::Plan, &[1]));
        memory.seats[0].state.store(super::slot_state::DEAD, Ordering::SeqCst);
        memory.actor.store(Actor::new(2, 1).0, Ordering::SeqCst);
        let straggler = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                memory.rounds().drive_past(1, 2, &hand);
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        assert!(memory.begin_reaping());
        memory.rounds().finish_for_the_dead(2, 2, &hand);
        memory.end_reaping();
        straggler.join().unwrap();
        assert!(memory.rounds().load().is_past(2));
    });
}

/// The elected actor of an open round died, and its slot is given away: the others elect again.
#[test]
fn a_dead_actors_election_is_taken_back() {
    explore(3, || {
        let memory = Arc::new(dead_owner(2, Phase::Open, &[]));
        let reaper = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                assert!(super::Work::is_dead(&hand, 0));
                memory.rounds().depose(0);
                memory.seats[0].state.store(super::slot_state::FREE, Ordering::SeqCst);
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Again };
        memory.rounds().participate(1, &hand);
        assert!(matches!(memory.read(1), 0 | 7));
        reaper.join().unwrap();
    });
}

/// A reaper dies while it finishes the round of the dead. A straggler that comes back finishes it, or the next
/// reaper does, and never both.
fn a_reaper_dies(steps: u32) {
    explore(3, move || {
        let memory = Arc::new(dead_owner(2, Phase::Plan, &[1]));
        let straggler = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                memory.rounds().participate(1, &hand);
                let seen = memory.read(1);
                assert!(matches!(seen, 0 | 7), "{seen}");
            })
        };
        let reap = |memory: &Memory, steps: u32| {
            if !memory.begin_reaping() {
                return;
            }
            let hand = Hand { memory, pause: Pause::Check };
            // Nobody has rank 2.
            super::lives(steps, || memory.rounds().finish_for_the_dead(2, 2, &hand));
            memory.end_reaping();
        };
        let next = {
            let memory = memory.clone();
            thread::spawn(move || reap(&memory, u32::MAX))
        };
        reap(&memory, steps);
        next.join().unwrap();
        straggler.join().unwrap();
        assert!(memory.rounds().load().is_past(2));
    });
}

#[test]
fn a_reaper_dies_at_every_step() {
    for steps in 0..14 {
        a_reaper_dies(steps);
    }
}
