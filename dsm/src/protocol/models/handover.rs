//! Give, take and claim against each other and against a round.
use super::super::word::{Phase, RoundWord};
use super::{get, put};
use crate::primitive::model::Access;
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::protocol::ownership;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// An area that goes from hand to hand without a round.
struct Handed {
    word: AtomicU64,
    bytes: UnsafeCell<u64>,
}

#[test]
fn what_a_giver_wrote_the_taker_sees() {
    super::explore(3, || {
        let area = Arc::new(Handed {
            word: AtomicU64::new(ownership::OwnershipWord::held(0, 1).0),
            bytes: UnsafeCell::new(0),
        });
        let taker = {
            let area = area.clone();
            thread::spawn(move || {
                let epoch = loop {
                    match ownership::given(&area.word, 1) {
                        Some(epoch) => break epoch,
                        None => thread::yield_now(),
                    }
                };
                put(&area.bytes, get(&area.bytes) + 1);
                assert!(ownership::give(&area.word, 1, 0, epoch).is_some());
            })
        };
        put(&area.bytes, 5);
        assert!(ownership::give(&area.word, 0, 1, 1).is_some());
        let epoch = loop {
            match ownership::given(&area.word, 0) {
                Some(epoch) => break epoch,
                None => thread::yield_now(),
            }
        };
        assert_eq!(epoch, 3);
        assert_eq!(get(&area.bytes), 6);
        taker.join().unwrap();
    });
}

/// Two who acquire what a third releases: one after the other, and each sees what was written before.
fn picked_up(weaken: impl Fn(&AtomicU64) + Sync + Send + 'static) {
    super::explore(3, move || {
        let area = Arc::new(Handed {
            word: AtomicU64::new(ownership::OwnershipWord::held(0, 1).0),
            bytes: UnsafeCell::new(0),
        });
        weaken(&area.word);
        let add = |area: &Handed, me: u32| {
            let epoch = loop {
                match ownership::acquire(&area.word, me) {
                    Some(epoch) => break epoch,
                    None => thread::yield_now(),
                }
            };
            put(&area.bytes, get(&area.bytes) + 1);
            assert!(ownership::release(&area.word, me, epoch).is_some());
        };
        let other = {
            let area = area.clone();
            thread::spawn(move || add(&area, 1))
        };
        put(&area.bytes, 5);
        assert!(ownership::release(&area.word, 0, 1).is_some());
        add(&area, 0);
        other.join().unwrap();
        assert_eq!(ownership::acquire(&area.word, 2), Some(7));
        assert_eq!(get(&area.bytes), 7);
    });
}

