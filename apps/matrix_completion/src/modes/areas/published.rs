//! Parcels through published areas: each worker owns an outbox with one reader copy; a sync after each batch
//! publishes all outboxes, and everybody takes their rows out of the others' reader copies.

use super::super::super::exchange::Exchange;
use super::super::super::kernel::Element;
use super::replica::{Replica, Work};
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
    fn batch(&mut self, worker: &mut Worker, replica: &mut Replica<E>, work: &Work<'_, E>) -> Result<()> {
        let (me, stride) = (worker.rank() as usize, self.stride);
        let length = |from, to| self.exchange.parcel(work.batch, from, to).len() * stride;
        let mut outbox = self.outbox.write(worker)?;
        // Logged at once, as one range: that costs next to nothing, and all of it will be written.
        let used = outbox.range_mut(0..work.sends.len() * stride);
        let mut parcels = split(used, (0..self.outboxes.len()).map(|to| length(me, to)));
        replica.learn(worker, work, 0..work.share.count, &mut parcels, &[])?;

        worker.barrier()?;
        for (from, outbox) in self.outboxes.iter().enumerate() {
            let begin = (0..me).map(|to| length(from, to)).sum::<usize>();
            let rows = self.exchange.parcel(work.batch, from, me);
            replica.unpack(worker, rows, &outbox.read(worker)?[begin..])?;
        }
        Ok(())
    }
}
