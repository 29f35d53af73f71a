//! Parcels by handing areas over: for each pair of workers there are a few mailboxes. One fills a mailbox and gives
//! it, the other takes it, reads it in place and gives it back. Nothing is copied by the runtime, and there is no
//! barrier: each worker begins a batch with what needs nothing from the one before, and by the time it is through
//! with that, the mailboxes have mostly come.

use super::super::super::exchange::{Exchange, Share};
use super::super::super::kernel::Element;
use super::replica::{Replica, Work};
use super::transport::Transport;
use hectare::{Area, AreaSpec, Owned, Result, Tracking, Worker};
use std::ops::Range;

/// Mailboxes from one worker to another: one can be filled while another waits to be read and a third is on its
/// way back.
const MAILBOXES: usize = 3;

/// The mailboxes of one worker.
#[derive(Debug)]
pub struct Handed<'a, E: Element> {
    exchange: &'a Exchange,
    /// For each other worker.
    peers: Vec<Peer<E>>,
    /// Batches so far.
    batches: usize,
    stride: usize,
}

#[derive(Debug)]
struct Peer<E: Element> {
    rank: usize,
    /// Outgoing rows: mine until given, mine again when they are given back.
    outgoing: Vec<Area<E>>,
    filling: Option<Owned<E>>,
    /// Incoming rows.
    incoming: Vec<Area<E>>,
    /// Rows that have come and are not unpacked yet.
    come: Option<Owned<E>>,
}

fn name(from: usize, to: usize, number: usize) -> String {
    format!("mail/{from}/{to}/{number}")
}

impl<'a, E: Element> Handed<'a, E> {
    /// Creates the mailboxes that this worker sends with, and attaches to those that come.
    pub fn new(worker: &mut Worker, exchange: &'a Exchange, workers: usize, stride: usize) -> Result<Self> {
        let me = worker.rank() as usize;
        let others = || (0..workers).filter(|other| *other != me);
        // Nobody but its owner reads a mailbox; what goes to another host goes as a copy.
        let copies = u32::from(worker.job().hosts().len() > 1);
        for to in others() {
            for number in 0..MAILBOXES {
                let spec = AreaSpec::new(name(me, to, number)).copies(copies).tracking(Tracking::Whole);
                let mailbox = worker.create::<E>(spec, exchange.largest_parcel(me, to) * stride)?;
                // As if it had been read: the first use of each takes it.
                mailbox.give(worker, worker.rank())?;
            }
        }
        worker.barrier()?;
        let attach = |worker: &mut Worker, from, to| -> Result<Vec<Area<E>>> {
            let mailboxes = (0..MAILBOXES).map(|number| worker.attach(&name(from, to, number)));
            mailboxes.collect()
        };
        let peers = others()
            .map(|rank| {
                let (outgoing, incoming) = (attach(worker, me, rank)?, attach(worker, rank, me)?);
                Ok(Peer { rank, outgoing, filling: None, incoming, come: None })
            })
            .collect::<Result<_>>()?;
        Ok(Self { exchange, peers, batches: 0, stride })
    }
}

/// The number of steps in which a worker goes through what needs nothing from the batch before; between them it looks what has
/// come.
const STEPS: usize = 4;

impl<E: Element> Handed<'_, E> {
    /// Learns from a part of the batch, with the mailboxes that are being filled, and fetches what has `come`.
    fn learn(
        &mut self,
        worker: &Worker,
        replica: &mut Replica<E>,
        work: &Work<'_, E>,
        part: Range<usize>,
        come: Range<usize>,
    ) -> Result<()> {
        let (sent, me) = (self.sent(work.batch), worker.rank() as usize);
        let (mut filling, mut coming) = (Vec::with_capacity(self.peers.len()), Vec::new());
        for (number, peer) in self.peers.iter_mut().enumerate() {
            if let Some(mailbox) = &mut peer.filling {
                filling.push(mailbox.write(worker)?);
            }
            if let Some(mailbox) = peer.come.as_ref().filter(|_| come.contains(&number)) {
                let rows = self.exchange.parcel(sent, peer.rank, me);
                coming.push(&mailbox.read(worker)?[..rows.len() * self.stride]);
            }
        }
        // Parcels are numbered by receiver, and nothing goes to oneself.
        let mut parcels: Vec<&mut [E]> = filling.iter_mut().map(|guard| guard.as_mut_slice()).collect();
        parcels.insert(me, &mut []);
        replica.learn(worker, work, part, &mut parcels, &coming)
    }

    /// The batch whose rows come in `batch`.
    fn sent(&self, batch: usize) -> usize {
        if batch == 0 { self.exchange.batches() - 1 } else { batch - 1 }
    }

    /// Takes from the peers, beginning with number `from`, what they have sent, without waiting; returns the number
    /// of the first who has not.
    fn look(&mut self, worker: &Worker, from: usize) -> Result<usize> {
        let Some(before) = self.batches.checked_sub(1) else { return Ok(from) };
        for (number, peer) in self.peers.iter_mut().enumerate().skip(from) {
            peer.come = peer.incoming[before % MAILBOXES].try_take(worker)?;
            if peer.come.is_none() {
                return Ok(number);
            }
        }
        Ok(self.peers.len())
    }

    /// Unpacks everything that was sent in the batch before, waiting for what has not come yet, and gives the empty
    /// mailboxes back.
    fn receive(&mut self, worker: &mut Worker, replica: &mut Replica<E>, batch: usize) -> Result<()> {
        let Some(before) = self.batches.checked_sub(1) else { return Ok(()) };
        let sent = self.sent(batch);
        for peer in &mut self.peers {
            let mailbox = match peer.come.take() {
                Some(mailbox) => mailbox,
                None => peer.incoming[before % MAILBOXES].take(worker)?,
            };
            let rows = self.exchange.parcel(sent, peer.rank, worker.rank() as usize);
            replica.unpack(worker, rows, &mailbox.read(worker)?[..rows.len() * self.stride])?;
            mailbox.give(worker, peer.rank as u32)?;
        }
        Ok(())
    }
}

impl<E: Element> Transport<E> for Handed<'_, E> {
    fn batch(&mut self, worker: &mut Worker, replica: &mut Replica<E>, work: &Work<'_, E>) -> Result<()> {
        for peer in &mut self.peers {
            peer.filling = Some(peer.outgoing[self.batches % MAILBOXES].take(worker)?);
        }
        let Share { early, count, .. } = work.share;
        let mut come = 0;
        for step in 0..STEPS {
            let new = come..self.look(worker, come)?;
            come = new.end;
            self.learn(worker, replica, work, early * step / STEPS..early * (step + 1) / STEPS, new)?;
        }
        self.receive(worker, replica, work.batch)?;
        self.learn(worker, replica, work, early..count, 0..0)?;
        for peer in &mut self.peers {
            if let Some(mailbox) = peer.filling.take() {
                mailbox.give(worker, peer.rank as u32)?;
            }
        }
        self.batches += 1;
        Ok(())
    }
}
