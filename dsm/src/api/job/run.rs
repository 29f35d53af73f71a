//! `Job::run`: n workers in n threads.
use super::Job;
use crate::api::worker::Worker;
use crate::error::{Error, Rank, Result};
use crate::memory::process;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Where the threads of a run wait for each other before they begin: nobody begins before all are workers.
#[derive(Default)]
struct Start {
    state: Mutex<(usize, Option<Error>)>,
    changed: Condvar,
}

impl Start {
    fn lock(&self) -> MutexGuard<'_, (usize, Option<Error>)> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins in the order of `turn`, so that ranks go up with it.
    fn join(&self, job: &Job, turn: usize) -> Option<Worker> {
        let mut state = self.lock();
        while state.0 != turn && state.1.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.1.is_some() {
            return None;
        }
        let joined = job.worker();
        match joined {
            Ok(worker) => {
                state.0 += 1;
                self.changed.notify_all();
                Some(worker)
            }
            Err(error) => {
                state.1 = Some(error);
                self.changed.notify_all();
                None
            }
        }
    }

    /// Waits for all; false if one of them could not join.
    fn wait(&self, count: usize) -> bool {
        let mut state = self.lock();
        while state.0 != count && state.1.is_none() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.1.is_none()
    }
}

/// How a worker's thread ended.
enum End<R> {
    Returned(R),
    Panicked(Rank, String),
    NotStarted,
}

impl Job {
    /// Runs `body` on `count` new workers, each in a thread of its own, and returns what they returned, in
    /// the order of their ranks. In a fresh job the ranks are `0..count`; in one that has other workers,
    /// the lowest that are free. Nobody begins before all have joined.
    ///
    /// A body that returns `Result`s makes this return a vector of them, which nothing obliges the caller to look at:
    /// [`Job::try_run`] returns the first error instead.
    ///
    /// # Errors
    /// [`Error::Panicked`] with rank and message if workers panicked (the others run to their end),
    /// [`Error::TooManyWorkers`], [`Error::Spawn`], [`Error::ForkedChild`].
    pub fn run<R, F>(&self, count: usize, body: F) -> Result<Vec<R>>
    where
        R: Send,
        F: Fn(&mut Worker) -> R + Sync,
    {
        self.shared.check_process()?;
        let here = self.shared.segment.ranks_here();
        let (max, seats) = (here.len(), self.shared.segment.seats());
        let taken = seats.iter().filter(|seat| seat.is_live()).count();
        if count > max - taken {
            let free = max - taken;
            return self.shared.counted(Err(Error::TooManyWorkers { asked: count, free, max }));
        }
        let start = Start::default();
        let cores = if self.shared.pin_cores { process::allowed_cores() } else { Vec::new() };
        let one = |turn: usize| {
            if let Some(core) = cores.get(turn) {
                process::pin_thread(*core);
            }
            let Some(mut worker) = start.join(self, turn) else { return End::NotStarted };
            if !start.wait(count) {
                return End::NotStarted;
            }
            let rank = worker.rank();
            // A panic ends the worker like a return does: its guards log, its areas become claimable, and it
            // leaves the job.
            match catch_unwind(AssertUnwindSafe(|| body(&mut worker))) {
                Ok(value) => End::Returned(value),
                Err(payload) => End::Panicked(rank, panic_text(&*payload)),
            }
        };
        let ends = std::thread::scope(|scope| {
            let mut threads = Vec::with_capacity(count);
            for turn in 0..count {
                let builder = std::thread::Builder::new().name(format!("worker-{turn}"));
                match builder.spawn_scoped(scope, {
                    let one = &one;
                    move || one(turn)
                }) {
                    Ok(thread) => threads.push(thread),
                    Err(source) => {
                        start.lock().1 = Some(Error::Spawn { rank: turn as Rank, source });
                        start.changed.notify_all();
                        break;
                    }
                }
            }
            let joined = threads.into_iter().map(|thread| thread.join());
            joined.map(|end| end.unwrap_or(End::NotStarted)).collect::<Vec<_>>()
        });
        if let Some(error) = start.lock().1.take() {
            return Err(error);
        }
        let mut values = Vec::with_capacity(count);
        let mut panics = Vec::new();
        for end in ends {
            match end {
                End::Returned(value) => values.push(value),
                End::Panicked(rank, text) => panics.push((rank, text)),
                End::NotStarted => {}
            }
        }
        if panics.is_empty() { Ok(values) } else { Err(Error::Panicked { panics }) }
    }
}

impl Job {
    /// [`Job::run`] for bodies that may fail.
    ///
    /// ```
    /// # fn main() -> hectare_dsm::Result<()> {
    /// let job = hectare_dsm::Job::embedded()?;
    /// let firsts = job.try_run(2, |worker| {
    ///     let mut mine = worker.create::<f32>(format!("part/{}", worker.rank()), 10)?;
    ///     mine.write(worker)?.fill(1.0);
    ///     worker.barrier()?;
    ///     Ok::<f32, hectare_dsm::Error>(worker.attach::<f32>("part/0")?.read(worker)?[0])
    /// })?;
    /// assert_eq!(firsts, [1.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of [`Job::run`], then the error of the worker of the lowest rank that returned one. The others run to
    /// their end.
    pub fn try_run<R, E, F>(&self, count: usize, body: F) -> Result<Vec<R>, E>
    where
        R: Send,
        E: From<Error> + Send,
        F: Fn(&mut Worker) -> Result<R, E> + Sync,
    {
        self.run(count, body)?.into_iter().collect()
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
