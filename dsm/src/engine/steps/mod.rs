//! Rounds step by step, each step taken by hand: tests of what a round does, whoever does it.
mod clocks;
mod copies;
mod groups;
mod lent;

use super::runtime::Runtime;
use crate::protocol::word::{Actor, Phase, RoundWord};
use crate::segment::layout::Chunk;
use crate::segment::parts::Parts;
use crate::{AreaSpec, Job, Owned, StallPolicy, Worker};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

/// A job whose workers, all of this thread, are moved by hand.
struct Scene {
    job: Job,
    workers: Vec<Worker>,
}

impl Scene {
    fn new(workers: usize, policy: StallPolicy) -> Scene {
        let mut job = Job::builder().reserve(1 << 28).stall_policy(policy).embedded().unwrap();
        // A core for everybody, whatever the machine has.
        std::sync::Arc::get_mut(&mut job.shared).unwrap().cores = 64;
        let workers = (0..workers).map(|_| job.worker().unwrap()).collect();
        Scene { job, workers }
    }

    fn create(&mut self, rank: usize, spec: AreaSpec) -> Owned<u64> {
        self.create_long(rank, spec, 1000)
    }

    fn create_long(&mut self, rank: usize, spec: AreaSpec, len: usize) -> Owned<u64> {
        self.workers[rank].create(spec, len).unwrap()
    }

    fn write(&self, owned: &mut Owned<u64>, rank: usize, value: u64) {
        owned.write(&self.workers[rank]).unwrap().fill(value);
    }

    fn runtime(&self, rank: usize) -> Runtime<'_> {
        self.workers[rank].runtime()
    }

    fn round(&self) -> u64 {
        self.job.shared.segment.rounds().load().round()
    }

    /// Workers `ranks` stand in the next round, and the first of them is its actor.
    fn arrive(&self, ranks: &[usize]) -> u64 {
        let (round, rounds) = (self.round(), self.job.shared.segment.rounds());
        for rank in ranks {
            rounds.all_seats[*rank].arrived.store(round, SeqCst);
        }
        rounds.actor.store(Actor::new(round, ranks[0] as u32).0, SeqCst);
        round
    }

    /// Ends the round.
    fn end(&self) {
        self.job.shared.segment.rounds().word.store(RoundWord::new(self.round() + 1, Phase::Idle).0, SeqCst);
    }

    /// A whole round of workers `ranks`; whether it published something.
    fn run(&self, ranks: &[usize]) -> bool {
        let round = self.arrive(ranks);
        let runtime = self.runtime(ranks[0]);
        let some = runtime.make_plan(round, ranks[0] as u32);
        if some {
            ranks.iter().for_each(|rank| self.runtime(*rank).copy_chunks(round, *rank as u32));
            assert!(runtime.all_copied(round));
            runtime.publish_plan(round, ranks[0] as u32);
        }
        self.end();
        some
    }

    /// A round of worker 0 that was asked for this area.
    fn publish(&self, owned: &Owned<u64>) -> bool {
        owned.core().force();
        self.run(&[0])
    }

    fn lowest_clock(&self) -> u64 {
        self.job.shared.segment.header().sync.acting.lowest_clock.load(Relaxed)
    }

    fn parts(&self, owned: &Owned<u64>) -> Parts<'_> {
        Parts::of(&self.job.shared.segment, owned.core().id.index as usize)
    }

    /// The chunks of the plan that are of this area.
    fn chunks_of(&self, owned: &Owned<u64>) -> Vec<&Chunk> {
        let segment = &self.job.shared.segment;
        let count = segment.header().sync.acting.plan.chunks.load(Relaxed) as usize;
        let is_of =
            |entry: u32| segment.plan_entries()[entry as usize].area.load(Relaxed) == owned.core().id.index;
        segment.plan_chunks()[..count].iter().filter(|chunk| is_of(chunk.entry.load(Relaxed))).collect()
    }
}

fn counter(owned: &Owned<u64>) -> u64 {
    owned.area().newest_version().unwrap().counter
}
