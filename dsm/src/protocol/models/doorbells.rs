//! A publication's way out (`protocol/doorbell.rs`): an agent hears of what it has not seen, also one that comes while something
//! is published, and never sleeps on news.
//!
//! As in `waking.rs`, whoever falls asleep on the value of the last ring sleeps on.
use super::{explore, lives};
use crate::primitive::model::Access;
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point};
use crate::protocol::doorbell::{Doorbell, are_chosen, leave_news, take_news};
use loom::sync::Arc;
use loom::thread;

#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// Asks for the agent before it publishes.
    AsksEarly,
    /// Leaves no news where there are some already, as it seems.
    LeavesNoMore,
    /// Rings before it leaves news.
    RingsEarly,
    /// Listens after it has looked.
    ListensLate,
    /// Asks what the agent has chosen before it counts.
    AsksEarlyWhatIsChosen,
}

struct Words {
    published: AtomicU32,
    attached: AtomicU64,
    bell: AtomicU32,
    chooses: AtomicU32,
    awaits_round: AtomicU32,
    chosen: AtomicU64,
    news: AtomicU64,
    /// The newest version of an area, as `current` tells it.
    version: AtomicU64,
}

impl Words {
    fn new() -> Words {
        let [published, bell, chooses, awaits_round] = [0; 4].map(AtomicU32::new);
        let [attached, news, version, chosen] = [0; 4].map(AtomicU64::new);
        Words { published, attached, bell, chooses, awaits_round, chosen, news, version }
    }

    fn doorbell(&self) -> Doorbell<'_> {
        let Words { published, attached, bell, chooses, awaits_round, .. } = self;
        Doorbell { published, attached, bell, chooses, awaits_round }
    }

    /// `Runtime::publish_plan`.
    fn publish(&self, version: u64, mutant: Mutant) {
        let early = mutant == Mutant::AsksEarly && self.doorbell().published();
        let early_chosen = are_chosen(&self.chosen, 1);
        self.version.store(version, Ordering::Release);
        let wanted = if mutant == Mutant::AsksEarly { early } else { self.doorbell().published() };
        if !wanted {
            return;
        }
        fault_point();
        if mutant == Mutant::RingsEarly {
            self.doorbell().ring();
        }
        if mutant != Mutant::LeavesNoMore || self.news.load(Ordering::Relaxed) == 0 {
            leave_news(&self.news, 1);
        }
        let has_chosen = match mutant {
            Mutant::AsksEarlyWhatIsChosen => early_chosen,
            _ => are_chosen(&self.chosen, 1),
        };
        fault_point();
        if mutant != Mutant::RingsEarly && (!self.doorbell().chooses() || has_chosen) {
            self.doorbell().ring();
        }
    }

    /// An agent looks until it sleeps; what it saw last, and the value of the bell that it sleeps on.
    fn attend(&self, mutant: Mutant) -> (u64, u32) {
        self.doorbell().attach(1);
        self.look_until_asleep(mutant)
    }

    fn look_until_asleep(&self, mutant: Mutant) -> (u64, u32) {
        // At first everywhere.
        let mut seen = self.version.load(Ordering::Acquire);
        loop {
            let mut heard = self.doorbell().listen();
            if take_news(&self.news) != 0 {
                seen = self.version.load(Ordering::Acquire);
            }
            if mutant == Mutant::ListensLate {
                heard = self.doorbell().listen();
            }
            if let Some(asleep) = self.doorbell().fall_asleep(heard) {
                return (seen, asleep);
            }
        }
    }
}

/// An agent that is there already, and is not woken, chooses the area while it is published.
fn chosen(mutant: Mutant, weaken: impl Fn(&Words) + Sync + Send + 'static) {
    explore(3, move || {
        let words = Arc::new(Words::new());
        words.doorbell().attach(1);
        words.chooses.store(1, Ordering::SeqCst);
        weaken(&words);
        let publisher = {
            let words = words.clone();
            thread::spawn(move || [1, 2].into_iter().for_each(|version| words.publish(version, mutant)))
        };
        words.doorbell().choose(&words.chosen, 1);
        let (seen, asleep) = words.look_until_asleep(mutant);
        publisher.join().unwrap();
        if words.bell.load(Ordering::Relaxed) == asleep {
            assert_eq!(seen, 2, "asleep, and nobody rings");
        }
    });
}

#[test]
fn an_agent_hears_of_what_it_has_chosen() {
    chosen(Mutant::None, |_| {});
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_asks_what_is_chosen_before_it_counts() {
    chosen(Mutant::AsksEarlyWhatIsChosen, |_| {});
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_chooses_weakly() {
    chosen(Mutant::None, |words| words.chosen.weaken(Access::Change, Ordering::SeqCst, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_asks_weakly_what_is_chosen() {
    chosen(Mutant::None, |words| words.chosen.weaken(Access::Load, Ordering::SeqCst, Ordering::Relaxed));
}

fn heard(mutant: Mutant, weaken: impl Fn(&Words) + Sync + Send + 'static) {
    explore(3, move || {
        let words = Arc::new(Words::new());
        weaken(&words);
        let publisher = {
            let words = words.clone();
            thread::spawn(move || [1, 2].into_iter().for_each(|version| words.publish(version, mutant)))
        };
        let (seen, asleep) = words.attend(mutant);
        publisher.join().unwrap();
        // A ring takes the mark of the sleeper away, so that the value is another.
        if words.bell.load(Ordering::Relaxed) == asleep {
            assert_eq!(seen, 2, "asleep, and nobody rings");
        }
    });
}

#[test]
fn an_agent_hears_of_everything() {
    heard(Mutant::None, |_| {});
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_asks_for_the_agent_before_it_publishes() {
    heard(Mutant::AsksEarly, |_| {});
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_leaves_no_more_news_where_there_are_some() {
    heard(Mutant::LeavesNoMore, |_| {});
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_rings_before_it_leaves_news() {
    heard(Mutant::RingsEarly, |_| {});
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_listens_after_it_looked() {
    heard(Mutant::ListensLate, |_| {});
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_counts_weakly() {
    heard(Mutant::None, |words| words.published.weaken(Access::Change, Ordering::SeqCst, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_attaches_weakly() {
    heard(Mutant::None, |words| words.attached.weaken(Access::Store, Ordering::SeqCst, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_rings_weakly() {
    heard(Mutant::None, |words| words.bell.weaken(Access::Change, Ordering::Release, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "nobody rings")]
fn mutant_leaves_news_weakly() {
    heard(Mutant::None, |words| words.news.weaken(Access::Change, Ordering::Release, Ordering::Relaxed));
}

/// Whoever publishes dies after `steps` fault points, and another repeats it.
#[test]
fn a_publisher_dies_and_the_agent_hears_of_it() {
    for steps in 0..2 {
        explore(2, move || {
            let words = Arc::new(Words::new());
            let publisher = {
                let words = words.clone();
                thread::spawn(move || {
                    if !lives(steps, || words.publish(1, Mutant::None)) {
                        words.publish(1, Mutant::None);
                    }
                })
            };
            let (seen, asleep) = words.attend(Mutant::None);
            publisher.join().unwrap();
            if words.bell.load(Ordering::Relaxed) == asleep {
                assert_eq!(seen, 1, "asleep, and nobody rings");
            }
        });
    }
}
