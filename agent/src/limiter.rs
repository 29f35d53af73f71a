//! Limits the log lines of refusals, so that who is refused in a loop does not fill the disk: a client of the
//! daemon, or a stranger at the port of an agent.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tracing::warn;

/// The number of lines of one cause in a period; the others are counted, and logged as a number at its end.
const LINES: u64 = 10;
const PERIOD: Duration = Duration::from_secs(1);

/// At most ten lines a second for each cause of refusals; how many were left out is logged when the second is over.
///
/// ```
/// let mut limiter = hectare_agent::Limiter::default();
/// let written = (0..25).filter(|_| limiter.admits("key")).count();
/// assert!(written >= 10 && limiter.admits("version"));
/// ```
#[derive(Debug)]
pub struct Limiter {
    since: Instant,
    lines: BTreeMap<&'static str, u64>,
}

impl Default for Limiter {
    fn default() -> Limiter {
        Limiter { since: Instant::now(), lines: BTreeMap::new() }
    }
}

impl Limiter {
    /// Whether one more line of this cause may be written.
    pub fn admits(&mut self, cause: &'static str) -> bool {
        self.tell();
        let lines = self.lines.entry(cause).or_default();
        *lines += 1;
        *lines <= LINES
    }

    /// The time until [`Limiter::tell`] has something to log; `None` if there is nothing.
    pub fn due(&self) -> Option<Duration> {
        let left_out = self.lines.values().any(|lines| *lines > LINES);
        left_out.then(|| PERIOD.saturating_sub(self.since.elapsed()))
    }

    /// Ends the period if it is over: says how many lines were left out.
    pub fn tell(&mut self) {
        if self.since.elapsed() >= PERIOD {
            self.finish();
        }
    }

    /// Ends the period.
    pub fn finish(&mut self) {
        self.since = Instant::now();
        for (cause, lines) in std::mem::take(&mut self.lines) {
            if lines > LINES {
                warn!(cause, left_out = lines - LINES, "more refusals of this cause, without a line each");
            }
        }
    }
}

impl Drop for Limiter {
    /// No line is lost.
    fn drop(&mut self) {
        self.finish();
    }
}
