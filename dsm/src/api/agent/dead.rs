//! Workers of this host that have died: nobody writes the rings of their runs of tasks any more, which other hosts are told.
//!
//! Their neighbours in the run tell as well (`tasks/between_hosts`), but there may be none: others of this host may be in no run, or have
//! left theirs, and nobody has to come to take what the dead held. Of other areas this is not told: somebody may be started in the
//! place of their owner.
use super::Agent;
use crate::api::tasks::is_ring;
use crate::engine::directory::find;
use crate::error::Rank;
use crate::protocol::ownership::{self, OwnershipWord};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Between two questions to the kernel who lives.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The dead of this host, as they were found last, and when that was.
#[derive(Debug, Default)]
pub(super) struct Dead {
    ranks: BTreeSet<Rank>,
    looked: Option<Instant>,
}

impl Agent {
    /// Finds out who has died, and has the areas of those looked at who have since the last time.
    pub(super) fn look_for_dead(&mut self) {
        let shared = &self.desk.shared;
        let segment = &shared.segment;
        let is_early = self.dead.looked.is_some_and(|looked| looked.elapsed() < BETWEEN_LOOKS);
        if !segment.spans_hosts() || is_early {
            return;
        }
        let found: BTreeSet<Rank> = segment.ranks_here().filter(|rank| shared.is_dead(*rank)).collect();
        let is_new = |rank: &Rank| found.contains(rank) && !self.dead.ranks.contains(rank);
        let holder = |index: usize| ownership::load(&segment.areas()[index].own.ownership).holder();
        if found.iter().any(is_new) {
            let of_dead = |index: &usize| holder(*index).as_ref().is_some_and(is_new);
            self.again.extend((0..self.known.len()).filter(of_dead));
        }
        self.dead = Dead { ranks: found, looked: Some(Instant::now()) };
    }

    /// Whether an area is a ring of a worker that is dead.
    pub(super) fn is_ring_of_dead(&self, index: usize, word: OwnershipWord) -> bool {
        word.holder().is_some_and(|rank| self.dead.ranks.contains(&rank))
            && is_ring(&find::name(&self.desk.shared.segment, index))
    }
}
