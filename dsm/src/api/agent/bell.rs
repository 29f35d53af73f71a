//! The bell, for a thread that sleeps on it while the agent waits for something else.
use crate::engine::shared::Shared;
use crate::engine::wait::futex_wait;
use std::sync::Arc;
use std::time::Duration;

/// The longest sleep while a round is under way whose end the agent waits for: whoever drives it may be dead.
const SHORT: Duration = Duration::from_millis(16);

/// The bell of an agent, as it was before a look: see [`Agent::bell`](super::Agent::bell).
#[derive(Clone, Debug)]
pub struct Bell {
    pub(super) shared: Arc<Shared>,
    pub(super) heard: u32,
    /// The round before that look, if the agent waits for its end, too.
    pub(super) round: Option<u64>,
}

impl Bell {
    /// Whether it rang since that look, or the round ended that the agent waits for.
    pub fn has_rung(&self) -> bool {
        let is_past = |round| self.shared.segment.rounds().load_total().is_past(round);
        self.shared.segment.doorbell().listen() & !1 != self.heard & !1 || self.round.is_some_and(is_past)
    }

    /// Before the agent sleeps until it rings: from now on it also rings at the end of the round that the agent waits for, if it waits
    /// for one. How long to sleep at most; none if it has rung.
    pub fn before_sleep(&self, limit: Duration) -> Option<Duration> {
        if self.round.is_some() {
            self.shared.segment.doorbell().await_round();
        }
        let longest = self.round.map_or(limit, |_| limit.min(SHORT));
        (!self.has_rung()).then_some(longest)
    }

    /// Sleeps until it rings, at most `limit`; whether it rang since that look. For one thread at a time: the mark that
    /// somebody sleeps is one.
    pub fn wait(&self, limit: Duration) -> bool {
        let Some(limit) = self.before_sleep(limit) else { return true };
        let doorbell = self.shared.segment.doorbell();
        // The lowest bit says that somebody sleeps.
        let (awake, asleep) = (self.heard & !1, self.heard | 1);
        if doorbell.fall_asleep(awake).is_some() || doorbell.listen() == asleep {
            // A ring since makes this return at once.
            futex_wait(doorbell.bell, asleep, limit);
            doorbell.wake_up(asleep);
        }
        self.has_rung()
    }
}
