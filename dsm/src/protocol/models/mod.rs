//! Loom models: the real driver of rounds, claims and ownership over a model of the memory that they guard.
//!
//! The bytes of copies are loom cells, so that loom reports any read that a write could tear. A worker dies by
//! a panic at a fault point (its fuse burns down); its `alive` word stands for the mutex that the kernel
//! releases. `SYNC.md` says how to run them.
mod absent;
mod answers;
mod arrivals;
mod chunks;
mod claims;
mod conflicts;
mod death;
mod doorbells;
mod due;
mod ends;
mod generations;
mod groups;
mod handover;
mod in_place;
mod inbox;
mod lateness;
mod leaving;
mod lending;
mod lent_published;
mod lookups;
mod observers;
mod opening;
mod ownerless;
mod passing;
mod presence;
mod records;
mod remote_clocks;
mod rings;
mod rounds;
mod runs;
mod slots;
mod tasks;
mod told;
mod waking;
mod weakened;

use super::arrival::{self, ArrivalRecord, Arrived};
use super::claim::{self, Claim};
use super::plan_checks::{Found, Owning};
use super::presence::Presences;
use super::publication::Publication;
use super::record::{Copies, CopyRecord};
use super::round::{Ended, Pause, Rounds, Seat, Work, slot_state};
use super::viewed::Viewed;
use super::word::{Phase, RoundWord};
use super::{label, lock, pin};
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fault_point, model};
use crate::protocol::ownership;
use loom::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Reads bytes of the model.
fn get<T: Copy>(cell: &UnsafeCell<T>) -> T {
    // SAFETY: loom stops the model if somebody writes the cell meanwhile, or might have.
    cell.with(|value| unsafe { *value })
}

/// Writes bytes of the model.
fn put<T>(cell: &UnsafeCell<T>, value: T) {
    // SAFETY: loom stops the model if somebody accesses the cell meanwhile, or might have.
    cell.with_mut(|slot| unsafe { *slot = value });
}

fn itself(word: &AtomicU64) -> &AtomicU64 {
    word
}

/// Chunks of the one area.
pub(crate) const CHUNKS: usize = 2;

/// The shared memory of a model: one area, owned by worker 0 at first.
pub(crate) struct Memory {
    pub(crate) word: AtomicU64,
    pub(crate) actor: AtomicU64,
    completed: AtomicU64,
    partial: AtomicU64,
    pub(crate) seats: Vec<Seat>,
    /// How many seats were ever taken.
    pub(crate) seats_high: AtomicU32,
    /// 1 while the kernel would say that the worker's thread is there.
    pub(crate) alive: Vec<AtomicU64>,
    /// The owner's bytes, by chunk.
    pub(crate) writer: Vec<UnsafeCell<u64>>,
    /// The reader copies' bytes, by copy and chunk.
    readers: Vec<Vec<UnsafeCell<u64>>>,
    pub(crate) records: Vec<CopyRecord>,
    pub(crate) current: AtomicU32,
    pub(crate) claims: Vec<AtomicU64>,
    target: AtomicU64,
    pub(crate) dirty: AtomicU64,
    pub(crate) ownership: AtomicU64,
    pub(crate) lock: AtomicU64,
    /// The arrival, if the area's owner is on another host, and up to which cut.
    pub(crate) arrival: ArrivalRecord,
    pub(crate) cuts: AtomicU64,
    /// Who reads it in place.
    pub(crate) viewed: Viewed,
    /// Of such an area: the lines that the agent has marked, and what the plan publishes.
    pub(crate) log: UnsafeCell<u64>,
    arrived: UnsafeCell<Option<Arrived>>,
    /// The one pin of the one observer.
    pub(crate) pin: AtomicU64,
    /// 1 while a reaper is at work: the membership mutex.
    reaping: AtomicU64,
    /// Touched by whoever plans or publishes: loom reports two who do so at once.
    acting: UnsafeCell<u64>,
    /// Whether whoever waits passes over an actor that is not at work.
    pub(crate) passes_over: bool,
    /// How often anybody waited: nobody may wait for ever.
    pauses: std::sync::atomic::AtomicUsize,
}

