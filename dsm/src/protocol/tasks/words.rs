//! How far a worker is in the tasks of a run: two words of its seat, which it alone writes.
use crate::primitive::{AtomicU64, Ordering};

/// The words of a worker.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct TaskWords {
    /// Which run it is in, by a number that no other run has; 0 in none.
    run: AtomicU64,
    /// How many tasks of that run it has done.
    done: AtomicU64,
}

impl TaskWords {
    #[cfg(loom)]
    pub(crate) fn new() -> TaskWords {
        TaskWords { run: AtomicU64::new(0), done: AtomicU64::new(0) }
    }

    /// The worker begins a run.
    pub(crate) fn begin(&self, run: u64) {
        self.done.store(0, Ordering::Relaxed);
        // Release: who sees the run does not see how many tasks of an earlier one were done; pairs with `done_in`.
        self.run.store(run, Ordering::Release);
    }

    /// The worker has done so many tasks of its run.
    #[inline]
    pub(crate) fn advance(&self, done: u64) {
        // Release: what the tasks wrote comes before; pairs with `done_in`.
        self.done.store(done, Ordering::Release);
    }

    /// The worker does no more tasks of its run.
    pub(crate) fn leave(&self) {
        // Release: who finds that the worker has left sees what it did; pairs with `done_in`.
        self.run.store(0, Ordering::Release);
    }

    /// How many tasks of `run` the worker has done, or more; `None` if it is not in that run. What the tasks wrote is seen
    /// from here on.
    #[inline]
    pub(crate) fn done_in(&self, run: u64) -> Option<u64> {
        // Acquire: pairs with `begin` and `leave`.
        if self.run.load(Ordering::Acquire) != run {
            return None;
        }
        // Acquire: pairs with `advance`. If the worker has begun another run since, it had done all tasks of this one, and
        // what is found here may be the number of the other: none of this one is waited for that was not done.
        Some(self.done.load(Ordering::Acquire))
    }
}
