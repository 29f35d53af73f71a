//! Who is there when a round is planned, and the clock that all have reached.
use super::super::runtime::Runtime;
use crate::protocol::standing::Standings;
use std::sync::atomic::Ordering;

impl Runtime<'_> {
    /// Asks where every worker stands. Returns the lowest clock that every one had reached when it arrived here. Of
    /// a worker that does not take part, only what was known before counts: what it did since is not published.
    pub(crate) fn look_around(&self, round: u64, standings: &mut Standings) -> u64 {
        let acting = &self.shared.segment.header().sync.acting;
        let known = acting.lowest_clock.load(Ordering::Relaxed);
        let mut lowest = u64::MAX;
        let mut workers = 0;
        let is_dead = |rank| self.shared.is_dead(rank);
        standings.look_around(&self.rounds(), round, is_dead, |seat, takes_part| {
            let clock = seat.clock.load(Ordering::Relaxed);
            // A worker outside of the clocks has the highest.
            lowest = lowest.min(if takes_part || clock == u64::MAX { clock } else { clock.min(known) });
            workers += u32::from(takes_part);
        });
        acting.plan.workers.store(workers, Ordering::Relaxed);
        // A worker that enters the clocks meanwhile may show one that was the lowest a round ago.
        if known == u64::MAX { lowest } else { lowest.max(known) }
    }
}
