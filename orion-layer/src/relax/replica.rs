//! A worker's copy of a relaxed array, and what it has changed, for others to add up.
//!
//! Every worker publishes the *sum of all its changes* since the pass began, in an area of its own that it alone writes.
//! What anybody sees is the array as it was, plus the sums of all workers, added by rank. So each change counts once, in
//! whatever order and however often sums are read, and a worker always sees its own. There are two slots, for even
//! and for odd clocks: under [`Consistency::Bsp`](super::Consistency::Bsp) a worker that is ahead writes the one while
//! those behind it read the other.
use super::{Additive, Moved, Pace};
use crate::error::{Error, Result};
use hectare_dsm::{Area, AreaSpec, Cells, Element, Opened, Worker};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);

/// What this worker keeps for a relaxed array; empty until a loop first needs it.
#[derive(Debug)]
pub(crate) struct Replica<T: Element> {
    shared: Option<(Opened<T>, Vec<Area<T>>)>,
    /// The array when the pass began.
    base: Vec<T>,
    /// What the body reads and writes.
    pub(super) values: Vec<T>,
    /// What it was at the last clock.
    before: Vec<T>,
    /// The sum of this worker's changes.
    total: Vec<T>,
}

impl<T: Element> Replica<T> {
    pub(crate) const fn new() -> Replica<T> {
        Replica { shared: None, base: Vec::new(), values: Vec::new(), before: Vec::new(), total: Vec::new() }
    }

    /// Gives the memory back.
    pub(crate) fn delete(self, worker: &mut Worker) -> Result<()> {
        match self.shared {
            Some((mine, _)) => Ok(mine.delete(worker)?),
            None => Ok(()),
        }
    }

    /// Makes the slots of this worker and finds those of the others, if that was not done before.
    pub(super) fn prepare(
        &mut self,
        worker: &mut Worker,
        number: u64,
        len: usize,
        pace: &Pace,
    ) -> Result<()> {
        if self.shared.is_some() {
            return Ok(());
        }
        let name = |rank: usize| format!("orion/{number}/changes/{rank}");
        let slots = worker.create::<T>(AreaSpec::new(name(pace.me)).copies(0), 2 * len)?;
        let mine = slots.open(worker).map_err(hectare_dsm::Error::from)?;
        let mut all = Vec::with_capacity(pace.workers);
        for rank in 0..pace.workers {
            all.push(worker.attach_within(&name(rank), PATIENCE)?);
        }
        self.shared = Some((mine, all));
        Ok(())
    }

    fn slot<'w>(&self, worker: &'w Worker, rank: usize, clock: u64) -> Result<Cells<'w, T>> {
        let len = self.base.len();
        let Some((_, all)) = &self.shared else {
            return Err(Error::Invalid("a relaxed array was not prepared".into()));
        };
        Ok(all[rank].cells(worker)?.part((clock % 2) as usize * len, len))
    }
}

impl<T: Additive> Replica<T> {
    /// Begins a pass over an array of these elements.
    pub(super) fn enter(&mut self, elements: Cells<'_, T>) {
        self.base.resize(elements.len(), T::default());
        elements.load(&mut self.base);
        self.values.clone_from(&self.base);
        self.before.clone_from(&self.base);
        self.total.clear();
        self.total.resize(elements.len(), T::default());
    }

    /// Publishes what this worker has changed by the end of clock `clock`, from 0.
    pub(super) fn publish(&mut self, worker: &Worker, clock: u64, pace: &Pace) -> Result<Moved> {
        let slot = self.slot(worker, pace.me, clock + 1)?;
        let mut moved = Moved { bytes: size_of_val(&self.total[..]) as u64, ..Moved::default() };
        let own = self.values.iter().zip(&self.before);
        for (at, (total, (now, before))) in self.total.iter_mut().zip(own).enumerate() {
            let change = now.minus(*before);
            if !change.is_zero() {
                *total = total.plus(change);
                moved.change += change.magnitude();
            }
            moved.size += now.magnitude();
            slot.set(at, *total);
        }
        Ok(moved)
    }

    /// Learns what all have changed by the clocks `published`.
    pub(super) fn refresh(&mut self, worker: &Worker, published: &[u64], pace: &Pace) -> Result<Moved> {
        self.values.copy_from_slice(&self.base);
        for (rank, clock) in published.iter().enumerate().filter(|(_, clock)| **clock > 0) {
            if rank == pace.me {
                self.values
                    .iter_mut()
                    .zip(&self.total)
                    .for_each(|(value, total)| *value = value.plus(*total));
                continue;
            }
            let slot = self.slot(worker, rank, *clock)?;
            for (at, value) in self.values.iter_mut().enumerate() {
                *value = value.plus(slot.get(at));
            }
        }
        self.before.copy_from_slice(&self.values);
        let bytes = size_of_val(&self.values[..]) as u64 * (pace.workers as u64 - 1);
        Ok(Moved { bytes, ..Moved::default() })
    }

    /// Adds the changes of all to this worker's share of the array; nobody changes anything any more.
    pub(super) fn fold(
        &mut self,
        worker: &Worker,
        elements: Cells<'_, T>,
        published: &[u64],
        pace: &Pace,
    ) -> Result<()> {
        self.refresh(worker, published, pace)?;
        let share = pace.share(self.values.len());
        elements.part(share.start, share.len()).store(&self.values[share]);
        Ok(())
    }
}
