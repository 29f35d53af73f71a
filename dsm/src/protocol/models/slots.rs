//! Slots that change hands (`round/burial.rs`): a dead worker's goes to a new one, while others are in a round in which
//! claims and the actor word may name the dead one.
use super::super::claim;
use super::super::round::{Found, Life, Pause, Seat, slot_state};
use super::{Hand, Memory, Phase, RoundWord, explore, lives};
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point};
use loom::sync::Arc;
use loom::thread;

/// The mistake of a reaper.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Frees the slot in the middle of a round.
    DoesNotWait,
}

/// The word of a worker that is alive, as the mutex that it holds for life.
struct Alive<'w>(&'w AtomicU64);

impl Life for Alive<'_> {
    fn try_lock(&self) -> Option<bool> {
        self.0.compare_exchange(0, 1, Ordering::AcqRel, Ordering::Relaxed).is_ok().then_some(true)
    }

    fn unlock(&self) {
        self.0.store(0, Ordering::Release);
    }
}

/// Worker 1 has claimed a chunk of round 2 and died; worker 0, the owner, is in the round. A new worker wants the slot, frees it,
/// and joins. The round ends, and the new worker takes nothing for its own that was the dead one's.
fn reused(mutant: Mutant) {
    explore(2, move || {
        let memory = Memory::new(2, 1);
        memory.write(7);
        memory.word.store(RoundWord::new(2, Phase::Copy).0, Ordering::SeqCst);
        memory.actor.store(super::super::word::Actor::new(2, 0).at_work().0, Ordering::SeqCst);
        memory.seats.iter().for_each(|seat| seat.arrived.store(2, Ordering::SeqCst));
        let hand = Hand { memory: &memory, pause: Pause::Check };
        assert!(super::Work::plan(&hand, 2, 0) && claim::take(&memory.claims[0], 2, 1));
        memory.alive[1].store(0, Ordering::SeqCst);
        let memory = Arc::new(memory);
        let joiner = {
            let memory = memory.clone();
            thread::spawn(move || {
                let hand = Hand { memory: &memory, pause: Pause::Check };
                let (rounds, seat) = (memory.rounds(), &memory.seats[1]);
                while !memory.begin_reaping() {
                    thread::yield_now();
                }
                assert!(super::Work::is_dead(&hand, 1));
                match mutant {
                    Mutant::None => rounds.bury(&[1], 2, &hand, |_| {}, thread::yield_now),
                    Mutant::DoesNotWait => seat.set_state(slot_state::FREE),
                }
                memory.end_reaping();
                // `try_slot` and `Worker::join`.
                assert!(rounds.take_seat(1, &Alive(&memory.alive[1]), 0, || {}));
                seat.set_state(slot_state::LIVE);
                rounds.settle(1, &hand);
                assert_eq!(memory.read(1), 7);
                rounds.leave(1, &hand);
            })
        };
        let hand = Hand { memory: &memory, pause: Pause::Check };
        memory.rounds().drive(0, 2, &hand);
        assert_eq!(memory.read(0), 7);
        memory.rounds().leave(0, &hand);
        joiner.join().unwrap();
    });
}

#[test]
fn a_slot_changes_hands_between_rounds() {
    reused(Mutant::None);
}

#[test]
#[should_panic(expected = "stand still")]
fn mutant_a_slot_that_changes_hands_in_a_round() {
    reused(Mutant::DoesNotWait);
}

/// How a worker counts the seats that are taken.
type Count = fn(&Memory, &AtomicU64);

/// One joins, one leaves, and the one that leaves dies before it counts if `steps` says so; then the joiner's is the last count.
fn counted(steps: u32, recount: Count) {
    explore(3, move || {
        let memory = Arc::new(Memory::new(3, 1));
        let count = Arc::new(AtomicU64::new(2));
        memory.seats[2].set_state(slot_state::FREE);
        let leaver = {
            let (memory, count) = (memory.clone(), count.clone());
            thread::spawn(move || {
                lives(steps, || {
                    memory.seats[1].set_state(slot_state::FREE);
                    fault_point();
                    recount(&memory, &count);
                })
            })
        };
        memory.seats[2].set_state(slot_state::JOINING);
        recount(&memory, &count);
        let lived = leaver.join().unwrap();
        if !lived {
            recount(&memory, &count);
        }
        assert_eq!(count.load(Ordering::Relaxed) as u32, 2, "miscounted");
    });
}

#[test]
fn the_last_count_is_right() {
    (0..2).for_each(|steps| counted(steps, |memory, count| memory.rounds().recount(count)));
}

#[test]
#[should_panic(expected = "miscounted")]
fn mutant_a_count_that_is_stored() {
    counted(1, |memory, count| count.store(memory.rounds().taken(), Ordering::Release));
}

/// A count that ended in between with the same number is not noticed.
#[test]
#[should_panic(expected = "miscounted")]
fn mutant_counts_without_a_number_of_their_own() {
    counted(1, |memory, count| {
        let mut seen = count.load(Ordering::Acquire);
        while let Err(now) =
            count.compare_exchange(seen, memory.rounds().taken(), Ordering::AcqRel, Ordering::Acquire)
        {
            seen = now;
        }
    });
}

