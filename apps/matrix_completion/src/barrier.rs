//! The barrier between two batches.
//!
//! A batch takes some ten microseconds, and waking a sleeping thread takes as long, so workers that have a core
//! each spin for a while before they sleep. When workers outnumber cores, who spins keeps the core from the one
//! that everybody waits for, so they sleep at once.

use super::options::cores;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Rounds of spinning before sleeping: about 50 microseconds.
const SPINS: u32 = 4000;

/// Lets a fixed number of threads wait for each other, again and again.
#[derive(Debug)]
pub struct Barrier {
    threads: u32,
    spins: u32,
    /// Threads that have arrived in this generation.
    arrived: AtomicU32,
    /// How often the barrier has opened; also the futex that threads sleep on.
    generation: AtomicU32,
    /// Threads that sleep or are about to.
    sleepers: AtomicU32,
    aborted: AtomicBool,
}

impl Barrier {
    /// A barrier for `threads` threads.
    pub fn new(threads: usize) -> Self {
        Self {
            threads: u32::try_from(threads).expect("fewer threads than 2^32"),
            spins: if threads <= cores() { SPINS } else { 0 },
            arrived: AtomicU32::new(0),
            generation: AtomicU32::new(0),
            sleepers: AtomicU32::new(0),
            aborted: AtomicBool::new(false),
        }
    }

    /// Waits until all threads have called this as often as this one.
    ///
    /// # Panics
    /// When another thread aborted.
    pub fn wait(&self) {
        // Relaxed: this thread took part in the last opening, and nobody opens again before it arrives below.
        let generation = self.generation.load(Ordering::Relaxed);
        // Release: what this thread wrote goes to the last arrival, which acquires all of it here.
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // Relaxed: the others touch it only after they saw the new generation.
            self.arrived.store(0, Ordering::Relaxed);
            self.open();
        } else {
            self.wait_for_other_than(generation);
        }
        assert!(!self.aborted.load(Ordering::Relaxed), "another worker stopped");
    }

    /// Wakes all threads that wait, now and later, with a panic.
    pub fn abort(&self) {
        // Release by `open`, acquired in `wait_for_other_than`.
        self.aborted.store(true, Ordering::Relaxed);
        self.open();
    }

    /// A guard that aborts when it is dropped by a panic: the others would wait for ever.
    pub fn abort_on_panic(&self) -> AbortOnPanic<'_> {
        AbortOnPanic(self)
    }

    fn open(&self) {
        // SeqCst, with the pair in `wait_for_other_than`: either a thread that goes to sleep sees the new
        // generation, or this one sees the sleeper. Also the Release that hands on all writes.
        self.generation.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            futex::wake_all(&self.generation);
        }
    }

    fn wait_for_other_than(&self, generation: u32) {
        // Acquire: the partner of `open`.
        let is_open =
            || self.generation.load(Ordering::Acquire) != generation || self.aborted.load(Ordering::Acquire);
        for _ in 0..self.spins {
            if is_open() {
                return;
            }
            std::hint::spin_loop();
        }
        // SeqCst: pairs with the increment of the generation in `open`.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while !is_open() {
            futex::wait(&self.generation, generation);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// See [`Barrier::abort_on_panic`].
#[derive(Debug)]
pub struct AbortOnPanic<'a>(&'a Barrier);

impl Drop for AbortOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.abort();
        }
    }
}

mod futex {
    use std::sync::atomic::AtomicU32;

    /// Sleeps while `word` is `value`; may return early.
    pub fn wait(word: &AtomicU32, value: u32) {
        let timeout = std::ptr::null::<libc::timespec>();
        // SAFETY: the word lives through the call, and the kernel only reads it; no time-out is a null pointer.
        unsafe {
            let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, timeout);
        }
    }

    /// Wakes all who sleep on `word`.
    pub fn wake_all(word: &AtomicU32) {
        // SAFETY: the kernel uses the address as a key and does not access the word.
        unsafe {
            let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, word.as_ptr(), operation, i32::MAX);
        }
    }
}
