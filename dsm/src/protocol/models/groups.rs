//! Two areas of a group, and a worker that stands still while it copies one of them, at any moment: the actor abandons
//! both, whoever publishes publishes both or none, and nobody writes or reads a copy that the worker may still be writing.
use super::super::abandon::{self, Entries};
use super::super::claim;
use super::super::pin;
use super::super::publication::Publication;
use super::super::record::{Copies, CopyRecord};
use super::super::round::{Ended, Pause, Work};
use super::super::word::{Phase, RoundWord};
use super::{Hand, Memory, explore, get, put};
use crate::primitive::{AtomicU32, AtomicU64, Ordering};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use std::cell::Cell;

const COPIES: usize = abandon::COPIES;

/// The steps that a model leaves out.
#[derive(Clone, Copy, Default)]
struct Mutant {
    /// Areas are abandoned one by one.
    no_group: bool,
    /// A copy that was set aside is not kept from the next plan.
    no_quarantine: bool,
    /// Who publishes does not complete what was abandoned by half.
    not_completed: bool,
}

/// An area of one chunk.
struct Area {
    /// The owner's bytes. Atomic: who was left behind reads them while the owner writes on, into a copy that is nobody's.
    writer: AtomicU64,
    readers: Vec<UnsafeCell<u64>>,
    records: Vec<CopyRecord>,
    current: AtomicU32,
    claim: AtomicU64,
    target: AtomicU32,
    abandoned: AtomicU32,
}

impl Area {
    fn new() -> Area {
        Area {
            writer: AtomicU64::new(0),
            readers: (0..COPIES).map(|_| UnsafeCell::new(0)).collect(),
            records: (0..COPIES).map(|copy| CopyRecord::new(copy == 0)).collect(),
            current: AtomicU32::new(0),
            claim: AtomicU64::new(0),
            target: AtomicU32::new(0),
            abandoned: AtomicU32::new(0),
        }
    }

    fn copies(&self) -> Copies<'_> {
        Copies { records: &self.records, current: &self.current }
    }

    fn target(&self) -> usize {
        self.target.load(Ordering::Relaxed) as usize
    }
}

/// The areas, both of worker 0, beside the words of the round.
struct Group {
    memory: Memory,
    areas: [Area; 2],
    mutant: Mutant,
}

impl Group {
    fn new(mutant: Mutant) -> Group {
        Group { memory: Memory::new(2, 1), areas: [Area::new(), Area::new()], mutant }
    }

    fn write(&self, value: u64) {
        self.areas.iter().for_each(|area| area.writer.store(value, Ordering::Relaxed));
        self.memory.dirty.store(1, Ordering::Relaxed);
    }

    /// Worker `me`, outside of rounds, reads one state of both.
    fn read(&self, me: usize) -> u64 {
        let arrived = self.memory.seats[me].arrived.load(Ordering::Relaxed);
        let seen = self.areas.each_ref().map(|area| get(&area.readers[area.copies().visible(arrived)]));
        assert_eq!(seen[0], seen[1], "half of a group");
        seen[0]
    }
}

impl Entries for Group {
    fn count(&self) -> usize {
        self.areas.len()
    }

    fn group(&self, _entry: usize) -> u32 {
        u32::from(!self.mutant.no_group)
    }

    fn copies(&self, _entry: usize) -> usize {
        COPIES
    }

    fn abandoned(&self, entry: usize) -> &AtomicU32 {
        &self.areas[entry].abandoned
    }

    fn set_aside(&self, entry: usize, round: u64) {
        let area = &self.areas[entry];
        area.records[area.target()].set_aside(round);
        if self.mutant.no_quarantine {
            pin::unmark(&area.records[area.target()].state);
        }
    }

    fn for_each_claim(&self, mut visit: impl FnMut(usize, &AtomicU64)) {
        self.areas.iter().enumerate().for_each(|(entry, area)| visit(entry, &area.claim));
    }
}

/// A worker's hand, which abandons whatever it has to wait for if it is the actor.
struct Impatient<'g> {
    group: &'g Group,
    hand: Hand<'g>,
    /// Whether it has waited for others to copy.
    has_waited: Cell<bool>,
}

impl<'g> Impatient<'g> {
    fn of(group: &'g Group, pause: Pause) -> Impatient<'g> {
        Impatient { group, hand: Hand { memory: &group.memory, pause }, has_waited: Cell::new(false) }
    }

    /// Opens rounds until one is completed.
    fn sync(&self, me: u32) {
        let rounds = self.group.memory.rounds();
        loop {
            let seen = rounds.open(false, self);
            match rounds.participate(me, self) {
                Some(Ended::Completed(_)) => return,
                Some(Ended::GivenUp(_)) => {}
                None => rounds.drive_past(me, seen.round(), self),
            }
        }
    }
}

impl Work for Impatient<'_> {
    fn plan(&self, round: u64, _me: u32) -> bool {
        let (group, rounds) = (self.group, self.group.memory.rounds());
        put(&group.memory.acting, round);
        if !rounds.takes_part(0, round) || group.memory.dirty.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let targets = group
            .areas
            .each_ref()
            .map(|area| area.copies().target(&rounds, round, true, u64::MAX, &mut Vec::new(), |_| false));
        let [Some(first), Some(second)] = targets else {
            // The group is postponed.
            group.areas.iter().for_each(|area| area.copies().take_marks_back());
            return false;
        };
        claim::begin_plan();
        for (area, target) in group.areas.iter().zip([first, second]) {
            area.target.store(target as u32, Ordering::Relaxed);
            area.abandoned.store(0, Ordering::Relaxed);
            area.claim.store(claim::free(round), Ordering::Relaxed);
        }
        true
    }

