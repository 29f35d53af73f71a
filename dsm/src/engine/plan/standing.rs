//! Where every worker stands when a round is planned, asked once per plan: who lives may be noted dead at any moment,
//! and all areas of one owner have to be planned, or none.
use super::super::runtime::{Runtime, Scratch};
use std::sync::atomic::Ordering;

/// Where a worker stood when a round was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Inside the round: what it wrote is published. It may have died there.
    Present,
    /// It lives and is not in the round.
    Outside,
    /// It is dead, or has left.
    Gone,
}

impl Scratch {
    /// Where the owner of an area stands. Who came after the look around is outside.
    pub(crate) fn standing_of(&self, rank: u32) -> Standing {
        self.standing.get(rank as usize).copied().unwrap_or(Standing::Outside)
    }
}

impl Runtime<'_> {
    /// Asks where every worker stands. Returns the lowest clock that every one had reached when it arrived here. Of
    /// a worker that does not take part, only what was known before counts: what it did since is not published.
    pub(crate) fn look_around(&self, round: u64, standing: &mut Vec<Standing>) -> u64 {
        let segment = &self.shared.segment;
        let acting = &segment.header().sync.acting;
        let known = acting.lowest_clock.load(Ordering::Relaxed);
        let mut lowest = u64::MAX;
        let mut workers = 0;
        standing.clear();
        for (rank, seat) in segment.seats().iter().enumerate() {
            let takes_part = segment.rounds().takes_part(rank as u32, round);
            // Nobody waits for a known straggler, so nobody else asks whether it is dead; its pins and its
            // clock would stay.
            if !takes_part && (!seat.is_live() || self.shared.is_dead(rank as u32)) {
                standing.push(Standing::Gone);
                continue;
            }
            let clock = seat.clock.load(Ordering::Relaxed);
            // A worker outside of the clocks has the highest.
            lowest = lowest.min(if takes_part || clock == u64::MAX { clock } else { clock.min(known) });
            workers += u32::from(takes_part);
            standing.push(if takes_part { Standing::Present } else { Standing::Outside });
        }
        acting.plan.workers.store(workers, Ordering::Relaxed);
        // A worker that enters the clocks meanwhile may show one that was the lowest a round ago.
        if known == u64::MAX { lowest } else { lowest.max(known) }
    }
}
