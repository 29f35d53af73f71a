//! Inboxes (`protocol/tasks/inbox.rs`): of several workers that find something to be put in place, each puts there what is not, one at
//! a time, and who finds the sender's task done sees what that wrote; also if one dies meanwhile.
use super::{explore, get, put};
use crate::primitive::Ordering;
use crate::primitive::model::Access;
use crate::protocol::tasks::{Done, Inbox, TaskWords};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

const RUN: u64 = 6;
/// The sender's number for it, and where its stream begins.
const SENDERS_RUN: u64 = 9;
const BASE: u64 = 100;

struct Seat {
    /// How much comes before the sender's first task.
    initial: u64,
    words: TaskWords,
    inbox: Inbox,
    elements: [UnsafeCell<u64>; 2],
}

impl Seat {
    /// Worker `me` has `sent` of two elements in its version of what has come, and puts them in place; it may die after the first
    /// that it writes.
    fn take_in(&self, me: u32, sent: u64, dies: bool, is_gone: impl Fn(u32, u32) -> bool) {
        let Some(inbox) = self.inbox.open((me, 1), is_gone) else { return };
        let placed = inbox.placed(SENDERS_RUN, BASE).unwrap() - BASE;
        for at in placed..sent {
            put(&self.elements[at as usize], at + 1);
            if dies {
                std::mem::forget(inbox);
                return;
            }
        }
        inbox.set_placed(BASE + placed.max(sent));
        if sent >= self.initial {
            self.words.begin_for(RUN);
            self.words.catch_up(RUN, sent, sent == 2);
        }
    }

    fn check(&self) {
        let done = match self.words.done_in(RUN) {
            Done::Some(done) => done,
            Done::All => 2,
            Done::NotBegun => 0,
            found => panic!("{found:?}"),
        };
        for at in 0..done {
            assert_eq!(get(&self.elements[at as usize]), at + 1);
        }
    }
}

fn two_take_in(initial: u64, weaken: impl Fn(&Seat) + Sync + Send + 'static) {
    explore(3, move || {
        let elements = [UnsafeCell::new(0), UnsafeCell::new(0)];
        let words = TaskWords::new();
        // Of a run before.
        words.begin(4);
        words.advance(true);
        let seat = Arc::new(Seat { initial, words, inbox: Inbox::new(), elements });
        weaken(&seat);
        let others: Vec<_> = [1, 2]
            .map(|sent| {
                let seat = seat.clone();
                thread::spawn(move || {
                    seat.take_in(sent as u32, sent, false, |_, _| false);
                    seat.check();
                })
            })
            .into();
        seat.check();
        others.into_iter().for_each(|other| other.join().unwrap());
        // Whoever finds it taken looks again.
        seat.take_in(0, 2, false, |_, _| false);
        seat.check();
        assert_eq!(seat.words.done_in(RUN), Done::Some(2));
        assert_eq!(seat.inbox.placed(), BASE + 2);
    });
}

#[test]
fn what_two_find_is_put_in_place_once() {
    two_take_in(0, |_| {});
    two_take_in(2, |_| {});
}

#[test]
#[should_panic]
fn mutant_an_inbox_that_is_taken_weakly() {
    two_take_in(2, |seat| seat.inbox.weaken(Access::Change, Ordering::Acquire, Ordering::Relaxed));
}

#[test]
#[should_panic]
fn mutant_an_inbox_that_is_given_back_weakly() {
    two_take_in(2, |seat| seat.inbox.weaken(Access::Store, Ordering::Release, Ordering::Relaxed));
}

#[test]
fn who_dies_with_an_inbox_has_put_nothing_in_place() {
    explore(3, || {
        let elements = [UnsafeCell::new(0), UnsafeCell::new(0)];
        let seat = Arc::new(Seat { initial: 0, words: TaskWords::new(), inbox: Inbox::new(), elements });
        let other = {
            let seat = seat.clone();
            thread::spawn(move || seat.take_in(1, 2, true, |_, _| false))
        };
        // It may have it, and lives.
        seat.take_in(0, 1, false, |_, _| false);
        seat.check();
        other.join().unwrap();
        // Its end is known, and that it was the one before whoever has the rank now.
        seat.take_in(0, 2, false, |rank, incarnation| (rank, incarnation) == (1, 1));
        seat.check();
        assert_eq!(seat.words.done_in(RUN), Done::Some(2));
    });
}
