//! Where workers stand is asked once per plan (`protocol/presence.rs`): a worker that has died in the round is noted dead while
//! the round is planned. Of its two areas, of a group, both are published or none.
use super::super::plan_checks::{Found, Owning};
use super::super::presence::Presences;
use super::super::publication::{Publication, Version};
use super::super::record::{Copies, CopyRecord};
use super::super::round::{Pause, Work};
use super::super::word::{Actor, Phase, RoundWord};
use super::{Hand, Memory, explore, lives};
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::protocol::ownership;
use loom::sync::Arc;
use loom::thread;
use std::sync::atomic::AtomicUsize;

const ROUND: u64 = 2;
/// The owner of both.
const OWNER: u32 = 1;

struct Area {
    ownership: AtomicU64,
    lock: AtomicU64,
    records: Vec<CopyRecord>,
    current: AtomicU32,
}

impl Area {
    fn new() -> Area {
        Area {
            ownership: AtomicU64::new(ownership::OwnershipWord::held(OWNER, 1).0),
            lock: AtomicU64::new(0),
            records: vec![CopyRecord::new(true)],
            current: AtomicU32::new(0),
        }
    }

    fn copies(&self) -> Copies<'_> {
        Copies { records: &self.records, current: &self.current }
    }

    fn is_published(&self) -> bool {
        self.copies().version() == Some(Version { term: ROUND, counter: ROUND })
    }
}

/// The areas, beside the words of the round.
struct Group {
    memory: Memory,
    areas: [Area; 2],
    /// In a mutant, everybody is looked at for each area.
    asks_per_area: bool,
}

impl Group {
    /// Round 2 is planned. Workers 0 and 1 are in it, and 1 is dead.
    fn new(asks_per_area: bool) -> Group {
        let memory = Memory::new(2, 1);
        memory.word.store(RoundWord::new(ROUND, Phase::Plan).0, Ordering::SeqCst);
        memory.actor.store(Actor::new(ROUND, 0).at_work().0, Ordering::SeqCst);
        memory.seats.iter().for_each(|seat| seat.arrived.store(ROUND, Ordering::SeqCst));
        memory.alive[OWNER as usize].store(0, Ordering::SeqCst);
        Group { memory, areas: [Area::new(), Area::new()], asks_per_area }
    }

    /// `Runtime::make_plan`, as far as it goes over areas.
    fn plan(&self) -> [Found; 2] {
        let (rounds, hand) = (self.memory.rounds(), self.hand());
        let mut presences = Presences::default();
        let look = |presences: &mut Presences| {
            presences.look_around(&rounds, ROUND, |rank| hand.is_dead(rank), |_, _| {});
        };
        look(&mut presences);
        self.areas.each_ref().map(|area| {
            if self.asks_per_area {
                look(&mut presences);
            }
            let owning = Owning {
                lock: &area.lock,
                ownership: &area.ownership,
                here: (0, u32::MAX),
                is_grouped: true,
            };
            let target = || area.copies().target(&rounds, ROUND, false, u64::MAX, &mut Vec::new(), |_| false);
            owning.consider(ROUND, &presences, || false, || true, || false, target)
        })
    }

    fn hand(&self) -> Hand<'_> {
        Hand { memory: &self.memory, pause: Pause::Check }
    }

    /// `Runtime::publish_plan`: none of a group that an area was postponed of.
    fn publish(&self, found: [Found; 2]) {
        if found.iter().any(|found| matches!(found, Found::Outside { .. } | Found::Pinned { .. })) {
            return;
        }
        for (area, found) in self.areas.iter().zip(found) {
            if let Found::Planned { copy, .. } = found {
                area.copies().publish(&Publication::of_round(copy, ROUND));
            }
        }
    }
}

/// The planner dies after `steps` fault points, or does not; then another plans again, who finds the dead owner noted or not.
/// How often both were published, and how often none.
fn noted_while_planned(steps: u32, asks_per_area: bool) -> [usize; 2] {
    let outcomes = std::sync::Arc::new([const { AtomicUsize::new(0) }; 2]);
    let counted = outcomes.clone();
    explore(3, move || {
        let group = Arc::new(Group::new(asks_per_area));
        let other = {
            let group = group.clone();
            thread::spawn(move || assert!(group.hand().is_dead(OWNER)))
        };
        let mut found = None;
        if !lives(steps, || found = Some(group.plan())) {
            group.areas.iter().for_each(|area| area.copies().take_marks_back());
            found = Some(group.plan());
        }
        group.publish(found.unwrap());
        other.join().unwrap();
        let published = group.areas.iter().filter(|area| area.is_published()).count();
        assert_ne!(published, 1, "half of a group");
        counted[usize::from(published == 0)].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    });
    outcomes.each_ref().map(|outcome| outcome.load(std::sync::atomic::Ordering::Relaxed))
}

#[test]
fn a_death_that_is_noted_while_planning_splits_no_group() {
    for steps in 0..3 {
        let [both, none] = noted_while_planned(steps, false);
        assert!(both > 0 && none > 0, "published {both} times, and {none} times not");
    }
}

#[test]
#[should_panic(expected = "half of a group")]
fn mutant_a_plan_that_asks_for_each_area() {
    noted_while_planned(2, true);
}
