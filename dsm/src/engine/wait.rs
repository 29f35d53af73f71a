//! Waiting: spin while there is a core for everybody, yield when there is not, then sleep on a futex.
use super::spins::Spins;
use crate::protocol::round::Pause;
use crate::protocol::word::{Phase, RoundWord, SLEEP};
use rustix::io::Errno;
use rustix::thread::futex::{self, ClockId, Timespec};
use std::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often a worker yields before it sleeps, if there are more workers than cores.
const YIELDS: u32 = 40;
/// For how long, at least, a worker that waits for another host yields before it sleeps, as the agent does, which brings what it waits
/// for: a few round trips of a fast network.
pub(crate) const LOOKS: Duration = Duration::from_micros(200);
/// A worker whose yield took this long shares the processor with threads that compute: if it sleeps, it gets the processor sooner when
/// there is something to do.
const LONG_YIELD: Duration = Duration::from_micros(500);
/// The first sleep; each further one is twice as long.
const FIRST_SLEEP: Duration = Duration::from_millis(1);
const LONGEST_SLEEP: Duration = Duration::from_millis(16);

/// Who else wants the processor of a worker that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Nobody: there is a core for every worker.
    Own,
    /// Other workers.
    Crowded,
    /// The agent, which brings what the worker waits for.
    WithAgent,
}

/// How long a worker has been waiting for the same value of a word.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    pub(crate) spins: Spins,
    seen: Cell<u64>,
    looks: Cell<u32>,
    sleeps: Cell<u32>,
    since: Cell<Option<Instant>>,
    /// Since when it gives way.
    gives_way_since: Cell<Option<Instant>>,
    /// When the worker stops waiting, whatever the job's round timeout is.
    deadline: Cell<Option<Instant>>,
}

impl Waiter {
    /// Waits a little for `word` to differ from `seen`. `other`, if given, wakes the sleeper too.
    pub(crate) fn pause(
        &self,
        word: &AtomicU64,
        seen: RoundWord,
        other: Option<(&AtomicU64, u64)>,
        room: Room,
        timeout: Duration,
    ) -> Pause {
        if self.seen.get() != seen.0 & !SLEEP {
            self.note_end();
            self.seen.set(seen.0 & !SLEEP);
            self.looks.set(0);
            self.sleeps.set(0);
            self.since.set(None);
            self.gives_way_since.set(None);
        }
        let looks = self.looks.get().saturating_add(1);
        self.looks.set(looks);
        if room == Room::Own && looks < self.spins.looks() {
            std::hint::spin_loop();
            return Pause::Again;
        }
        if room != Room::Own && self.gives_way(room, looks) {
            return Pause::Again;
        }
        let since = self.since.get().unwrap_or_else(|| {
            let now = Instant::now();
            self.since.set(Some(now));
            now
        });
        // Only an open round can be given up; in any other phase there is nothing to do but wait.
        let deadline = self.deadline.get().filter(|_| seen.phase() == Phase::Open);
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Pause::OutOfTime;
        }
        let sleeping = RoundWord(seen.0 | SLEEP);
        // Relaxed: the mark orders nothing, and the release sequence of the last shift goes on.
        if !seen.has_sleepers()
            && word.compare_exchange(seen.0, sleeping.0, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return Pause::Again;
        }
        let sleeps = self.sleeps.get();
        self.sleeps.set(sleeps + 1);
        if sleeps == 0 && room == Room::Own {
            self.spins.were_in_vain();
        }
        let length = (FIRST_SLEEP * (1 << sleeps.min(5))).min(LONGEST_SLEEP).min(timeout.max(FIRST_SLEEP));
        let length = left.map_or(length, |left| length.min(left));
        let woken = match other {
            None => futex_wait(low_half(word), sleeping.0 as u32, length),
            Some((other, value)) => futex_wait_either(
                [(low_half(word), sleeping.0 as u32), (low_half(other), value as u32)],
                length,
            ),
        };
        if since.elapsed() >= timeout {
            Pause::OutOfPatience
        } else if woken {
            Pause::Again
        } else {
            Pause::Check
        }
    }

    /// The value that was waited for has changed, or nothing is waited for any more.
    fn note_end(&self) {
        // Whoever gave way did not spin.
        if self.looks.get() > 0 && self.sleeps.get() == 0 && self.gives_way_since.get().is_none() {
            self.spins.paid();
        }
    }

    /// Gives way to others, if it has not done so for long; whether it did.
    fn gives_way(&self, room: Room, looks: u32) -> bool {
        let before = Instant::now();
        let first = self.gives_way_since.get().unwrap_or(before);
        self.gives_way_since.set(Some(first));
        if looks >= YIELDS && (room == Room::Crowded || before - first >= LOOKS) {
            return false;
        }
        std::thread::yield_now();
        if before.elapsed() >= LONG_YIELD {
            // As if it had given way for long.
            self.looks.set(YIELDS);
            self.gives_way_since.set(before.checked_sub(LOOKS));
        }
        true
    }

    /// Sets when pauses begin to say [`Pause::OutOfTime`]; returns what was set before.
    pub(crate) fn set_deadline(&self, deadline: Option<Instant>) -> Option<Instant> {
        self.deadline.replace(deadline)
    }

    /// Forgets how long it waited.
    pub(crate) fn reset(&self) {
        self.note_end();
        self.looks.set(0);
        self.seen.set(u64::MAX);
    }
}

/// The half of a word that changes first; a futex has 32 bits.
pub(crate) fn low_half(word: &AtomicU64) -> &AtomicU32 {
    let half = if cfg!(target_endian = "little") { 0 } else { 1 };
    // SAFETY: a 64-bit atomic is two adjacent, aligned 32-bit words; this reference is only handed to the
    // kernel as an address to compare and sleep on, and never accessed from here.
    unsafe { &*std::ptr::from_ref(word).cast::<AtomicU32>().add(half) }
}

fn timespec(length: Duration) -> Timespec {
    Timespec { tv_sec: length.as_secs() as i64, tv_nsec: length.subsec_nanos().into() }
}

/// Sleeps while `*word == value`, at most `length`. False if the time ran out.
pub(crate) fn futex_wait(word: &AtomicU32, value: u32, length: Duration) -> bool {
    // Not private, since other processes may wake.
    futex::wait(word, futex::Flags::empty(), value, Some(&timespec(length))) != Err(Errno::TIMEDOUT)
}

/// Wakes everybody who sleeps on the word.
pub(crate) fn futex_wake_all(word: &AtomicU32) {
    // It fails for addresses alone that are none.
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// Sleeps while both words have their values (Linux 5.16; before that, a short sleep on the first).
pub(crate) fn futex_wait_either(words: [(&AtomicU32, u32); 2], length: Duration) -> bool {
    let waits = words.map(|(word, value)| {
        let mut wait = futex::Wait::new();
        (wait.val, wait.uaddr) = (value.into(), futex::WaitPtr::new(word.as_ptr().cast()));
        wait.flags = futex::WaitFlags::SIZE_U32;
        wait
    });
    let deadline = crate::memory::clock::now_ns().saturating_add(crate::memory::clock::nanos(length));
    let until = timespec(Duration::from_nanos(deadline));
    match futex::waitv(&waits, futex::WaitvFlags::empty(), Some(&until), ClockId::Monotonic) {
        Err(Errno::NOSYS) => futex_wait(words[0].0, words[0].1, Duration::from_millis(1)),
        Err(Errno::TIMEDOUT) => false,
        _ => true,
    }
}