#[test]
fn what_is_released_one_acquires() {
    picked_up(|_| {});
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_area_that_is_released_weakly() {
    picked_up(|word| word.weaken(Access::Change, Ordering::AcqRel, Ordering::Acquire));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_area_that_is_picked_up_weakly() {
    picked_up(|word| word.weaken(Access::Change, Ordering::AcqRel, Ordering::Release));
}

/// An area that goes to somebody else at the moment in which its owner gives it is given by one of them.
#[test]
fn what_is_taken_away_meanwhile_is_not_given() {
    super::explore(3, || {
        let word = Arc::new(AtomicU64::new(ownership::OwnershipWord::held(0, 4).0));
        let other = {
            let word = word.clone();
            thread::spawn(move || {
                let seen = ownership::load(&word);
                seen.holder() == Some(0) && ownership::seize(&word, seen, 2)
            })
        };
        let given = ownership::give(&word, 0, 1, 4).is_some();
        let taken = other.join().unwrap();
        assert!(given != taken);
        let owner = if given {
            ownership::OwnershipWord::transit(1, 5)
        } else {
            ownership::OwnershipWord::held(2, 5)
        };
        assert_eq!(ownership::load(&word), owner);
    });
}

#[test]
fn of_two_claimers_one_gets_it_under_a_new_epoch() {
    super::explore(3, || {
        let word = Arc::new(AtomicU64::new(ownership::OwnershipWord::held(9, 4).0));
        let claim = |word: &AtomicU64, me: u32| {
            let seen = ownership::load(word);
            seen.holder() == Some(9) && ownership::seize(word, seen, me)
        };
        let other = {
            let word = word.clone();
            thread::spawn(move || claim(&word, 1))
        };
        let mine = claim(&word, 0);
        let theirs = other.join().unwrap();
        assert!(mine != theirs);
        assert_eq!(ownership::load(&word), ownership::OwnershipWord::held(u32::from(theirs), 5));
    });
}

/// An area on its way to a slot whose worker has gone: a claimer, and the next worker in the slot, which takes
/// without writing. One of them gets it at most, and the giver's bytes come along.
fn claimed_on_its_way(weaken: impl Fn(&AtomicU64, &AtomicU32) + Sync + Send + 'static) {
    const FREE: u32 = 0;
    const JOINING: u32 = 1;
    super::explore(3, move || {
        let area = Arc::new(Handed {
            word: AtomicU64::new(ownership::OwnershipWord::held(0, 1).0),
            bytes: UnsafeCell::new(0),
        });
        let seat = Arc::new(AtomicU32::new(FREE));
        weaken(&area.word, &seat);
        let giver = {
            let area = area.clone();
            thread::spawn(move || {
                put(&area.bytes, 5);
                // It saw the slot's last worker alive.
                assert!(ownership::give(&area.word, 0, 1, 1).is_some());
            })
        };
        let claimer = {
            let (area, seat) = (area.clone(), seat.clone());
            thread::spawn(move || {
                let seen = ownership::load_to_claim(&area.word);
                let gone = seen.rank() == 1 && seat.load(Ordering::SeqCst) == FREE;
                let claimed = gone && ownership::seize(&area.word, seen, 2);
                if claimed {
                    put(&area.bytes, get(&area.bytes) + 1);
                }
                claimed
            })
        };
        seat.store(JOINING, Ordering::SeqCst);
        ownership::orphan(&area.word, 1);
        let taken = ownership::given(&area.word, 1).is_some();
        if taken {
            put(&area.bytes, get(&area.bytes) + 1);
        }
        let claimed = claimer.join().unwrap();
        giver.join().unwrap();
        assert!(!(taken && claimed));
        assert_eq!(get(&area.bytes), 5 + u64::from(taken || claimed));
    });
}

#[test]
fn a_new_worker_takes_nothing_that_is_claimed() {
    claimed_on_its_way(|_, _| {});
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_claimer_and_a_new_worker_that_look_at_the_word_weakly() {
    claimed_on_its_way(|word, _| word.weaken(Access::Load, Ordering::SeqCst, Ordering::Acquire));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_new_worker_that_takes_its_seat_weakly() {
    claimed_on_its_way(|_, seat| seat.weaken(Access::Store, Ordering::SeqCst, Ordering::Release));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_area_that_is_given_weakly() {
    claimed_on_its_way(|word, _| word.weaken(Access::Change, Ordering::AcqRel, Ordering::Acquire));
}

#[test]
fn letting_go_does_not_undo_a_claim() {
    super::explore(3, || {
        let word = Arc::new(AtomicU64::new(ownership::OwnershipWord::held(0, 1).0));
        let other = {
            let word = word.clone();
            thread::spawn(move || {
                let seen = ownership::load(&word);
                ownership::seize(&word, seen, 1).then_some(seen.epoch() + 1)
            })
        };
        ownership::let_go(&word, 0, 1);
        let seized = other.join().unwrap();
        let last = ownership::load(&word);
        match seized {
            Some(epoch) => assert_eq!(last, ownership::OwnershipWord::held(1, epoch)),
            None => assert_eq!(last, ownership::OwnershipWord::claimable(0, 1)),
        }
    });
}

/// The words that a claimer and a planner share.
struct Shared {
    ownership: AtomicU64,
    lock: AtomicU64,
    round: AtomicU64,
    writer: UnsafeCell<u64>,
}

/// A claimer and a planner: either the planner sees the new owner and leaves the area out, or the claimer
/// sees the lock and waits until the round is past before it touches the writer copy.
fn claimed_while_planned(weaken: impl Fn(&Shared) + Sync + Send + 'static) {
    super::explore(3, move || {
        let shared = Arc::new(Shared {
            ownership: AtomicU64::new(ownership::OwnershipWord::held(9, 1).0),
            lock: AtomicU64::new(0),
            round: AtomicU64::new(RoundWord::new(5, Phase::Open).0),
            writer: UnsafeCell::new(3),
        });
        weaken(&shared);
        let planner = {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.round.store(RoundWord::new(5, Phase::Plan).0, Ordering::SeqCst);
                if crate::protocol::lock::lock_for_round(&shared.lock, &shared.ownership, 5).holder()
                    == Some(9)
                {
                    shared.round.store(RoundWord::new(5, Phase::Copy).0, Ordering::SeqCst);
                    let copied = get(&shared.writer);
                    assert_eq!(copied, 3);
                }
                shared.round.store(RoundWord::new(6, Phase::Idle).0, Ordering::SeqCst);
            })
        };
        let seen = ownership::load(&shared.ownership);
        assert!(ownership::seize(&shared.ownership, seen, 1));
        while crate::protocol::lock::locked_by(&shared.lock, &shared.round).is_some() {
            thread::yield_now();
        }
        put(&shared.writer, 4);
        planner.join().unwrap();
    });
}

#[test]
fn a_claim_waits_for_the_round_that_planned_the_area() {
    claimed_while_planned(|_| {});
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_area_that_is_seized_weakly() {
    claimed_while_planned(|shared| {
        shared.ownership.weaken(Access::Change, Ordering::SeqCst, Ordering::AcqRel);
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_planner_that_locks_weakly() {
    claimed_while_planned(|shared| shared.lock.weaken(Access::Store, Ordering::SeqCst, Ordering::Release));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_planner_that_looks_at_the_owner_weakly() {
    claimed_while_planned(|shared| {
        shared.ownership.weaken(Access::Load, Ordering::SeqCst, Ordering::Acquire)
    });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_claimer_that_looks_at_the_lock_weakly() {
    claimed_while_planned(|shared| shared.lock.weaken(Access::Load, Ordering::SeqCst, Ordering::Acquire));
}
