//! The cost of a relaxed loop, and how stale its reads were.
use super::Relaxation;
use crate::contract::PrefetchStats;
use crate::text::counted;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How stale reads were: how often by 0, 1, 2 ... clocks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Staleness {
    /// `counts[d]`: how often a worker applied another's changes while these were `d` clocks behind its own. The last
    /// counts all greater distances.
    pub counts: Vec<u64>,
}

/// Seconds of all workers together, below which a pass is over before much can be said of it.
const SHORTEST_PASS: f64 = 1e-3;

/// The last of the counts is for this many clocks and more.
const LAST: usize = 63;

impl Staleness {
    pub(crate) fn note(&mut self, clocks: u64) {
        let at = (clocks as usize).min(LAST);
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
    }

    fn merge(&mut self, other: &Staleness) {
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
    }

    /// The greatest staleness measured.
    pub fn most(&self) -> Option<u64> {
        self.counts.iter().rposition(|count| *count > 0).map(|clocks| clocks as u64)
    }

    /// The mean, in clocks.
    pub fn mean(&self) -> f64 {
        let looks: u64 = self.counts.iter().sum();
        let clocks = self.counts.iter().enumerate().map(|(clocks, count)| clocks as f64 * *count as f64);
        // The sum of nothing is -0.
        (clocks.sum::<f64>() + 0.0) / looks.max(1) as f64
    }
}

/// The time of a loop by what it went to, over all its passes with one consistency and interval, and over all workers
/// ([`Context::reports`](crate::Context::reports)).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LoopReport {
    /// The loop: where it stands.
    pub loop_name: String,
    /// Under which consistency these passes ran, and with which interval between clocks. `None` for a loop that relaxes,
    /// buffers and serves no array.
    pub relax: Option<Relaxation>,
    /// Passes.
    pub passes: u64,
    /// Running iterations, summed over the workers.
    pub compute: Duration,
    /// Waiting for parts of arrays, for slower workers, and at the ends of passes.
    pub wait: Duration,
    /// Copying changes and values between workers.
    pub moving: Duration,
    /// Merging contributions.
    pub apply: Duration,
    /// The longest computing time of a worker, as a multiple of the mean.
    pub imbalance: f64,
    /// How many workers ran iterations.
    pub busy: u64,
    /// Under [`Consistency::Async`](super::Consistency::Async): the passes in which relaxed arrays were shared in place.
    pub in_place: u64,
    /// And those in which workers kept copies of them.
    pub in_copies: u64,
    /// Bytes of relaxed and buffered arrays that were copied between workers.
    pub bytes: u64,
    /// Clocks, summed over the workers.
    pub clocks: u64,
    /// Drift: Σ|change| of a clock relative to Σ|value| of a relaxed array, the mean over the clocks at which it was
    /// measured: one of sixteen.
    pub drift: f64,
    /// How often drift was measured.
    pub drift_samples: u64,
    /// How stale reads were. Empty for loops that read in place.
    pub staleness: Staleness,
    /// How many iterations, of all workers together, a worker's reads missed at the end of a cell, on average. Measured
    /// under [`Every::Staleness`](super::Every::Staleness).
    pub stale_iterations: f64,
    /// The maximum missed.
    pub max_stale_iterations: u64,
    /// How often this was measured.
    pub stale_samples: u64,
    /// The cost of serving arrays; fetching and slicing are part of `moving`. Zero for loops without served arrays.
    pub serving: PrefetchStats,
}

impl LoopReport {
    pub(crate) fn of(loop_name: &str, relax: Option<Relaxation>) -> LoopReport {
        LoopReport { loop_name: loop_name.into(), relax, ..LoopReport::default() }
    }

    /// Whether both are of one loop under one promise.
    pub(crate) fn is_of_same(&self, other: &LoopReport) -> bool {
        self.relax == other.relax && self.loop_name == other.loop_name
    }

    /// Adds a report of this worker's to that of the same loop and promise, or to the list.
    pub(crate) fn collect(all: &mut Vec<LoopReport>, report: LoopReport) {
        match all.iter_mut().find(|earlier| earlier.is_of_same(&report)) {
            Some(earlier) => {
                earlier.passes += report.passes;
                earlier.in_place += report.in_place;
                earlier.in_copies += report.in_copies;
                earlier.merge(&report);
            }
            None => all.push(report),
        }
    }

    pub(crate) fn merge(&mut self, other: &LoopReport) {
        self.compute += other.compute;
        self.wait += other.wait;
        self.moving += other.moving;
        self.apply += other.apply;
        self.bytes += other.bytes;
        self.clocks += other.clocks;
        self.drift += other.drift;
        self.drift_samples += other.drift_samples;
        self.staleness.merge(&other.staleness);
        self.serving.merge(&other.serving);
        self.stale_iterations += other.stale_iterations;
        self.stale_samples += other.stale_samples;
        self.max_stale_iterations = self.max_stale_iterations.max(other.max_stale_iterations);
    }

