//! An area that is lent is published by the agent, in a round that waits for nobody: against its owner, which takes it back and writes
//! it, against workers that have rounds of their own, and with the agent's death at every step.
use super::super::ownership;
use super::super::round::Pause;
use super::{Hand, Memory, Phase, RoundWord, explore, lives, lock, put};
use crate::primitive::{AtomicU32, Ordering};
use loom::sync::Arc;
use loom::thread;

/// The mistake of an owner or of a planner.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Writes again without looking at the area's lock.
    DoesNotWait,
    /// Looks at the lock before it takes the area back.
    LooksEarly,
}

/// Worker 0 has written 7 and lent the area.
fn lent(workers: usize) -> Memory {
    let memory = Memory::new(workers, 2);
    memory.write(7);
    ownership::lend(&memory.ownership, &AtomicU32::new(0), 0, 1);
    memory
}

/// The same of two workers; rounds do not wait for the owner, who does not come.
fn lent_by_one_who_is_late() -> Memory {
    let memory = lent(2);
    memory.seats[0].missed.store(1, Ordering::SeqCst);
    memory.word.store(RoundWord::new(2, Phase::Idle).0, Ordering::SeqCst);
    memory.seats[1].arrived.store(1, Ordering::SeqCst);
    memory
}

/// `Agent::publish_lent`; dies after `steps` fault points. Nobody has the rank behind those of the workers.
fn publish(memory: &Memory, steps: u32, pause: Pause) {
    if !memory.begin_reaping() {
        return;
    }
    let reaper = memory.seats.len() as u32;
    let hand = Hand { memory, pause };
    lives(steps, || {
        memory.rounds().run_at_once(reaper, &hand);
    });
    memory.end_reaping();
}

/// `Lent::recall` and `Recalled::finish`, without readers, and a write.
fn recall_and_write(memory: &Memory, mutant: Mutant, hand: &Hand<'_>) {
    let rounds = memory.rounds();
    let wait = || lock::wait_past(&memory.lock, &rounds, 0, hand);
    if mutant == Mutant::LooksEarly {
        wait();
    }
    lock::take_back(&memory.ownership, &rounds, (0, 1), ownership::recall).unwrap();
    if mutant == Mutant::None {
        wait();
    }
    memory.write(8);
}

/// Its owner, who is at no synchronization point, takes it back meanwhile.
fn taken_back(mutant: Mutant, steps: u32) {
    explore(3, move || {
        let memory = Arc::new(lent(1));
        let agent = {
            let memory = memory.clone();
            thread::spawn(move || publish(&memory, steps, Pause::Check))
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        recall_and_write(&memory, mutant, &hand);
        agent.join().unwrap();
        // What the agent has published is the whole of what was lent.
        let before = memory.observe().unwrap();
        assert!(matches!(before, 0 | 7), "{before}");
        memory.dirty.store(1, Ordering::Relaxed);
        hand.sync(0);
        assert_eq!(memory.read(0), 8);
        memory.rounds().leave(0, &hand);
    });
}

#[test]
fn a_lent_area_is_not_written_under_the_agents_round() {
    taken_back(Mutant::None, u32::MAX);
}

/// The owner, who waits for the round, ends it.
#[test]
fn a_lent_area_is_taken_back_from_an_agent_that_dies() {
    for steps in 0..14 {
        taken_back(Mutant::None, steps);
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_does_not_look_at_the_lock() {
    taken_back(Mutant::DoesNotWait, u32::MAX);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_looks_at_the_lock_before_it_takes_back() {
    taken_back(Mutant::LooksEarly, u32::MAX);
}

/// Another worker has rounds of its own meanwhile, reads between them, and does the agent's round if the agent dies in it. The owner,
/// who does not come, is left out.
fn beside_a_worker(steps: u32, pause: Pause) {
    explore(3, move || {
        let memory = Arc::new(lent_by_one_who_is_late());
        let worker = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                let before = memory.read(1);
                hand.sync(1);
                let after = memory.read(1);
                assert!(before == 0 && matches!(after, 0 | 7), "{before} {after}");
                memory.rounds().leave(1, &hand);
            })
        };
        publish(&memory, steps, pause);
        worker.join().unwrap();
        // The next agent ends what was left of it.
        publish(&memory, u32::MAX, Pause::Check);
        let word = memory.rounds().load();
        assert_eq!(word.phase(), Phase::Idle);
        assert_eq!((memory.dirty.load(Ordering::Relaxed), memory.observe()), (0, Some(7)));
    });
}

#[test]
fn the_agents_round_and_that_of_a_worker_are_not_two() {
    beside_a_worker(u32::MAX, Pause::Check);
}

#[test]
fn the_agents_round_is_given_up_beside_one_who_stands_still() {
    beside_a_worker(u32::MAX, Pause::OutOfPatience);
}

#[test]
fn the_agent_dies_in_its_round_at_every_step() {
    for steps in 0..14 {
        beside_a_worker(steps, Pause::Check);
    }
}

/// The agent dies in its round at every step, and somebody comes to free slots, while a worker may be in the round.
#[test]
fn whoever_frees_slots_goes_on_with_the_round_of_a_dead_agent() {
    for steps in 0..14 {
        explore(2, move || {
            let memory = Arc::new(lent_by_one_who_is_late());
            let worker = {
                let memory = memory.clone();
                thread::spawn(move || {
                    let hand = Hand { memory: &memory, pause: Pause::Check };
                    hand.sync(1);
                    memory.rounds().leave(1, &hand);
                })
            };
            publish(&memory, steps, Pause::Check);
            if memory.begin_reaping() {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                memory.rounds().bury(&[], memory.seats.len() as u32, &hand, |_| {}, thread::yield_now);
                memory.end_reaping();
            }
            worker.join().unwrap();
        });
    }
}

/// A worker dies in a round of its own at every step, alone in it, while the other waits for the agent, or computes: the agent ends the
/// round, and has its own.
#[test]
fn a_worker_dies_in_its_round_and_the_agent_ends_it() {
    for steps in 0..12 {
        explore(2, move || {
            let memory = Arc::new(lent_by_one_who_is_late());
            let worker = {
                let memory = memory.clone();
                thread::spawn(move || {
                    let hand = Hand { memory: &memory, pause: Pause::Check };
                    memory.mortal(1, steps, || {
                        hand.sync(1);
                    });
                })
            };
            publish(&memory, u32::MAX, Pause::Check);
            worker.join().unwrap();
            publish(&memory, u32::MAX, Pause::Check);
            assert_eq!(memory.rounds().load().phase(), Phase::Idle);
            assert_eq!((memory.dirty.load(Ordering::Relaxed), memory.observe()), (0, Some(7)));
        });
    }
}

/// A worker that is not in the agent's round goes on reading the copy that it saw.
#[test]
fn who_is_not_in_the_agents_round_reads_on() {
    explore(3, || {
        let memory = Arc::new(lent(2));
        let reader = {
            let memory = memory.clone();
            thread::spawn(move || {
                assert_eq!(memory.read(1), 0);
                assert_eq!(memory.read(1), 0);
                let hand = Hand { memory: &memory, pause: Pause::Check };
                memory.rounds().participate(1, &hand);
                let seen = memory.read(1);
                assert!(matches!(seen, 0 | 7), "{seen}");
            })
        };
        publish(&memory, u32::MAX, Pause::Check);
        put(&memory.log, 0);
        reader.join().unwrap();
    });
}
