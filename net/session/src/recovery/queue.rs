//! Whether a queue stands on the path, from the shortest round trip of each round.
//!
//! A queue that drains between bursts leaves short round trips; one that stands makes all of them long. So the shortest of a
//! round trip's worth of samples is asked, as by HyStart++ (RFC 9406) and BBR (draft-ietf-ccwg-bbr, section 5.5.7).
use crate::time::Time;
use std::time::Duration;

/// A queue counts from a quarter of the shortest round trip on: a quarter of the window is what is sent at once ..
const SHARE: u32 = 4;
/// .. and from this on, as host noise is not shorter.
const SLACK: Duration = Duration::from_micros(100);

/// The round trips of this round and the one before.
#[derive(Debug)]
pub(crate) struct Queue {
    /// The acknowledgement of what is sent from then on ends the round.
    start: Time,
    rounds: u64,
    shortest: Option<Duration>,
    samples: u32,
    before: Option<Duration>,
}

impl Queue {
    pub(crate) fn new() -> Queue {
        Queue { start: Time::ZERO, rounds: 0, shortest: None, samples: 0, before: None }
    }

    /// How many round trips have passed.
    pub(crate) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// The shortest of this round, of how many, and the shortest of the one before.
    pub(crate) fn shortest(&self) -> (Option<Duration>, u32, Option<Duration>) {
        (self.shortest, self.samples, self.before)
    }

    /// A round trip was measured.
    pub(crate) fn on_sample(&mut self, sample: Duration) {
        self.shortest = Some(self.shortest.map_or(sample, |shortest| shortest.min(sample)));
        self.samples += 1;
    }

    /// A packet that was sent at `sent` arrived. True if that begins a round.
    pub(crate) fn on_ack(&mut self, now: Time, sent: Time) -> bool {
        if sent < self.start {
            return false;
        }
        self.before = self.shortest.take().or(self.before);
        (self.start, self.samples) = (now, 0);
        self.rounds += 1;
        true
    }

    /// The window fell: what was seen before says nothing of now.
    pub(crate) fn forget(&mut self) {
        (self.shortest, self.samples, self.before) = (None, 0, None);
    }

    /// So much longer than the shortest ever is a queue.
    pub(crate) fn slack(shortest: Duration) -> Duration {
        (shortest / SHARE).max(SLACK)
    }

    /// Whether a queue stands, on a path whose shortest round trip ever is `min`.
    pub(crate) fn is_standing(&self, min: Duration) -> bool {
        let seen = self.shortest.into_iter().chain(self.before).min();
        seen.is_some_and(|seen| seen > min + Self::slack(min))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn one_short_round_trip_shows_that_no_queue_stands() {
        let mut queue = Queue::new();
        assert!(!queue.is_standing(us(1000)), "nothing is known");
        for sample in [1900, 1300, 1800] {
            queue.on_sample(us(sample));
        }
        assert!(queue.is_standing(us(1000)));
        queue.on_sample(us(1200));
        assert!(!queue.is_standing(us(1000)));
    }

    #[test]
    fn the_round_before_counts_until_there_is_another() {
        let at = |us: u64| Time::from_nanos(us * 1000);
        let mut queue = Queue::new();
        queue.on_sample(us(500));
        assert!(queue.on_ack(at(500), at(0)));
        assert!(!queue.on_ack(at(600), at(499)), "it was sent before the round");
        queue.on_sample(us(5000));
        assert!(!queue.is_standing(us(400)), "the round before had none");
        assert!(queue.on_ack(at(5500), at(500)));
        assert!(queue.is_standing(us(400)));
        queue.on_sample(us(5000));
        queue.forget();
        assert!(!queue.is_standing(us(400)));
        assert_eq!(queue.rounds(), 2);
    }

    #[test]
    fn noise_of_the_host_is_no_queue() {
        let mut queue = Queue::new();
        queue.on_sample(us(110));
        assert!(!queue.is_standing(us(20)));
        queue.on_sample(us(105));
        queue.forget();
        queue.on_sample(us(125));
        assert!(queue.is_standing(us(20)));
    }
}