    /// Of a pass under [`Consistency::Async`](super::Consistency::Async).
    pub(crate) fn note_sharing(&mut self, in_copies: bool) {
        *(if in_copies { &mut self.in_copies } else { &mut self.in_place }) += 1;
    }

    /// Before it becomes a mean, `stale_iterations` is a sum.
    pub(crate) fn note_stale_iterations(&mut self, iterations: u64) {
        self.stale_iterations += iterations as f64;
        self.stale_samples += 1;
        self.max_stale_iterations = self.max_stale_iterations.max(iterations);
    }

    /// Advice, in words; empty if nothing stands out.
    pub fn advice(&self) -> Vec<String> {
        let all = (self.compute + self.wait + self.moving + self.apply).as_secs_f64().max(1e-9);
        let share = |part: Duration| part.as_secs_f64() / all;
        let mut advice = Vec::new();
        // Rare events, and very short passes, say nothing of a loop.
        let is_long = all > SHORTEST_PASS * self.passes as f64;
        if self.busy == 1 && self.imbalance > 1.0 {
            advice.push(
                "all iterations ran on one worker: `explain` says why, and how to use the others".into(),
            );
        } else if is_long && self.imbalance > 1.15 && share(self.wait) > 0.1 {
            advice.push(format!(
                "one worker computes {:.2} times the mean: spread iterations of very different length (`permute`), or divide \
                 the loop more finely; or other programs took its core",
                self.imbalance
            ));
        } else if self.clocks > 0 && share(self.wait) > 0.15 {
            let bound =
                if self.in_place + self.in_copies > 0 { "" } else { "a larger bound on staleness, or " };
            advice.push(format!("much of the time is waiting: {bound}fewer clocks in a pass would help"));
        }
        let merging = self.moving.saturating_sub(self.serving.slicing) + self.apply;
        if self.clocks > 2 * self.busy * self.passes && share(merging) > 0.15 {
            advice.push("much of the time goes into merging: fewer clocks in a pass would help".into());
        }
        advice.extend(self.serving.advice(self.passes));
        // Not where the advice is to have fewer.
        if self.drift > 0.1 && advice.is_empty() {
            advice.push(format!(
                "a clock changes values by {:.0} % on average: reads are far from the current values, and more clocks in a \
                 pass would help convergence",
                100.0 * self.drift
            ));
        }
        advice
    }
}

impl fmt::Display for LoopReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = (self.compute + self.wait + self.moving + self.apply).as_secs_f64().max(1e-9);
        let percent = |part: Duration| 100.0 * part.as_secs_f64() / all;
        let passes = counted(self.passes, "pass");
        write!(f, "loop {}", self.loop_name)?;
        if let Some(relax) = &self.relax {
            write!(f, ", {relax}")?;
        }
        writeln!(f, ": {passes}, {all:.3} s of all workers together")?;
        writeln!(
            f,
            "  computing {:.1} %, waiting {:.1} %, moving {:.1} %, applying {:.1} %; the busiest worker has {:.2} times the \
             mean",
            percent(self.compute),
            percent(self.wait),
            percent(self.moving),
            percent(self.apply),
            self.imbalance
        )?;
        if self.in_place + self.in_copies > 0 {
            let (in_place, in_copies) = (self.in_place, self.in_copies);
            writeln!(
                f,
                "  asynchronous: passes in place {in_place}, with a copy for each worker {in_copies}"
            )?;
        }
        if self.clocks > 0 {
            write!(f, "  {}, {:.1} MB copied", counted(self.clocks, "clock"), self.bytes as f64 / 1e6)?;
            if self.drift_samples > 0 {
                write!(f, ", drift {:.2e} a clock", self.drift)?;
            }
            writeln!(f)?;
        }
        if self.serving != PrefetchStats::default() {
            write!(f, "{}", self.serving)?;
        }
        if let Some(most) = self.staleness.most() {
            write!(f, "  staleness in clocks: mean {:.2}, at most {most};", self.staleness.mean())?;
            for (clocks, count) in self.staleness.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                write!(f, " {clocks}: {count}")?;
            }
            writeln!(f)?;
        }
        if self.stale_samples > 0 {
            let most = self.max_stale_iterations;
            writeln!(
                f,
                "  reads were {:.0} iterations stale in the mean, at most {most}",
                self.stale_iterations
            )?;
        }
        self.advice().iter().try_for_each(|advice| writeln!(f, "  {advice}"))
    }
}
