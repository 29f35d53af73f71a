//! The end of an epoch, for modes whose workers keep the model in areas: everybody publishes, worker 0 puts the
//! model together and hands it to the callback, and its answer goes back to all.

use super::super::interrupt;
use super::super::kernel::Element;
use super::super::model::Model;
use super::super::train::{EpochEnd, OnEpoch};
use hectare::{Area, Error, Owned, Result, Worker};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Mutex, RwLock, RwLockReadGuard};
use std::time::Duration;

/// The state outside of the areas: the model that everybody begins with and the callback sees. Where workers are
/// processes, each has one; all begin with the same model, and that of worker 0 is the one that is filled in.
///
/// Workers serve rounds while they create areas, so nobody may wait for a lock that another holds meanwhile: at
/// the beginning, all read the model at the same time; later, worker 0 alone comes here.
pub struct Root<'m, 'c, E> {
    model: RwLock<&'m mut Model<E>>,
    on_epoch: Mutex<&'m mut OnEpoch<'c, E>>,
}

impl<E: Element> fmt::Debug for Root<'_, '_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Root").field("model", &self.model).finish_non_exhaustive()
    }
}

impl<'m, 'c, E: Element> Root<'m, 'c, E> {
    /// The model to train, and who wants to see it.
    pub fn new(model: &'m mut Model<E>, on_epoch: &'m mut OnEpoch<'c, E>) -> Self {
        Self { model: RwLock::new(model), on_epoch: Mutex::new(on_epoch) }
    }

    /// The initial model.
    ///
    /// # Panics
    /// When a worker panicked in [`Root::show`].
    pub fn initial(&self) -> RwLockReadGuard<'_, &'m mut Model<E>> {
        self.model.read().expect("nobody panicked while assembling the model")
    }

    /// Lets `assemble` fill in the model, and calls back with it.
    ///
    /// # Panics
    /// When `assemble` or the callback does.
    pub fn show(
        &self,
        epoch: usize,
        time: Duration,
        assemble: impl FnOnce(&mut Model<E>) -> Result<()>,
    ) -> Result<ControlFlow<()>> {
        let mut model = self.model.write().expect("nobody panicked while assembling the model");
        assemble(&mut model)?;
        let mut on_epoch = self.on_epoch.lock().expect("the callback did not panic");
        Ok(on_epoch(EpochEnd { epoch, time, model: &model }))
    }
}

/// The sums that each worker shares with the others at the end of an epoch.
#[derive(Debug)]
pub struct Ends {
    mine: Owned<u64>,
    all: Vec<Area<u64>>,
    ended: u64,
}

/// Elements of a worker's area: how long it took, whether it wants to stop, and how many epochs it has ended. The answer of
/// worker 0 is in its own.
const NANOSECONDS: usize = 0;
const STOP: usize = 1;
const ENDED: usize = 2;

impl Ends {
    /// Creates this worker's area and attaches to the others'.
    pub fn new(worker: &mut Worker, workers: usize) -> Result<Self> {
        let mine = worker.create(format!("end/{}", worker.rank()), 3)?;
        worker.barrier()?;
        let all = (0..workers).map(|of| worker.attach(&format!("end/{of}"))).collect::<Result<_>>()?;
        Ok(Self { mine, all, ended: 0 })
    }

    /// Publishes everything that this worker owns, and waits for all to do so. On worker 0, `assemble` then reads
    /// what was published and calls back; it is given the time of the slowest. Everybody returns its answer.
    ///
    /// # Errors
    /// [`Error::NoSuchWorker`] if a worker is gone: a barrier does not wait for the dead, and what they would have
    /// learnt is missing.
    pub fn meet(
        &mut self,
        worker: &mut Worker,
        time: Duration,
        assemble: impl FnOnce(&Worker, Duration) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        self.ended += 1;
        self.mine.write(worker)?.set(NANOSECONDS, time.as_nanos() as u64);
        self.mine.write(worker)?.set(ENDED, self.ended);
        self.mine.write(worker)?.set(STOP, interrupt::is_pressed().into());
        worker.barrier()?;
        for (rank, area) in (0..).zip(&self.all) {
            let end = area.read(worker)?;
            if end[ENDED] != self.ended {
                return Err(Error::NoSuchWorker { rank });
            }
            if worker.rank() == 0 && end[STOP] != 0 {
                interrupt::press();
            }
        }
        if worker.rank() == 0 {
            let times: Vec<u64> =
                self.all.iter().map(|area| Ok(area.read(worker)?[NANOSECONDS])).collect::<Result<_>>()?;
            let slowest = times.into_iter().max().unwrap_or_default();
            let answer = assemble(worker, Duration::from_nanos(slowest))?;
            self.mine.write(worker)?.set(STOP, answer.is_break().into());
        }
        worker.barrier()?;
        let stop = self.all[0].read(worker)?[STOP] != 0;
        Ok(if stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
}
