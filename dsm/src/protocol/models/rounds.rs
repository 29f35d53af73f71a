//! Arrive, plan, copy, publish among workers that live and come.
use super::super::round::Pause;
use super::{Hand, Memory, explore};
use loom::sync::Arc;
use loom::thread;

#[test]
fn two_workers_see_what_a_round_published() {
    explore(3, || {
        let memory = Arc::new(Memory::new(2, 1));
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Again };
                assert!(memory.read(1) == 0);
                hand.sync(1);
                assert_eq!(memory.read(1), 7);
            })
        };
        memory.write(7);
        let hand = Hand { memory: &memory, pause: Pause::Again };
        hand.sync(0);
        assert_eq!(memory.read(0), 7);
        memory.write(8);
        // The other keeps reading the published version while the owner writes on.
        other.join().unwrap();
    });
}

#[test]
fn one_leaves_while_the_other_waits() {
    explore(3, || {
        let memory = Arc::new(Memory::new(2, 1));
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Again };
                memory.read(1);
                memory.rounds().leave(1, &hand);
            })
        };
        memory.write(7);
        let hand = Hand { memory: &memory, pause: Pause::Check };
        hand.sync(0);
        assert_eq!(memory.read(0), 7);
        other.join().unwrap();
    });
}
