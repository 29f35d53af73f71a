//! Areas that one worker writes while all read them: open on one host; on several, published when their writer says so, those of
//! one set in one state.
use super::attach_to_all;
use super::shown::spans_hosts;
use crate::error::Result;
use hectare_dsm::{Area, AreaSpec, Cells, Element, Error, Opened, Owned, Worker};
use std::time::Duration;

/// How long a worker waits for the areas of the others.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// An area of each worker, as one of them has them.
#[derive(Debug)]
pub(crate) struct Watched<T: Element> {
    mine: Mine<T>,
    /// None until they are found.
    all: Vec<Area<T>>,
    me: usize,
    /// `SET/NAME`.
    name: String,
}

/// The area that this worker writes. It is open for as long as this value exists.
#[derive(Debug)]
enum Mine<T: Element> {
    Open(Opened<T>),
    Published(Owned<T>),
}

impl<T: Element> Watched<T> {
    /// Makes that of this worker, `SET/NAME/RANK` of `len` elements. What a worker has of one set is published in one state. All workers
    /// call this, and before they look for those of the others ([`Watched::find`]) they agree that each could: who waits for what another
    /// has no memory for learns of that at a time limit.
    pub(crate) fn make(worker: &mut Worker, set: &str, name: &str, len: usize) -> Result<Watched<T>> {
        let me = worker.rank() as usize;
        let name = format!("{set}/{name}");
        let spec = AreaSpec::new(part(&name, me));
        let mine = match spans_hosts(worker) {
            true => Mine::Published(worker.create(spec.group(format!("{set}/{me}")), len)?),
            false => {
                let made = worker.create::<T>(spec.copies(0), len)?;
                Mine::Open(made.open(worker).map_err(Error::from)?)
            }
        };
        Ok(Watched { mine, all: Vec::new(), me, name })
    }

    /// Finds those of the others, unless they are known. All workers call this.
    pub(crate) fn find(&mut self, worker: &mut Worker, workers: usize) -> Result<()> {
        if self.all.is_empty() {
            let names: Vec<_> = (0..workers).map(|rank| (part(&self.name, rank), rank)).collect();
            self.all = attach_to_all(worker, "a relaxed loop", &names, TIME_LIMIT)?;
        }
        Ok(())
    }

    /// Whether those of the others are known.
    pub(crate) fn is_found(&self) -> bool {
        !self.all.is_empty()
    }

    /// Whether others see what is written when it is published, and not at once.
    pub(crate) fn is_published(&self) -> bool {
        matches!(self.mine, Mine::Published(_))
    }

    /// Has what this worker has written published in the next round, if it is not seen at once.
    pub(crate) fn request_sync(&self) {
        if self.is_published() {
            self.all[self.me].request_sync();
        }
    }

    /// The area of a worker.
    pub(crate) fn area(&self, rank: usize) -> &Area<T> {
        &self.all[rank]
    }

    /// The elements of this worker, to be changed.
    #[inline]
    pub(crate) fn write<'a>(&'a mut self, worker: &'a Worker) -> Result<Writing<'a, T>> {
        Ok(match &mut self.mine {
            Mine::Open(_) => Writing::Open(self.all[self.me].cells(worker)?),
            Mine::Published(owned) => Writing::Published(owned, worker),
        })
    }

    /// Those of a worker; of this one, as it has them, which others may not see yet.
    #[inline]
    pub(crate) fn of<'a>(&'a self, worker: &'a Worker, rank: usize) -> Result<Reading<'a, T>> {
        Ok(match &self.mine {
            Mine::Open(_) => Reading::Open(self.all[rank].cells(worker)?),
            Mine::Published(owned) if rank == self.me => Reading::Published(owned.read(worker)?),
            Mine::Published(_) => Reading::Published(self.all[rank].read(worker)?),
        })
    }

    /// Gives the memory of this worker's back.
    pub(crate) fn delete(self, worker: &mut Worker) -> Result<()> {
        match self.mine {
            Mine::Open(opened) => opened.delete(worker)?,
            Mine::Published(owned) => owned.delete(worker)?,
        }
        Ok(())
    }
}

fn part(name: &str, rank: usize) -> String {
    format!("{name}/{rank}")
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
