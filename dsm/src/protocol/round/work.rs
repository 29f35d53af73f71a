//! The work of a round, as its driver sees it.
use super::super::word::RoundWord;

/// The outcome of a pause in a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Look again.
    Again,
    /// Long enough to ask whether the ones waited for are alive.
    Check,
    /// Longer than the job's round timeout.
    OutOfPatience,
    /// Longer than the limit that the waiting worker was given.
    OutOfTime,
}

/// The work of a round, and its way of waiting: the runtime's implementation moves bytes, a model's moves tokens.
pub(crate) trait Work {
    /// Chooses the areas and lays out chunks; false when there is nothing to publish. Called by the actor,
    /// again by its successor if it died: must not depend on how far the first got.
    fn plan(&self, round: u64, me: u32) -> bool;
    /// Takes back what the plan of an actor left that died in the middle of it; the same round is planned again
    /// after this.
    fn plan_again(&self) {}
    /// Claims and copies chunks until none is free.
    fn copy(&self, round: u64, me: u32);
    /// Whether every chunk is done (or abandoned with its area).
    fn copied(&self, round: u64) -> bool;
    /// Takes claims from the dead and applies the job's stall policy to the living; called now and then
    /// while a round waits in [`Phase::Copy`].
    fn tend(&self, round: u64, me: u32);
    /// Makes the new versions visible. Every step is repeatable; called again by a successor.
    fn publish(&self, round: u64, me: u32);
    /// Asks the kernel whether the worker is dead, and if so marks its seat.
    fn is_dead(&self, rank: u32) -> bool;
    /// Runs `act` if the worker is dead, and answers what it answers; false if it is not dead. No reaper
    /// begins meanwhile if `rank` stands for one: of it, unlike of a worker, there may be another soon.
    fn while_dead(&self, rank: u32, act: impl FnOnce() -> bool) -> bool {
        self.is_dead(rank) && act()
    }
    /// Applies the stall policy to an actor that stands still outside of copying.
    fn stalled_actor(&self, rank: u32);
    /// Whether the stall policy lets an actor be passed over that lives and stands still. Then actors say when they
    /// are at work.
    fn may_pass_over(&self) -> bool {
        false
    }
    /// Whether the round `seen` has waited long enough for its actor to be passed over.
    fn passes_over(&self, _seen: RoundWord) -> bool {
        false
    }
    /// Hears that an actor was passed over.
    fn replaced_actor(&self, _rank: u32) {}
    /// Waits a little for the word to differ from `seen`.
    fn pause(&self, seen: RoundWord) -> Pause;
    /// Wakes whoever sleeps on the word.
    fn wake(&self);
    /// Hears that a round has ended, published or given up, after the word says so.
    fn ended(&self) {}
    /// Hears that `round` was given up because workers `missing` did not come.
    fn gave_up(&self, round: u64, missing: &mut dyn Iterator<Item = u32>);
}

/// How a round ended for a participant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Round `.0` was completed.
    Completed(u64),
    /// Round `.0` was given up: somebody did not come in time.
    GivenUp(u64),
}
