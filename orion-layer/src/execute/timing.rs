//! Where a loop's time went on this worker.
use crate::context::Context;
use crate::site::by_place;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The cost of one loop on this worker so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Timing {
    /// The loop: where it stands.
    pub loop_name: String,
    /// Finding dependences, counting entries in cells, cutting, choosing a schedule: once.
    pub planning: Duration,
    /// Bringing entries to where the plan wants them: in the first pass, and when another loop has moved them.
    pub placing: Duration,
    /// All passes, without planning and with placing.
    pub running: Duration,
    /// How many passes.
    pub passes: u64,
}

impl Timing {
    /// Adds what another plan of the same loop has cost.
    pub(super) fn add(&mut self, other: &Timing) {
        self.planning += other.planning;
        self.placing += other.placing;
        self.running += other.running;
        self.passes += other.passes;
    }
}

/// Runs `act` and adds its time to what `part` names.
pub(super) fn timed<R>(part: &mut Duration, act: impl FnOnce() -> R) -> R {
    let since = Instant::now();
    let result = act();
    *part += since.elapsed();
    result
}

impl Context<'_> {
    /// The cost of each loop on this worker so far, in the order of the program's source; a loop that was
    /// planned several times, for other arrays or clocks, has one for each, and one for all whose plans were dropped, as an array of theirs
    /// was, or as there were many.
    pub fn timings(&self) -> Vec<Timing> {
        let mut plans: Vec<_> = self.plans().collect();
        plans.sort_by(|a, b| by_place(&a.nest.name, &b.nest.name).then(a.number.cmp(&b.number)));
        plans.iter().map(|plan| plan.timing.borrow().clone()).collect()
    }
}
