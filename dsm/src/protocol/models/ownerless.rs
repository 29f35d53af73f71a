//! An area of another host that a worker waits to be given, while its owner there drops it: who sleeps is woken and hears it, and who
//! has learned that the area is on its way here does not. Both by the ownership word alone.
use super::explore;
use crate::primitive::{AtomicU64, Ordering};
use crate::protocol::ownership::{self, OwnershipWord};
use loom::sync::Arc;
use loom::thread;

const ME: u32 = 1;

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// The agent writes the word that it makes of what it saw, whatever came in between.
    PlainStore,
    /// The agent tells only who slept when it looked, before its change.
    EarlyLook,
    /// Whoever waits goes by what it saw before it slept.
    FirstLook,
    /// The sleep mark makes another word of it.
    MarkCounts,
}

fn remote() -> OwnershipWord {
    OwnershipWord::remote(Some(0), 2)
}

/// The agent's step when it hears that the owner has dropped the area, or that there is one again. Returns whether to wake sleepers.
fn note(word: &AtomicU64, is: bool, mutant: Mutant) -> bool {
    match mutant {
        Mutant::PlainStore => {
            let seen = ownership::load(word);
            let scratch = AtomicU64::new(seen.0);
            ownership::note_dropped(&scratch, is);
            word.store(ownership::load(&scratch).0, Ordering::Release);
            seen.0 & ownership::SLEEP != 0
        }
        Mutant::EarlyLook => {
            let slept = ownership::load(word).0 & ownership::SLEEP != 0;
            ownership::note_dropped(word, is).is_some() && slept
        }
        _ => ownership::note_dropped(word, is).unwrap_or(false),
    }
}

/// Whether who waits is told that nobody gives the area. No worker of this host is gone.
fn hears(word: &AtomicU64, seen: OwnershipWord, mutant: Mutant) -> bool {
    match mutant {
        Mutant::FirstLook => seen.is_dropped_elsewhere(),
        Mutant::MarkCounts => {
            ownership::is_given_up(word, seen, ME, |_| false) && ownership::load(word) == seen
        }
        _ => ownership::is_given_up(word, seen, ME, |_| false),
    }
}

/// A worker goes to sleep on the word, as `Area::take` does, while the agent notes that the owner has dropped the area. Another one
/// may go to sleep as well.
fn dropped(mutant: Mutant) {
    explore(3, move || {
        let word = Arc::new(AtomicU64::new(remote().0));
        let agent = {
            let word = word.clone();
            thread::spawn(move || note(&word, true, mutant))
        };
        let other = {
            let word = word.clone();
            thread::spawn(move || {
                let seen = ownership::load(&word);
                seen == remote() && ownership::mark_sleeper(&word, seen)
            })
        };
        let seen = ownership::load(&word);
        let asleep = OwnershipWord(seen.0 | ownership::SLEEP);
        // Who finds it dropped already does not get to sleep: it looks again after the mark.
        let slept = !seen.is_dropped_elsewhere() && (seen == asleep || ownership::mark_sleeper(&word, seen));
        let (woken, other_slept) = (agent.join().unwrap(), other.join().unwrap());
        assert!(woken || !(slept || other_slept), "it slept, and nobody was told to wake it");
        let seen = ownership::load(&word);
        // Another one goes to sleep meanwhile.
        ownership::mark_sleeper(&word, seen);
        assert!(hears(&word, seen, mutant), "its owner dropped the area, and who waits does not hear it");
        assert_eq!((seen.host(), seen.epoch()), (Some(0), 2));
    });
}

/// The owner drops the area, another one claims it there, and gives it to this worker; which learns of that while it looks whether the
/// area was given up.
fn given_after_all(mutant: Mutant) {
    explore(3, move || {
        let words = Arc::new((AtomicU64::new(remote().0), AtomicU64::new(0)));
        let agent = {
            let words = words.clone();
            thread::spawn(move || {
                let (word, told) = &*words;
                note(word, true, mutant);
                note(word, false, mutant);
                ownership::arrive(word, ME, 3, false).expect("it is another host's");
                told.store(1, Ordering::Release);
            })
        };
        let (word, told) = &*words;
        for _ in 0..2 {
            let seen = ownership::load(word);
            let is_given = told.load(Ordering::Acquire) == 1;
            let gone = hears(word, seen, mutant);
            assert!(!(gone && is_given), "the area was given to who hears that nobody gives it");
        }
        agent.join().unwrap();
        assert_eq!(ownership::given(word, ME), Some(3));
        assert!(!hears(word, ownership::load(word), mutant));
        assert!(ownership::note_dropped(word, true).is_none(), "it is no other host's");
    });
}

#[test]
fn who_waits_for_an_area_hears_that_its_owner_dropped_it() {
    dropped(Mutant::None);
}

#[test]
#[should_panic(expected = "nobody was told to wake it")]
fn mutant_a_note_that_loses_the_mark() {
    dropped(Mutant::PlainStore);
}

#[test]
#[should_panic(expected = "nobody was told to wake it")]
fn mutant_a_note_that_looks_who_sleeps_before() {
    dropped(Mutant::EarlyLook);
}

#[test]
#[should_panic(expected = "who waits does not hear it")]
fn mutant_a_mark_that_counts() {
    dropped(Mutant::MarkCounts);
}

#[test]
fn who_is_given_an_area_after_all_hears_nothing() {
    given_after_all(Mutant::None);
}

#[test]
#[should_panic(expected = "the area was given to who hears")]
fn mutant_who_goes_by_the_first_look() {
    given_after_all(Mutant::FirstLook);
}
