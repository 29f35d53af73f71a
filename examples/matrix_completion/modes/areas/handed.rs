//! Parcels by handing areas over: for each pair of workers there are two mailboxes. One fills a mailbox and gives
//! it, the other takes it, reads it in place and gives it back. Nothing is copied by the runtime, and there is no
//! barrier: who has what it needs goes on.

use super::super::super::element::Element;
use super::super::super::exchange::Exchange;
use super::replica::{Replica, Share};
use super::transport::Transport;
use hectare::{Area, AreaSpec, Owned, Result, Tracking, Worker, WriteGuard};

/// Mailboxes from one worker to another: while one is being read, the other can be filled.
const MAILBOXES: usize = 2;

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
    outgoing: [Area<E>; MAILBOXES],
    filling: Option<Owned<E>>,
    /// What comes from there.
    incoming: [Area<E>; MAILBOXES],
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
        let attach = |worker: &Worker, from, to| -> Result<[Area<E>; MAILBOXES]> {
            Ok([worker.attach(&name(from, to, 0))?, worker.attach(&name(from, to, 1))?])
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

impl<E: Element> Transport<E> for Handed<'_, E> {
    fn learn(
        &mut self,
        worker: &mut Worker,
        replica: &mut Replica<E>,
        _: usize,
        share: Share<'_, E>,
    ) -> Result<()> {
        let number = self.batches % MAILBOXES;
        for peer in &mut self.peers {
            peer.filling = Some(peer.outgoing[number].take(worker)?);
        }
        let worker = &*worker;
        let mut filling = self
            .peers
            .iter_mut()
            .map(|peer| peer.filling.as_mut().expect("taken above").write(worker))
            .collect::<Result<Vec<WriteGuard<'_, E>>>>()?;
        // Parcels are counted by receiver, and nothing goes to oneself.
        let mut parcels: Vec<&mut [E]> = filling.iter_mut().map(|guard| guard.as_mut_slice()).collect();
        parcels.insert(worker.rank() as usize, &mut []);
        replica.learn(worker, share, &mut parcels)
    }

    fn exchange(&mut self, worker: &mut Worker, replica: &mut Replica<E>, batch: usize) -> Result<()> {
        let me = worker.rank() as usize;
        for peer in &mut self.peers {
            peer.filling.take().expect("filled by learn").give(worker, peer.rank as u32)?;
        }
        let number = self.batches % MAILBOXES;
        for peer in &self.peers {
            let mailbox = peer.incoming[number].take(worker)?;
            let rows = self.exchange.parcel(batch, peer.rank, me);
            replica.unpack(worker, rows, &mailbox.read(worker)?[..rows.len() * self.stride])?;
            mailbox.give(worker, peer.rank as u32)?;
        }
        self.batches += 1;
        Ok(())
    }
}
