//! Areas that their owner lets all workers read: lent on one host; published on several, where others read copies.
use crate::error::Result;
use hectare_dsm::{Area, AreaSpec, Element, Lent, Owned, Tracking, Worker};

/// Whether the job of a worker is on several hosts.
pub(crate) fn spans_hosts(worker: &Worker) -> bool {
    worker.job().hosts().len() > 1
}

/// The specification of an area that is written as a whole and then shown, or handed over: what is lent needs no reader copy.
pub(crate) fn spec(name: impl Into<String>, spans_hosts: bool) -> AreaSpec {
    AreaSpec::new(name).copies(spans_hosts.into()).tracking(Tracking::Whole)
}

/// An area that all may read, as its owner has it. What is published is there for all once they have met.
#[derive(Debug)]
pub(crate) enum Shown<T: Element> {
    Lent(Lent<T>),
    Published(Owned<T>),
}

impl<T: Element> Shown<T> {
    /// Lets all read an area that was made with [`spec`].
    pub(crate) fn new(owned: Owned<T>, worker: &Worker, spans_hosts: bool) -> Result<Shown<T>> {
        Ok(match spans_hosts {
            true => Shown::Published(owned),
            false => Shown::Lent(owned.lend(worker).map_err(hectare_dsm::Error::from)?),
        })
    }

    /// Gives the memory back.
    pub(crate) fn delete(self, worker: &mut Worker) -> Result<()> {
        match self {
            Shown::Lent(lent) => lent.delete(worker)?,
            Shown::Published(owned) => owned.delete(worker)?,
        }
        Ok(())
    }
}

/// The elements of an area that another worker shows.
pub(crate) fn read_shown<'w, T: Element>(
    area: &Area<T>,
    worker: &'w Worker,
    spans_hosts: bool,
) -> Result<&'w [T]> {
    Ok(if spans_hosts { area.read(worker)? } else { area.read_lent(worker)? })
}