impl Memory {
    pub(crate) fn new(workers: usize, copies: usize) -> Memory {
        let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let cells = || (0..CHUNKS).map(|_| UnsafeCell::new(0)).collect::<Vec<_>>();
        let memory = Memory {
            word: AtomicU64::new(RoundWord::new(1, Phase::Idle).0),
            actor: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            partial: AtomicU64::new(0),
            seats: (0..workers).map(|_| Seat::new()).collect(),
            seats_high: AtomicU32::new(workers as u32),
            reaping: AtomicU64::new(0),
            alive: (0..workers).map(|_| AtomicU64::new(1)).collect(),
            writer: cells(),
            readers: (0..copies).map(|_| cells()).collect(),
            // As `Directory::create` leaves them: copies after the first hold nothing.
            records: (0..copies).map(|copy| CopyRecord::new(copy == 0)).collect(),
            current: AtomicU32::new(0),
            claims: words(CHUNKS),
            target: AtomicU64::new(0),
            dirty: AtomicU64::new(0),
            ownership: AtomicU64::new(ownership::OwnershipWord::held(0, 1).0),
            lock: AtomicU64::new(0),
            arrival: ArrivalRecord::new(),
            cuts: AtomicU64::new(0),
            viewed: Viewed::new(),
            log: UnsafeCell::new(0),
            arrived: UnsafeCell::new(None),
            pin: AtomicU64::new(0),
            acting: UnsafeCell::new(0),
            passes_over: false,
            pauses: std::sync::atomic::AtomicUsize::new(0),
        };
        for seat in &memory.seats {
            seat.state.store(slot_state::LIVE, Ordering::SeqCst);
        }
        memory
    }

    pub(crate) fn rounds(&self) -> Rounds<'_> {
        Rounds {
            word: &self.word,
            actor: &self.actor,
            completed: &self.completed,
            partial: &self.partial,
            all_seats: &self.seats,
            seats_high: &self.seats_high,
        }
    }

    pub(crate) fn copies(&self) -> Copies<'_> {
        Copies { records: &self.records, current: &self.current }
    }

    /// Worker `me`, outside of rounds, reads one whole version.
    pub(crate) fn read(&self, me: usize) -> u64 {
        self.whole(self.copies().visible(self.seats[me].arrived.load(Ordering::Relaxed)))
    }

    /// The version that a copy holds.
    fn whole(&self, copy: usize) -> u64 {
        let values: Vec<u64> = self.readers[copy].iter().map(|cell| get(cell)).collect();
        assert!(values.iter().all(|value| *value == values[0]), "torn: {values:?}");
        values[0]
    }

    /// The version that the observer reads, if it gets a pin.
    pub(crate) fn observe(&self) -> Option<u64> {
        let copies = self.copies();
        let copy = copies.newest();
        let is_current = || copies.newest() == copy;
        if !pin::pin(&self.pin, copy as u64 + 1, &self.records[copy].state, is_current) {
            return None;
        }
        let value = self.whole(copy);
        assert_eq!(self.whole(copy), value);
        pin::unpin(&self.pin);
        Some(value)
    }

    /// Worker `me` claims the area of a dead owner and writes `value`, as `Worker::claim` does.
    pub(crate) fn claim(&self, me: u32, value: u64, hand: &Hand<'_>) -> bool {
        let is_gone =
            |seen: ownership::OwnershipWord| seen.holder().is_none_or(|holder| hand.is_dead(holder));
        if lock::seize_from(&self.ownership, me, |seen| is_gone(seen).then_some(()).ok_or(())).is_err() {
            return false;
        }
        lock::wait_past(&self.lock, &self.rounds(), me, hand);
        self.whole(self.copies().newest());
        self.write(value);
        true
    }

    /// The owner writes `value` to the whole area.
    pub(crate) fn write(&self, value: u64) {
        for cell in &self.writer {
            put(cell, value);
        }
        self.dirty.store(1, Ordering::Relaxed);
    }

    /// Locks the membership mutex, if it is free.
    pub(crate) fn begin_reaping(&self) -> bool {
        self.reaping.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// Unlocks it, or stands for the kernel, which does when its holder has died.
    pub(crate) fn end_reaping(&self) {
        self.reaping.store(0, Ordering::Release);
    }

    /// Runs `body` as a worker that dies after `steps` fault points; true if it lived to its end.
    pub(crate) fn mortal(&self, me: usize, steps: u32, body: impl FnOnce()) -> bool {
        let lived = lives(steps, body);
        if !lived {
            // SeqCst: the kernel's release of the mutex, which `is_dead` acquires.
            self.alive[me].store(0, Ordering::SeqCst);
        }
        lived
    }
}

