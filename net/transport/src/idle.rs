//! What an I/O thread does that has nothing to do.
use crate::contract::Transport;
use std::io;
use std::time::Duration;

/// So often it looks again at once ..
const SPINS: u32 = 200;
/// .. and so often after others had the processor.
const YIELDS: u32 = 50;

/// Spins briefly, then yields, then sleeps: a reply that comes within microseconds costs no wake-up, and a thread without
/// work costs no processor.
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
    /// How often in a row there was nothing to do.
    rounds: u32,
}

impl Idle {
    /// Whether [`Idle::rest`] sleeps next, if there is no work.
    pub fn is_about_to_sleep(&self) -> bool {
        self.rounds >= SPINS + YIELDS
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
        if worked || longest.is_zero() {
            self.rounds = 0;
            return Ok(());
        }
        self.rounds = self.rounds.saturating_add(1);
        if self.rounds <= SPINS {
            std::hint::spin_loop();
        } else if self.rounds <= SPINS + YIELDS {
            std::thread::yield_now();
        } else {
            transport.wait(longest)?;
        }
        Ok(())
    }
}
