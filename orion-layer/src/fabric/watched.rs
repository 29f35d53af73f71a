//! Areas that one worker writes while all read them: open on one host; on several, published when their writer says so, those of
//! one set in one state.
use super::shown::spans_hosts;
use crate::error::Result;
use hectare_dsm::{Area, AreaSpec, Cells, Element, Error, Opened, Owned, Worker};

/// Such an area, as its writer has it.
#[derive(Debug)]
pub(crate) enum Watched<T: Element> {
    Open(Opened<T>),
    Published(Owned<T>),
}

impl<T: Element> Watched<T> {
    /// One of the set `set` of this worker.
    pub(crate) fn create(worker: &mut Worker, set: &str, name: &str, len: usize) -> Result<Watched<T>> {
        if spans_hosts(worker) {
            let group = format!("{set}/{}", worker.rank());
            return Ok(Watched::Published(worker.create(AreaSpec::new(name).group(group), len)?));
        }
        let made = worker.create::<T>(AreaSpec::new(name).copies(0), len)?;
        Ok(Watched::Open(made.open(worker).map_err(Error::from)?))
    }

    /// Whether others see what is written when it is published, and not at once.
    pub(crate) fn is_published(&self) -> bool {
        matches!(self, Watched::Published(_))
    }

    /// Its elements, for its writer.
    pub(crate) fn write<'a>(&'a mut self, worker: &'a Worker) -> Result<Writing<'a, T>> {
        Ok(match self {
            Watched::Open(opened) => Writing::Open(opened.area().cells(worker)?),
            Watched::Published(owned) => Writing::Published(owned, worker),
        })
    }

    /// Its elements as its writer has them, which others may not see yet.
    pub(crate) fn read<'a>(&'a self, worker: &'a Worker) -> Result<Reading<'a, T>> {
        Ok(match self {
            Watched::Open(opened) => Reading::Open(opened.area().cells(worker)?),
            Watched::Published(owned) => Reading::Published(owned.read(worker)?),
        })
    }

    /// Those of another worker, of an area of the same kind as this one.
    pub(crate) fn read_other<'w>(&self, area: &Area<T>, worker: &'w Worker) -> Result<Reading<'w, T>> {
        Ok(match self {
            Watched::Open(_) => Reading::Open(area.cells(worker)?),
            Watched::Published(_) => Reading::Published(area.read(worker)?),
        })
    }

    /// Gives the memory back.
    pub(crate) fn delete(self, worker: &mut Worker) -> Result<()> {
        match self {
            Watched::Open(opened) => opened.delete(worker)?,
            Watched::Published(owned) => owned.delete(worker)?,
        }
        Ok(())
    }
}

/// Elements that may change while they are read, or that are of one state.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading<'w, T: Element> {
    Open(Cells<'w, T>),
    Published(&'w [T]),
}

impl<'w, T: Element> Reading<'w, T> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Reading::Open(cells) => cells.len(),
            Reading::Published(elements) => elements.len(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> T {
        match self {
            Reading::Open(cells) => cells.get(index),
            Reading::Published(elements) => elements[index],
        }
    }

    pub(crate) fn to_vec(self) -> Vec<T> {
        let mut all = vec![T::zeroed(); self.len()];
        self.load(0, &mut all);
        all
    }

    /// Reads as many as there is room for, from `first` on.
    #[inline]
    pub(crate) fn load(&self, first: usize, to: &mut [T]) {
        match self {
            Reading::Open(cells) => cells.part(first, to.len()).load(to),
            Reading::Published(elements) => to.copy_from_slice(&elements[first..first + to.len()]),
        }
    }
}

/// Elements that this worker alone writes.
#[derive(Debug)]
pub(crate) enum Writing<'a, T: Element> {
    Open(Cells<'a, T>),
    Published(&'a mut Owned<T>, &'a Worker),
}

impl<T: Element> Writing<'_, T> {
    /// Reads as many as there is room for, from `first` on.
    #[inline]
    pub(crate) fn load(&self, first: usize, to: &mut [T]) -> Result<()> {
        match self {
            Writing::Open(cells) => cells.part(first, to.len()).load(to),
            Writing::Published(owned, worker) => {
                to.copy_from_slice(&owned.read(worker)?[first..first + to.len()]);
            }
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn store(&mut self, first: usize, from: &[T]) -> Result<()> {
        match self {
            Writing::Open(cells) => cells.part(first, from.len()).store(from),
            Writing::Published(owned, worker) => {
                owned.write(worker)?.range_mut(first..first + from.len()).copy_from_slice(from);
            }
        }
        Ok(())
    }
}
