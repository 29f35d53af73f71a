//! Parcels by handing areas over: for each pair of workers there are a few mailboxes. One fills a mailbox and gives
//! it, the other takes it, reads it in place and gives it back. Nothing is copied by the runtime, and there is no
//! barrier: each worker begins a batch with what needs nothing from the one before, and by the time it is through
//! with that, the mailboxes have mostly come.

use super::super::super::element::Element;
use super::super::super::exchange::{Exchange, Share};
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
    /// What goes there: mine until given, mine again when they are given back.
    outgoing: Vec<Area<E>>,
    filling: Option<Owned<E>>,
    /// What comes from there.
    incoming: Vec<Area<E>>,
}

fn name(from: usize, to: usize, number: usize) -> String {
    format!("mail/{from}/{to}/{number}")
}

impl<'a, E: Element> Handed<'a, E> {
    /// Creates the mailboxes that this worker sends with, and attaches to those that come.
    pub fn new(worker: &mut Worker, exchange: &'a Exchange, workers: usize, stride: usize) -> Result<Self> {
        let me = worker.rank() as usize;
        let others = || (0..workers).filter(|other| *other != me);
        for to in others() {
            for number in 0..MAILBOXES {
                let spec = AreaSpec::new(name(me, to, number)).copies(0).tracking(Tracking::Whole);
                let mailbox = worker.create::<E>(spec, exchange.largest_parcel(me, to) * stride)?;
                // As if it had been read: the first use of each takes it.
                mailbox.give(worker, worker.rank())?;
            }
        }
        worker.barrier()?;
        let attach = |worker: &Worker, from, to| -> Result<Vec<Area<E>>> {
            let mailboxes = (0..MAILBOXES).map(|number| worker.attach(&name(from, to, number)));
            mailboxes.collect()
        };
        let peers = others()
            .map(|rank| {
                let (outgoing, incoming) = (attach(worker, me, rank)?, attach(worker, rank, me)?);
                Ok(Peer { rank, outgoing, filling: None, incoming })
            })
            .collect::<Result<_>>()?;
        Ok(Self { exchange, peers, batches: 0, stride })
    }
}

impl<E: Element> Handed<'_, E> {
    /// Learns from a part of the batch, with the mailboxes that are being filled.
    fn learn(
        &mut self,
        worker: &Worker,
        replica: &mut Replica<E>,
        work: &Work<'_, E>,
        part: Range<usize>,
    ) -> Result<()> {
        let filling = self.peers.iter_mut().filter_map(|peer| peer.filling.as_mut());
        let mut filling: Vec<_> = filling.map(|mailbox| mailbox.write(worker)).collect::<Result<_>>()?;
        // Parcels are numbered by receiver, and nothing goes to oneself.
        let mut parcels: Vec<&mut [E]> = filling.iter_mut().map(|guard| guard.as_mut_slice()).collect();
        parcels.insert(worker.rank() as usize, &mut []);
        replica.learn(worker, work, part, &mut parcels)
    }

    /// Takes what the others sent after the batch before, and gives the empty mailboxes back.
    fn receive(&self, worker: &mut Worker, replica: &mut Replica<E>, batch: usize) -> Result<()> {
        let Some(before) = self.batches.checked_sub(1) else { return Ok(()) };
        let sent = if batch == 0 { self.exchange.batches() } else { batch } - 1;
        for peer in &self.peers {
            let mailbox = peer.incoming[before % MAILBOXES].take(worker)?;
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
        self.learn(worker, replica, work, 0..early)?;
        self.receive(worker, replica, work.batch)?;
        self.learn(worker, replica, work, early..count)?;
        for peer in &mut self.peers {
            if let Some(mailbox) = peer.filling.take() {
                mailbox.give(worker, peer.rank as u32)?;
            }
        }
        self.batches += 1;
        Ok(())
    }
}
