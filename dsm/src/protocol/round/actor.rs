//! The actor of a round: elected, at work, replaced.
use super::super::claim;
use super::super::word::{Actor, Phase, RoundWord};
use super::{Pause, Rounds, Seat, Work};
use crate::primitive::{Ordering, fault_point};

impl Rounds<'_> {
    pub(super) fn actor(&self) -> Actor {
        // Acquire: pairs with the release in `change_actor`. What the actor before did in this round, at work, comes
        // before what its successor does.
        Actor(self.actor.load(Ordering::Acquire))
    }

    /// False if the actor is another than `from`.
    pub(super) fn change_actor(&self, from: Actor, to: Actor) -> bool {
        // Acquire and release: pairs with `actor` and with itself. No more: who runs a round is decided by this word
        // alone, and that the round goes on by its own.
        self.actor.compare_exchange(from.0, to.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// The round is complete: elects an actor, which shifts it to Plan. One that does not is given time, and then the
    /// round is abandoned: its shift will fail.
    pub(crate) fn lead(&self, me: u32, seen: RoundWord, work: &impl Work) {
        let round = seen.round();
        let now = self.actor();
        let mine = Actor::new(round, me).at_work();
        // Never over the election of a newer round, if this look at the round is an old one.
        if now.is_before(round) {
            self.change_actor(now, mine);
            fault_point();
        }
        if self.take_up(me, round) {
            if self.shift(seen, RoundWord::new(round, Phase::Plan), work) {
                fault_point();
                self.plan(me, round, work);
            }
        } else {
            match work.pause(seen) {
                Pause::Again => {}
                Pause::OutOfTime => self.give_up(seen, work),
                pause => {
                    let replaced = self.watch_actor(me, seen, work);
                    // A policy that passes over nobody leaves the round to its actor.
                    if !replaced
                        && pause == Pause::OutOfPatience
                        && work.may_pass_over()
                        && !seen.waits_for_all()
                    {
                        self.give_up(seen, work);
                    }
                }
            }
        }
    }

    pub(super) fn plan(&self, me: u32, round: u64, work: &impl Work) {
        let here = RoundWord::new(round, Phase::Plan);
        let left_out = |seat: &Seat| seat.is_live() && seat.arrived() != round;
        if self.seats().iter().any(left_out) {
            // Relaxed: read by those who see the round past; the shift below releases it.
            self.partial.store(round, Ordering::Relaxed);
        }
        claim::begin_plan();
        if work.plan(round, me) {
            fault_point();
            self.shift(here, RoundWord::new(round, Phase::Copy), work);
            if work.may_pass_over() {
                fault_point();
                self.step_down(me, round);
            }
        } else {
            self.finish(here, work);
        }
    }

    fn finish(&self, here: RoundWord, work: &impl Work) {
        // Release: whoever sees the next round's number in the word sees whether this one was completed.
        self.completed.store(here.round(), Ordering::Release);
        fault_point();
        self.shift(here, RoundWord::new(here.round() + 1, Phase::Idle), work);
    }

    pub(crate) fn act_or_wait(&self, me: u32, seen: RoundWord, work: &impl Work) {
        let round = seen.round();
        if !self.take_up(me, round) {
            if work.pause(seen) != Pause::Again {
                self.watch_actor(me, seen, work);
            }
        } else if seen.phase() == Phase::Plan {
            work.plan_again();
            self.plan(me, round, work);
        } else {
            work.publish(round, me);
            fault_point();
            self.finish(RoundWord::new(round, Phase::Publish), work);
        }
    }

    pub(crate) fn is_actor(&self, me: u32, round: u64) -> bool {
        let now = self.actor();
        now.is_for(round) && now.rank() == me
    }

    /// Goes to work as the actor of `round`: nobody replaces it from now on while it lives. False if somebody else
    /// is the actor, also if it was this worker once.
    pub(crate) fn take_up(&self, me: u32, round: u64) -> bool {
        let (rest, work) = (Actor::new(round, me), Actor::new(round, me).at_work());
        let now = self.actor();
        now == work || (now == rest && self.change_actor(rest, work))
    }

    /// Ends what [`Rounds::take_up`] began: from now on the actor may be replaced if it stands still.
    pub(crate) fn step_down(&self, me: u32, round: u64) {
        let (rest, work) = (Actor::new(round, me), Actor::new(round, me).at_work());
        self.change_actor(work, rest);
        fault_point();
    }

    /// Replaces a dead actor, and applies the stall policy to one that lives and stands still. True if there is now
    /// another actor.
    fn watch_actor(&self, me: u32, seen: RoundWord, work: &impl Work) -> bool {
        let round = seen.round();
        if self.replace_dead_actor(me, round, work) || self.pass_over_actor(me, seen, work) {
            return true;
        }
        let now = self.actor();
        if now.is_for(round) && now.rank() != me {
            work.stalled_actor(now.rank());
        }
        false
    }

    /// Takes the round over from an actor that lives and is not at work, if the stall policy says so. True if this
    /// worker is the actor now.
    pub(crate) fn pass_over_actor(&self, me: u32, seen: RoundWord, work: &impl Work) -> bool {
        let round = seen.round();
        let now = self.actor();
        if !now.is_for(round) || now.rank() == me || now.is_at_work() || !work.passes_over(seen) {
            return false;
        }
        // An actor goes to work by a compare-and-swap on the same word: one of the two fails. A round is planned,
        // published and ended at work only, so it is not past if this one succeeds.
        let mine = Actor::new(round, me);
        let ok = self.change_actor(now, mine);
        if ok {
            work.replaced_actor(now.rank());
        }
        ok
    }

    /// Takes the round over from an actor that the kernel says is dead. True if there is now another actor.
    pub(crate) fn replace_dead_actor(&self, me: u32, round: u64, work: &impl Work) -> bool {
        let now = self.actor();
        if !now.is_for(round) || now.rank() == me {
            return false;
        }
        let mine = Actor::new(round, me);
        work.while_dead(now.rank(), || self.change_actor(now, mine))
    }

    /// Takes a dead worker's election as actor of an open round back, before its slot is anybody's: nobody
    /// would find a free slot's worker dead. In later phases there is none to take back (see `reap`).
    pub(crate) fn depose(&self, dead: u32) {
        let now = self.actor();
        if now.is_for(self.load_total().round()) && now.rank() == dead {
            self.change_actor(now, Actor(0));
        }
    }

    /// Finishes a round past [`Phase::Open`] all of whose participants are dead. The caller holds the lock
    /// that makes it the only one to do so; `me` is a rank that no worker has. A living actor is left at it:
    /// a straggler that waits for the round to be past takes over too, without being part of it.
    pub(crate) fn finish_for_the_dead(&self, me: u32, round: u64, work: &impl Work) {
        let now = self.actor();
        if !now.is_for(round) || (now.rank() != me && !work.is_dead(now.rank())) {
            return;
        }
        let mine = Actor::new(round, me);
        if self.change_actor(now, mine) {
            loop {
                let seen = self.load_total();
                if seen.is_past(round) {
                    return;
                }
                work.tend(round, me);
                self.step(me, seen, work);
            }
        }
    }
}
