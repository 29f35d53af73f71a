//! Ctrl-C: the first one ends training after the pass that runs, the next one the program.
//!
//! All workers have to end after the same pass. Each tells the others at a pass's end whether it was interrupted.
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use std::io::Result;
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

/// Whether training is to end after this pass.
pub fn is_pressed() -> bool {
    PRESSED.load(Relaxed)
}

/// Notes an interrupt of another process.
pub fn press() {
    PRESSED.store(true, Relaxed);
}
