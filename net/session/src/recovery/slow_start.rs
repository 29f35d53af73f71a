//! When slow start ends before it overruns the queue: HyStart++ (RFC 9406).
//!
//! Its constants are for the internet; hosts of a cluster are nearer, so a delay counts from 0.1 ms on instead of 4 ms, and
//! the careful part has 2 round trips instead of 5, in which the window would grow to the threefold. What a round sends shows
//! only in the next one: a queue of less than about three round trips is overrun all the same.
use super::queue::Queue;
use std::time::Duration;

/// RFC 9406 section 4.3: N_RTT_SAMPLE, CSS_GROWTH_DIVISOR, CSS_ROUNDS, MIN_RTT_DIVISOR, MIN_RTT_THRESH, MAX_RTT_THRESH.
const SAMPLES: u32 = 8;
const DIVISOR: f64 = 4.0;
const ROUNDS: u64 = 2;
const SHARE: u32 = 8;
const LEAST: Duration = Duration::from_micros(100);
const MOST: Duration = Duration::from_millis(16);

/// The careful part of slow start, if it has begun: the shortest round trip then, and the round.
#[derive(Debug, Default)]
pub(crate) struct SlowStart {
    careful: Option<(Duration, u64)>,
}

/// How the window grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Growth {
    /// By the bytes that arrived, divided by this.
    By(f64),
    /// No more in this way: slow start is over.
    Over,
}

impl SlowStart {
    /// Something arrived in slow start.
    pub(crate) fn on_ack(&mut self, queue: &Queue) -> Growth {
        let (shortest, samples, before) = queue.shortest();
        let shortest = shortest.filter(|_| samples >= SAMPLES);
        match self.careful {
            None => {
                let (Some(shortest), Some(before)) = (shortest, before) else { return Growth::By(1.0) };
                if shortest < before + (before / SHARE).clamp(LEAST, MOST) {
                    return Growth::By(1.0);
                }
                self.careful = Some((shortest, queue.rounds()));
            }
            // It was noise.
            Some((baseline, _)) if shortest.is_some_and(|shortest| shortest < baseline) => {
                self.careful = None;
                return Growth::By(1.0);
            }
            Some((_, since)) if queue.rounds() >= since + ROUNDS => {
                self.careful = None;
                return Growth::Over;
            }
            Some(_) => {}
        }
        Growth::By(DIVISOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Time;

    /// A round in which all round trips take `us`; how the window grows at its end.
    fn round(slow: &mut SlowStart, queue: &mut Queue, us: u64) -> Growth {
        let next = Time::from_nanos((queue.rounds() + 1) * 1_000_000);
        queue.on_ack(next, next);
        (0..SAMPLES).for_each(|_| queue.on_sample(Duration::from_micros(us)));
        slow.on_ack(queue)
    }

    #[test]
    fn a_queue_that_grows_ends_it_after_careful_rounds() {
        let (mut slow, mut queue) = (SlowStart::default(), Queue::new());
        for us in [1000, 1000, 1100] {
            assert_eq!(round(&mut slow, &mut queue, us), Growth::By(1.0));
        }
        for _ in 0..ROUNDS {
            assert_eq!(round(&mut slow, &mut queue, 1300), Growth::By(DIVISOR));
        }
        assert_eq!(round(&mut slow, &mut queue, 1300), Growth::Over);
    }

    #[test]
    fn noise_does_not_end_it() {
        let (mut slow, mut queue) = (SlowStart::default(), Queue::new());
        assert_eq!(round(&mut slow, &mut queue, 1000), Growth::By(1.0));
        assert_eq!(round(&mut slow, &mut queue, 1500), Growth::By(DIVISOR));
        assert_eq!(round(&mut slow, &mut queue, 1050), Growth::By(1.0));
        for _ in 0..2 * ROUNDS {
            assert_eq!(round(&mut slow, &mut queue, 1050), Growth::By(1.0));
        }
    }
}
