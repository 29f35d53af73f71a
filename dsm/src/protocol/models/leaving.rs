//! An area that goes to another host and comes back: the giver, the agent and the taker, by the ownership word alone.
use super::{get, put};
use crate::primitive::model::Access;
use crate::primitive::{AtomicU64, Ordering};
use crate::protocol::ownership::{self, OwnershipWord};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// The worker of another host that the area is given to.
const AWAY: u32 = 7;

struct Handed {
    word: AtomicU64,
    bytes: UnsafeCell<u64>,
}

/// A worker writes and gives; the agent leaves the area to the other host, and writes what comes from there.
fn left(weaken: impl Fn(&AtomicU64) + Sync + Send + 'static) {
    super::explore(3, move || {
        let word = AtomicU64::new(OwnershipWord::held(0, 1).0);
        weaken(&word);
        let area = Arc::new(Handed { word, bytes: UnsafeCell::new(0) });
        let giver = {
            let area = area.clone();
            thread::spawn(move || {
                put(&area.bytes, 5);
                ownership::give(&area.word, 0, AWAY, 1).expect("it has it");
            })
        };
        while ownership::leave_to(&area.word, AWAY, 2).is_none() {
            thread::yield_now();
        }
        put(&area.bytes, get(&area.bytes) + 1);
        assert_eq!(ownership::load(&area.word).left_to(), Some(AWAY));
        assert!(ownership::leave_to(&area.word, AWAY, 2).is_none());
        giver.join().unwrap();
        assert_eq!(get(&area.bytes), 6);
    });
}

/// The agent writes what came from another host, and hands the area to a worker, which may have gone to sleep on the word.
fn come(weaken: impl Fn(&AtomicU64) + Sync + Send + 'static) {
    super::explore(3, move || {
        let word = AtomicU64::new(OwnershipWord::remote(Some(0), 2).0);
        weaken(&word);
        let area = Arc::new(Handed { word, bytes: UnsafeCell::new(0) });
        let agent = {
            let area = area.clone();
            thread::spawn(move || {
                put(&area.bytes, 5);
                let woken = ownership::arrive(&area.word, 1, 3, false).expect("it is another host's");
                assert!(ownership::arrive(&area.word, 1, 3, false).is_none());
                woken
            })
        };
        let seen = ownership::load(&area.word);
        let asleep = seen.is_remote() && ownership::mark_sleeper(&area.word, seen);
        while ownership::given(&area.word, 1) != Some(3) {
            thread::yield_now();
        }
        put(&area.bytes, get(&area.bytes) + 1);
        let woken = agent.join().unwrap();
        assert!(woken || !asleep, "it slept, and nobody was told to wake it");
        assert_eq!(get(&area.bytes), 6);
    });
}

#[test]
fn what_a_giver_wrote_comes_before_what_arrives() {
    left(|_| {});
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_area_that_is_given_weakly() {
    left(|word| word.weaken(Access::Change, Ordering::AcqRel, Ordering::Acquire));
}

#[test]
fn what_came_from_elsewhere_the_taker_finds() {
    come(|_| {});
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_an_area_that_comes_weakly() {
    come(|word| word.weaken(Access::Change, Ordering::AcqRel, Ordering::Acquire));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_taker_that_looks_weakly() {
    come(|word| word.weaken(Access::Load, Ordering::Acquire, Ordering::Relaxed));
}

/// The agent learns where the owner is, by two messages in any order, while a worker goes to sleep on the word: the later epoch
/// counts, and the sleeper's mark is not lost without a wake-up.
#[test]
fn the_later_owner_counts() {
    super::explore(3, || {
        let word = Arc::new(AtomicU64::new(OwnershipWord::remote(Some(0), 1).0));
        let sleeper = {
            let word = word.clone();
            thread::spawn(move || {
                let seen = ownership::load(&word);
                ownership::mark_sleeper(&word, seen)
            })
        };
        let other = {
            let word = word.clone();
            thread::spawn(move || ownership::refer(&word, 2, 5))
        };
        let mine = ownership::refer(&word, 1, 4);
        let theirs = other.join().unwrap();
        let asleep = sleeper.join().unwrap();
        let last = ownership::load(&word);
        assert_eq!((last.host(), last.epoch()), (Some(2), 5));
        assert!(theirs.is_some());
        let still_asleep = last.0 & ownership::SLEEP != 0;
        assert_eq!(asleep, still_asleep || mine == Some(true) || theirs == Some(true));
    });
}
