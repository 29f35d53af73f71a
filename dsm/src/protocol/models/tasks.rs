//! Tasks (`protocol/tasks/words.rs`): who finds that another has done a task of its run sees what the task wrote, and does not
//! count tasks of an earlier run; who sleeps until another has done more is woken.
use super::{explore, get, put};
use crate::primitive::model::{self, Access};
use crate::primitive::{AtomicU32, Ordering};
use crate::protocol::tasks::{Done, TaskWords};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Looks at another worker before a model gives up.
const LOOKS: usize = 3;

struct Pair {
    words: [TaskWords; 2],
    /// An element that tasks of both write.
    element: UnsafeCell<u64>,
}

impl Pair {
    fn new() -> Arc<Pair> {
        Arc::new(Pair { words: [TaskWords::new(), TaskWords::new()], element: UnsafeCell::new(0) })
    }

    /// Whether worker `other` has done `count` tasks of the run, within a few looks.
    fn waits_for(&self, other: usize, run: u64, count: u64) -> bool {
        (0..LOOKS).any(|_| {
            let done = match self.words[other].done_in(run) {
                Done::Some(done) => done >= count,
                found => found == Done::All,
            };
            if !done {
                thread::yield_now();
            }
            done
        })
    }
}

/// Two workers write one element by turns: worker 0, then 1, then 0 again.
fn by_turns(weaken: impl Fn(&Pair) + Sync + Send + 'static) {
    explore(3, move || {
        let pair = Pair::new();
        weaken(&pair);
        let other = {
            let pair = pair.clone();
            thread::spawn(move || {
                pair.words[1].begin(6);
                if pair.waits_for(0, 6, 1) {
                    assert_eq!(get(&pair.element), 1);
                    put(&pair.element, 2);
                    pair.words[1].advance(true);
                }
            })
        };
        pair.words[0].begin(6);
        put(&pair.element, 1);
        pair.words[0].advance(false);
        if pair.waits_for(1, 6, 1) {
            put(&pair.element, get(&pair.element) + 1);
            pair.words[0].advance(true);
        }
        other.join().unwrap();
        assert!([1, 2, 3].contains(&get(&pair.element)));
    });
}

#[test]
fn a_task_sees_what_those_before_it_wrote() {
    by_turns(|_| {});
}

#[test]
#[should_panic]
fn mutant_a_task_that_is_done_weakly() {
    by_turns(|pair| pair.words[0].done.weaken(Access::Store, Ordering::Release, Ordering::Relaxed));
}

