//! The round-trip time (RFC 9002 section 5).
use std::time::Duration;

/// The shortest time that timers count (RFC 9002 section 6.1.2, kGranularity).
pub(crate) const GRANULARITY: Duration = Duration::from_millis(1);
/// The longest that a receiver keeps an acknowledgement back (RFC 9000 section 18.2 has 25 ms; hosts are nearer).
pub(crate) const MAX_ACK_DELAY: Duration = Duration::from_millis(2);
/// The round-trip time before the first sample (RFC 9002 section 6.2.2, kInitialRtt, is 333 ms; hosts are nearer).
const INITIAL: Duration = Duration::from_millis(100);

/// Estimates of the round-trip time.
#[derive(Debug, Clone)]
pub(crate) struct Rtt {
    latest: Duration,
    smoothed: Duration,
    variation: Duration,
    min: Duration,
    sampled: bool,
}

impl Rtt {
    pub(crate) fn new() -> Rtt {
        Rtt { latest: INITIAL, smoothed: INITIAL, variation: INITIAL / 2, min: INITIAL, sampled: false }
    }

    /// A packet was acknowledged `latest` after it was sent; the receiver says it kept it back for `delay`. The time that
    /// the network took.
    pub(crate) fn sample(&mut self, latest: Duration, delay: Duration) -> Duration {
        self.latest = latest;
        if !self.sampled {
            // Section 5.2 and 5.3: the first sample replaces what was assumed.
            *self = Rtt { latest, smoothed: latest, variation: latest / 2, min: latest, sampled: true };
            return latest;
        }
        self.min = self.min.min(latest);
        // Section 5.3: the receiver's delay is taken off as far as that leaves at least the minimum.
        let delay = delay.min(MAX_ACK_DELAY);
        let adjusted = if latest >= self.min + delay { latest - delay } else { latest };
        self.variation = (self.variation * 3 + self.smoothed.abs_diff(adjusted)) / 4;
        self.smoothed = (self.smoothed * 7 + adjusted) / 8;
        adjusted
    }

    pub(crate) fn smoothed(&self) -> Duration {
        self.smoothed
    }

    pub(crate) fn min(&self) -> Duration {
        self.min
    }

    pub(crate) fn is_sampled(&self) -> bool {
        self.sampled
    }

    /// After how long a packet is lost of which a later one was acknowledged (section 6.1.2), if so many eighths of a round trip
    /// more than one are waited for.
    pub(crate) fn loss_delay(&self, eighths: u32) -> Duration {
        (self.smoothed.max(self.latest) * (8 + eighths) / 8).max(GRANULARITY)
    }

    /// After how long without an acknowledgement a probe is sent (section 6.2.1).
    pub(crate) fn probe_timeout(&self) -> Duration {
        self.smoothed + (self.variation * 4).max(GRANULARITY) + MAX_ACK_DELAY
    }

    /// How long a time in which everything is lost is persistent congestion (section 7.6.1).
    pub(crate) fn persistent(&self) -> Duration {
        self.probe_timeout() * 3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_follows_the_samples_as_the_formula_says() {
        let ms = Duration::from_millis;
        let mut rtt = Rtt::new();
        rtt.sample(ms(80), ms(50));
        assert_eq!((rtt.smoothed, rtt.variation, rtt.min), (ms(80), ms(40), ms(80)));
        rtt.sample(ms(122), ms(2));
        assert_eq!((rtt.smoothed, rtt.variation, rtt.min), (ms(85), ms(40), ms(80)));
        assert_eq!(rtt.probe_timeout(), ms(85 + 160 + 2));
        assert_eq!(rtt.loss_delay(1), ms(122) * 9 / 8);
        // A delay that would leave less than the minimum is not believed.
        rtt.sample(ms(81), ms(2));
        assert_eq!(rtt.smoothed, (ms(85) * 7 + ms(81)) / 8);
    }
}
