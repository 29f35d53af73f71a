//! Limits the log lines of refusals, so that a client that is refused in a loop does not fill the disk.
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tracing::warn;

/// The number of lines of one cause in a period; the others are counted, and logged as a number at its end.
const LINES: u64 = 10;
const PERIOD: Duration = Duration::from_secs(1);

/// Counts the lines of a period.
#[derive(Debug)]
pub(super) struct Limiter {
    since: Instant,
    lines: BTreeMap<&'static str, u64>,
}

impl Limiter {
    pub(super) fn new() -> Limiter {
        Limiter { since: Instant::now(), lines: BTreeMap::new() }
    }

    /// Whether one more line of this cause may be written.
    pub(super) fn admits(&mut self, cause: &'static str) -> bool {
        self.tell();
        let lines = self.lines.entry(cause).or_default();
        *lines += 1;
        *lines <= LINES
    }

    /// The time until [`Limiter::tell`] has something to log; `None` if there is nothing.
    pub(super) fn due(&self) -> Option<Duration> {
        let left_out = self.lines.values().any(|lines| *lines > LINES);
        left_out.then(|| PERIOD.saturating_sub(self.since.elapsed()))
    }

    /// Ends the period if it is over: says how many lines were left out.
    pub(super) fn tell(&mut self) {
        if self.since.elapsed() >= PERIOD {
            self.finish();
        }
    }

    /// Ends the period.
    pub(super) fn finish(&mut self) {
        self.since = Instant::now();
        for (cause, lines) in std::mem::take(&mut self.lines) {
            if lines > LINES {
                warn!(cause, left_out = lines - LINES, "more refusals of this cause, without a line each");
            }
        }
    }
}
