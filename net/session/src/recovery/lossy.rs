//! Which losses are the path's own, and no word of congestion.
//!
//! A loss is the path's own if it fits no queue that is full: no queue stands, as round trips show (as in TCP Veno: Fu and
//! Liew, JSAC 2003), and it happens at a window clearly below that of the loss before, which was answered by a decrease:
//! the window is not its cause. Then that decrease is taken back, and for some round trips losses without a queue are not
//! answered. After these the next loss is answered again, and so on: a path that changes, and a queue that was there from the
//! start and hid in the shortest round trip, show within one such time. More than a fifth lost is always congestion.
use super::queue::Queue;
use std::time::Duration;

/// The round trips for which a path that was found lossy counts as such.
const TRUSTED: u64 = 8;
/// A window below so much of the one before the decrease is no cause of losses.
const BELOW: f64 = 0.8;
/// A larger share of lost packets is always congestion.
const MOST: f64 = 0.2;
/// About how many packets the share is taken over.
const SMOOTH: f64 = 64.0;

/// The controller before a decrease.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Before {
    pub(crate) window: f64,
    pub(crate) w_max: f64,
    pub(crate) threshold: f64,
}

/// The meaning of a loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Verdict {
    /// The window has to fall.
    Congestion,
    /// Nothing.
    Ignored,
    /// The last decrease was in vain.
    InVain(Before),
}

/// The loss statistics of a path.
#[derive(Debug)]
pub(crate) struct Lossy {
    share: f64,
    /// The controller before the last decrease, and the round of that.
    before: Option<(Before, u64)>,
    trusted_until: u64,
}

impl Lossy {
    pub(crate) fn new() -> Lossy {
        Lossy { share: 0.0, before: None, trusted_until: 0 }
    }

    /// A packet arrived, or did not.
    pub(crate) fn count(&mut self, lost: bool) {
        self.share += (f64::from(u8::from(lost)) - self.share) / SMOOTH;
    }

    /// A packet that was counted as lost arrived.
    pub(crate) fn count_late(&mut self) {
        self.share = (self.share - 1.0 / SMOOTH).max(0.0);
    }

    /// The window falls.
    pub(crate) fn on_decrease(&mut self, before: Before, queue: &Queue) {
        self.before = Some((before, queue.rounds()));
        self.trusted_until = 0;
    }

    /// All is new: a decrease that is certain.
    pub(crate) fn forget(&mut self) {
        (self.before, self.trusted_until) = (None, 0);
    }

    /// A loss at `window`, on a path whose shortest round trip ever is `min`.
    pub(crate) fn judge(&mut self, window: f64, queue: &Queue, min: Duration) -> Verdict {
        if self.share > MOST || queue.is_standing(min) {
            return Verdict::Congestion;
        }
        let round = queue.rounds();
        if round < self.trusted_until {
            return Verdict::Ignored;
        }
        match self.before {
            // Losses before the decrease shows say nothing of its effect.
            Some((_, since)) if round <= since + 1 => Verdict::Ignored,
            Some((before, _)) if window < BELOW * before.window => {
                self.trusted_until = round + TRUSTED;
                self.before = None;
                Verdict::InVain(before)
            }
            _ => Verdict::Congestion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    const BEFORE: Before = Before { window: 100.0, w_max: 90.0, threshold: 80.0 };
    const MIN: Duration = Duration::from_millis(1);

    /// Rounds without a queue, or with one.
    fn pass(queue: &mut Queue, rounds: u64, ms: u64) {
        for _ in 0..rounds {
            queue.on_sample(Duration::from_millis(ms));
            let next = Time::from_nanos((queue.rounds() + 1) * 1_000_000);
            queue.on_ack(next, next);
        }
    }

    #[test]
    fn a_loss_at_a_lower_window_makes_the_decrease_vain() {
        let (mut lossy, mut queue) = (Lossy::new(), Queue::new());
        assert_eq!(lossy.judge(100.0, &queue, MIN), Verdict::Congestion, "the first");
        lossy.on_decrease(BEFORE, &queue);
        assert_eq!(lossy.judge(70.0, &queue, MIN), Verdict::Ignored, "in the same round");
        pass(&mut queue, 2, 1);
        assert_eq!(lossy.judge(95.0, &queue, MIN), Verdict::Congestion, "where it was lost before");
        assert_eq!(lossy.judge(70.0, &queue, MIN), Verdict::InVain(BEFORE));
        pass(&mut queue, TRUSTED - 1, 1);
        assert_eq!(lossy.judge(200.0, &queue, MIN), Verdict::Ignored);
        pass(&mut queue, 1, 1);
        assert_eq!(lossy.judge(200.0, &queue, MIN), Verdict::Congestion, "it is tried again");
    }

    #[test]
    fn a_queue_or_many_losses_are_always_congestion() {
        let (mut lossy, mut queue) = (Lossy::new(), Queue::new());
        lossy.on_decrease(BEFORE, &queue);
        pass(&mut queue, 4, 2);
        assert_eq!(lossy.judge(70.0, &queue, MIN), Verdict::Congestion);
        pass(&mut queue, 4, 1);
        for at in 0..400 {
            lossy.count(at % 3 == 0);
        }
        assert_eq!(lossy.judge(70.0, &queue, MIN), Verdict::Congestion);
        for at in 0..400 {
            lossy.count(at % 10 == 0);
        }
        assert_eq!(lossy.judge(70.0, &queue, MIN), Verdict::InVain(BEFORE));
    }
}
