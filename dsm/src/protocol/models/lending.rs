//! Lending: nobody writes an area in place while somebody may hold a view of it.
//!
//! Owner, readers and claimer run the words' and the rounds' own code; `Memory::writer` is what they share. Each
//! model has mutants, in which one side leaves out or weakens one step, and which loom must refuse.
use super::super::round::{Pause, slot_state};
use super::{Hand, Memory, Phase, RoundWord, explore, get, lock, put};
use crate::primitive::model::Access;
use crate::primitive::{AtomicU32, Ordering, fault_point};
use crate::protocol::ownership;
use loom::sync::Arc;
use loom::thread;

/// The mistake of an owner or a claimer.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Writes without asking for readers.
    DoesNotWait,
    /// Reads the round word before it recalls the area.
    LooksEarly,
    /// Reads the round word with acquire only.
    LooksWeakly,
    /// Asks whether the area is lent, not whether it ever was.
    ForgetsOldLoans,
    /// Recalls the area with acquire and release only.
    RecallsWeakly,
    /// Lends it without release.
    LendsWeakly,
}

/// Lent memory: the area's bytes are `writer[0]` of `memory`.
struct Lent {
    memory: Memory,
    /// `OwnLine::lent`.
    ever: AtomicU32,
}

impl Lent {
    fn new(workers: usize) -> Lent {
        Lent { memory: Memory::new(workers, 1), ever: AtomicU32::new(0) }
    }

    fn mutated(workers: usize, mutant: Mutant) -> Lent {
        let lent = Lent::new(workers);
        let ownership = &lent.memory.ownership;
        match mutant {
            Mutant::LooksWeakly => lent.memory.word.weaken(Access::Load, Ordering::SeqCst, Ordering::Acquire),
            Mutant::RecallsWeakly => ownership.weaken(Access::Change, Ordering::SeqCst, Ordering::AcqRel),
            Mutant::LendsWeakly => ownership.weaken(Access::Change, Ordering::AcqRel, Ordering::Acquire),
            _ => {}
        }
        lent
    }

    /// `Owned::lend`.
    fn lend(&self, value: u64) {
        put(&self.memory.writer[0], value);
        ownership::lend(&self.memory.ownership, &self.ever, 0, 1);
    }

    /// `Area::read_lent` and the use of the view, `times` times with a synchronization point after each.
    fn read(&self, me: u32, times: usize, hand: &Hand<'_>) {
        for _ in 0..times {
            if ownership::load_to_read(&self.memory.ownership).is_lent() {
                assert_eq!(get(&self.memory.writer[0]), 7);
            }
            self.memory.rounds().participate(me, hand);
        }
        self.memory.rounds().leave(me, hand);
    }

    /// `Lent::recall`; returns the round that `Recalled::finish` waits for.
    fn recall(&self, mutant: Mutant) -> u64 {
        let (rounds, word) = (self.memory.rounds(), &self.memory.ownership);
        let early = (mutant == Mutant::LooksEarly).then(|| rounds.load_total().round());
        let round = lock::take_back(word, &rounds, (0, 1), ownership::recall).unwrap();
        early.unwrap_or(round)
    }

    /// `Lent::recall`, `Recalled::finish`, and a write.
    fn recall_and_write(&self, mutant: Mutant, hand: &Hand<'_>) {
        let round = self.recall(mutant);
        self.wait_for_readers(0, round, mutant, hand);
        put(&self.memory.writer[0], 8);
        assert!(!ownership::load_to_read(&self.memory.ownership).is_lent());
    }

    /// `Worker::wait_for_readers`.
    fn wait_for_readers(&self, me: u32, round: u64, mutant: Mutant, hand: &Hand<'_>) {
        let rounds = self.memory.rounds();
        while mutant != Mutant::DoesNotWait && rounds.late_readers(me, round).next().is_some() {
            hand.sync(me);
            thread::yield_now();
        }
    }

    /// `Worker::claim`, and a write; false if the owner is not dead.
    fn claim(&self, me: u32, mutant: Mutant, hand: &Hand<'_>) -> bool {
        let memory = &self.memory;
        let is_gone = |seen: ownership::OwnershipWord| {
            seen.holder().is_none_or(|holder| super::Work::is_dead(hand, holder)).then_some(()).ok_or(())
        };
        let Ok(seen) = lock::seize_from(&memory.ownership, me, is_gone) else { return false };
        lock::wait_past(&memory.lock, &memory.rounds(), me, hand);
        let until = match mutant {
            Mutant::ForgetsOldLoans => seen.is_lent().then(|| memory.rounds().load_total().round()),
            _ => lock::views_until(&self.ever, &memory.rounds()),
        };
        if let Some(round) = until {
            self.wait_for_readers(me, round, mutant, hand);
        }
        put(&memory.writer[0], 9);
        true
    }
}

/// The owner recalls while a reader reads; rounds are given up if `pause` says so.
fn recalled(pause: Pause, mutant: Mutant) {
    explore(3, move || {
        let lent = Arc::new(Lent::new(2));
        lent.lend(7);
        let reader = {
            let lent = lent.clone();
            thread::spawn(move || lent.read(1, 2, &Hand { memory: &lent.memory, pause }))
        };
        let hand = Hand { memory: &lent.memory, pause };
        // A round that the reader may be inside of when the area is recalled.
        lent.memory.rounds().open(false, &hand);
        lent.recall_and_write(mutant, &hand);
        lent.memory.rounds().leave(0, &hand);
        reader.join().unwrap();
    });
}

