//! Shared memory with a part for each worker, which it alone writes and all read.
use crate::error::{Error, Result};
use crate::fabric::attach_to;
use hectare_dsm::{Area, AreaSpec, Cells, Element, Opened, Worker};
use std::time::Duration;

const SITE: &str = "a served array";
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// The part of this worker, and those of all.
#[derive(Debug)]
pub(super) struct WorkerAreas<T: Element> {
    mine: Option<Opened<T>>,
    /// None where they are still to be found.
    all: Vec<Option<Area<T>>>,
    name: String,
}

impl<T: Element> WorkerAreas<T> {
    /// Makes this worker's part, of `len` elements. All workers call this, and agree that each could before they look for those of the
    /// others.
    pub(super) fn make(
        worker: &mut Worker,
        name: &str,
        len: usize,
        workers: usize,
    ) -> Result<WorkerAreas<T>> {
        let mut areas = WorkerAreas::none(name, workers);
        areas.renew(worker, name, len)?;
        areas.attach(worker, name, worker.rank() as usize)?;
        Ok(areas)
    }

    /// Only the part of worker 0, which all may write: `len` elements.
    pub(super) fn common(worker: &mut Worker, name: &str, len: usize) -> Result<WorkerAreas<T>> {
        let mut areas = WorkerAreas::none(name, 1);
        if worker.rank() == 0 {
            areas.renew(worker, name, len)?;
        }
        Ok(areas)
    }

    /// A part for this worker alone: `len` elements.
    pub(super) fn alone(worker: &mut Worker, name: &str, len: usize) -> Result<WorkerAreas<T>> {
        let mut areas = WorkerAreas::none(name, 0);
        areas.renew(worker, name, len)?;
        areas.all.push(Some(worker.attach_here(&part(name, worker.rank() as usize))?));
        Ok(areas)
    }

    fn none(name: &str, parts: usize) -> WorkerAreas<T> {
        WorkerAreas { mine: None, all: (0..parts).map(|_| None).collect(), name: name.into() }
    }

    /// Finds the parts that are not known.
    pub(super) fn find(&mut self, worker: &mut Worker) -> Result<()> {
        for (rank, area) in self.all.iter_mut().enumerate().filter(|(_, area)| area.is_none()) {
            *area = Some(attach_to(worker, SITE, &part(&self.name, rank), rank, TIME_LIMIT)?);
        }
        Ok(())
    }

    /// Whether all are known.
    pub(super) fn is_found(&self) -> bool {
        self.all.iter().all(Option::is_some)
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
        self.all[rank] = Some(worker.attach_here(&part(name, rank))?);
        Ok(())
    }

    /// The part of a worker.
    #[inline]
    pub(super) fn cells<'w>(&self, worker: &'w Worker, rank: usize) -> Result<Cells<'w, T>> {
        match &self.all[rank] {
            Some(area) => Ok(area.cells(worker)?),
            None => Err(Error::Invalid("a served array was not prepared".into())),
        }
    }

    /// Gives this worker's part back.
    pub(super) fn delete(self, worker: &mut Worker) -> Result<()> {
        self.mine.map_or(Ok(()), |mine| Ok(mine.delete(worker)?))
    }
}

fn part(name: &str, rank: usize) -> String {
    format!("{name}/{rank}")
}
