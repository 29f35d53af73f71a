//! Information about a job: its workers and its counters.
use super::Job;
use crate::error::{Rank, Result};
use crate::protocol::round::{Seat, slot_state};
use crate::segment::tally::{Counters, Tally};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// The state of a worker, as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerState {
    /// It comes to rounds.
    Live,
    /// It did not come to a round in time, and rounds do not wait for it until it is back.
    Straggler,
    /// It joins or leaves.
    Changing,
    /// The kernel says that its thread is gone, or its launcher that it has failed ([`Job::note_failure`]), also after it has left the
    /// job in order, as one that panics does; its areas can be claimed. Of one on another host also: its host has failed.
    Dead,
    /// It is on another host of the job, and there, or has left. Its process and thread are 0, its clock is its host's.
    Remote,
}

/// One line of the list of workers ([`Job::workers`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkerInfo {
    /// Its rank.
    pub rank: Rank,
    /// Its process.
    pub pid: u32,
    /// Its thread.
    pub tid: u32,
    /// Its state.
    pub state: WorkerState,
    /// The last round in which it took part.
    pub last_round: u64,
    /// Its clock.
    pub clock: u64,
}

/// Counters of a job since it was made, all of its processes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Rounds that began.
    pub rounds: u64,
    /// Rounds abandoned because a worker did not come.
    pub abandoned: u64,
    /// How often a worker was left behind by a round that was given up.
    pub late: u64,
    /// Versions published.
    pub published: u64,
    /// Publications postponed, for any of the four causes that follow.
    pub postponed: u64,
    /// Because every reader copy was pinned by a straggler or an observer.
    pub postponed_pinned: u64,
    /// Because another area of the group could not be published.
    pub postponed_group: u64,
    /// Because the owner was not in the round.
    pub postponed_owner: u64,
    /// Because the owner had not looked an area through that is tracked automatically or checked.
    pub postponed_unscanned: u64,
    /// Pieces of areas that were copied into reader copies.
    pub chunks: u64,
    /// Bytes copied into reader copies.
    pub copied_bytes: u64,
    /// Chunks taken over from dead workers.
    pub takeovers: u64,
    /// Rounds taken over from a dead worker that ran them.
    pub round_takeovers: u64,
    /// Rounds taken over from a worker that ran them and stood still, by the stall policy `pin`.
    pub replaced_actors: u64,
    /// Workers seen dead.
    pub deaths: u64,
    /// Areas claimed.
    pub claims: u64,
    /// Processes killed by the stall policy.
    pub kills: u64,
    /// Reader copies pinned by the stall policy.
    pub pinned_copies: u64,
    /// Lines that check mode found written and not logged.
    pub unlogged_lines: u64,
    /// Workers refused: no slot was free, or not the one asked for.
    pub refused_workers: u64,
    /// Observers refused: no slot was free.
    pub refused_observers: u64,
    /// Pins refused: the observer held as many as it may.
    pub refused_pins: u64,
    /// Areas refused for want of memory or slots.
    pub refused_areas: u64,
    /// Claims refused because the owner lives.
    pub refused_claims: u64,
    /// Areas that were to be given, taken or claimed from host to host.
    pub refused_handovers: u64,
}

