//! The bell, for a thread that sleeps on it while the agent waits for something else.
use crate::engine::shared::Shared;
use crate::engine::wait::{futex_wait, futex_wait_either, low_half};
use crate::protocol::word::{RoundWord, SLEEP};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest sleep while a round is under way whose end the agent waits for: whoever drives it may be dead.
const SHORT: Duration = Duration::from_millis(16);

/// The bell of an agent, as it was before a look: see [`Agent::bell`](super::Agent::bell).
#[derive(Clone, Debug)]
pub struct Bell {
    pub(super) shared: Arc<Shared>,
    pub(super) heard: u32,
    /// The word of the rounds before that look, if the agent waits for a round, too.
    pub(super) round: Option<RoundWord>,
}

impl Bell {
    /// Whether it rang since that look, or a round went on that the agent waits for.
    pub fn has_rung(&self) -> bool {
        let word = || self.shared.segment.rounds().load().0 & !SLEEP;
        self.shared.segment.outlet().listen() & !1 != self.heard & !1
            || self.round.is_some_and(|seen| word() != seen.0 & !SLEEP)
    }

    /// Whether it also waits for a round to go on, which rings no bell.
    pub fn hears_rounds(&self) -> bool {
        self.round.is_some()
    }

    /// Rings it: whoever sleeps on it, or is about to, returns. To have a thread sleep on another bell, which hears rounds, say.
    pub fn ring(&self) {
        self.shared.ring_for_agent();
    }

    /// Sleeps until it rings, at most `limit`; whether it rang since that look. For one thread at a time: the mark that
    /// somebody sleeps is one.
    pub fn wait(&self, limit: Duration) -> bool {
        let outlet = self.shared.segment.outlet();
        // The lowest bit says that somebody sleeps.
        let (awake, asleep) = (self.heard & !1, self.heard | 1);
        if outlet.fall_asleep(awake).is_some() || outlet.listen() == asleep {
            // A ring since makes this return at once.
            match self.round {
                None => drop(futex_wait(outlet.bell, asleep, limit)),
                Some(seen) => self.sleep_in_round(seen, asleep, limit.min(SHORT)),
            }
            outlet.wake_up(asleep);
        }
        self.has_rung()
    }

    /// Sleeps on the bell and on the word of the rounds, unless that has changed since `seen`.
    fn sleep_in_round(&self, seen: RoundWord, asleep: u32, limit: Duration) {
        let word = &*self.shared.segment.header().sync.word;
        let (awake, sleeping) = (RoundWord(seen.0 & !SLEEP), RoundWord(seen.0 | SLEEP));
        // Relaxed: the mark orders nothing, and the release sequence of the last shift goes on.
        let marked = word.compare_exchange(awake.0, sleeping.0, Ordering::Relaxed, Ordering::Relaxed);
        if marked.is_ok() || marked == Err(sleeping.0) {
            let words = [(low_half(word), sleeping.0 as u32), (self.shared.segment.outlet().bell, asleep)];
            futex_wait_either(words, limit);
        }
    }
}
