//! Loom models: the real driver of rounds, claims and ownership over a model of the memory that they guard.
//!
//! The bytes of copies are loom cells, so that loom reports any read that a write could tear. A worker dies by
//! a panic at a fault point (its fuse burns down); its `alive` word stands for the mutex that the kernel
//! releases. `SYNC.md` says how to run them.
mod death;
mod lateness;
mod ownership;
mod rounds;

use super::claim::{self, Claim};
use super::round::{Ended, Pause, Rounds, Seat, Work, slot_state};
use super::word::{Phase, Word};
use crate::primitive::{AtomicU64, Ordering, fault_point, model};
use loom::cell::UnsafeCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Chunks of the one area.
pub(super) const CHUNKS: usize = 2;

/// The shared memory of a model: one area, owned by worker 0.
pub(super) struct Memory {
    pub(super) word: AtomicU64,
    actor: AtomicU64,
    completed: AtomicU64,
    partial: AtomicU64,
    pub(super) seats: Vec<Seat>,
    /// 1 while the kernel would say that the worker's thread is there.
    alive: Vec<AtomicU64>,
    /// The owner's bytes, by chunk.
    pub(super) writer: Vec<UnsafeCell<u64>>,
    /// The reader copies' bytes, by copy and chunk.
    readers: Vec<Vec<UnsafeCell<u64>>>,
    /// The round that published each copy.
    published: Vec<AtomicU64>,
    current: AtomicU64,
    claims: Vec<AtomicU64>,
    target: AtomicU64,
    pub(super) dirty: AtomicU64,
}

impl Memory {
    pub(super) fn new(workers: usize, copies: usize) -> Memory {
        let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect::<Vec<_>>();
        let cells = || (0..CHUNKS).map(|_| UnsafeCell::new(0)).collect::<Vec<_>>();
        let memory = Memory {
            word: AtomicU64::new(Word::new(1, Phase::Idle).0),
            actor: AtomicU64::new(0),
            completed: AtomicU64::new(0),
            partial: AtomicU64::new(0),
            seats: (0..workers).map(|_| Seat::new()).collect(),
            alive: (0..workers).map(|_| AtomicU64::new(1)).collect(),
            writer: cells(),
            readers: (0..copies).map(|_| cells()).collect(),
            published: words(copies),
            current: AtomicU64::new(0),
            claims: words(CHUNKS),
            target: AtomicU64::new(0),
            dirty: AtomicU64::new(0),
        };
        for seat in &memory.seats {
            seat.state.store(slot_state::LIVE, Ordering::SeqCst);
        }
        memory
    }

    pub(super) fn rounds(&self) -> Rounds<'_> {
        Rounds {
            word: &self.word,
            actor: &self.actor,
            completed: &self.completed,
            partial: &self.partial,
            seats: &self.seats,
        }
    }

    /// The copy that a worker at `round` may read.
    fn visible(&self, round: u64) -> usize {
        let current = self.current.load(Ordering::Acquire) as usize;
        if self.published[current].load(Ordering::Acquire) <= round {
            return current;
        }
        let rounds = self.published.iter().map(|at| at.load(Ordering::Acquire)).enumerate();
        rounds.filter(|(_, at)| *at <= round).max_by_key(|(_, at)| *at).map_or(0, |(copy, _)| copy)
    }

    /// What worker `me`, outside of rounds, reads: one whole version.
    pub(super) fn read(&self, me: usize) -> u64 {
        let copy = self.visible(self.seats[me].arrived.load(Ordering::Relaxed));
        let values: Vec<u64> =
            self.readers[copy].iter().map(|cell| cell.with(|value| unsafe { *value })).collect();
        assert!(values.iter().all(|value| *value == values[0]), "torn: {values:?}");
        values[0]
    }

    /// The owner writes `value` to the whole area.
    pub(super) fn write(&self, value: u64) {
        for cell in &self.writer {
            cell.with_mut(|slot| unsafe { *slot = value });
        }
        self.dirty.store(1, Ordering::Relaxed);
    }

    /// Runs `body` as a worker that dies after `steps` fault points; true if it lived to its end.
    pub(super) fn mortal(&self, me: usize, steps: u32, body: impl FnOnce()) -> bool {
        model::light(steps);
        let lived = catch_unwind(AssertUnwindSafe(body)).is_ok();
        model::light(u32::MAX);
        if !lived {
            // SeqCst: the kernel's release of the mutex, which `is_dead` acquires.
            self.alive[me].store(0, Ordering::SeqCst);
        }
        lived
    }
}

