//! Death on command: with the feature `fault-points`, a process ends itself by SIGKILL at the n-th fault
//! point that it passes. Only tests enable it.
use std::sync::atomic::{AtomicI64, Ordering};

static COUNTDOWN: AtomicI64 = AtomicI64::new(-1);

/// Lets this process pass `points` more fault points and kills it at the next.
pub fn die_after(points: u32) {
    COUNTDOWN.store(i64::from(points), Ordering::Relaxed);
}

pub(crate) fn burn() {
    if COUNTDOWN.load(Ordering::Relaxed) >= 0 && COUNTDOWN.fetch_sub(1, Ordering::Relaxed) == 0 {
        // SAFETY: plain system calls on this process's own id.
        unsafe {
            libc::kill(libc::getpid(), libc::SIGKILL);
            loop {
                libc::pause();
            }
        }
    }
}
