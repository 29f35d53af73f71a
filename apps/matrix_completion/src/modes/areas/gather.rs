//! Putting the model together from the replicas at the end of an epoch.

use super::super::super::exchange::Exchange;
use super::super::super::kernel::Element;
use super::super::root::{Ends, Root};
use super::replica::Replica;
use hectare::{Area, AreaSpec, Owned, Result, Tracking, Worker};
use std::ops::ControlFlow;
use std::time::Duration;

/// The rows that each worker wrote last, in an area that it publishes.
#[derive(Debug)]
pub struct Gather<'a, E: Element> {
    exchange: &'a Exchange,
    home: Owned<E>,
    homes: Vec<Area<E>>,
    ends: Ends,
}

impl<'a, E: Element> Gather<'a, E> {
    /// Creates this worker's area and attaches to the others'.
    pub fn new(worker: &mut Worker, exchange: &'a Exchange, workers: usize, stride: usize) -> Result<Self> {
        let me = worker.rank() as usize;
        // Its rows are those of the model, also for `hectare read`.
        let spec = AreaSpec::new(format!("home/{me}")).tracking(Tracking::Whole).row(stride);
        let home = worker.create(spec, exchange.home(me).len() * stride)?;
        let ends = Ends::new(worker, workers)?;
        let homes = (0..workers).map(|of| worker.attach(&format!("home/{of}"))).collect::<Result<_>>()?;
        Ok(Self { exchange, home, homes, ends })
    }

    /// Ends an epoch: worker 0 calls back with the model.
    pub fn end_epoch(
        &mut self,
        worker: &mut Worker,
        replica: &Replica<E>,
        root: &Root<'_, '_, E>,
        epoch: usize,
        time: Duration,
    ) -> Result<ControlFlow<()>> {
        let (stride, first_item) = (replica.stride, replica.first_item);
        let mut home = self.home.write(worker)?;
        let (users, items) = (replica.users.read(worker)?, replica.items.read(worker)?);
        let places = home.as_mut_slice().chunks_exact_mut(stride);
        for (place, row) in places.zip(self.exchange.home(worker.rank() as usize)) {
            place.copy_from_slice(match row.checked_sub(first_item) {
                None => &users[*row as usize * stride..][..stride],
                Some(item) => &items[item as usize * stride..][..stride],
            });
        }
        self.ends.meet(worker, time, |worker, time| {
            root.show(epoch, time, |model| {
                for (from, home) in self.homes.iter().enumerate() {
                    let rows = home.read(worker)?.chunks_exact(stride);
                    for (row, number) in rows.zip(self.exchange.home(from)) {
                        let place = match number.checked_sub(first_item) {
                            None => &mut model.users.as_mut_slice()[*number as usize * stride..],
                            Some(item) => &mut model.items.as_mut_slice()[item as usize * stride..],
                        };
                        place[..stride].copy_from_slice(row);
                    }
                }
                Ok(())
            })
        })
    }
}
