//! Runs over an area that stays open (`protocol/tasks/opening.rs`): who has ended the last one reads what all wrote, until it begins
//! the next, and nobody writes meanwhile.
use super::{explore, get, put};
use crate::primitive::Ordering;
use crate::primitive::model::Access;
use crate::protocol::tasks::{Done, OpeningWords, Past, TaskWords};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// Looks at another worker before a model gives up.
const LOOKS: usize = 2;
const EPOCH: u64 = 7;
/// The runs, by numbers.
const FIRST: u64 = 6;
const SECOND: u64 = 8;

struct Opening {
    words: [TaskWords; 2],
    runs: OpeningWords,
    element: UnsafeCell<u64>,
}

/// The fault that is put in.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// The reader does not look whether all have ended.
    ReadsEarly,
    /// The writer does not wait for the other to begin.
    WritesEarly,
}

impl Opening {
    fn new() -> Opening {
        let runs = OpeningWords::new();
        runs.reset(EPOCH);
        Opening { words: [TaskWords::new(), TaskWords::new()], runs, element: UnsafeCell::new(0) }
    }

    fn begins(&self, me: usize, run: u64) -> bool {
        let past = if run == FIRST { Past::NONE } else { Past { run: FIRST, runs: 1 } };
        let begins = self.runs.begin(EPOCH, past, run, 2);
        if begins {
            self.words[me].begin(run);
        }
        begins
    }

    fn ends(&self, me: usize) {
        self.words[me].finish();
        self.runs.end(EPOCH);
    }
}

fn within_some_looks(look: impl Fn() -> bool) -> bool {
    (0..LOOKS).any(|_| {
        let found = look();
        if !found {
            thread::yield_now();
        }
        found
    })
}

/// Worker 1 writes in two runs. Worker 0 has no tasks and reads between them.
fn read_between(mutant: Mutant, weaken: impl Fn(&Opening) + Sync + Send + 'static) {
    explore(3, move || {
        let opening = Arc::new(Opening::new());
        weaken(&opening);
        let writer = {
            let opening = opening.clone();
            thread::spawn(move || {
                for run in [FIRST, SECOND] {
                    if !within_some_looks(|| opening.begins(1, run)) {
                        return;
                    }
                    let have_begun = || opening.words[0].done_in(run) != Done::NotBegun;
                    if mutant != Mutant::WritesEarly && !within_some_looks(have_begun) {
                        return;
                    }
                    put(&opening.element, run);
                    opening.ends(1);
                }
            })
        };
        assert!(opening.begins(0, FIRST));
        opening.ends(0);
        let read = (mutant == Mutant::ReadsEarly
            || within_some_looks(|| opening.runs.have_ended(EPOCH, 1, 2)))
        .then(|| get(&opening.element));
        if opening.begins(0, SECOND) {
            opening.ends(0);
        }
        writer.join().unwrap();
        assert!(read.is_none_or(|read| read == FIRST), "another run's");
    });
}

#[test]
fn an_area_is_read_between_two_runs() {
    read_between(Mutant::None, |_| {});
}

#[test]
#[should_panic]
fn mutant_an_area_that_is_read_before_all_have_ended() {
    read_between(Mutant::ReadsEarly, |_| {});
}

#[test]
#[should_panic]
fn mutant_a_task_that_runs_before_the_reader_has_begun() {
    read_between(Mutant::WritesEarly, |_| {});
}

#[test]
#[should_panic]
fn mutant_a_run_that_ends_weakly() {
    read_between(Mutant::None, |opening| {
        opening.runs.weaken_ended(Access::Change, Ordering::Release, Ordering::Relaxed);
    });
}

#[test]
#[should_panic]
fn mutant_a_run_that_is_found_ended_weakly() {
    read_between(Mutant::None, |opening| {
        opening.runs.weaken_ended(Access::Load, Ordering::Acquire, Ordering::Relaxed);
    });
}

#[test]
#[should_panic]
fn mutant_a_reader_that_begins_the_next_run_weakly() {
    read_between(Mutant::None, |opening| {
        opening.words[0].run.weaken(Access::Store, Ordering::Release, Ordering::Relaxed);
    });
}

#[test]
#[should_panic]
fn mutant_a_writer_that_finds_the_reader_in_the_run_weakly() {
    read_between(Mutant::None, |opening| {
        opening.words[0].run.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed);
    });
}

/// Of three workers, one has tasks in the first run. The others have none; one of them would begin the next at once.
fn begins_the_next(begins_early: bool) {
    explore(3, move || {
        let opening = Arc::new(Opening::new());
        (0..3).for_each(|_| assert!(opening.runs.begin(EPOCH, Past::NONE, FIRST, 3)));
        let writer = {
            let opening = opening.clone();
            thread::spawn(move || {
                put(&opening.element, FIRST);
                opening.runs.end(EPOCH);
            })
        };
        opening.runs.end(EPOCH);
        if begins_early || opening.runs.begin(EPOCH, Past { run: FIRST, runs: 1 }, SECOND, 3) {
            opening.runs.end(EPOCH);
        }
        // The third.
        opening.runs.end(EPOCH);
        let read = opening.runs.have_ended(EPOCH, 1, 3).then(|| get(&opening.element));
        writer.join().unwrap();
        assert!(read.is_none_or(|read| read == FIRST), "read before it was written");
    });
}

#[test]
fn a_run_begins_when_all_have_ended_the_last_one() {
    begins_the_next(false);
}

#[test]
#[should_panic]
fn mutant_a_run_that_begins_before_that() {
    begins_the_next(true);
}

/// A worker that ends a run after the area was opened anew does not count there.
#[test]
fn an_end_of_another_epoch_does_not_count() {
    explore(3, || {
        let runs = Arc::new(OpeningWords::new());
        runs.reset(EPOCH);
        assert!(runs.begin(EPOCH, Past::NONE, FIRST, 1));
        let late = {
            let runs = runs.clone();
            thread::spawn(move || runs.end(EPOCH))
        };
        runs.reset(EPOCH + 2);
        assert!(runs.begin(EPOCH + 2, Past::NONE, SECOND, 1));
        assert!(!runs.have_ended(EPOCH + 2, 1, 1));
        late.join().unwrap();
        assert!(!runs.have_ended(EPOCH + 2, 1, 1));
    });
}
