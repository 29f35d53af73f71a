//! Opening: several workers change an open area at once; after its owner has taken it back, nobody does any more, and the
//! owner finds what everybody wrote.
//!
//! The elements that all change are relaxed atomics, as they are in `api/area/cells.rs`; at the end the owner reads them
//! without atomics (`unsync_load`), which loom refuses if a store might still come. Each worker has a cell of
//! its own besides: loom refuses any access to it that is not ordered with another.
use super::super::round::Pause;
use super::{Hand, Memory, Phase, RoundWord, explore, get, put};
use crate::primitive::model::Access;
use crate::primitive::{AtomicU32, Ordering};
use crate::protocol::ownership;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

/// The mistake of an owner when it closes the area.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Reads without asking who may still be at work.
    DoesNotWait,
    /// Reads the round word before it closes the area.
    LooksEarly,
    /// Reads the round word with acquire only.
    LooksWeakly,
}

struct Opened {
    memory: Memory,
    /// An element that all change.
    shared: AtomicU64,
    /// The words that each worker changes alone.
    own: Vec<UnsafeCell<u64>>,
}

impl Opened {
    /// `Owned::open`.
    fn new(workers: usize) -> Opened {
        let memory = Memory::new(workers, 1);
        ownership::open(&memory.ownership, &AtomicU32::new(0), 0, 1);
        let own = (0..workers).map(|_| UnsafeCell::new(0)).collect();
        Opened { memory, shared: AtomicU64::new(0), own }
    }

    /// `Area::cells`, and what is done with them until the next synchronization point. How often that was allowed.
    fn change(&self, me: u32) -> u64 {
        if !ownership::load_to_read(&self.memory.ownership).is_open() {
            return 0;
        }
        let cell = &self.own[me as usize];
        put(cell, get(cell) + 1);
        // As `RelaxedView::add`: of two changes one may be lost.
        self.shared.store(self.shared.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        1
    }

    /// Changes, `times` times with a synchronization point after each.
    fn work(&self, me: u32, times: usize, hand: &Hand<'_>) -> u64 {
        let mut changes = 0;
        for _ in 0..times {
            changes += self.change(me);
            self.memory.rounds().participate(me, hand);
        }
        self.memory.rounds().leave(me, hand);
        changes
    }

    /// `Opened::close`; returns the round that `Recalled::finish` waits for.
    fn close(&self, mutant: Mutant) -> u64 {
        let (rounds, word) = (self.memory.rounds(), &self.memory.ownership);
        let early = (mutant == Mutant::LooksEarly).then(|| rounds.load_total().round());
        if mutant == Mutant::LooksWeakly {
            self.memory.word.weaken(Access::Load, Ordering::SeqCst, Ordering::Acquire);
        }
        let round = super::lock::take_back(word, &rounds, (0, 1), ownership::close).unwrap();
        early.unwrap_or(round)
    }

    /// The owner's look at all of the area: the element of all, and how often each worker changed its own.
    fn read(&self) -> (u64, Vec<u64>) {
        // SAFETY: loom stops the model if somebody stores meanwhile, or might have.
        let shared = unsafe { self.shared.unsync_load() };
        (shared, self.own.iter().map(get).collect())
    }
}

/// The owner closes the area while another changes it, and changes it itself until then.
fn closed(pause: Pause, mutant: Mutant) {
    explore(3, move || {
        let opened = Arc::new(Opened::new(2));
        let worker = {
            let opened = opened.clone();
            thread::spawn(move || opened.work(1, 2, &Hand { memory: &opened.memory, pause }))
        };
        let hand = Hand { memory: &opened.memory, pause };
        let own_changes = opened.change(0);
        // A round that the other may be inside of when the area is closed.
        opened.memory.rounds().open(false, &hand);
        let round = opened.close(mutant);
        while mutant != Mutant::DoesNotWait && opened.memory.rounds().late_readers(0, round).next().is_some()
        {
            hand.sync(0);
            thread::yield_now();
        }
        assert!(!ownership::load_to_read(&opened.memory.ownership).is_open());
        let (shared, own) = opened.read();
        opened.memory.rounds().leave(0, &hand);
        let changes = [own_changes, worker.join().unwrap()];
        assert_eq!(own, changes, "the owner does not see what was written");
        assert!((1..=changes.iter().sum()).contains(&shared), "{shared} of {changes:?}");
    });
}

#[test]
fn who_closes_an_area_has_what_another_wrote() {
    closed(Pause::Check, Mutant::None);
}

/// Two workers change the area at once, and arrive in the round that is open.
#[test]
fn who_closes_an_area_has_what_two_others_wrote() {
    explore(3, || {
        let opened = Arc::new(Opened::new(3));
        opened.memory.word.store(RoundWord::new(1, Phase::Open).0, Ordering::SeqCst);
        let workers: Vec<_> = (1..=2)
            .map(|me| {
                let opened = opened.clone();
                thread::spawn(move || {
                    let changes = opened.change(me);
                    opened.memory.seats[me as usize].arrived.store(1, Ordering::SeqCst);
                    changes
                })
            })
            .collect();
        let mut changes = vec![opened.change(0)];
        let round = opened.close(Mutant::None);
        let nobody_is_late = opened.memory.rounds().late_readers(0, round).next().is_none();
        let found = nobody_is_late.then(|| opened.read());
        changes.extend(workers.into_iter().map(|worker| worker.join().unwrap()));
        if let Some((shared, own)) = found {
            assert_eq!(own, changes, "the owner does not see what was written");
            assert!((1..=changes.iter().sum()).contains(&shared), "{shared} of {changes:?}");
        }
    });
}

#[test]
fn who_closes_an_area_waits_for_a_straggler() {
    closed(Pause::OutOfPatience, Mutant::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_does_not_wait() {
    closed(Pause::Check, Mutant::DoesNotWait);
}

/// A worker arrives in round 1, which is given up, and goes on. An owner that finds it late does not touch the area.
fn closed_in_an_abandoned_round(mutant: Mutant) {
    explore(4, move || {
        let opened = Arc::new(Opened::new(2));
        opened.memory.word.store(RoundWord::new(1, Phase::Open).0, Ordering::SeqCst);
        let worker = {
            let opened = opened.clone();
            thread::spawn(move || {
                let memory = &opened.memory;
                memory.seats[1].arrived.store(1, Ordering::SeqCst);
                memory.word.store(RoundWord::new(2, Phase::Idle).0, Ordering::SeqCst);
                opened.change(1)
            })
        };
        let round = opened.close(mutant);
        if opened.memory.rounds().late_readers(0, round).next().is_none() {
            opened.read();
        }
        worker.join().unwrap();
    });
}

#[test]
fn who_closes_an_area_waits_for_who_was_in_an_abandoned_round() {
    closed_in_an_abandoned_round(Mutant::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_looks_at_the_round_before_it_closes() {
    closed_in_an_abandoned_round(Mutant::LooksEarly);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_looks_at_the_round_weakly() {
    closed_in_an_abandoned_round(Mutant::LooksWeakly);
}
