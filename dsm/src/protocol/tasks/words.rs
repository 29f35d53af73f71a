//! How far a worker is in the tasks of a run: words of its seat, which it alone writes.
use crate::primitive::{AtomicU32, AtomicU64, Ordering, fence};

/// The words of a worker.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct TaskWords {
    /// Which run it is in, by a number that no other run has; 0 in none.
    pub(crate) run: AtomicU64,
    /// `turn << 24 | tasks`: how many tasks of that run it has done, and a number that differs from one run to the next. All
    /// in the lower half, so that whoever sleeps on it is woken by either.
    pub(crate) done: AtomicU64,
    /// The last run of which it has done all tasks.
    pub(crate) finished: AtomicU64,
    /// The last run that it left before that.
    pub(crate) left: AtomicU64,
    /// How many others may sleep until `done` changes.
    sleepers: AtomicU32,
    /// Why it left that run: 1 + the worker that it waited for in vain, or 0.
    pub(crate) blamed: AtomicU32,
}

/// How far a worker is in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// It has not begun it, as far as can be seen.
    NotBegun,
    /// The tasks that it has done.
    Some(u64),
    /// It has done all of them.
    All,
    /// It has left the run, having done this number of its tasks, not all, perhaps because another has. None of these is known if it
    /// has begun another run since.
    Left { done: u64, because_of: Option<u32> },
}

/// Tasks of one worker in a run.
pub(crate) const MOST_TASKS: u64 = 1 << 24;
const TURNS: u64 = 1 << 8;

impl TaskWords {
    #[cfg(loom)]
    pub(crate) fn new() -> TaskWords {
        let word = || AtomicU64::new(0);
        let [sleepers, blamed] = [AtomicU32::new(0), AtomicU32::new(0)];
        TaskWords { run: word(), done: word(), finished: word(), left: word(), sleepers, blamed }
    }

    /// The worker begins a run; of one that it is in, it does no more tasks. True if others may sleep on the word that has
    /// changed.
    pub(crate) fn begin(&self, run: u64) -> bool {
        self.leave(self.run.load(Ordering::Relaxed), None);
        // Relaxed: a worker reads its own words.
        let turn = self.done.load(Ordering::Relaxed) / MOST_TASKS;
        let none_done = |turn: u64| turn % TURNS * MOST_TASKS;
        self.done.store(none_done(turn + 1), Ordering::Relaxed);
        // Release: who sees the run does not see how many tasks of an earlier one were done; pairs with `done_in`.
        self.run.store(run, Ordering::Release);
        // Once more: whoever has looked for the run between these two does not sleep on this. Release: pairs with `expect_sleep`.
        self.done.store(none_done(turn + 2), Ordering::Release);
        self.has_sleepers()
    }

    /// Whether the worker whose words these are, which asks, is in a run.
    #[inline]
    pub(crate) fn is_in(&self, run: u64) -> bool {
        // Relaxed: a worker reads its own word.
        self.run.load(Ordering::Relaxed) == run
    }

    /// The worker has done one more task of its run, perhaps the last. True if others may sleep on the word that has changed.
    #[inline]
    pub(crate) fn advance(&self, is_last: bool) -> bool {
        if is_last {
            self.finish();
        }
        // Relaxed: a worker reads its own word.
        let done = self.done.load(Ordering::Relaxed) + 1;
        // Release: what the task wrote comes before; pairs with `done_in`.
        self.done.store(done, Ordering::Release);
        self.has_sleepers()
    }

    /// A worker of another host has begun a run, as far as this host is concerned, unless it has before. Called, as what follows, by one
    /// worker of this host at a time. True if others may sleep on the word that has changed.
    pub(crate) fn begin_for(&self, run: u64) -> bool {
        self.done_in(run) == Done::NotBegun && self.begin(run)
    }

    /// A worker of another host has done so many tasks of a run, or more, perhaps all. What these wrote is in place here. True as above.
    pub(crate) fn catch_up(&self, run: u64, count: u64, is_last: bool) -> bool {
        // Relaxed, all of it: ordered by the inbox.
        let done = self.done.load(Ordering::Relaxed);
        let is_news = count > done % MOST_TASKS || is_last && self.finished.load(Ordering::Relaxed) != run;
        if !self.is_in(run) || !is_news {
            return false;
        }
        if is_last {
            self.finish();
        }
        // Release: what the tasks wrote is in place before; pairs with `done_in`.
        self.done.store(done - done % MOST_TASKS + count, Ordering::Release);
        self.has_sleepers()
    }

