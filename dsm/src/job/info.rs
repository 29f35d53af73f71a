//! What can be said of a job: its workers and its counters.
use super::Job;
use crate::error::{Rank, Result};
use crate::sync::round::slot_state;
use std::sync::atomic::Ordering;

/// What a worker is doing, as seen from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerState {
    /// It comes to rounds.
    Live,
    /// It did not come to a round in time, and rounds do not wait for it until it is back.
    Straggler,
    /// It joins or leaves.
    Changing,
    /// The kernel says that its thread is gone; its areas can be claimed.
    Dead,
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
    /// What it is doing.
    pub state: WorkerState,
    /// The last round in which it took part.
    pub last_round: u64,
    /// Its clock.
    pub clock: u64,
}

/// Counters of a job since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Rounds that began.
    pub rounds: u64,
    /// Rounds given up because somebody did not come.
    pub given_up: u64,
    /// How often a worker was left behind by a round that was given up.
    pub late: u64,
    /// Versions published.
    pub published: u64,
    /// Publications put off because every reader copy was pinned, or because a group was not complete.
    pub put_off: u64,
    /// Bytes copied into reader copies.
    pub copied_bytes: u64,
    /// Chunks taken over from dead workers.
    pub takeovers: u64,
    /// Workers seen dead.
    pub deaths: u64,
    /// Areas claimed.
    pub claims: u64,
    /// Processes killed by the stall policy.
    pub kills: u64,
    /// Reader copies quarantined by the stall policy.
    pub quarantines: u64,
    /// Lines that check mode found written and not logged.
    pub unlogged_lines: u64,
}

impl Job {
    /// The workers of the job. Asks the kernel who is dead.
    ///
    /// # Errors
    /// [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn workers(&self) -> Result<Vec<WorkerInfo>> {
        self.shared.check_process()?;
        let segment = &self.shared.segment;
        let mut workers = Vec::new();
        for (rank, seat) in segment.seats().iter().enumerate() {
            self.shared.is_dead(rank as Rank);
            let state = match seat.state.load(Ordering::SeqCst) {
                slot_state::FREE => continue,
                slot_state::LIVE if seat.is_straggler() => WorkerState::Straggler,
                slot_state::LIVE => WorkerState::Live,
                slot_state::DEAD => WorkerState::Dead,
                _ => WorkerState::Changing,
            };
            let record = &segment.workers()[rank];
            workers.push(WorkerInfo {
                rank: rank as Rank,
                pid: record.pid.load(Ordering::Relaxed),
                tid: record.tid.load(Ordering::Relaxed),
                state,
                last_round: seat.arrived.load(Ordering::Relaxed),
                clock: seat.clock.load(Ordering::Relaxed),
            });
        }
        Ok(workers)
    }

    /// The job's counters.
    ///
    /// # Errors
    /// [`Error::ForkedChild`](crate::Error::ForkedChild).
    pub fn stats(&self) -> Result<Stats> {
        self.shared.check_process()?;
        let counters = &self.shared.segment.header().counters;
        let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Ok(Stats {
            rounds: read(&self.shared.segment.header().sync.acting.rounds),
            given_up: read(&counters.given_up),
            late: read(&counters.late),
            published: read(&counters.published),
            put_off: read(&counters.put_off),
            copied_bytes: read(&counters.copied_bytes),
            takeovers: read(&counters.takeovers),
            deaths: read(&counters.deaths),
            claims: read(&counters.claims),
            kills: read(&counters.kills),
            quarantines: read(&counters.quarantines),
            unlogged_lines: read(&counters.unlogged_lines),
        })
    }
}
