//! Areas with an interval that are made while a round is planned (`protocol/due.rs`): none falls due before the times at which
//! rounds look for it.
use super::super::due::{Due, DueWord};
use super::explore;
use crate::primitive::model::Access;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

const NOW: u64 = 100;
const INTERVAL: u64 = 100;
/// When the new area falls due.
const DUE: u64 = 150;

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// A planner does not look again.
    LooksOnce,
    /// Who makes an area lowers the times before it can be found.
    LowersEarly,
    /// All but the mark orders nothing.
    Weak,
    /// A planner that has postponed something sets the time at which a round falls due.
    SetsTime,
}

/// Area 0 is there, and area 1 is made.
struct Areas {
    timed: AtomicU64,
    due_ns: AtomicU64,
    next_ns: AtomicU64,
    entered: AtomicU32,
    /// When each falls due: `AreaSlot::round.next_due_ns`.
    at: [AtomicU64; 2],
}

impl Areas {
    /// `first` says when area 0 falls due; `known` is no later.
    fn new(first: u64, known: u64) -> Areas {
        Areas {
            timed: AtomicU64::new(1),
            due_ns: AtomicU64::new(known),
            next_ns: AtomicU64::new(known),
            entered: AtomicU32::new(0),
            at: [AtomicU64::new(first), AtomicU64::new(u64::MAX)],
        }
    }

    fn due(&self) -> Due<'_> {
        Due { entered: &self.entered, next_ns: &self.next_ns }
    }

    fn word(&self) -> DueWord<'_> {
        DueWord { timed: &self.timed, due_ns: &self.due_ns }
    }

    fn look(&self, now: u64) -> (u64, u64) {
        self.word().look(now, |bit| Some((INTERVAL, self.at[bit].load(Ordering::Relaxed))))
    }

    /// `Runtime::select`, and `Runtime::postpone` for what it finds.
    fn plan(&self, mutant: Mutant) {
        let nobody = AtomicU32::new(0);
        let due = match mutant {
            Mutant::LooksOnce => Due { entered: &nobody, ..self.due() },
            _ => self.due(),
        };
        let found = due.look(|timed| if timed { self.look(NOW) } else { (0, u64::MAX) });
        if found & 1 != 0 {
            self.at[0].store(NOW + INTERVAL, Ordering::Relaxed);
        }
    }

    /// `Creation::finish`.
    fn create(&self, mutant: Mutant) {
        self.at[1].store(DUE, Ordering::Relaxed);
        if mutant == Mutant::LowersEarly {
            self.due_ns.fetch_min(DUE, Ordering::SeqCst);
            self.next_ns.fetch_min(DUE, Ordering::SeqCst);
        }
        self.due().enter(self.word(), 1, if mutant == Mutant::LowersEarly { u64::MAX } else { DUE });
    }
}

fn made_while_planned(first: u64, known: u64, mutant: Mutant) {
    explore(3, move || {
        let areas = Arc::new(Areas::new(first, known));
        if mutant == Mutant::Weak {
            areas.entered.weaken(Access::Load, Ordering::SeqCst, Ordering::Relaxed);
            areas.timed.weaken(Access::Load, Ordering::SeqCst, Ordering::Relaxed);
            for time in [&areas.due_ns, &areas.next_ns] {
                time.weaken(Access::Change, Ordering::SeqCst, Ordering::Relaxed);
            }
        }
        let creator = {
            let areas = areas.clone();
            thread::spawn(move || areas.create(mutant))
        };
        areas.plan(mutant);
        creator.join().unwrap();
        assert!(areas.look(DUE).0 & 2 != 0, "the round looks at it too late");
        assert!(areas.next_ns.load(Ordering::Relaxed) <= DUE, "a round is asked for too late");
    });
}

#[test]
fn what_is_made_while_a_round_is_planned_falls_due_in_time() {
    // It is due itself; it is not, though its word is looked through; no word is looked through.
    for (first, known) in [(NOW, NOW), (NOW + 100, NOW), (NOW + 100, NOW + 100)] {
        made_while_planned(first, known, Mutant::None);
    }
}

#[test]
#[should_panic(expected = "too late")]
fn mutant_a_planner_that_looks_once() {
    made_while_planned(NOW, NOW, Mutant::LooksOnce);
}

#[test]
#[should_panic(expected = "too late")]
fn mutant_times_that_are_lowered_early() {
    made_while_planned(NOW, NOW, Mutant::LowersEarly);
}

#[test]
#[should_panic(expected = "too late")]
fn mutant_a_words_time_that_is_lowered_early() {
    made_while_planned(NOW + 100, NOW, Mutant::LowersEarly);
}

#[test]
#[should_panic(expected = "too late")]
fn mutant_words_that_order_nothing() {
    made_while_planned(NOW, NOW, Mutant::Weak);
}

#[test]
#[should_panic(expected = "too late")]
fn mutant_a_mark_that_orders_nothing() {
    made_while_planned(NOW + 100, NOW, Mutant::Weak);
}

/// A planner has postponed what it was asked for, and a round is to try again at `at`, before or after the new area falls due.
fn made_while_postponed(known: u64, at: u64, mutant: Mutant) {
    explore(3, move || {
        let areas = Arc::new(Areas::new(NOW + INTERVAL, known));
        if known == u64::MAX {
            areas.timed.store(0, Ordering::Relaxed);
        }
        let creator = {
            let areas = areas.clone();
            thread::spawn(move || areas.create(mutant))
        };
        areas.plan(mutant);
        match mutant {
            Mutant::SetsTime => areas.next_ns.store(at, Ordering::SeqCst),
            _ => areas.due().try_again(at),
        }
        creator.join().unwrap();
        let next = areas.next_ns.load(Ordering::Relaxed);
        assert!(next <= at, "it is tried again too late");
        assert!(next <= DUE, "a round is asked for too late");
    });
}

#[test]
fn what_is_postponed_is_tried_again_in_time() {
    // There is an area with an interval, or none yet; it is tried again before the new one falls due, or after.
    for known in [NOW, u64::MAX] {
        for at in [DUE - 10, DUE + 10] {
            made_while_postponed(known, at, Mutant::None);
        }
    }
}

#[test]
#[should_panic(expected = "too late")]
fn mutant_a_planner_that_sets_the_time() {
    made_while_postponed(u64::MAX, DUE + 10, Mutant::SetsTime);
}