/// The mutex that a worker holds for life. `excludes` is false in a mutant.
struct Mutex {
    word: AtomicU32,
    excludes: bool,
}

impl Mutex {
    const UNLOCKED: u32 = 0;
    const LOCKED: u32 = 1;
    /// Its holder has died with it.
    const LEFT: u32 = 2;
}

impl Life for Mutex {
    fn try_lock(&self) -> Option<bool> {
        let lock =
            |from| self.word.compare_exchange(from, Mutex::LOCKED, Ordering::AcqRel, Ordering::Acquire);
        match lock(Mutex::UNLOCKED) {
            Ok(_) => Some(false),
            Err(Mutex::LEFT) => {
                lock(Mutex::LEFT).is_ok().then_some(true).or((!self.excludes).then_some(true))
            }
            Err(_) => (!self.excludes).then_some(true),
        }
    }

    fn unlock(&self) {
        self.word.store(Mutex::UNLOCKED, Ordering::Release);
    }
}

/// A seat with its mutex, and what is noted under that of a worker that has ended.
struct Place {
    memory: Memory,
    life: Mutex,
    ended: AtomicU32,
}

impl Place {
    fn new(state: u32, life: u32, excludes: bool) -> Place {
        let memory = Memory::new(1, 1);
        memory.seats[0].set_state(state);
        Place { memory, life: Mutex { word: AtomicU32::new(life), excludes }, ended: AtomicU32::new(0) }
    }

    fn seat(&self) -> &Seat {
        &self.memory.seats[0]
    }

    /// `Shared::is_dead`.
    fn look(&self) -> Found {
        self.seat().look(&self.life, |died| {
            if died {
                self.ended.store(1, Ordering::Relaxed);
            }
            self.ended.load(Ordering::Relaxed) != 0
        })
    }

    /// `try_slot`.
    fn take(&self) -> bool {
        self.memory.rounds().take_seat(0, &self.life, 0, || self.ended.store(0, Ordering::Relaxed))
    }
}

/// Two take a free seat, which a third looks at: one gets it at most, and nobody is found dead.
fn taken_by_two(excludes: bool) {
    explore(3, move || {
        let place = Arc::new(Place::new(slot_state::FREE, Mutex::UNLOCKED, excludes));
        let others = [(); 2].map(|()| {
            let place = place.clone();
            thread::spawn(move || place.take())
        });
        assert_eq!(place.look(), Found::Living, "nobody has died");
        let taken = others.map(|other| u32::from(other.join().unwrap())).iter().sum::<u32>();
        assert!(taken <= 1, "two have one seat");
        assert_eq!(place.seat().incarnation.load(Ordering::Relaxed), taken);
        let expected = if taken == 1 { slot_state::JOINING } else { slot_state::FREE };
        assert_eq!(place.seat().state(), expected);
    });
}

#[test]
fn a_free_seat_is_taken_by_one() {
    taken_by_two(true);
}

#[test]
#[should_panic(expected = "two have one seat")]
fn mutant_a_seat_that_is_taken_without_its_mutex() {
    taken_by_two(false);
}

/// A worker leaves, another takes its seat, and a third looks: nobody is found dead.
#[test]
fn who_leaves_is_not_dead() {
    explore(3, || {
        let place = Arc::new(Place::new(slot_state::LEAVING, Mutex::LOCKED, true));
        let leaver = {
            let place = place.clone();
            thread::spawn(move || place.seat().give_back(&place.life, || {}))
        };
        let joiner = {
            let place = place.clone();
            thread::spawn(move || place.take())
        };
        assert_eq!(place.look(), Found::Living, "nobody has died");
        leaver.join().unwrap();
        let expected = if joiner.join().unwrap() { slot_state::JOINING } else { slot_state::FREE };
        assert_eq!(place.seat().state(), expected);
    });
}

/// A worker has died. Two look; who finds it frees the seat, and takes it: who comes late does not take the new worker for
/// the dead one.
fn looked_at_by_two(excludes: bool) {
    explore(3, move || {
        let place = Arc::new(Place::new(slot_state::LIVE, Mutex::LEFT, excludes));
        let reaper = {
            let place = place.clone();
            thread::spawn(move || {
                let found = place.look();
                if found == Found::Living {
                    // The other has the mutex.
                    return (found, false);
                }
                // `Rounds::bury`.
                place.seat().set_state(slot_state::FREE);
                (found, place.take())
            })
        };
        let found = place.look();
        let (reaped, taken) = reaper.join().unwrap();
        let firsts = [found, reaped].iter().filter(|found| **found == Found::Died).count();
        assert_eq!(firsts, 1, "a death is found once");
        match reaped {
            Found::Living => assert_eq!(place.seat().state(), slot_state::DEAD),
            _ if taken => assert_eq!(place.seat().state(), slot_state::JOINING, "the new worker is not dead"),
            _ => assert_eq!(place.seat().state(), slot_state::FREE),
        }
    });
}

#[test]
fn a_death_is_found_once() {
    looked_at_by_two(true);
}

#[test]
#[should_panic(expected = "a death is found once")]
fn mutant_a_death_that_is_noted_without_the_mutex() {
    looked_at_by_two(false);
}
