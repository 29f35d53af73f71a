//! The congestion window: CUBIC (RFC 9438) on the frame of RFC 9002 section 7, but that losses of the path itself are not
//! answered (`lossy.rs`), and slow start ends before it overruns the queue (`slow_start.rs`).
use super::lossy::{Before, Lossy, Verdict};
use super::queue::Queue;
use super::rtt::Rtt;
use super::slow_start::{Growth, SlowStart};
use crate::time::Time;
use std::time::Duration;

/// RFC 9438 section 4.1: by how much the window shrinks, and how steep the cubic is (in segments per cubed second).
const BETA: f64 = 0.7;
const C: f64 = 0.4;
/// RFC 9438 section 4.3: what Reno with this decrease adds per round trip, so that the two share alike.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// A decrease because of losses.
#[derive(Debug)]
struct Event {
    before: Before,
    /// The packets that are lost, as far as known.
    losses: u64,
}

/// How many bytes may be on the way.
#[derive(Debug)]
pub(crate) struct Congestion {
    /// The size of a full packet, in bytes.
    segment: f64,
    window: f64,
    threshold: f64,
    /// RFC 9002 section 7.3.2: losses of packets sent before this belong to the event that is being recovered from.
    recovery: Option<Time>,
    /// That event, if losses began it.
    event: Option<Event>,
    /// RFC 9438 section 4.1: the window before the last decrease, in bytes.
    w_max: f64,
    /// When the current rise began, once it has, and with which window.
    epoch: Option<(Time, f64)>,
    /// RFC 9438 section 4.3: the window that Reno would have.
    w_reno: f64,
    /// The most that was on the way since the last round began.
    peak: u64,
    /// The peak of the round before.
    used: u64,
    queue: Queue,
    slow_start: SlowStart,
    lossy: Lossy,
}

impl Congestion {
    pub(crate) fn new(segment: usize) -> Congestion {
        Congestion {
            segment: segment as f64,
            window: Self::initial(segment as f64),
            threshold: f64::INFINITY,
            recovery: None,
            event: None,
            w_max: 0.0,
            epoch: None,
            w_reno: 0.0,
            peak: 0,
            used: 0,
            queue: Queue::new(),
            slow_start: SlowStart::default(),
            lossy: Lossy::new(),
        }
    }

    /// RFC 9002 section 7.2: ten packets, but at most 14720 bytes or two packets if that is more.
    fn initial(segment: f64) -> f64 {
        (10.0 * segment).min((2.0 * segment).max(14720.0))
    }

    /// RFC 9002 section 7.2, kMinimumWindow.
    fn minimum(&self) -> f64 {
        2.0 * self.segment
    }

    /// The path takes packets of another size now (RFC 9002 section 7.2).
    pub(crate) fn resize(&mut self, segment: usize) {
        let was_initial = self.window == Self::initial(self.segment);
        self.segment = segment as f64;
        if was_initial {
            self.window = Self::initial(self.segment);
        }
        self.window = self.window.max(self.minimum());
    }

    pub(crate) fn window(&self) -> u64 {
        self.window as u64
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.window < self.threshold
    }

    pub(crate) fn on_sent(&mut self, in_flight: u64) {
        self.peak = self.peak.max(in_flight);
    }

    /// Whether the sender used the window; it does not grow otherwise (RFC 9002 section 7.8, RFC 9438 section 5.8).
    fn is_used(&self) -> bool {
        let used = self.used.max(self.peak) as f64;
        let share = if self.in_slow_start() { 2.0 } else { 1.25 };
        // A window of two and a half packets is used by two.
        used * share >= self.window || used + self.segment > self.window
    }

    /// A round trip was measured. Comes before the packets of its acknowledgement.
    pub(crate) fn on_round_trip(&mut self, sample: Duration) {
        self.queue.on_sample(sample);
    }

    /// `bytes` of a packet that was sent at `sent` arrived.
    pub(crate) fn on_ack(&mut self, now: Time, sent: Time, bytes: usize, rtt: &Rtt) {
        self.lossy.count(false);
        if self.queue.on_ack(now, sent) {
            (self.used, self.peak) = (self.peak, 0);
        }
        if self.recovery.is_some_and(|start| sent <= start) {
            return;
        }
        if !self.is_used() {
            // RFC 9438 section 5.8: a pause does not count as time in which the window could have grown.
            self.epoch = None;
            return;
        }
        let bytes = bytes as f64;
        if self.in_slow_start() {
            // RFC 9002 section 7.3.1, RFC 9406 section 4.2.
            match self.slow_start.on_ack(&self.queue) {
                Growth::By(divisor) => self.window += bytes / divisor,
                Growth::Over => {
                    (self.threshold, self.w_max, self.w_reno) = (self.window, self.window, self.window);
                }
            }
            return;
        }
        let (start, from) = *self.epoch.get_or_insert((now, self.window));
        if now == start {
            self.w_reno = self.w_reno.max(self.window);
        }
        let segments = |bytes: f64| bytes / self.segment;
        // RFC 9438 section 4.2: W_cubic(t) = C (t - K)^3 + W_max, with K such that W_cubic(0) is the window now.
        let w_max = self.w_max.max(from);
        let k = (segments(w_max - from) / C).cbrt();
        let t = (now.since(start) + rtt.smoothed()).as_secs_f64();
        let cubic = (C * (t - k).powi(3) + segments(w_max)) * self.segment;
        // Section 4.3: Reno's window; once it has reached W_max it grows by a whole segment per round trip.
        let alpha = if self.w_reno < self.w_max { ALPHA } else { 1.0 };
        self.w_reno += alpha * self.segment * bytes / self.window;
        // Sections 4.4 and 4.5: towards the cubic's window of a round trip later, by at most half per round trip.
        let target = cubic.clamp(self.window, 1.5 * self.window);
        self.window += (target - self.window) * bytes / self.window;
        self.window = self.window.max(self.w_reno);
    }

