//! Pacing (RFC 9002 section 7.7): a bucket of bytes that fills at the rate of the congestion window.
use crate::time::Time;
use std::time::Duration;

/// For how long the bucket fills when nothing is sent.
const DEPTH: Duration = Duration::from_millis(1);
/// Its smallest capacity: the initial window, which may go at once, and one call of segmentation offload.
const LEAST: f64 = 65536.0;

/// A token bucket: the bytes that may be sent at once.
#[derive(Debug)]
pub(crate) struct Pacer {
    tokens: f64,
    at: Time,
}

impl Pacer {
    pub(crate) fn new(now: Time) -> Pacer {
        Pacer { tokens: LEAST, at: now }
    }

    /// How many bytes may be sent now, at `rate` bytes per second.
    pub(crate) fn ready(&mut self, now: Time, rate: f64) -> u64 {
        let most = (rate * DEPTH.as_secs_f64()).max(LEAST);
        self.tokens = (self.tokens + rate * now.since(self.at).as_secs_f64()).min(most);
        self.at = self.at.max(now);
        self.tokens.max(0.0) as u64
    }

    pub(crate) fn on_sent(&mut self, bytes: usize) {
        self.tokens -= bytes as f64;
    }

    /// When `bytes` may be sent.
    pub(crate) fn when(&self, bytes: usize, rate: f64) -> Time {
        let missing = (bytes as f64 - self.tokens).max(0.0);
        self.at + Duration::from_secs_f64((missing / rate).min(1.0)) + Duration::from_nanos(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_lets_through_the_rate_and_one_burst() {
        let rate = 1e8;
        let mut pacer = Pacer::new(Time::ZERO);
        let (mut sent, mut now) = (0, Time::ZERO);
        while now.as_nanos() < 100_000_000 {
            if pacer.ready(now, rate) >= 1200 {
                pacer.on_sent(1200);
                sent += 1200;
            } else {
                let next = pacer.when(1200, rate);
                assert!(next > now && next.since(now) < Duration::from_micros(13));
                now = next;
            }
        }
        // 100 ms at 100 MB/s are 10 MB; the burst is a millisecond's worth.
        assert!((10_000_000..10_200_000).contains(&sent), "{sent}");
    }
}
