//! Shared memory with a part for each worker, which it alone writes and all read.
use crate::error::Result;
use crate::fabric::{attach_to, attach_to_all};
use hectare_dsm::{Area, AreaSpec, Cells, Element, Opened, Worker};
use std::time::Duration;

const SITE: &str = "a served array";
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The part of this worker, and those of all.
#[derive(Debug)]
pub(super) struct WorkerAreas<T: Element> {
    mine: Option<Opened<T>>,
    all: Vec<Area<T>>,
}

impl<T: Element> WorkerAreas<T> {
    /// Makes this worker's part, of `len` elements, and waits for those of the others. All workers call this.
    pub(super) fn make(
        worker: &mut Worker,
        name: &str,
        len: usize,
        workers: usize,
    ) -> Result<WorkerAreas<T>> {
        let mut areas = WorkerAreas { mine: None, all: Vec::new() };
        areas.renew(worker, name, len)?;
        let names: Vec<_> = (0..workers).map(|rank| (part(name, rank), rank)).collect();
        areas.all = attach_to_all(worker, SITE, &names, TIME_LIMIT)?;
        Ok(areas)
    }

    /// Only the part of worker 0, which all may write: `len` elements.
    pub(super) fn common(worker: &mut Worker, name: &str, len: usize) -> Result<WorkerAreas<T>> {
        let mut areas = WorkerAreas { mine: None, all: Vec::new() };
        if worker.rank() == 0 {
            areas.renew(worker, name, len)?;
        }
        areas.all.push(attach_to(worker, SITE, &part(name, 0), 0, TIME_LIMIT)?);
        Ok(areas)
    }

    /// A part for this worker alone: `len` elements.
    pub(super) fn alone(worker: &mut Worker, name: &str, len: usize) -> Result<WorkerAreas<T>> {
        let mut areas = WorkerAreas { mine: None, all: Vec::new() };
        areas.renew(worker, name, len)?;
        areas.all.push(worker.attach_here(&part(name, worker.rank() as usize))?);
        Ok(areas)
    }

    /// Replaces this worker's part by one under another name.
    pub(super) fn renew(&mut self, worker: &mut Worker, name: &str, len: usize) -> Result<()> {
        if let Some(old) = self.mine.take() {
            old.delete(worker)?;
        }
        let spec = AreaSpec::new(part(name, worker.rank() as usize)).copies(0);
        let made = worker.create::<T>(spec, len.max(1))?;
        self.mine = Some(made.open(worker).map_err(hectare_dsm::Error::from)?);
        Ok(())
    }

    /// Finds the part of a worker that has replaced it.
    pub(super) fn attach(&mut self, worker: &Worker, name: &str, rank: usize) -> Result<()> {
        self.all[rank] = worker.attach_here(&part(name, rank))?;
        Ok(())
    }

    /// The part of a worker.
    #[inline]
    pub(super) fn cells<'w>(&self, worker: &'w Worker, rank: usize) -> Result<Cells<'w, T>> {
        Ok(self.all[rank].cells(worker)?)
    }

    /// Gives this worker's part back.
    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.mine.map_or(Ok(()), |mine| Ok(mine.delete(worker)?))
    }
}

fn part(name: &str, rank: usize) -> String {
    format!("{name}/{rank}")
}
