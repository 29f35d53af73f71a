//! Ctrl-C: the first one ends training after its epoch, the next one the program.
//!
//! Of several processes all have to end after the same epoch. Each says at an epoch's end whether it was interrupted
//! ([`Ends::meet`](super::modes::root::Ends::meet)), and worker 0 ends the run for all.

use anyhow::Result;
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};

/// The code of a program that Ctrl-C has ended.
pub const CODE: u8 = 130;

// Relaxed throughout: the flag hands over nothing but itself.
static PRESSED: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Notes interrupts from now on.
///
/// # Errors
/// When the system refuses the handler.
pub fn notice() -> Result<()> {
    flag::register_conditional_default(SIGINT, PRESSED.clone())?;
    flag::register(SIGINT, PRESSED.clone())?;
    Ok(())
}

/// Whether training is to end after this epoch.
pub fn is_pressed() -> bool {
    PRESSED.load(Relaxed)
}

/// Notes an interrupt of another process.
pub fn press() {
    PRESSED.store(true, Relaxed);
}
