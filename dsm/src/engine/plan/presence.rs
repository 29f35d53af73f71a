//! Which workers are present when a round is planned, and the clock that all of them have reached.
use super::super::runtime::{Runtime, Scratch};
use crate::protocol::round::{Seat, slot_state};
use std::sync::atomic::Ordering;

impl Runtime<'_> {
    /// Asks where every worker stands. Returns the lowest clock that every one of this host had reached when it arrived here. Of
    /// a worker that does not take part, only what was known before counts: what it did since is not published. `None`: the clocks stay
    /// as they are, since one of those who are in them was not waited for
    /// ([`Rounds::run_at_once`](crate::protocol::round::Rounds::run_at_once)). It may wait for a clock, and all who do go on after the
    /// same round.
    pub(crate) fn look_around(&self, round: u64, scratch: &mut Scratch) -> Option<u64> {
        let acting = &self.shared.segment.header().sync.acting;
        let known = acting.local_clock.load(Ordering::Relaxed);
        let mut lowest = u64::MAX;
        let (mut workers, mut is_complete, mut is_reached) = (0, true, true);
        let is_dead = |rank| self.shared.is_dead(rank);
        scratch.presences.look_around(&self.rounds(), round, is_dead, |seat, takes_part| {
            let clock = seat.clock.load(Ordering::Relaxed);
            // A worker outside of the clocks has the highest.
            lowest = lowest.min(if takes_part || clock == u64::MAX { clock } else { clock.min(known) });
            workers += u32::from(takes_part);
            let is_there = takes_part || seat.is_straggler();
            is_complete &= is_there;
            is_reached &= is_there || clock == u64::MAX;
        });
        acting.plan.workers.store(workers, Ordering::Relaxed);
        scratch.is_complete = is_complete;
        if !is_reached {
            return None;
        }
        if lowest == u64::MAX && !self.all_have_come() {
            return Some(known);
        }
        // A worker that enters the clocks meanwhile may show one that was the lowest a round ago.
        Some(if known == u64::MAX { lowest } else { lowest.max(known) })
    }

    /// Whether no worker of this host is still to come for the first time. In a job on several hosts, those who are there may be
    /// outside of the clocks before the others come, and the other hosts, which would hear of no clock, would not wait for them.
    #[inline(never)]
    fn all_have_come(&self) -> bool {
        let segment = &self.shared.segment;
        let here = segment.ranks_here();
        let seats = || &segment.all_seats()[here.start as usize..here.end as usize];
        // Who joins has no clock yet, and is counted in no look around.
        let has_come = |seat: &Seat| match seat.incarnation.load(Ordering::Relaxed) {
            0 => false,
            1 => seat.state() != slot_state::JOINING,
            _ => true,
        };
        !segment.spans_hosts() || seats().iter().all(has_come)
    }

    /// The lowest clock of all workers, if that of this host's is `local`: those of other hosts as far as they were told.
    #[inline]
    pub(crate) fn lowest_of_all(&self, local: u64) -> u64 {
        if self.shared.segment.spans_hosts() { self.lowest_with_others(local) } else { local }
    }

    #[inline(never)]
    fn lowest_with_others(&self, local: u64) -> u64 {
        let segment = &self.shared.segment;
        let known = segment.header().sync.acting.lowest_clock.load(Ordering::Relaxed);
        let lowest = local.min(segment.remote_clocks().lowest_clock());
        if known == u64::MAX { lowest } else { lowest.max(known) }
    }
}
