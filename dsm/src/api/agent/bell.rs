//! The bell, for a thread that sleeps on it while the agent waits for something else.
use crate::engine::shared::Shared;
use crate::engine::wait::futex_wait;
use std::sync::Arc;
use std::time::Duration;

/// The bell of an agent, as it was before a look: see [`Agent::bell`](super::Agent::bell).
#[derive(Clone, Debug)]
pub struct Bell {
    pub(super) shared: Arc<Shared>,
    pub(super) heard: u32,
}

impl Bell {
    /// Whether it rang since that look.
    pub fn has_rung(&self) -> bool {
        self.shared.segment.outlet().listen() & !1 != self.heard & !1
    }

    /// Sleeps until it rings, at most `limit`; whether it rang since that look. For one thread at a time: the mark that
    /// somebody sleeps is one.
    pub fn wait(&self, limit: Duration) -> bool {
        let outlet = self.shared.segment.outlet();
        // The lowest bit says that somebody sleeps.
        let (awake, asleep) = (self.heard & !1, self.heard | 1);
        if outlet.fall_asleep(awake).is_some() || outlet.listen() == asleep {
            // A ring since makes this return at once.
            let _ = futex_wait(outlet.bell, asleep, limit);
            outlet.wake_up(asleep);
        }
        self.has_rung()
    }
}
