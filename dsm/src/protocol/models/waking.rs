//! Waking: a worker that sleeps on a word until what it waits for has been written never sleeps on (`api/area/wake.rs`, `protocol/words.rs`).
//!
//! The kernel compares the word and puts the caller to sleep in one step, as far as those who wake on the same word can
//! see: who sleeps is woken by every ring after the value that it compared with. So the worker sleeps on if it falls asleep
//! on the value of the last ring.
use super::explore;
use crate::primitive::model::Access;
use crate::primitive::{AtomicU64, Ordering};
use crate::protocol::words;
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Rings before what it rings for is written.
    RingsEarly,
    /// Looks, and reads the bell afterwards.
    LooksEarly,
    /// Does not make the bell's new value known with what was written before.
    RingsWeakly,
    /// Writes over the ring of another: who sees this one need not see what was written before that.
    Overwrites,
}

struct Words {
    awaited: [AtomicU64; 2],
    bell: AtomicU64,
}

impl Words {
    /// `Cells::publish` of what is waited for, then `Cells::notify`.
    fn tell(&self, me: usize, mutant: Mutant) {
        if mutant != Mutant::RingsEarly {
            words::publish(&self.awaited[me], 1);
        }
        match mutant {
            Mutant::Overwrites => words::publish(&self.bell, me as u64 + 1),
            _ => words::ring(&self.bell),
        }
        if mutant == Mutant::RingsEarly {
            words::publish(&self.awaited[me], 1);
        }
    }

    /// `Worker::wait_for_event`, to where it first sleeps: the value that it sleeps on.
    fn wait(&self, mutant: Mutant) -> Option<u64> {
        let look = |_: &mut ()| {
            let found = self.awaited.iter().all(|word| words::observe(word) == 1);
            Ok(found.then_some(()))
        };
        let sleep = |_: &mut (), seen| {
            let seen = if mutant == Mutant::LooksEarly { words::observe(&self.bell) } else { seen };
            // The kernel compares, and reads the newest value.
            if self.bell.load(Ordering::Relaxed) == seen { Err(seen) } else { Ok(()) }
        };
        words::wait(&mut (), |()| Ok(words::observe(&self.bell)), look, sleep).err()
    }
}

/// Two workers tell a third.
fn told(mutant: Mutant) {
    explore(3, move || {
        let awaited = [AtomicU64::new(0), AtomicU64::new(0)];
        let words = Arc::new(Words { awaited, bell: AtomicU64::new(0) });
        if mutant == Mutant::RingsWeakly {
            words.bell.weaken(Access::Change, Ordering::Release, Ordering::Relaxed);
        }
        let tellers = [0, 1].map(|me| {
            let words = words.clone();
            thread::spawn(move || words.tell(me, mutant))
        });
        let asleep = words.wait(mutant);
        tellers.into_iter().for_each(|teller| teller.join().unwrap());
        assert_ne!(asleep, Some(words.bell.load(Ordering::Relaxed)), "asleep, and nobody rings");
    });
}

#[test]
fn nobody_sleeps_on() {
    told(Mutant::None);
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_a_bell_before_the_word() {
    told(Mutant::RingsEarly);
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_a_bell_that_is_read_after_the_look() {
    told(Mutant::LooksEarly);
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_a_bell_without_release() {
    told(Mutant::RingsWeakly);
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_a_bell_that_is_written_over() {
    told(Mutant::Overwrites);
}
