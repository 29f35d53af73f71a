//! Workers that come late, and rounds that are given up.
use super::super::round::{Ended, Pause, slot_state};
use super::{Hand, Memory, explore};
use crate::primitive::Ordering;
use loom::sync::Arc;
use loom::thread;

/// The owner gives rounds up when the other does not come; the other reads, comes when it likes, and reads
/// again. Whatever copy it reads is whole and does not change under it.
fn late_comer(copies: usize) {
    explore(3, move || {
        let memory = Arc::new(Memory::new(2, copies));
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Again };
                let before = memory.read(1);
                memory.rounds().participate(1, &hand);
                let after = memory.read(1);
                assert!(after >= before, "{after} after {before}");
            })
        };
        memory.write(7);
        let hand = Hand { memory: &memory, pause: Pause::OutOfPatience };
        hand.sync(0);
        memory.write(8);
        other.join().unwrap();
    });
}

#[test]
fn a_late_comer_with_one_copy() {
    late_comer(1);
}

#[test]
fn a_late_comer_with_two_copies() {
    late_comer(2);
}

#[test]
fn a_straggler_comes_back() {
    explore(3, || {
        let memory = Arc::new(Memory::new(2, 2));
        // A round was abandoned because of worker 1; the next ones do not wait for it.
        memory.seats[1].missed.store(1, Ordering::Relaxed);
        memory.word.store(super::RoundWord::new(2, super::Phase::Idle).0, Ordering::Relaxed);
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Again };
                let before = memory.read(1);
                memory.rounds().participate(1, &hand);
                let after = memory.read(1);
                assert!(after >= before, "{after} after {before}");
                memory.rounds().leave(1, &hand);
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        for value in [7, 8] {
            memory.write(value);
            hand.sync(0);
        }
        other.join().unwrap();
    });
}

#[test]
fn a_worker_joins_in_the_middle() {
    explore(3, || {
        let memory = Arc::new(Memory::new(2, 2));
        memory.seats[1].state.store(slot_state::JOINING, Ordering::Relaxed);
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Again };
                memory.seats[1].state.store(slot_state::LIVE, Ordering::SeqCst);
                memory.rounds().settle(1, &hand);
                let first = memory.read(1);
                assert_eq!(memory.read(1), first);
                memory.rounds().leave(1, &hand);
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        for value in [7, 8] {
            memory.write(value);
            hand.sync(0);
        }
        other.join().unwrap();
    });
}

/// A worker takes a seat that nobody had before: whoever began to look at the seats earlier finds it all the same.
#[test]
fn a_worker_takes_a_new_seat() {
    explore(3, || {
        let memory = Arc::new(Memory::new(2, 2));
        memory.seats_high.store(1, Ordering::Relaxed);
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Again };
                memory.seats_high.fetch_max(2, Ordering::SeqCst);
                memory.seats[1].state.store(slot_state::LIVE, Ordering::SeqCst);
                memory.rounds().settle(1, &hand);
                memory.read(1);
                memory.rounds().participate(1, &hand);
                memory.read(1);
                memory.rounds().leave(1, &hand);
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        for value in [7, 8] {
            memory.write(value);
            hand.sync(0);
        }
        other.join().unwrap();
    });
}

/// One worker waits for everybody; the other has a limit, and may give the round up at any moment. The one that
/// waits opens another.
#[test]
fn a_limit_ends_a_round_that_waits_for_all() {
    explore(2, || {
        let memory = Arc::new(Memory::new(2, 1));
        let other = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::OutOfTime };
                memory.rounds().participate(1, &hand);
                assert!(matches!(memory.read(1), 0 | 7));
                memory.rounds().leave(1, &hand);
            })
        };
        memory.write(7);
        let hand = Hand { memory: &memory, pause: Pause::Check };
        loop {
            memory.rounds().open(true, &hand);
            if let Some(Ended::Completed(_)) = memory.rounds().participate(0, &hand) {
                break;
            }
        }
        assert_eq!(memory.read(0), 7);
        other.join().unwrap();
    });
}

/// Two stragglers with views of their own, and more copies than have been published: planner and reader mean
/// the same copies.
#[test]
fn planners_and_stragglers_mean_the_same_copies() {
    explore(1, || {
        let memory = Memory::new(3, 3);
        let hand = Hand { memory: &memory, pause: Pause::Check };
        let leave_out = |rank: usize, arrived: u64| {
            memory.seats[rank].arrived.store(arrived, Ordering::SeqCst);
            memory.seats[rank].missed.store(u64::MAX, Ordering::SeqCst);
        };
        leave_out(1, 0);
        leave_out(2, 0);
        // The view that worker 1 holds all the time.
        let held = memory.copies().visible(0);
        memory.write(7);
        let round = hand.sync(0);
        leave_out(2, round);
        for value in [8, 9] {
            memory.write(value);
            hand.sync(0);
            assert_eq!((memory.whole(held), memory.read(1), memory.read(2)), (0, 0, 7));
        }
        assert_eq!(memory.read(0), 9);
    });
}