#[test]
fn a_recalled_area_is_not_written_under_a_reader() {
    recalled(Pause::Check, Mutant::None);
}

#[test]
fn a_recalled_area_is_not_written_under_a_straggler() {
    recalled(Pause::OutOfPatience, Mutant::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_does_not_wait() {
    recalled(Pause::Check, Mutant::DoesNotWait);
}

/// A reader arrives in round 1, which is given up, and reads again. An owner that finds it late does not write.
fn recalled_in_an_abandoned_round(mutant: Mutant) {
    explore(4, move || {
        let lent = Arc::new(Lent::mutated(2, mutant));
        lent.lend(7);
        lent.memory.word.store(RoundWord::new(1, Phase::Open).0, Ordering::SeqCst);
        let reader = {
            let lent = lent.clone();
            thread::spawn(move || {
                let memory = &lent.memory;
                memory.seats[1].arrived.store(1, Ordering::SeqCst);
                memory.word.store(RoundWord::new(2, Phase::Idle).0, Ordering::SeqCst);
                if ownership::load_to_read(&memory.ownership).is_lent() {
                    assert_eq!(get(&memory.writer[0]), 7);
                }
            })
        };
        let round = lent.recall(mutant);
        if lent.memory.rounds().late_readers(0, round).next().is_none() {
            put(&lent.memory.writer[0], 8);
        }
        reader.join().unwrap();
    });
}

#[test]
fn a_recalled_area_is_not_written_under_who_was_in_an_abandoned_round() {
    recalled_in_an_abandoned_round(Mutant::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_looks_at_the_round_before_it_recalls() {
    recalled_in_an_abandoned_round(Mutant::LooksEarly);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_looks_at_the_round_weakly() {
    recalled_in_an_abandoned_round(Mutant::LooksWeakly);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_recalls_weakly() {
    recalled_in_an_abandoned_round(Mutant::RecallsWeakly);
}

/// A reader that comes while the area is lent sees nothing yet, or what the owner wrote before.
fn lent_while_read(mutant: Mutant) {
    explore(3, move || {
        let lent = Arc::new(Lent::mutated(2, mutant));
        let reader = {
            let lent = lent.clone();
            thread::spawn(move || lent.read(1, 1, &Hand { memory: &lent.memory, pause: Pause::Check }))
        };
        lent.lend(7);
        reader.join().unwrap();
    });
}

#[test]
fn who_finds_an_area_lent_sees_what_its_owner_wrote() {
    lent_while_read(Mutant::None);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_owner_that_lends_weakly() {
    lent_while_read(Mutant::LendsWeakly);
}

/// A reader that joins while the area is recalled reads it before, or finds it recalled.
#[test]
fn a_recalled_area_is_not_written_under_a_joiner() {
    explore(3, || {
        let lent = Arc::new(Lent::new(2));
        lent.memory.seats[1].state.store(slot_state::JOINING, Ordering::SeqCst);
        lent.memory.seats_high.store(1, Ordering::Relaxed);
        lent.lend(7);
        let reader = {
            let lent = lent.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &lent.memory, pause: Pause::Check };
                lent.memory.seats_high.fetch_max(2, Ordering::SeqCst);
                lent.memory.seats[1].state.store(slot_state::LIVE, Ordering::SeqCst);
                lent.memory.rounds().settle(1, &hand);
                lent.read(1, 1, &hand);
            })
        };
        let hand = Hand { memory: &lent.memory, pause: Pause::Check };
        lent.recall_and_write(Mutant::None, &hand);
        lent.memory.rounds().leave(0, &hand);
        reader.join().unwrap();
    });
}

/// The owner recalls, waits and writes, and dies after `steps` fault points or lets go at the end; then another
/// claims the area and writes it. A third reads all the while.
fn left_by_the_dead(steps: u32, mutant: Mutant) {
    explore(3, move || {
        let lent = Arc::new(Lent::new(3));
        lent.lend(7);
        // It joins when the owner is gone.
        lent.memory.seats[2].state.store(slot_state::FREE, Ordering::SeqCst);
        let reader = {
            let lent = lent.clone();
            thread::spawn(move || lent.read(1, 1, &Hand { memory: &lent.memory, pause: Pause::Check }))
        };
        let hand = Hand { memory: &lent.memory, pause: Pause::Check };
        lent.memory.mortal(0, steps, || {
            fault_point();
            lent.recall_and_write(Mutant::None, &hand);
            ownership::let_go(&lent.memory.ownership, 0, 2);
            lent.memory.rounds().leave(0, &hand);
        });
        lent.memory.seats[2].state.store(slot_state::LIVE, Ordering::SeqCst);
        lent.memory.rounds().settle(2, &hand);
        assert!(lent.claim(2, mutant, &hand));
        lent.memory.rounds().leave(2, &hand);
        reader.join().unwrap();
    });
}

#[test]
fn what_a_dead_owner_lent_is_not_written_under_a_reader() {
    for steps in 0..8 {
        left_by_the_dead(steps, Mutant::None);
    }
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_claimer_that_does_not_wait() {
    left_by_the_dead(0, Mutant::DoesNotWait);
}

/// The owner dies between its recall and the end of its wait.
#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_claimer_that_asks_only_whether_the_area_is_lent() {
    left_by_the_dead(1, Mutant::ForgetsOldLoans);
}
