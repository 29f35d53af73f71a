//! Arrived data is read in place (`protocol/viewed.rs`) by a worker that rounds do not wait for: the agent overwrites it only when that
//! worker has been at a synchronization point.
use super::arrivals::{Mutant, deliver, remote};
use super::{Hand, Memory, explore, get, put};
use crate::primitive::Ordering;
use crate::primitive::model::Access;
use crate::protocol::arrival;
use crate::protocol::publication::Version;
use crate::protocol::round::{Pause, Work};
use crate::protocol::word::{Phase, RoundWord};
use loom::thread;

/// `Desk::may_receive`, of a version that is published by round 1.
fn receive(memory: &Memory, waits: bool) -> bool {
    if memory.arrival.handed_over().is_some() {
        memory.arrival.reopen();
    }
    !waits || memory.viewed.is_over(&memory.rounds())
}

/// Version 1 has arrived, and a round publishes it without the one worker, which was given up. It reads in place meanwhile, and comes
/// to a synchronization point; the agent receives version 2.
fn reading(waits: bool, weaken: impl Fn(&Memory) + Sync + Send + 'static) {
    explore(3, move || {
        let memory = remote(1, 2);
        weaken(&memory);
        deliver(&memory, 1, Mutant::None);
        put(&memory.arrived, Some(memory.arrival.arrived(1).unwrap()));
        memory.word.store(RoundWord::new(1, Phase::Publish).0, Ordering::SeqCst);
        Hand { memory: &memory, pause: Pause::Check }.publish(1, 0);
        memory.word.store(RoundWord::new(2, Phase::Idle).0, Ordering::SeqCst);
        let agent = {
            let memory = memory.clone();
            thread::spawn(move || {
                if (0..2).any(|_| receive(&memory, waits)) {
                    deliver(&memory, 2, Mutant::None);
                }
            })
        };
        let reader = {
            let memory = memory.clone();
            thread::spawn(move || {
                let (seen, rounds) = (Version::default(), memory.rounds());
                if let Some(arrived) = memory.viewed.begin(seen, &memory.arrival, &memory.cuts, &rounds) {
                    for cell in &memory.writer {
                        assert_eq!(get(cell), arrived.version.counter, "not the version that arrived");
                    }
                }
                // Its next synchronization point is in round 2: as `Rounds::arrive`.
                memory.seats[0].arrived.store(2, Ordering::SeqCst);
            })
        };
        agent.join().unwrap();
        reader.join().unwrap();
        assert!(receive(&memory, waits), "nobody reads, and the agent waits");
        assert!(arrival::complete(&memory.cuts) >= 1);
    });
}

#[test]
fn what_is_read_in_place_stays() {
    reading(true, |_| {});
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_agent_that_waits_for_no_reader() {
    reading(false, |_| {});
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_reader_that_says_so_weakly() {
    reading(true, |memory| {
        memory.viewed.round.weaken(Access::Change, Ordering::SeqCst, Ordering::AcqRel);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_agent_that_looks_weakly_who_reads() {
    reading(true, |memory| {
        memory.viewed.round.weaken(Access::Load, Ordering::SeqCst, Ordering::Acquire);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_record_that_is_taken_back_weakly() {
    reading(true, |memory| {
        memory.arrival.cut.weaken(Access::Store, Ordering::SeqCst, Ordering::Release);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_reader_that_looks_weakly_at_the_record() {
    reading(true, |memory| {
        memory.arrival.cut.weaken(Access::Load, Ordering::SeqCst, Ordering::Acquire);
    });
}
