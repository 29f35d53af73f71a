//! A TCP flow with much to send: the window of RFC 9438 (or of Reno, RFC 5681), selective acknowledgements of every packet,
//! and a loss when three later packets were acknowledged. It crosses the same queue as the sessions beside it.
use hectare_session::Time;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

/// Bytes of a packet, with headers.
pub(crate) const SEGMENT: usize = 1500;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Rule {
    Reno,
    Cubic,
}

pub(crate) struct Tcp {
    /// The host to which it sends.
    pub(crate) to: usize,
    rule: Rule,
    /// In packets.
    window: f64,
    threshold: f64,
    w_max: f64,
    w_reno: f64,
    epoch: Option<Time>,
    on_the_way: BTreeSet<u64>,
    next: u64,
    /// Losses before this packet belong to the decrease that was.
    recovery: u64,
    round_trip: Duration,
    /// Acknowledgements on their way: when they come, of which packet, and when it was sent.
    acks: BinaryHeap<Reverse<(Time, u64, Time)>>,
    timer: Time,
    pub(crate) acked: u64,
    pub(crate) decreases: u64,
}

impl Tcp {
    pub(crate) fn new(to: usize, rule: Rule) -> Tcp {
        Tcp {
            to,
            rule,
            window: 10.0,
            threshold: f64::INFINITY,
            w_max: 0.0,
            w_reno: 0.0,
            epoch: None,
            on_the_way: BTreeSet::new(),
            next: 0,
            recovery: 0,
            round_trip: Duration::from_millis(10),
            acks: BinaryHeap::new(),
            timer: Time::ZERO,
            acked: 0,
            decreases: 0,
        }
    }

    /// When it has something to do.
    pub(crate) fn next_time(&self) -> Time {
        self.acks.peek().map_or(self.timer, |Reverse((at, ..))| (*at).min(self.timer))
    }

    fn beta(&self) -> f64 {
        if self.rule == Rule::Reno { 0.5 } else { 0.7 }
    }

    /// Takes what has come by `now`; how many packets it sends then.
    pub(crate) fn serve(&mut self, now: Time) -> usize {
        while self.acks.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            let Some(Reverse((_, number, sent))) = self.acks.pop() else { break };
            self.round_trip = (self.round_trip * 7 + now.since(sent)) / 8;
            if self.on_the_way.remove(&number) {
                self.acked += 1;
                self.grow(now);
            }
            let lost: Vec<u64> = self.on_the_way.range(..number.saturating_sub(2)).copied().collect();
            for lost in lost {
                self.on_the_way.remove(&lost);
                if lost >= self.recovery {
                    self.recovery = self.next;
                    self.shrink();
                }
            }
            self.timer = now + Duration::from_millis(200).max(self.round_trip * 3);
        }
        if now >= self.timer {
            self.on_the_way.clear();
            self.shrink();
            self.window = 1.0;
            self.recovery = self.next;
            self.timer = now + Duration::from_millis(200).max(self.round_trip * 3);
        }
        (self.window as usize).saturating_sub(self.on_the_way.len())
    }

    /// A packet is sent; when its acknowledgement comes, if it does.
    pub(crate) fn on_sent(&mut self, now: Time, acked_at: Option<Time>) {
        self.on_the_way.insert(self.next);
        self.acks.extend(acked_at.map(|at| Reverse((at, self.next, now))));
        self.next += 1;
    }

    fn shrink(&mut self) {
        self.decreases += 1;
        self.w_max =
            if self.window < self.w_max { self.window * (1.0 + self.beta()) / 2.0 } else { self.window };
        self.window = (self.window * self.beta()).max(2.0);
        (self.threshold, self.w_reno, self.epoch) = (self.window, self.window, None);
    }

    fn grow(&mut self, now: Time) {
        if self.window < self.threshold {
            self.window += 1.0;
            return;
        }
        if self.rule == Rule::Reno {
            self.window += 1.0 / self.window;
            return;
        }
        let begun = *self.epoch.get_or_insert(now);
        self.w_max = self.w_max.max(self.window);
        let k = ((self.w_max - self.w_max * 0.7) / 0.4).cbrt();
        let t = (now.since(begun) + self.round_trip).as_secs_f64();
        let target = (0.4 * (t - k).powi(3) + self.w_max).clamp(self.window, 1.5 * self.window);
        self.w_reno += if self.w_reno < self.w_max { 0.53 } else { 1.0 } / self.window;
        self.window = (self.window + (target - self.window) / self.window).max(self.w_reno);
    }
}
