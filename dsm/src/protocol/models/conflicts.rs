//! Objections reach owners (`protocol/conflict.rs`): each once and whole, whatever is told beside it, and whoever owns
//! the area by then.
use super::super::conflict::{Conflict, Conflicts, Heard, Over};
use super::{explore, lives};
use crate::primitive::model::Access;
use crate::primitive::{AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread;

const TYPE: Conflict = Conflict { over: Over::Type([4, 4, 11]), host: 1, is_known: true };
const NAME: Conflict = Conflict { over: Over::Name, host: 2, is_known: false };

struct Area {
    conflicts: Conflicts,
    /// In the header.
    count: AtomicU64,
    /// Who owns it: 0 or 1.
    owner: AtomicU64,
}

/// A worker: what it has looked at, and what it has heard.
#[derive(Default)]
struct Worker {
    heard: Heard,
    said: Vec<Conflict>,
}

impl Worker {
    /// A synchronization point: `Worker::complain_at_end`.
    fn sync(&mut self, area: &Area, owns: bool) {
        if !self.heard.has_news(&area.count) {
            return;
        }
        let count = self.heard.begin(&area.count);
        match owns.then(|| area.conflicts.take()).flatten() {
            Some(conflict) => self.said.push(conflict),
            None => self.heard.end(count),
        }
    }

    /// Synchronization points as long as there is something.
    fn settle(&mut self, area: &Area) {
        for _ in 0..4 {
            self.sync(area, true);
        }
    }
}

fn area() -> Area {
    Area { conflicts: Conflicts::new(), count: AtomicU64::new(0), owner: AtomicU64::new(0) }
}

/// The agent tells two things while the owner syncs; it dies after `steps` fault points, and the next tells them again, since
/// it does not know what was told.
fn told(steps: u32, weaken: impl Fn(&Area) + Sync + Send + 'static) {
    explore(3, move || {
        let area = Arc::new(area());
        weaken(&area);
        let owner = {
            let area = area.clone();
            thread::spawn(move || {
                let mut worker = Worker::default();
                worker.sync(&area, true);
                worker.sync(&area, true);
                worker
            })
        };
        let tell = || {
            for conflict in [NAME, TYPE] {
                assert!(area.conflicts.tell(conflict, &area.count));
            }
        };
        let lives = lives(steps, tell);
        if !lives {
            // As `go_on` of the next agent.
            if area.conflicts.are_any() {
                area.count.fetch_add(1, Ordering::Release);
            }
            tell();
        }
        let mut worker = owner.join().unwrap();
        worker.settle(&area);
        assert!(worker.said.iter().all(|said| [NAME, TYPE].contains(said)), "mixed: {:?}", worker.said);
        for conflict in [NAME, TYPE] {
            let times = worker.said.iter().filter(|said| **said == conflict).count();
            assert!(times >= 1, "not heard: {conflict:?} in {:?}", worker.said);
            assert!(times == 1 || !lives, "heard twice: {conflict:?}");
        }
    });
}

#[test]
fn each_is_heard_once_and_whole() {
    (0..6).for_each(|steps| told(steps, |_| {}));
}

#[test]
#[should_panic(expected = "mixed")]
fn mutant_a_clash_that_is_told_weakly() {
    told(6, |area| area.conflicts.weaken(Access::Store, Ordering::Release, Ordering::Relaxed));
}

#[test]
#[should_panic(expected = "not heard")]
fn mutant_a_count_that_is_raised_weakly() {
    told(6, |area| area.count.weaken(Access::Change, Ordering::Release, Ordering::Relaxed));
}

/// The agent tells something while the area goes from one worker to another, who has looked at what it owned before.
fn handed_over(looks: bool) {
    explore(3, move || {
        let area = Arc::new(area());
        let agent = {
            let area = area.clone();
            thread::spawn(move || assert!(area.conflicts.tell(NAME, &area.count)))
        };
        let giver = {
            let area = area.clone();
            thread::spawn(move || {
                let mut worker = Worker::default();
                worker.sync(&area, true);
                // Release: as `give`.
                area.owner.store(1, Ordering::Release);
                worker.sync(&area, false);
                worker
            })
        };
        let mut worker = Worker::default();
        let mut owns = false;
        for _ in 0..2 {
            // Acquire: as `given`.
            if !owns && area.owner.load(Ordering::Acquire) == 1 {
                owns = true;
                if looks {
                    worker.heard.owns_more(&area.count, &area.conflicts);
                }
            }
            worker.sync(&area, owns);
        }
        agent.join().unwrap();
        let giver = giver.join().unwrap();
        if !owns && looks {
            worker.heard.owns_more(&area.count, &area.conflicts);
        }
        worker.settle(&area);
        let all = [giver.said, worker.said].concat();
        assert_eq!(all, [NAME], "not heard");
    });
}

#[test]
fn whoever_gets_the_area_hears_it() {
    handed_over(true);
}

#[test]
#[should_panic(expected = "not heard")]
fn mutant_a_new_owner_that_does_not_look() {
    handed_over(false);
}

/// A place is used again by the agent while its owner takes what was there.
#[test]
fn a_place_is_used_again() {
    explore(3, move || {
        let area = Arc::new(area());
        let other = |of| Conflict { over: Over::Type([of; 3]), host: 1, is_known: true };
        // All places are taken.
        (1..4).for_each(|of| assert!(area.conflicts.tell(other(of), &area.count)));
        let agent = {
            let area = area.clone();
            thread::spawn(move || area.conflicts.tell(other(4), &area.count))
        };
        let mut said = Vec::new();
        said.extend(area.conflicts.take());
        let has_told = agent.join().unwrap();
        said.extend(std::iter::from_fn(|| area.conflicts.take()));
        let mut expected: Vec<Conflict> = (1..4 + u32::from(has_told)).map(other).collect();
        let key = |conflict: &Conflict| format!("{conflict:?}");
        said.sort_by_key(key);
        expected.sort_by_key(key);
        assert_eq!(said, expected, "mixed");
    });
}
