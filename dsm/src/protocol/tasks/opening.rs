//! The runs over an area that is open to tasks, one after the other: words of its slot, which all workers of the runs change.
//!
//! A worker begins a run as the one after the last that it was in, so that all of them go through the same runs. None begins
//! before all workers have ended the one before it, and no task of it runs before all have begun it (`TaskWords`). So a worker that
//! has begun no other since may read the area when all have ended its last one.
use crate::primitive::{AtomicU64, Ordering};

/// See the head of the file.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct OpeningWords {
    /// The newest run, by a number that no other has; 0 before the first.
    run: AtomicU64,
    /// How often a worker has begun a run; and whether one was refused.
    begun: AtomicU64,
    /// How often a worker has ended a run, in the lower bits, and in which epoch, in the others: who ends one late, when the area
    /// was opened anew, does not count.
    ended: AtomicU64,
    /// How many workers are in each run; 0 before the first.
    workers: AtomicU64,
}

/// A worker's record of the runs that it has begun in an epoch of the area.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Past {
    /// The number of the last one; 0 if there was none.
    pub(crate) run: u64,
    /// How many there were.
    pub(crate) runs: u64,
}

impl Past {
    pub(crate) const NONE: Past = Past { run: 0, runs: 0 };
}

/// In the count of those who have begun: somebody was refused.
const REFUSED: u64 = 1 << 63;
/// Bits of the count of those who have ended.
const COUNT_BITS: u32 = 40;

fn mark(epoch: u64) -> u64 {
    epoch << COUNT_BITS
}

impl OpeningWords {
    #[cfg(loom)]
    pub(crate) fn new() -> OpeningWords {
        let word = || AtomicU64::new(0);
        OpeningWords { run: word(), begun: word(), ended: word(), workers: word() }
    }

    #[cfg(loom)]
    pub(crate) fn weaken_ended(&self, access: crate::primitive::model::Access, from: Ordering, to: Ordering) {
        self.ended.weaken(access, from, to);
    }

    /// No run has begun in this epoch. The owner calls this before it opens the area.
    pub(crate) fn reset(&self, epoch: u64) {
        // Relaxed: nobody looks at these before the word says that the area is open, which is released and acquired.
        self.run.store(0, Ordering::Relaxed);
        self.begun.store(0, Ordering::Relaxed);
        self.ended.store(mark(epoch), Ordering::Relaxed);
        self.workers.store(0, Ordering::Relaxed);
    }

    /// One of `workers` workers begins `run` after `past`. False if that is not the next run of the area, or not all have ended the
    /// last one, or all have begun this.
    pub(crate) fn begin(&self, epoch: u64, past: Past, run: u64, workers: u64) -> bool {
        if past.runs > 0 && !self.have_ended(epoch, past.runs, workers) {
            return false;
        }
        // Relaxed, here and below: these only say who may begin. What tasks have written is ordered by `ended` and by the words
        // of the workers.
        let is_next = match self.run.compare_exchange(past.run, run, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(now) => now == run,
        };
        let of_all = || match self.workers.compare_exchange(0, workers, Ordering::Relaxed, Ordering::Relaxed)
        {
            Ok(_) => true,
            Err(now) => now == workers,
        };
        is_next
            && of_all()
            // Whoever has begun does not begin again.
            && self.begun.fetch_add(1, Ordering::Relaxed) % REFUSED < (past.runs + 1) * workers
    }

    /// A worker that should have begun did not.
    pub(crate) fn refuse(&self) {
        // Relaxed: all meet before they look.
        self.begun.fetch_or(REFUSED, Ordering::Relaxed);
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.begun.load(Ordering::Relaxed) & REFUSED != 0
    }

    /// A worker has done all its tasks of the run that it has begun in this epoch. Once for each run.
    pub(crate) fn end(&self, epoch: u64) {
        let mut seen = self.ended.load(Ordering::Relaxed);
        while seen >> COUNT_BITS == mark(epoch) >> COUNT_BITS {
            // Release: what its tasks wrote comes before; pairs with `have_ended`, as do those before it, by the release sequence.
            match self.ended.compare_exchange(seen, seen + 1, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Whether all of `workers` workers have ended as many runs as have begun in this epoch as far as the caller knows. Then it sees
    /// what all tasks of these runs wrote.
    #[inline]
    pub(crate) fn have_ended(&self, epoch: u64, runs: u64, workers: u64) -> bool {
        // Acquire: pairs with `end`.
        let ended = self.ended.load(Ordering::Acquire);
        ended >> COUNT_BITS == mark(epoch) >> COUNT_BITS && ended - mark(epoch) >= runs * workers
    }
}
