//! The slots of workers that are gone: when a slot may be another worker's, and how many are taken.
use super::super::word::{Phase, RoundWord};
use super::{Rounds, Seat, Work, slot_state};
use crate::primitive::{AtomicU64, Ordering, fault_point};

impl Rounds<'_> {
    /// Frees the slots of the workers `dead`, who were dead before this call. Only between rounds, so that a claim on a
    /// chunk that names a dead worker is never taken for one of the slot's next worker. The caller is the only one to do
    /// so, as `reaper`, a rank that no worker has; `orphan` makes the areas of a worker claimable.
    pub(crate) fn bury(
        &self,
        dead: &[u32],
        reaper: u32,
        work: &impl Work,
        orphan: impl Fn(u32),
        wait: impl Fn(),
    ) {
        self.end_orphaned(reaper, work, wait);
        for rank in dead {
            orphan(*rank);
            self.depose(*rank);
            fault_point();
            self.all_seats[*rank as usize].set_state(slot_state::FREE);
            fault_point();
        }
    }

    /// Runs a round without participants, since no worker of this host lives: what belongs to none of them is published. False if
    /// there is one, who runs rounds. The caller sees to it that nobody joins, and is the only one to free slots, as `reaper`.
    pub(crate) fn run_deserted(&self, reaper: u32, work: &impl Work, wait: impl Fn()) -> bool {
        if self.seats().iter().any(Seat::is_live) {
            return false;
        }
        // One before the caller may have died in the middle.
        self.end_orphaned(reaper, work, wait);
        let opened = self.open(false, work);
        self.drive(reaper, opened.round(), work);
        true
    }

    /// Returns when no round is past [`Phase::Open`]. An open round has no claims yet, and a dead worker makes none.
    fn end_orphaned(&self, reaper: u32, work: &impl Work, wait: impl Fn()) {
        loop {
            let seen = self.load();
            if matches!(seen.phase(), Phase::Idle | Phase::Open) {
                return;
            }
            self.drive_orphaned(seen, reaper, work);
            if seen.phase() == Phase::Copy {
                // What a reaper before this one had claimed: nobody finds it dead while there is one.
                work.copy(seen.round(), reaper);
            }
            wait();
        }
    }

    /// Finishes a round all of whose participants are dead, unless somebody living is at it; or one that a reaper before this one has left
    /// to those who take part ([`Rounds::run_at_once`]): they cannot take it over while there is a reaper.
    pub(super) fn drive_orphaned(&self, seen: RoundWord, reaper: u32, work: &impl Work) {
        let round = seen.round();
        let lives = |rank: u32| self.takes_part(rank, round) && !work.is_dead(rank);
        if !self.is_actor(reaper, round) && (0..self.seats().len() as u32).any(lives) {
            return;
        }
        fault_point();
        // Chunks are inherited from the dead.
        self.finish_for_the_dead(reaper, round, work);
    }

    /// How many seats are taken by workers of this host.
    pub(crate) fn taken(&self) -> u64 {
        let is_taken = |seat: &&Seat| {
            matches!(seat.state(), slot_state::JOINING | slot_state::LIVE | slot_state::LEAVING)
        };
        self.seats().iter().filter(is_taken).count() as u64
    }

    /// Counts the seats that are taken into `word`, in its low half. Whoever changes a seat calls this afterwards; who
    /// dies in between leaves it to the next.
    ///
    /// The high half of the word rises with every count: one that began before another ended, and may not have seen what
    /// that one saw, is done again. So once the last change is counted, the number is right.
    pub(crate) fn recount(&self, word: &AtomicU64) {
        // Acquire: pairs with the release below. What is counted from here on is not older than what the count before this
        // saw.
        let mut seen = word.load(Ordering::Acquire);
        loop {
            let next = (seen >> 32).wrapping_add(1) << 32 | self.taken();
            // Release: the caller's change of a seat comes before; pairs with the acquire above, and here if another was
            // faster.
            match word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }
}