    /// A worker of another host does no more tasks of a run, which it may not have begun, perhaps because another does not.
    pub(crate) fn leave_for(&self, run: u64, because_of: Option<u32>) {
        self.begin_for(run);
        self.leave(run, because_of);
    }

    /// The worker has no tasks left in its run.
    pub(crate) fn finish(&self) {
        // Release: what the tasks wrote comes before; pairs with `done_in`.
        self.finished.store(self.run.load(Ordering::Relaxed), Ordering::Release);
    }

    /// The worker does no more tasks of a run, if it is in that one, perhaps because another does no more of its own. Who sleeps finds
    /// out when it looks again.
    pub(crate) fn leave(&self, run: u64, because_of: Option<u32>) {
        if run != 0 && self.is_in(run) && self.finished.load(Ordering::Relaxed) != run {
            // Release: who takes the reason of a later run sees that it has begun; pairs with `done_in`.
            self.blamed.store(because_of.map_or(0, |rank| rank + 1), Ordering::Release);
            // Release: who finds that it has left finds why, and how many tasks it had done; pairs with `done_in`.
            self.left.store(run, Ordering::Release);
            // Release: who finds that the worker is in the run no more finds why; pairs with `done_in`. Not if another has taken
            // the rank meanwhile, and begun a run of its own.
            let _ = self.run.compare_exchange(run, 0, Ordering::Release, Ordering::Relaxed);
        }
    }

    /// Somebody takes the worker's rank: what it has not done of its run is not done.
    pub(crate) fn take_over(&self) {
        // Relaxed: only who takes the seat calls this, which is after the worker before.
        self.leave(self.run.load(Ordering::Relaxed), None);
    }

    #[inline]
    fn has_sleepers(&self) -> bool {
        // SeqCst: between the change of `done` and the look at `sleepers`; pairs with the fence in `expect_sleep`. Either the
        // sleeper is seen here, or it sees the change.
        fence(Ordering::SeqCst);
        self.sleepers.load(Ordering::Relaxed) > 0
    }

    /// Whether the worker has done all tasks of a run, and not yet all of a later one. What the tasks wrote is seen from here on.
    #[inline]
    pub(crate) fn has_finished(&self, run: u64) -> bool {
        // Acquire: pairs with the `advance` of the last task.
        self.finished.load(Ordering::Acquire) == run
    }

    /// How far the worker is in a run. What the tasks that it has done wrote is seen from here on.
    #[inline]
    pub(crate) fn done_in(&self, run: u64) -> Done {
        // Acquire: pairs with `begin` and `leave`.
        if self.run.load(Ordering::Acquire) == run {
            // Acquire: pairs with `advance`. If the number is one of a later run, that run is seen next.
            let done = self.done.load(Ordering::Acquire) % MOST_TASKS;
            // Acquire: as above.
            if self.run.load(Ordering::Acquire) == run {
                return Done::Some(done);
            }
        }
        if self.has_finished(run) {
            return Done::All;
        }
        // Acquire: pairs with `leave`.
        if self.left.load(Ordering::Acquire) != run {
            return Done::NotBegun;
        }
        // Acquire: pairs with `advance`. If the number is one of a later run, that run is seen next, or that it was left.
        let done = self.done.load(Ordering::Acquire) % MOST_TASKS;
        // Acquire: pairs with `leave`. As for the number.
        let because_of = self.blamed.load(Ordering::Acquire).checked_sub(1);
        // Acquire: pairs with `begin` and `leave`. Not 0 if the worker is about to leave.
        let now = self.run.load(Ordering::Acquire);
        let is_of_run = (now == 0 || now == run) && self.left.load(Ordering::Relaxed) == run;
        if is_of_run { Done::Left { done, because_of } } else { Done::Left { done: 0, because_of: None } }
    }

    /// Somebody is about to sleep until `done` changes: the word, and its value. To be followed by a look at what the sleep is
    /// for, and by [`TaskWords::end_sleep`].
    pub(crate) fn expect_sleep(&self) -> (&AtomicU64, u64) {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // SeqCst: between the change of `sleepers` and the look at `done`; pairs with the fence in `has_sleepers`.
        fence(Ordering::SeqCst);
        // Acquire: who sleeps on what was stored when a run had begun has seen that it has; pairs with `begin`.
        (&self.done, self.done.load(Ordering::Acquire))
    }

    pub(crate) fn end_sleep(&self) {
        // One less. Relaxed: whoever still sees the sleeper wakes nobody.
        self.sleepers.fetch_add(u32::MAX, Ordering::Relaxed);
    }

    /// To wake those who sleep.
    pub(crate) fn futex(&self) -> &AtomicU64 {
        &self.done
    }
}