    fn plan_again(&self) {
        self.group.areas.iter().for_each(|area| area.copies().take_marks_back());
    }

    fn copy(&self, round: u64, me: u32) {
        let copy = |area: &Area, target: &usize| {
            put(&area.readers[*target], area.writer.load(Ordering::Relaxed));
        };
        claim::copy_all(&self.group.areas, |area| &area.claim, (me as usize, round, me), Area::target, copy);
    }

    fn copied(&self, round: u64) -> bool {
        self.group.areas.iter().all(|area| claim::read(&area.claim, round) == claim::Claim::Done)
    }

    fn tend(&self, round: u64, me: u32) {
        let rounds = self.group.memory.rounds();
        for (area, rank) in claim::of_others(&self.group.areas, |area| &area.claim, round, me) {
            if self.is_dead(rank) {
                claim::inherit(&area.claim, round, rank, me);
            } else if rounds.take_up(me, round) {
                let entry = usize::from(std::ptr::eq(area, &self.group.areas[1]));
                abandon::abandon(self.group, round, entry);
                rounds.step_down(me, round);
            }
        }
    }

    fn publish(&self, round: u64, _me: u32) {
        let group = self.group;
        put(&group.memory.acting, round);
        let is_left = abandon::left(group);
        let mut all = true;
        for (entry, area) in group.areas.iter().enumerate() {
            if is_left(entry) {
                all = false;
                if !group.mutant.not_completed {
                    group.set_aside(entry, round);
                }
                continue;
            }
            area.copies().publish(&Publication::of_round(area.target(), round));
        }
        if all {
            group.memory.dirty.store(0, Ordering::Relaxed);
        }
    }

    fn may_pass_over(&self) -> bool {
        true
    }

    fn is_dead(&self, rank: u32) -> bool {
        self.hand.is_dead(rank)
    }

    fn while_dead(&self, rank: u32, act: impl FnOnce() -> bool) -> bool {
        self.hand.while_dead(rank, act)
    }

    fn stalled_actor(&self, _rank: u32) {}

    fn pause(&self, seen: RoundWord) -> Pause {
        // Without letting others go on first: else who is slow would seldom be found in the middle of something.
        let at_once = match seen.phase() {
            Phase::Open => self.hand.pause == Pause::OutOfPatience,
            Phase::Copy => !self.has_waited.replace(true),
            _ => false,
        };
        if at_once { self.hand.pause } else { self.hand.pause(seen) }
    }

    fn wake(&self) {}

    fn gave_up(&self, round: u64, missing: &mut dyn Iterator<Item = u32>) {
        self.hand.gave_up(round, missing);
    }
}

/// Worker 1 copies in one round, and is left behind in it or not; worker 0, the owner of both, goes on without it.
fn left_behind(bound: usize, mutant: Mutant) {
    explore(bound, move || {
        let group = Arc::new(Group::new(mutant));
        group.write(7);
        let other = {
            let group = group.clone();
            thread::spawn(move || {
                let hand = Impatient::of(&group, Pause::Check);
                // Once: it may find rounds past that have gone on without it.
                hand.group.memory.rounds().open(false, &hand);
                hand.group.memory.rounds().participate(1, &hand);
                let seen = group.read(1);
                assert_eq!(group.read(1), seen);
                group.memory.rounds().leave(1, &hand);
            })
        };
        // The other may come first: then this one is the actor.
        thread::yield_now();
        Impatient::of(&group, Pause::Check).sync(0);
        assert!(matches!(group.read(0), 0 | 7));
        group.write(8);
        Impatient::of(&group, Pause::OutOfPatience).sync(0);
        assert!(matches!(group.read(0), 0 | 7 | 8));
        other.join().unwrap();
        // Nobody is behind now.
        group.write(9);
        Impatient::of(&group, Pause::Check).sync(0);
        assert_eq!((group.read(0), group.memory.dirty.load(Ordering::Relaxed)), (9, 0));
    });
}

#[test]
fn a_worker_that_copies_is_left_behind_at_any_moment() {
    left_behind(2, Mutant::default());
}

#[test]
#[should_panic(expected = "half of a group")]
fn mutant_an_area_is_abandoned_without_its_group() {
    left_behind(2, Mutant { no_group: true, ..Mutant::default() });
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_a_copy_without_quarantine() {
    left_behind(2, Mutant { no_quarantine: true, ..Mutant::default() });
}

/// Worker 1 dies after `steps` fault points, as the actor that abandons the group perhaps; worker 0, which owns both and
/// copies, goes on and finishes what it began.
fn dies(bound: usize, steps: u32, mutant: Mutant) {
    explore(bound, move || {
        let group = Arc::new(Group::new(mutant));
        group.write(7);
        let other = {
            let group = group.clone();
            thread::spawn(move || {
                let hand = Impatient::of(&group, Pause::Check);
                group.memory.mortal(1, steps, || {
                    hand.sync(1);
                    group.memory.rounds().leave(1, &hand);
                });
            })
        };
        let hand = Impatient::of(&group, Pause::Check);
        hand.sync(0);
        group.read(0);
        // Marks of the dead are taken back, or set aside.
        for area in &group.areas {
            let is_marked =
                |copy: &CopyRecord| copy.state.load(Ordering::Relaxed) == pin::copy_state::WRITING;
            assert!(!area.records.iter().any(is_marked), "a copy is marked when the round is past");
        }
        other.join().unwrap();
    });
}

#[test]
fn who_abandons_a_group_dies_at_every_step() {
    for steps in 0..20 {
        dies(2, steps, Mutant::default());
    }
}

#[test]
#[should_panic(expected = "is marked")]
fn mutant_a_publication_that_completes_nothing() {
    for steps in 0..20 {
        dies(2, steps, Mutant { not_completed: true, ..Mutant::default() });
    }
}
