//! A round that waits for nobody: for what nobody writes, such as areas that are lent.
use super::super::word::{Actor, Phase, RoundWord};
use super::{Pause, Rounds, Work};
use crate::primitive::fault_point;

impl Rounds<'_> {
    /// Runs a round of those who have arrived by now, if there are any; all others are left out as stragglers are, and are not taken
    /// for such. Ends one before it all of whose participants are dead: those who live may be waiting for what this round publishes.
    /// Gives up if another round is under way, or whoever takes part in this one has not done its part soon: the caller has more to do. It
    /// is the only one to free slots, as `reaper`: if it gives up in the middle, or dies, those who take part take the round over, or
    /// whoever wants the next one, the next reaper among them; it goes on when it calls this again.
    pub(crate) fn run_at_once(&self, reaper: u32, work: &impl Work) {
        let mut seen = self.open(false, work);
        if seen.phase() != Phase::Open && !self.is_actor(reaper, seen.round()) {
            self.drive_orphaned(seen, reaper, work);
            seen = self.open(false, work);
        }
        let round = seen.round();
        if seen.phase() != Phase::Open {
            let left = self.actor();
            let is_left = left.is_for(round) && left.rank() == reaper;
            if !is_left || !self.change_actor(left, Actor::new(round, reaper)) {
                return;
            }
        } else if self.begin_at_once(reaper, round, work) {
            fault_point();
            self.plan(reaper, round, work);
        } else {
            return;
        }
        let mut has_tended = false;
        loop {
            let seen = self.load_total();
            if seen.is_past(round) {
                return;
            }
            if seen.phase() != Phase::Copy {
                if !self.is_actor(reaper, round) {
                    return;
                }
                self.step(reaper, seen, work);
                continue;
            }
            work.copy(round, reaper);
            if work.copied(round) {
                fault_point();
                self.shift(seen, RoundWord::new(round, Phase::Publish), work);
                continue;
            }
            // A pause that was a sleep, after those that stand still were seen to: they are not waited for.
            match work.pause(seen) {
                Pause::OutOfPatience | Pause::OutOfTime => return,
                Pause::Check if has_tended => return,
                Pause::Check | Pause::Again => work.tend(round, reaper),
            }
            has_tended = true;
        }
    }

    /// Makes `reaper` the actor of an open round, and shifts it to Plan. False if the round is somebody else's, or over.
    fn begin_at_once(&self, reaper: u32, round: u64, work: &impl Work) -> bool {
        let (now, mine) = (self.actor(), Actor::new(round, reaper).at_work());
        // Never over the election of a newer round, nor over that of a worker that lives, who has found this one complete. One who did the
        // same before may have died here.
        let is_left = now.is_for(round) && (now.rank() == reaper || work.is_dead(now.rank()));
        if !(is_left || now.is_before(round)) || !self.change_actor(now, mine) {
            return false;
        }
        fault_point();
        loop {
            let seen = self.load_total();
            if seen.round() != round || seen.phase() != Phase::Open {
                return false;
            }
            // Somebody may have said meanwhile that the round waits for all.
            if self.shift(seen, RoundWord::new(round, Phase::Plan), work) {
                return true;
            }
        }
    }
}
