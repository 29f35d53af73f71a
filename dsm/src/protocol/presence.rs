//! Where every worker stands when a round is planned, asked once per plan: who lives may be noted dead at any moment,
//! and all areas of one owner have to be planned, or none.
use super::round::{Rounds, Seat};

/// Where a worker stood when a round was planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Inside the round: what it wrote is published. It may have died there.
    Present,
    /// It lives and is not in the round.
    Outside,
    /// It is dead, or has left.
    Gone,
}

/// Where each worker stood.
#[derive(Debug, Default)]
pub(crate) struct Presences(Vec<Presence>);

impl Presences {
    /// Asks where every worker stands. `each` hears of those that live, and whether they take part.
    pub(crate) fn look_around(
        &mut self,
        rounds: &Rounds<'_>,
        round: u64,
        is_dead: impl Fn(u32) -> bool,
        mut each: impl FnMut(&Seat, bool),
    ) {
        self.0.clear();
        for (rank, seat) in (0..).zip(rounds.seats()) {
            let takes_part = rounds.takes_part(rank, round);
            // Nobody waits for a known straggler, so nobody else asks whether it is dead; its pins and its
            // clock would stay.
            if !takes_part && (!seat.is_live() || is_dead(rank)) {
                self.0.push(Presence::Gone);
                continue;
            }
            each(seat, takes_part);
            self.0.push(if takes_part { Presence::Present } else { Presence::Outside });
        }
    }

    /// Where a worker stood. Who came after the look around is outside.
    pub(crate) fn of(&self, rank: u32) -> Presence {
        self.0.get(rank as usize).copied().unwrap_or(Presence::Outside)
    }
}
