//! Waits of a worker that keep up with the rounds: for versions, freshness, areas, peers and ownership.
use super::Worker;
use crate::engine::spins::Spins;
use crate::engine::wait::Room;
use crate::error::{Error, Rank, Result};
use crate::protocol::round::Pause;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// How long a wait may sleep before it looks around, where there are not many workers for each core.
const LOOK_AROUND: Duration = Duration::from_millis(1);
/// The number of workers for each core that may look around as often as they like: a look of all of them takes a twentieth of the time.
const LOOKERS: usize = 4;
/// The longest sleep of others, in units of `LOOK_AROUND`.
const SELDOM: usize = 16;

/// How long a wait may sleep before it looks around: longer where so many workers do that those who start or compute would have no
/// processor left. Who wakes them does not wait for that.
fn look_around(workers: usize, cores: usize) -> Duration {
    let crowd = workers / (LOOKERS * cores.max(1));
    LOOK_AROUND * crowd.clamp(1, SELDOM) as u32
}

impl Worker {
    /// One step of a wait: serves a round if there is one, else waits a little. `other` is a word whose
    /// change from the given value ends the step too.
    pub(crate) fn wait_step(&mut self, other: Option<(&AtomicU64, u64)>) -> Result<Pause> {
        self.service_within()?;
        let shared = self.shared.clone();
        let word = &shared.segment.header().sync.word;
        let seen = shared.segment.rounds().load();
        if seen != self.idle {
            return Ok(Pause::Again);
        }
        // Versions from other hosts come by the agent, which needs a processor.
        let room = match shared.segment.spans_hosts() {
            true => Room::WithAgent,
            false if shared.is_crowded() => Room::Crowded,
            false => Room::Own,
        };
        let timeout = look_around(shared.live_workers(), shared.cores);
        let pause = self.local.waiter.pause(word, seen, other, room, timeout);
        // The mark of this sleeper is not news.
        self.idle = shared.segment.rounds().load();
        if self.idle.phase() != crate::protocol::word::Phase::Idle {
            self.idle = seen;
        }
        if pause != Pause::Again {
            self.look_soon();
        }
        Ok(pause)
    }

    /// A wait begins: what was waited for before does not count.
    pub(crate) fn forget_waiting(&mut self) {
        self.local.waiter.reset();
    }

    /// How often to look at a word before sleeping on it.
    pub(crate) fn looks(&self) -> u32 {
        if self.shared.is_crowded() { 1 } else { self.spins().looks() }
    }

    /// How such looks went.
    pub(crate) fn spins(&self) -> &Spins {
        &self.local.waiter.spins
    }

    /// Waits until `look` finds something, which is asked again whenever a round is past, and every millisecond at least (or
    /// up to 16, where there are many more workers than cores); takes part in rounds meanwhile.
    ///
    /// ```
    /// # use hectare_dsm::{Error, Job};
    /// # let job = Job::embedded()?;
    /// # let mut worker = job.worker()?;
    /// let mut area = worker.create::<u64>("a", 1)?;
    /// area.write(&worker)?.set(0, 7);
    /// area.area().request_sync();
    /// let reader = area.area();
    /// let found = worker.wait_in_rounds(|worker| {
    ///     let seen = reader.read(worker)?[0];
    ///     Ok::<_, Error>((seen > 0).then_some(seen))
    /// })?;
    /// assert_eq!(found, 7);
    /// # Ok::<(), hectare_dsm::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `look`, and of [`Worker::service`].
    pub fn wait_in_rounds<R, E: From<Error>>(
        &mut self,
        mut look: impl FnMut(&mut Worker) -> Result<Option<R>, E>,
    ) -> Result<R, E> {
        self.shared.check_process()?;
        self.forget_waiting();
        self.within(None, |worker| {
            loop {
                if let Some(found) = look(worker)? {
                    return Ok(found);
                }
                worker.shared.check_ending()?;
                worker.wait_step(None)?;
            }
        })
    }

    pub(crate) fn wait_until<R>(
        &mut self,
        timeout: Duration,
        mut look: impl FnMut(&mut Worker) -> Result<Option<R>>,
        give_up: impl FnOnce(&mut Worker, Duration) -> Error,
    ) -> Result<R> {
        self.shared.check_process()?;
        let since = Instant::now();
        self.forget_waiting();
        self.within(Some(timeout), |worker| {
            loop {
                if let Some(found) = look(worker)? {
                    return Ok(found);
                }
                if since.elapsed() >= timeout {
                    return Err(give_up(worker, since.elapsed()));
                }
                worker.wait_step(None)?;
            }
        })
    }

    /// Runs a wait with a limit: while it lasts, this worker gives up rounds that others hold open for longer.
    pub(crate) fn within<R>(&mut self, limit: Option<Duration>, wait: impl FnOnce(&mut Worker) -> R) -> R {
        let spans_hosts = self.shared.segment.spans_hosts();
        let waited = spans_hosts && self.set_waits(true);
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let local = self.local.clone();
        let before = local.waiter.set_deadline(deadline);
        let answer = wait(self);
        local.waiter.set_deadline(before);
        if spans_hosts {
            self.set_waits(waited);
        }
        answer
    }

    /// Says whether this worker waits for something that may come from other hosts; what it said before.
    #[inline(never)]
    fn set_waits(&self, waits: bool) -> bool {
        self.shared.segment.all_seats()[self.rank as usize].set_waits(waits)
    }

    /// Waits until `count` workers are in the job, this one and those of other hosts included; takes part in rounds meanwhile.
    /// A worker of another host counts from when its host is connected until it is known to be dead, also after it has left the job.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`] at once if the job has room for fewer; [`Error::TimedOut`]; [`Error::WorkerFailed`] at once when the
    /// launcher says that one of the first `count` has failed, or has ended, before it came
    /// ([`Job::note_failure`](crate::Job::note_failure), [`Job::note_end`](crate::Job::note_end)), as `hectare run` does.
    pub fn wait_for_workers(&mut self, count: usize, timeout: Duration) -> Result<()> {
        let max = self.shared.most_workers();
        if count > max {
            return Err(Error::NoSuchRank { rank: Rank::try_from(count - 1).unwrap_or(Rank::MAX), max });
        }
        let live = |worker: &Worker| worker.shared.present_workers();
        self.wait_until(
            timeout,
            |worker| match live(worker) >= count {
                true => Ok(Some(())),
                false => worker
                    .shared
                    .absent_worker(count)
                    .map_or(Ok(None), |rank| Err(Error::WorkerFailed { rank })),
            },
            |worker, waited| Error::TimedOut {
                what: format!("{count} workers"),
                waited,
                missing: format!("{} are there", live(worker)),
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crowd_looks_around_less_often() {
        let ms = |workers, cores| look_around(workers, cores).as_millis();
        assert_eq!([ms(1, 2), ms(8, 2), ms(15, 2)], [1, 1, 1]);
        assert_eq!([ms(16, 2), ms(64, 2), ms(250, 2), ms(4096, 2)], [2, 8, 16, 16]);
        assert_eq!([ms(64, 64), ms(4096, 64)], [1, 16]);
    }
}