/// Runs `body`, which dies after `steps` fault points; true if it lived to its end.
pub(crate) fn lives(steps: u32, body: impl FnOnce()) -> bool {
    model::light(steps);
    let lived = catch_unwind(AssertUnwindSafe(body)).is_ok();
    model::light(u32::MAX);
    lived
}

/// A worker's hand in the model.
pub(crate) struct Hand<'m> {
    pub(crate) memory: &'m Memory,
    /// The outcome of every pause.
    pub(crate) pause: Pause,
}

impl Hand<'_> {
    /// Opens rounds until one is completed.
    pub(crate) fn sync(&self, me: u32) -> u64 {
        loop {
            let rounds = self.memory.rounds();
            rounds.open(false, self);
            match rounds.participate(me, self) {
                Some(Ended::Completed(round)) => return round,
                Some(Ended::GivenUp(_)) => {}
                None => {
                    let seen = rounds.load();
                    if !matches!(seen.phase(), Phase::Idle | Phase::Open) {
                        rounds.drive_past(me, seen.round(), self);
                    }
                }
            }
        }
    }
}

impl Work for Hand<'_> {
    fn plan(&self, round: u64, _me: u32) -> bool {
        let memory = self.memory;
        put(&memory.acting, round);
        memory.copies().take_marks_back();
        let (rounds, copies) = (memory.rounds(), memory.copies());
        let mut presences = Presences::default();
        presences.look_around(&rounds, round, |rank| self.is_dead(rank), |_, _| {});
        let is_dirty = || memory.dirty.load(Ordering::Relaxed) != 0;
        let is_observed = |copy| pin::is_at(&memory.pin, copy as u64 + 1);
        let target = || copies.target(&rounds, round, false, label::NONE, &mut Vec::new(), is_observed);
        let owning = Owning {
            lock: &memory.lock,
            ownership: &memory.ownership,
            here: (0, u32::MAX),
            is_grouped: false,
        };
        let mut arrived = None;
        let complete = arrival::complete(&memory.cuts);
        let has_arrived = || {
            arrived = memory.arrival.arrived(complete);
            arrived.is_some_and(|arrived| arrived.version > memory.records[copies.newest()].version())
        };
        let found = owning.consider(round, &presences, || false, is_dirty, has_arrived, target);
        let Found::Planned { copy: target, .. } = found else { return false };
        fault_point();
        put(&memory.arrived, arrived);
        memory.target.store(target as u64, Ordering::Relaxed);
        for claim in &memory.claims {
            claim.store(claim::free(round), Ordering::Relaxed);
        }
        true
    }

    fn copy(&self, round: u64, me: u32) {
        let memory = self.memory;
        // Each begins with another chunk, as workers do.
        let start = me as usize % CHUNKS;
        let chunks: Vec<(usize, &AtomicU64)> = memory.claims.iter().enumerate().collect();
        let target = |_: &(usize, &AtomicU64)| memory.target.load(Ordering::Relaxed) as usize;
        claim::copy_all(
            &chunks,
            |(_, claim)| claim,
            (start, round, me),
            target,
            |(chunk, _), target| {
                put(&memory.readers[*target][*chunk], get(&memory.writer[*chunk]));
            },
        );
    }

    fn copied(&self, round: u64) -> bool {
        self.memory.claims.iter().all(|word| claim::read(word, round) == Claim::Done)
    }

    fn tend(&self, round: u64, me: u32) {
        for (word, rank) in claim::of_others(&self.memory.claims, itself, round, me) {
            if self.is_dead(rank) {
                claim::inherit(word, round, rank, me);
            }
        }
    }

    fn publish(&self, round: u64, _me: u32) {
        let memory = self.memory;
        put(&memory.acting, round);
        let target = memory.target.load(Ordering::Relaxed);
        let mut publication = Publication::of_round(target as usize, round);
        if let Some(arrived) = get(&memory.arrived) {
            publication.version = arrived.version;
            put(&memory.log, 0);
        }
        memory.copies().publish(&publication);
        memory.dirty.store(0, Ordering::Relaxed);
    }

    fn is_dead(&self, rank: u32) -> bool {
        // A rank that no worker has stands for whoever finishes the round of the dead.
        let Some(alive) = self.memory.alive.get(rank as usize) else {
            return self.while_dead(rank, || true);
        };
        if alive.load(Ordering::SeqCst) != 0 {
            return false;
        }
        self.memory.seats[rank as usize].state.store(slot_state::DEAD, Ordering::SeqCst);
        true
    }

    fn while_dead(&self, rank: u32, act: impl FnOnce() -> bool) -> bool {
        if (rank as usize) < self.memory.alive.len() {
            return self.is_dead(rank) && act();
        }
        if !self.memory.begin_reaping() {
            return false;
        }
        let answer = act();
        self.memory.end_reaping();
        answer
    }

    fn stalled_actor(&self, _rank: u32) {}

    fn may_pass_over(&self) -> bool {
        self.memory.passes_over
    }

    fn passes_over(&self, _seen: RoundWord) -> bool {
        self.memory.passes_over
    }

    fn pause(&self, seen: RoundWord) -> Pause {
        let pauses = self.memory.pauses.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if pauses >= 1000 {
            let memory = self.memory;
            let actor = super::word::Actor(memory.actor.load(Ordering::Relaxed));
            let alive: Vec<_> = memory.alive.iter().map(|alive| alive.load(Ordering::Relaxed)).collect();
            panic!("the workers stand still at {seen:?}, {actor:?}, alive {alive:?}");
        }
        loom::thread::yield_now();
        self.pause
    }

    fn wake(&self) {}

    fn gave_up(&self, _round: u64, missing: &mut dyn Iterator<Item = u32>) {
        missing.for_each(drop);
    }
}

/// Whether the longer form is asked for.
pub(crate) fn is_long() -> bool {
    std::env::var_os("HECTARE_LOOM_LONG").is_some()
}

/// Explores a model; `bound` preemptions per execution, one more in the longer form. Says on standard error
/// how many executions that were.
pub(crate) fn explore(bound: usize, body: impl Fn() + Sync + Send + 'static) {
    explore_up_to(if is_long() { bound + 1 } else { bound }, body);
}

/// [`explore`] with the same bound in both forms. For models in which two wait for what a third is to do: with a
/// preemption to spend, loom also has the two take turns for ever, while the third is never run.
pub(crate) fn explore_up_to(bound: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(bound);
    builder.max_branches = 20_000;
    let executions = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let counted = executions.clone();
    builder.check(move || {
        counted.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        body();
    });
    let executions = executions.load(std::sync::atomic::Ordering::Relaxed);
    eprintln!("{}: {executions} executions", std::thread::current().name().unwrap_or("model"));
}
