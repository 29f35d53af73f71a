//! Death and standstill on command: with the feature `fault-points`, a process sends itself SIGKILL or
//! SIGSTOP at the n-th fault point that it passes. Only tests enable it.
use std::sync::atomic::{AtomicI32, AtomicI64, Ordering};

static COUNTDOWN: AtomicI64 = AtomicI64::new(-1);
static SIGNAL: AtomicI32 = AtomicI32::new(libc::SIGKILL);

/// Lets this process pass `points` more fault points and kills it at the next.
pub fn die_after(points: u32) {
    SIGNAL.store(libc::SIGKILL, Ordering::Relaxed);
    COUNTDOWN.store(i64::from(points), Ordering::Relaxed);
}

/// Lets this process pass `points` more fault points and stops it at the next, until somebody sends it
/// SIGCONT.
pub fn stop_after(points: u32) {
    SIGNAL.store(libc::SIGSTOP, Ordering::Relaxed);
    COUNTDOWN.store(i64::from(points), Ordering::Relaxed);
}

pub(crate) fn burn() {
    if COUNTDOWN.load(Ordering::Relaxed) >= 0 && COUNTDOWN.fetch_sub(1, Ordering::Relaxed) == 0 {
        let signal = SIGNAL.load(Ordering::Relaxed);
        // SAFETY: plain system calls on the calling thread. A signal to the process could be taken by another
        // thread, and this one would pass the point meanwhile.
        unsafe {
            libc::raise(signal);
            if signal == libc::SIGKILL {
                loop {
                    libc::pause();
                }
            }
        }
    }
}