/// A worker's hand in the model.
pub(super) struct Hand<'m> {
    pub(super) memory: &'m Memory,
    /// What every pause is worth.
    pub(super) pause: Pause,
}

impl Hand<'_> {
    /// Opens rounds until one is completed.
    pub(super) fn sync(&self, me: u32) -> u64 {
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
        if memory.dirty.load(Ordering::Relaxed) == 0 || !memory.rounds().takes_part(0, round) {
            return false;
        }
        let mut pinned = vec![false; memory.readers.len()];
        for seat in memory.seats.iter().filter(|seat| seat.is_live()) {
            let arrived = seat.arrived.load(Ordering::SeqCst);
            if arrived < round {
                pinned[memory.visible(arrived)] = true;
            }
        }
        let current = memory.current.load(Ordering::Relaxed) as usize;
        let mut candidates = std::iter::once(current).chain(0..pinned.len());
        let Some(target) = candidates.find(|copy| !pinned[*copy]) else { return false };
        memory.target.store(target as u64, Ordering::Relaxed);
        for claim in &memory.claims {
            claim.store(claim::free(round), Ordering::Relaxed);
        }
        true
    }

    fn copy(&self, round: u64, me: u32) {
        let memory = self.memory;
        let target = memory.target.load(Ordering::Relaxed) as usize;
        for (chunk, word) in memory.claims.iter().enumerate() {
            let mine = match claim::read(word, round) {
                Claim::Free => claim::take(word, round, me),
                Claim::Claimed(rank) => rank == me,
                _ => false,
            };
            if mine {
                fault_point();
                let value = memory.writer[chunk].with(|value| unsafe { *value });
                memory.readers[target][chunk].with_mut(|slot| unsafe { *slot = value });
                claim::finish(word, round, me);
            }
        }
    }

    fn copied(&self, round: u64) -> bool {
        self.memory.claims.iter().all(|word| claim::read(word, round) == Claim::Done)
    }

    fn tend(&self, round: u64, me: u32) {
        for word in &self.memory.claims {
            if let Claim::Claimed(rank) = claim::read(word, round)
                && rank != me
                && self.is_dead(rank)
            {
                claim::inherit(word, round, rank, me);
            }
        }
    }

    fn publish(&self, round: u64, _me: u32) {
        let memory = self.memory;
        let target = memory.target.load(Ordering::Relaxed);
        memory.published[target as usize].store(round, Ordering::Release);
        fault_point();
        memory.current.store(target, Ordering::Release);
        fault_point();
        memory.dirty.store(0, Ordering::Relaxed);
    }

    fn is_dead(&self, rank: u32) -> bool {
        let seat = &self.memory.seats[rank as usize];
        if self.memory.alive[rank as usize].load(Ordering::SeqCst) != 0 {
            return false;
        }
        seat.state.store(slot_state::DEAD, Ordering::SeqCst);
        true
    }

    fn stalled_actor(&self, _rank: u32) {}

    fn pause(&self, _seen: Word) -> Pause {
        loom::thread::yield_now();
        self.pause
    }

    fn wake(&self) {}

    fn gave_up(&self, _round: u64, missing: &mut dyn Iterator<Item = u32>) {
        missing.for_each(drop);
    }
}

/// Explores a model; `bound` preemptions per execution, more with `HECTARE_LOOM_LONG` set.
pub(super) fn explore(bound: usize, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    let long = std::env::var_os("HECTARE_LOOM_LONG").is_some();
    builder.preemption_bound = Some(if long { bound + 1 } else { bound });
    builder.max_branches = 20_000;
    builder.check(body);
}