#[test]
#[should_panic]
fn mutant_a_task_that_is_found_done_weakly() {
    by_turns(|pair| pair.words[0].done.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

/// A worker has done two tasks of a run and begins another: nobody finds it to have done any of that.
fn begins_anew(weaken: impl Fn(&TaskWords) + Sync + Send + 'static) {
    explore(3, move || {
        let words = Arc::new(TaskWords::new());
        words.begin(6);
        words.advance(false);
        words.advance(true);
        weaken(&words);
        let other = {
            let words = words.clone();
            thread::spawn(move || words.done_in(8))
        };
        words.begin(8);
        assert_ne!(other.join().unwrap(), Done::Some(2), "tasks of the run before");
    });
}

#[test]
fn tasks_of_another_run_do_not_count() {
    begins_anew(|_| {});
}

#[test]
#[should_panic(expected = "of the run before")]
fn mutant_a_run_that_begins_weakly() {
    begins_anew(|words| words.run.weaken(Access::Store, Ordering::Release, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "of the run before")]
fn mutant_a_run_that_is_read_weakly() {
    begins_anew(|words| words.run.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

/// A worker gives up a run before it has done the second of its tasks, and does two of another: nobody takes these for the
/// first two of the run that was given up.
fn gives_up(weaken: impl Fn(&TaskWords) + Sync + Send + 'static) {
    explore(3, move || {
        let words = Arc::new(TaskWords::new());
        words.begin(6);
        words.advance(false);
        weaken(&words);
        let other = {
            let words = words.clone();
            thread::spawn(move || words.done_in(6))
        };
        words.begin(8);
        words.advance(false);
        words.advance(false);
        let found = other.join().unwrap();
        assert!(
            matches!(found, Done::Some(0 | 1) | Done::Left { done: 0 | 1, .. } | Done::NotBegun),
            "tasks of the run after: {found:?}"
        );
        assert_eq!(words.done_in(6), Done::Left { done: 0, because_of: None });
    });
}

#[test]
fn tasks_of_a_later_run_do_not_count() {
    gives_up(|_| {});
}

#[test]
#[should_panic(expected = "of the run after")]
fn mutant_tasks_of_a_later_run_that_are_found_weakly() {
    gives_up(|words| words.done.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

/// A worker leaves a run after the first of its tasks, and may leave another after that: who finds so sees what the task wrote, how
/// many there were, and because of whom it has left.
fn leaves(again: bool, weaken: impl Fn(&Pair) + Sync + Send + 'static) {
    explore(3, move || {
        let pair = Pair::new();
        weaken(&pair);
        let other = {
            let pair = pair.clone();
            thread::spawn(move || {
                let found = pair.words[0].done_in(6);
                match found {
                    Done::Some(1) | Done::Left { done: 1, because_of: Some(4) } => {
                        assert_eq!(get(&pair.element), 1);
                    }
                    Done::Some(0) | Done::NotBegun => {}
                    Done::Left { done: 0, because_of: None | Some(4) } => {
                        assert!(again, "a task that was done is not counted");
                    }
                    other => panic!("tasks of the run after: {other:?}"),
                }
            })
        };
        pair.words[0].begin(6);
        put(&pair.element, 1);
        pair.words[0].advance(false);
        pair.words[0].leave(6, Some(4));
        if again {
            pair.words[0].begin(8);
            pair.words[0].advance(false);
            pair.words[0].advance(false);
            pair.words[0].leave(8, Some(5));
        }
        other.join().unwrap();
        let left = Done::Left { done: 1, because_of: Some(4) };
        assert_eq!(pair.words[0].done_in(6) == left, !again);
    });
}

#[test]
fn who_leaves_has_done_what_it_has_done() {
    leaves(false, |_| {});
    leaves(true, |_| {});
}

#[test]
#[should_panic(expected = "not counted")]
fn mutant_a_run_that_is_left_weakly() {
    leaves(false, |pair| pair.words[0].left.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "of the run after")]
fn mutant_another_run_that_is_read_weakly() {
    leaves(true, |pair| pair.words[0].run.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

#[test]
#[should_panic]
fn mutant_tasks_of_who_has_left_that_are_found_weakly() {
    leaves(true, |pair| pair.words[0].done.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "of the run after")]
fn mutant_a_reason_that_is_found_weakly() {
    leaves(true, |pair| pair.words[0].blamed.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

/// A worker that has begun another run has finished this one: who finds that sees what its tasks wrote.
fn finishes(weaken: impl Fn(&Pair) + Sync + Send + 'static) {
    explore(3, move || {
        let pair = Pair::new();
        pair.words[0].begin(6);
        weaken(&pair);
        let other = {
            let pair = pair.clone();
            thread::spawn(move || {
                if pair.waits_for(0, 6, 1) {
                    assert_eq!(get(&pair.element), 1);
                }
            })
        };
        put(&pair.element, 1);
        pair.words[0].advance(true);
        pair.words[0].begin(8);
        other.join().unwrap();
        assert_eq!(pair.words[0].done_in(6), Done::All);
    });
}

#[test]
fn who_has_finished_a_run_may_begin_another() {
    finishes(|_| {});
}

/// One worker sleeps until another has done a task, or begun its run.
fn sleeps(begins: bool, with_fences: bool, weaken: impl Fn(&TaskWords) + Sync + Send + 'static) {
    // Of all threads of the model.
    let _left_out = (!with_fences).then(|| model::without_fences(Ordering::SeqCst));
    explore(3, move || {
        let words = Arc::new(TaskWords::new());
        // 1: the sleeper was woken.
        let woken = Arc::new(AtomicU32::new(0));
        if !begins {
            words.begin(6);
        }
        weaken(&words);
        let other = {
            let (words, woken) = (words.clone(), woken.clone());
            thread::spawn(move || {
                let wakes = if begins { words.begin(6) } else { words.advance(true) };
                woken.store(u32::from(wakes), Ordering::Relaxed);
            })
        };
        let (word, seen) = words.expect_sleep();
        let found = match words.done_in(6) {
            Done::Some(done) => begins || done > 0,
            found => found == Done::All,
        };
        // The kernel compares, and reads the newest value.
        let asleep = !found && word.load(Ordering::Relaxed) == seen;
        other.join().unwrap();
        let changed = word.load(Ordering::Relaxed) != seen;
        assert!(!asleep || !changed || woken.load(Ordering::Relaxed) == 1, "asleep, and nobody wakes it");
        assert!(found || changed, "asleep, and nothing will change");
        words.end_sleep();
    });
}

#[test]
fn who_sleeps_is_woken() {
    sleeps(false, true, |_| {});
    sleeps(true, true, |_| {});
}

#[test]
#[should_panic(expected = "nobody wakes it")]
fn mutant_a_look_for_sleepers_without_a_fence() {
    sleeps(false, false, |_| {});
}

#[test]
#[should_panic(expected = "nothing will change")]
fn mutant_a_sleep_on_a_weak_look() {
    sleeps(true, true, |words| words.done.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}
