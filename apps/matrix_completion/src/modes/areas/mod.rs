//! Conflict-free batches over areas, each of which one worker alone writes.
//!
//! Every worker has a replica of the model and learns from the same ratings as in [`shared`](super::shared). What
//! was one barrier there is an exchange here: the plan knows for every batch which rows the next worker to need
//! them did not write itself ([`Exchange`]), and those rows alone go from worker to worker. There is no master and
//! nothing to reduce, since nobody but their last writer has a newer version of any row. Losses are those of
//! `serial`, bit by bit.

mod gather;
mod handed;
mod logged;
mod published;
mod replica;
mod transport;

use super::super::exchange::Exchange;
use super::super::kernel::Element;
use super::super::model::Model;
use super::super::options::Transports;
use super::super::plan::Plan;
use super::super::train::{OnEpoch, Training};
use super::root::Root;
use super::team;
use anyhow::Result;
use gather::Gather;
use handed::Handed;
use hectare::Worker;
use logged::Logged;
use published::Published;
use replica::{Replica, Work};
use std::time::Instant;
use transport::Transport;

/// Trains `model` in the batches of `plan`, with as many workers as it has, see [`team::run`].
///
/// # Errors
/// Those of [`team::run`].
///
/// # Panics
/// When the plan was made for other numbers of users and items than the model has.
pub fn train<E: Element>(
    training: &Training<'_, E>,
    plan: &Plan,
    transport: Transports,
    model: &mut Model<E>,
    on_epoch: &mut OnEpoch<'_, E>,
) -> Result<()> {
    assert_eq!((plan.users(), plan.items()), (model.users.rows(), model.items.rows()), "the plan's rows");
    let exchange = Exchange::new(plan);
    let run = Run { training, plan, exchange: &exchange };
    let root = Root::new(model, on_epoch);
    team::run(plan.workers(), areas(plan.workers()), training.files, |worker| {
        run.work(worker, transport, &root)
    })
}

/// Areas of a run: mailboxes for every pair, and a few for every worker.
fn areas(workers: usize) -> u32 {
    (3 * workers * workers + 8 * workers + 16).try_into().unwrap_or(u32::MAX)
}

/// State that all workers share.
#[derive(Debug)]
struct Run<'a, E> {
    training: &'a Training<'a, E>,
    plan: &'a Plan,
    exchange: &'a Exchange,
}

impl<E: Element> Run<'_, E> {
    fn work(
        &self,
        worker: &mut Worker,
        transport: Transports,
        root: &Root<'_, '_, E>,
    ) -> hectare::Result<()> {
        let workers = self.plan.workers();
        let published = transport == Transports::Logged;
        let mut replica = Replica::new(worker, &root.initial(), published)?;
        match transport {
            Transports::Published => {
                let published = Published::new(worker, self.exchange, workers, replica.stride)?;
                self.train(worker, &mut replica, published, root)
            }
            Transports::Handed => {
                let handed = Handed::new(worker, self.exchange, workers, replica.stride)?;
                self.train(worker, &mut replica, handed, root)
            }
            Transports::Logged => {
                let logged = Logged::new(worker, self.exchange, workers)?;
                self.train(worker, &mut replica, logged, root)
            }
        }
    }

    fn train(
        &self,
        worker: &mut Worker,
        replica: &mut Replica<E>,
        mut transport: impl Transport<E>,
        root: &Root<'_, '_, E>,
    ) -> hectare::Result<()> {
        let me = worker.rank() as usize;
        let mut gather = Gather::new(worker, self.exchange, self.plan.workers(), replica.stride)?;
        for epoch in 0..self.training.epochs {
            let rate = self.training.schedule.rate(epoch);
            worker.barrier()?;
            let begin = Instant::now();
            for batch in 0..self.plan.batches() {
                let work = Work {
                    batch,
                    kernels: &self.training.kernels,
                    rate,
                    share: self.exchange.share(batch, me),
                    sends: self.exchange.sends(batch, me),
                    idle_turns: self.training.idle_turns,
                };
                transport.batch(worker, replica, &work)?;
            }
            let time = begin.elapsed();
            if gather.end_epoch(worker, replica, root, epoch, time)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}