impl Stats {
    /// Adds up what is counted in a segment's header and tables.
    pub(crate) fn of<'t>(
        rounds: u64,
        counters: &Counters,
        tallies: impl Iterator<Item = &'t Tally> + Clone,
        seats: &[Seat],
    ) -> Stats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let sum = |word: fn(&Tally) -> &AtomicU64| {
            tallies.clone().fold(0u64, |sum, tally| sum.wrapping_add(read(word(tally))))
        };
        let postponed = [
            read(&counters.postponed_pinned),
            read(&counters.postponed_group),
            read(&counters.postponed_owner),
            read(&counters.postponed_unscanned),
        ];
        Stats {
            rounds,
            abandoned: read(&counters.abandoned),
            late: seats.iter().fold(0u64, |sum, seat| sum.wrapping_add(read(&seat.late))),
            published: sum(|tally| &tally.published),
            postponed: postponed.into_iter().fold(0u64, u64::wrapping_add),
            postponed_pinned: postponed[0],
            postponed_group: postponed[1],
            postponed_owner: postponed[2],
            postponed_unscanned: postponed[3],
            chunks: sum(|tally| &tally.chunks),
            copied_bytes: sum(|tally| &tally.copied_bytes),
            takeovers: read(&counters.takeovers),
            round_takeovers: read(&counters.round_takeovers),
            replaced_actors: read(&counters.replaced_actors),
            deaths: read(&counters.deaths),
            claims: read(&counters.claims),
            kills: read(&counters.kills),
            pinned_copies: read(&counters.pinned_copies),
            unlogged_lines: read(&counters.unlogged_lines),
            refused_workers: read(&counters.refused_workers),
            refused_observers: read(&counters.refused_observers),
            refused_pins: read(&counters.refused_pins),
            refused_areas: read(&counters.refused_areas),
            refused_claims: read(&counters.refused_claims),
            refused_handovers: read(&counters.refused_handovers),
        }
    }

    /// Every counter with its name, in the order of the fields.
    pub fn named(&self) -> [(&'static str, u64); 25] {
        [
            ("rounds", self.rounds),
            ("abandoned", self.abandoned),
            ("late", self.late),
            ("published", self.published),
            ("postponed", self.postponed),
            ("postponed_pinned", self.postponed_pinned),
            ("postponed_group", self.postponed_group),
            ("postponed_owner", self.postponed_owner),
            ("postponed_unscanned", self.postponed_unscanned),
            ("chunks", self.chunks),
            ("copied_bytes", self.copied_bytes),
            ("takeovers", self.takeovers),
            ("round_takeovers", self.round_takeovers),
            ("replaced_actors", self.replaced_actors),
            ("deaths", self.deaths),
            ("claims", self.claims),
            ("kills", self.kills),
            ("pinned_copies", self.pinned_copies),
            ("unlogged_lines", self.unlogged_lines),
            ("refused_workers", self.refused_workers),
            ("refused_observers", self.refused_observers),
            ("refused_pins", self.refused_pins),
            ("refused_areas", self.refused_areas),
            ("refused_claims", self.refused_claims),
            ("refused_handovers", self.refused_handovers),
        ]
    }
}

impl Job {
    /// The workers of the job. Asks the kernel who is dead. Those of another host are listed from when that is connected, also after
    /// they have left ([`WorkerState::Remote`]).
    ///
    /// # Errors
    /// [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn workers(&self) -> Result<Vec<WorkerInfo>> {
        self.shared.check_process()?;
        let segment = &self.shared.segment;
        let mut workers = Vec::new();
        for (rank, seat) in segment.seats_of_all_hosts().iter().enumerate() {
            self.shared.is_dead(rank as Rank);
            let state = match seat.state() {
                slot_state::FREE | slot_state::REMOTE | slot_state::LEFT
                    if self.shared.has_failed(rank as Rank) =>
                {
                    WorkerState::Dead
                }
                slot_state::FREE | slot_state::ABSENT => continue,
                slot_state::REMOTE | slot_state::LEFT => WorkerState::Remote,
                slot_state::LIVE if seat.is_straggler() => WorkerState::Straggler,
                slot_state::LIVE => WorkerState::Live,
                slot_state::DEAD | slot_state::LOST => WorkerState::Dead,
                _ => WorkerState::Changing,
            };
            let record = &segment.workers()[rank];
            workers.push(WorkerInfo {
                rank: rank as Rank,
                pid: record.pid.load(Ordering::Relaxed),
                tid: record.tid.load(Ordering::Relaxed),
                state,
                last_round: seat.arrived.load(Ordering::Relaxed),
                clock: segment.clock_of(rank as Rank),
            });
        }
        Ok(workers)
    }

    /// The number of this host in the job; 0 in a job on one host.
    pub fn host(&self) -> usize {
        self.shared.segment.config().here as usize
    }

    /// The name of a host of the job, and its address; its number until its agent has said them. A job on one host has no names.
    pub fn host_name(&self, host: usize) -> Option<String> {
        self.shared.segment.host_names().get(host).map(|name| name.text(host))
    }

    /// The ranks of each host of the job, if it is on several.
    pub fn hosts(&self) -> Vec<Range<Rank>> {
        (0..self.shared.segment.config().hosts as usize)
            .map(|host| self.shared.segment.ranks_of(host))
            .collect()
    }

    /// The job's counters.
    ///
    /// # Errors
    /// [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn stats(&self) -> Result<Stats> {
        self.shared.check_process()?;
        let segment = &self.shared.segment;
        let header = segment.header();
        let rounds = header.sync.acting.rounds.load(Ordering::Relaxed);
        // Reapers count in the last place.
        let (used, reapers) = segment.tallies().split_at(segment.seats().len());
        let tallies = used.iter().chain(reapers.last());
        Ok(Stats::of(rounds, &header.counters, tallies, segment.seats()))
    }
}
