//! The waiting of an I/O thread that has nothing to do.
use crate::contract::Transport;
use std::io;
use std::time::{Duration, Instant};

/// For how long after the last work it polls, yielding to others in between: a few round trips of a fast network.
const LOOKS: Duration = Duration::from_micros(200);

/// A thread whose yield took this long shares the processor with others that compute, not with those that it works with ..
const LONG_YIELD: Duration = Duration::from_micros(500);
/// .. and stops yielding for this time at first, and twice as long each time that it finds the same, up to the longest: a thread that
/// sleeps gets the processor sooner when there is work. The others may have computed for a moment only.
const CROWDED: Duration = Duration::from_millis(16);
const CROWDED_MOST: Duration = Duration::from_millis(128);

/// Polls for a while, then sleeps: a reply that comes within microseconds costs no wake-up, and a thread without work
/// costs no processor. Between two polls it yields rather than spins: on a host whose processors are all busy, the threads
/// that it waits for could not run otherwise. Where others compute on them, it sleeps at once.
///
/// ```no_run
/// use hectare_transport::{Idle, Transport, udp::Udp};
/// use std::time::Duration;
///
/// let mut udp = Udp::bind("10.0.0.1:7000".parse()?, 1500)?;
/// let mut idle = Idle::default();
/// loop {
///     let came = udp.receive(&mut |from, _congested, datagram| println!("{} bytes from {from}", datagram.len()))?;
///     // .. timers, and whatever has to be sent ..
///     idle.rest(&mut udp, came > 0, Duration::from_millis(100))?;
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct Idle {
    /// Since when there is nothing to do.
    since: Option<Instant>,
    /// Until when it sleeps at once.
    crowded_until: Option<Instant>,
    /// For how long it did so last; none since it last gave way and had the processor back soon.
    crowded_for: Option<Duration>,
}

impl Idle {
    /// After a round of the loop, which found work or not: whether to sleep now. Else whoever else wants the processor had it.
    pub fn is_to_sleep(&mut self, worked: bool) -> bool {
        if worked {
            self.since = None;
            return false;
        }
        let now = Instant::now();
        if now - *self.since.get_or_insert(now) >= LOOKS {
            return true;
        }
        !self.gives_way(now)
    }

    /// Lets others have the processor for whom it has made work, or waits; unless they are likely to keep it: whether it did.
    pub fn give_way(&mut self) -> bool {
        self.gives_way(Instant::now())
    }

    fn gives_way(&mut self, now: Instant) -> bool {
        if self.crowded_until.is_some_and(|until| now < until) {
            return false;
        }
        std::thread::yield_now();
        let back = Instant::now();
        if back - now >= LONG_YIELD {
            let length = self.crowded_for.map_or(CROWDED, |last| (last * 2).min(CROWDED_MOST));
            (self.crowded_for, self.crowded_until) = (Some(length), Some(back + length));
        } else {
            (self.crowded_for, self.crowded_until) = (None, None);
        }
        true
    }

    /// Rests after a round of the loop, which found work or not: at most for `longest`, the time until the next timer.
    ///
    /// # Errors
    /// If the transport cannot wait.
    pub fn rest(
        &mut self,
        transport: &mut impl Transport,
        worked: bool,
        longest: Duration,
    ) -> io::Result<()> {
        if self.is_to_sleep(worked || longest.is_zero()) {
            transport.wait(longest)?;
        }
        Ok(())
    }
}