    /// A packet that was sent at `sent` is lost. True if that begins a new event in which the window falls.
    pub(crate) fn on_loss(&mut self, now: Time, sent: Time, rtt: &Rtt) -> bool {
        self.lossy.count(true);
        if self.recovery.is_some_and(|start| sent <= start) {
            if let Some(event) = &mut self.event {
                event.losses += 1;
            }
            return false;
        }
        match self.lossy.judge(self.window, &self.queue, rtt.min()) {
            Verdict::Ignored => false,
            Verdict::InVain(before) => {
                self.take_back(before);
                false
            }
            Verdict::Congestion => {
                let before = Before { window: self.window, w_max: self.w_max, threshold: self.threshold };
                self.lossy.on_decrease(before, &self.queue);
                self.decrease(now);
                self.event = Some(Event { before, losses: 1 });
                true
            }
        }
    }

    /// A packet that was sent at `sent` and counted as lost has arrived. If that holds for all that were lost, there was no
    /// congestion.
    pub(crate) fn on_late(&mut self, sent: Time) {
        self.lossy.count_late();
        if self.recovery.is_none_or(|start| sent > start) {
            return;
        }
        let Some(event) = &mut self.event else { return };
        event.losses = event.losses.saturating_sub(1);
        if event.losses == 0 {
            let before = event.before;
            self.lossy.forget();
            (self.recovery, self.event) = (None, None);
            self.take_back(before);
        }
    }

    /// RFC 9438 section 4.9: a decrease was wrong.
    fn take_back(&mut self, before: Before) {
        self.window = self.window.max(before.window);
        (self.w_max, self.threshold, self.epoch) = (before.w_max, before.threshold, None);
        self.w_reno = self.window;
    }

    /// A packet that was sent at `sent` bore the mark of congestion. True if that begins a new event.
    pub(crate) fn on_mark(&mut self, now: Time, sent: Time) -> bool {
        if self.recovery.is_some_and(|start| sent <= start) {
            return false;
        }
        self.lossy.forget();
        self.decrease(now);
        true
    }

