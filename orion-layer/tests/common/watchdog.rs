//! Turns a hang into a failure.
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Runs `run`; ends the process if that hangs. `SECONDS` is far more than it can take.
pub fn watched<R>(what: &str, run: impl FnOnce() -> R) -> R {
    const SECONDS: u64 = 1200;
    let (done, waiting) = channel::<()>();
    let name = what.to_owned();
    std::thread::spawn(move || {
        if waiting.recv_timeout(Duration::from_secs(SECONDS)) == Err(RecvTimeoutError::Timeout) {
            eprintln!("{name} hangs");
            std::process::abort();
        }
    });
    let result = run();
    drop(done);
    result
}
