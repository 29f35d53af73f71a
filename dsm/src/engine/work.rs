//! The round's work as the runtime does it, on behalf of one worker.
use super::plan::Planned;
use super::runtime::Runtime;
use super::wait::{Room, futex_wake_all, low_half};
use crate::error::Rank;
use crate::protocol::round::{Pause, Work};
use crate::protocol::word::{Phase, RoundWord};
use crate::protocol::{abandon, claim};
use crate::segment::layout::{STALL_KILL, STALL_PIN};
use crate::segment::tally::{add, count};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl Runtime<'_> {
    /// How long the stall has lasted that this worker watches in `round`.
    fn stalled_for(&self, round: u64) -> Duration {
        match self.local.stalled_since.get() {
            Some((seen, since)) if seen == round => since.elapsed(),
            _ => {
                self.local.stalled_since.set(Some((round, Instant::now())));
                Duration::ZERO
            }
        }
    }

    fn has_stalled(&self, round: u64) -> bool {
        self.stalled_for(round) >= Duration::from_nanos(self.shared.segment.config().stall_after_ns)
    }

    /// Kills the process of a stalled worker or reaper, unless it is this one.
    fn kill(&self, rank: Rank) {
        let (pid, started) = self.shared.process_of(rank);
        if pid == std::process::id() {
            tracing::warn!(
                rank,
                "worker stalls inside a round; it is a thread of this process and is not killed"
            );
            return;
        }
        // A process that was sent the signal may live on for a moment, and others see it stall too; it counts once.
        let condemned = self.shared.condemn(pid, started);
        if crate::memory::process::kill(pid, started) && self.shared.is_to_count(&condemned, pid, started) {
            count(&self.shared.segment.header().counters.kills, 1);
            tracing::warn!(
                rank,
                pid,
                "worker stalled inside a round and was killed, as the job's policy says"
            );
        }
    }

    /// Leaves an area with its group for a later round, since worker `rank` stands still while it copies it.
    fn leave(&self, round: u64, entry: usize, rank: Rank) {
        let planned = Planned::of(&self.shared.segment);
        for left in abandon::abandon(&planned, round, entry) {
            planned.parts(left).slot.round.postponed.fetch_add(1, Ordering::Relaxed);
            count(&self.shared.segment.header().counters.pinned_copies, 1);
            let area = planned.area(left);
            tracing::warn!(rank, area, round, "worker stalled while copying; the copy is pinned");
        }
    }
}

impl Work for Runtime<'_> {
    fn plan(&self, round: u64, me: u32) -> bool {
        // Only the actor writes it.
        let rounds = &self.shared.segment.header().sync.acting.rounds;
        rounds.store(rounds.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        add(&self.shared.tally(me).planned, 1);
        self.make_plan(round, me)
    }

    fn plan_again(&self) {
        self.take_marks_back();
    }

    fn copy(&self, round: u64, me: u32) {
        self.copy_chunks(round, me);
    }

    fn copied(&self, round: u64) -> bool {
        self.all_copied(round)
    }

    fn tend(&self, round: u64, me: u32) {
        let segment = &self.shared.segment;
        let chunks = Planned::of(segment).chunks;
        for (chunk, rank) in claim::of_others(chunks, |chunk| &chunk.claim, round, me) {
            if self.is_dead(rank) {
                if claim::inherit(&chunk.claim, round, rank, me) {
                    count(&segment.header().counters.takeovers, 1);
                    tracing::warn!(round, dead = rank, by = me, "chunk taken over from a dead worker");
                }
            } else if self.has_stalled(round) {
                match segment.config().stall_policy {
                    STALL_KILL => self.kill(rank),
                    // Only the actor decides, so that it cannot be publishing meanwhile; at work, so that nobody
                    // has replaced it and gone on.
                    STALL_PIN if self.rounds().take_up(me, round) => {
                        self.leave(round, chunk.entry.load(Ordering::Relaxed) as usize, rank);
                        self.rounds().step_down(me, round);
                    }
                    _ => {}
                }
            }
        }
    }

    fn publish(&self, round: u64, me: u32) {
        self.publish_plan(round, me);
    }

    fn is_dead(&self, rank: u32) -> bool {
        self.shared.is_dead(rank)
    }

    fn while_dead(&self, rank: u32, act: impl FnOnce() -> bool) -> bool {
        let acted = match rank == self.shared.reaper_rank() {
            true => self.shared.while_no_reaper(act),
            false => self.is_dead(rank) && act(),
        };
        if acted {
            count(&self.shared.segment.header().counters.round_takeovers, 1);
            tracing::warn!(dead = rank, "round taken over from a dead actor");
        }
        acted
    }

    fn stalled_actor(&self, rank: u32) {
        let round = self.rounds().load().round();
        if self.shared.segment.config().stall_policy == STALL_KILL && self.has_stalled(round) {
            self.kill(rank);
        }
    }

    fn may_pass_over(&self) -> bool {
        self.shared.segment.config().stall_policy == STALL_PIN
    }

    fn passes_over(&self, seen: RoundWord) -> bool {
        let after = Duration::from_nanos(self.shared.segment.config().stall_after_ns);
        // While it copies, the actor may be waiting for somebody else's chunk, and is about to pin it.
        let longest = if seen.phase() == Phase::Copy { after * 2 } else { after };
        self.may_pass_over() && self.stalled_for(seen.round()) >= longest
    }

    fn replaced_actor(&self, rank: u32) {
        count(&self.shared.segment.header().counters.replaced_actors, 1);
        tracing::warn!(rank, "round taken over from an actor that stands still");
    }

    fn pause(&self, seen: RoundWord) -> Pause {
        let shared = self.shared;
        let timeout = Duration::from_nanos(shared.segment.config().round_timeout_ns);
        let room = if shared.is_crowded() { Room::Crowded } else { Room::Own };
        self.local.waiter.pause(&shared.segment.header().sync.word, seen, None, room, timeout)
    }

    fn wake(&self) {
        futex_wake_all(low_half(&self.shared.segment.header().sync.word));
    }

    fn ended(&self) {
        let doorbell = self.shared.segment.doorbell();
        if doorbell.round_ended() {
            futex_wake_all(doorbell.bell);
        }
    }

    fn gave_up(&self, round: u64, missing: &mut dyn Iterator<Item = u32>) {
        let segment = &self.shared.segment;
        count(&segment.header().counters.abandoned, 1);
        let mut missing = missing.peekable();
        if missing.peek().is_none() {
            tracing::debug!(
                round,
                "round given up: its actor did not begin, or only known stragglers were missing"
            );
        }
        for rank in missing {
            count(&segment.all_seats()[rank as usize].late, 1);
            tracing::warn!(round, rank, "round given up: the worker did not come in time");
        }
    }
}