    fn decrease(&mut self, now: Time) {
        (self.recovery, self.event) = (Some(now), None);
        self.epoch = None;
        self.queue.forget();
        // RFC 9438 section 4.7, fast convergence: who loses below the last maximum makes room for others.
        let converging = self.window < self.w_max;
        self.w_max = if converging { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.window = (self.window * BETA).max(self.minimum());
        self.threshold = self.window;
        self.w_reno = self.window;
    }

    /// RFC 9002 section 7.6.2: everything sent in a long time was lost.
    pub(crate) fn on_persistent(&mut self) {
        self.lossy.forget();
        self.w_max = self.window;
        self.window = self.minimum();
        self.threshold = self.threshold.min((self.w_max * BETA).max(self.minimum()));
        (self.recovery, self.event) = (None, None);
        self.epoch = None;
        self.w_reno = self.window;
    }

    /// The rate at which the window is spread over a round trip, in bytes per second (RFC 9002 section 7.7). In slow start
    /// twice the window per round trip, so that pacing does not hold the growth back.
    pub(crate) fn rate(&self, smoothed: Duration) -> f64 {
        let gain = if self.in_slow_start() { 2.0 } else { 1.25 };
        gain * self.window / smoothed.as_secs_f64().max(1e-6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: usize = 1200;

    fn rtt(ms: u64) -> Rtt {
        let mut rtt = Rtt::new();
        rtt.sample(Duration::from_millis(ms), Duration::ZERO);
        rtt
    }

    /// A round trip in which the whole window is used and acknowledged.
    fn round(congestion: &mut Congestion, at: &mut Time, rtt: &Rtt) {
        let sent = *at;
        *at = *at + rtt.smoothed();
        let window = congestion.window();
        congestion.on_sent(window);
        for _ in 0..window / SEGMENT as u64 {
            congestion.on_ack(*at, sent + Duration::from_nanos(1), SEGMENT, rtt);
        }
    }

    #[test]
    fn slow_start_doubles_per_round_trip() {
        let (mut congestion, mut at) = (Congestion::new(SEGMENT), Time::ZERO);
        assert_eq!(congestion.window(), 12_000);
        round(&mut congestion, &mut at, &rtt(10));
        assert_eq!(congestion.window(), 24_000);
        round(&mut congestion, &mut at, &rtt(10));
        assert_eq!(congestion.window(), 48_000);
    }

    #[test]
    fn an_unused_window_does_not_grow() {
        let mut congestion = Congestion::new(SEGMENT);
        for ms in 1..100 {
            congestion.on_sent(SEGMENT as u64);
            let now = Time::from_nanos(ms * 1_000_000);
            congestion.on_ack(now, now, SEGMENT, &rtt(1));
        }
        assert_eq!(congestion.window(), 12_000);
    }

    #[test]
    fn a_window_that_has_no_room_for_one_more_packet_is_used() {
        let mut congestion = Congestion::new(SEGMENT);
        congestion.on_persistent();
        congestion.on_mark(Time::ZERO, Time::from_nanos(1));
        congestion.window = 2.9 * SEGMENT as f64;
        let before = congestion.window();
        congestion.on_sent(2 * SEGMENT as u64);
        congestion.on_ack(Time::from_nanos(9), Time::from_nanos(2), SEGMENT, &rtt(1));
        assert!(congestion.window() > before);
    }

    /// After five round trips of slow start, and when that is.
    fn grown() -> (Congestion, Time) {
        let (mut congestion, mut at) = (Congestion::new(SEGMENT), Time::ZERO);
        (0..5).for_each(|_| round(&mut congestion, &mut at, &rtt(10)));
        (congestion, at)
    }

    #[test]
    fn one_event_shrinks_the_window_once() {
        let (mut congestion, at) = grown();
        let before = congestion.window;
        assert!(congestion.on_loss(at, at, &rtt(10)));
        assert!(!congestion.on_loss(at, at, &rtt(10)));
        assert_eq!(congestion.window, before * BETA);
        assert!(!congestion.on_mark(at, at));
        let later = at + Duration::from_millis(20);
        assert!(congestion.on_mark(later, at + Duration::from_millis(10)));
        assert!(congestion.window < before * BETA);
    }

    #[test]
    fn a_decrease_for_packets_that_were_late_is_taken_back() {
        let (mut congestion, at) = grown();
        let before = congestion.window;
        assert!(congestion.on_loss(at, at, &rtt(10)));
        assert!(!congestion.on_loss(at, at, &rtt(10)));
        congestion.on_late(at);
        assert_eq!(congestion.window, before * BETA, "one of two is lost as far as known");
        // One of another time says nothing.
        congestion.on_late(at + Duration::from_millis(1));
        assert_eq!(congestion.window, before * BETA);
        congestion.on_late(at);
        assert_eq!((congestion.window, congestion.in_slow_start()), (before, true));
        // What bore a mark did not arrive late.
        assert!(congestion.on_mark(at, at));
        congestion.on_late(at);
        assert_eq!(congestion.window, before * BETA);
    }

    /// RFC 9438 section 4.2: after a decrease from W_max the window is back at W_max after K = cbrt(W_max (1 - beta) / C).
    #[test]
    fn the_cubic_is_back_at_its_maximum_after_k_seconds() {
        let mut congestion = Congestion::new(SEGMENT);
        let rtt = rtt(100);
        let w_max = 1000.0 * SEGMENT as f64;
        congestion.window = w_max;
        congestion.on_mark(Time::ZERO, Time::ZERO);
        let k = (1000.0 * (1.0 - BETA) / C).cbrt();
        let mut at = Time::ZERO;
        while at.as_nanos() < (k * 1e9) as u64 {
            round(&mut congestion, &mut at, &rtt);
        }
        let back = congestion.window / w_max;
        assert!((0.99..1.01).contains(&back), "{back}");
        // Flat around the maximum, steep later.
        for _ in 0..20 {
            round(&mut congestion, &mut at, &rtt);
        }
        assert!(congestion.window / w_max < 1.02);
        for _ in 0..60 {
            round(&mut congestion, &mut at, &rtt);
        }
        assert!(congestion.window / w_max > 1.1, "{}", congestion.window / w_max);
    }

    /// RFC 9438 section 4.3: with a short round trip it is never slower than Reno with the same decrease.
    #[test]
    fn with_a_short_round_trip_it_grows_as_reno() {
        let mut congestion = Congestion::new(SEGMENT);
        let rtt = rtt(1);
        congestion.window = 100.0 * SEGMENT as f64;
        congestion.on_mark(Time::ZERO, Time::ZERO);
        let mut at = Time::ZERO;
        for _ in 0..40 {
            round(&mut congestion, &mut at, &rtt);
        }
        let grown = congestion.window / SEGMENT as f64 - 70.0;
        assert!((40.0 * ALPHA * 0.9..40.0 * ALPHA * 1.2).contains(&grown), "{grown}");
    }

    #[test]
    fn persistent_congestion_leaves_two_packets() {
        let mut congestion = Congestion::new(SEGMENT);
        congestion.window = 1e6;
        congestion.on_persistent();
        assert_eq!(congestion.window(), 2 * SEGMENT as u64);
        assert!(congestion.in_slow_start());
        assert!(congestion.threshold < 1e6);
    }
}
