//! Parcels through published areas: each worker owns an outbox with one reader copy; a sync after each batch
//! publishes all outboxes, and everybody takes their rows out of the others' reader copies.

use super::super::super::element::Element;
use super::super::super::exchange::Exchange;
use super::replica::{Replica, Share};
use super::transport::{Transport, split};
use hectare::{Area, Owned, Result, Worker};

/// An outbox, and the reader's side of all.
#[derive(Debug)]
pub struct Published<'a, E: Element> {
    exchange: &'a Exchange,
    outbox: Owned<E>,
    outboxes: Vec<Area<E>>,
    stride: usize,
}

impl<'a, E: Element> Published<'a, E> {
    /// Creates this worker's outbox and attaches to the others'.
    pub fn new(worker: &mut Worker, exchange: &'a Exchange, workers: usize, stride: usize) -> Result<Self> {
        let me = worker.rank() as usize;
        let outbox = worker.create(format!("outbox/{me}"), exchange.most_sends(me) * stride)?;
        worker.barrier()?;
        let outboxes =
            (0..workers).map(|of| worker.attach(&format!("outbox/{of}"))).collect::<Result<_>>()?;
        Ok(Self { exchange, outbox, outboxes, stride })
    }
}

impl<E: Element> Transport<E> for Published<'_, E> {
    fn learn(
        &mut self,
        worker: &mut Worker,
        replica: &mut Replica<E>,
        batch: usize,
        share: Share<'_, E>,
    ) -> Result<()> {
        let me = worker.rank() as usize;
        let lengths =
            (0..self.outboxes.len()).map(|to| self.exchange.parcel(batch, me, to).len() * self.stride);
        let mut outbox = self.outbox.write(worker)?;
        // Logged at once, as one range: that costs nothing, and the log of a parcel has no gaps anyway.
        let used = outbox.range_mut(0..share.sends.len() * self.stride);
        replica.learn(worker, share, &mut split(used, lengths))
    }

    fn exchange(&mut self, worker: &mut Worker, replica: &mut Replica<E>, batch: usize) -> Result<()> {
        worker.barrier()?;
        let me = worker.rank() as usize;
        for (from, outbox) in self.outboxes.iter().enumerate() {
            let rows = self.exchange.parcel(batch, from, me);
            let begin: usize =
                (0..me).map(|to| self.exchange.parcel(batch, from, to).len() * self.stride).sum();
            replica.unpack(worker, rows, &outbox.read(worker)?[begin..])?;
        }
        Ok(())
    }
}
