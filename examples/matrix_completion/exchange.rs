//! Which rows go from whom to whom after each batch: the [`Imports`](super::imports::Imports) of a plan, as seen by
//! those who send.
//!
//! A row is sent once, right after the batch in which it was written last before another worker needs it, to that
//! worker alone. Every epoch writes the same rows in the same batches, so one list serves all epochs: what the last
//! batches send at the end of one is what the first ones need in the next.

use super::plan::Plan;
use std::ops::Range;

/// A row to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Which of the sender's ratings in the batch writes it last, counted from 0.
    pub after: u32,
    /// The row's number (see [`Plan::rows_of`]).
    pub row: u32,
    /// Who gets it.
    pub to: u32,
    /// Its place in the parcel.
    pub slot: u32,
}

/// The rows that cross after each batch.
#[derive(Debug)]
pub struct Exchange {
    workers: usize,
    /// By batch and sender, and then in the order in which the sender is done with them.
    sends: Vec<Send>,
    /// Where the sends of each batch and sender end.
    ends: Vec<usize>,
    /// By batch, sender and receiver, and then in the same order.
    parcels: Vec<u32>,
    /// Where each parcel ends.
    parcel_ends: Vec<usize>,
    /// For each worker, the rows that it writes last in an epoch.
    homes: Vec<Vec<u32>>,
}

impl Exchange {
    /// The exchange of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let workers = plan.workers();
        let mut crossing: Vec<Vec<Send>> = vec![Vec::new(); plan.batches() * workers];
        for batch in 0..plan.batches() {
            for to in 0..workers {
                // The second epoch stands for all: it imports from the one before as well as from itself.
                for import in plan.imports().of(1, to, batch) {
                    let sends = &mut crossing[import.written as usize * workers + import.from as usize];
                    sends.push(Send { after: 0, row: import.row, to: to as u32, slot: 0 });
                }
            }
        }
        let mut exchange = Self {
            workers,
            sends: Vec::new(),
            ends: Vec::new(),
            parcels: Vec::new(),
            parcel_ends: Vec::new(),
            homes: vec![Vec::new(); workers],
        };
        let mut last_use = vec![0; plan.users() + plan.items()];
        let mut last_writer = vec![None; plan.users() + plan.items()];
        for (list, mut sends) in crossing.into_iter().enumerate() {
            let (batch, from) = (list / workers, list % workers);
            for (place, rating) in (0..).zip(plan.share(from, batch)) {
                for row in plan.rows_of(rating) {
                    last_use[row as usize] = place;
                    last_writer[row as usize] = Some(from);
                }
            }
            for send in &mut sends {
                send.after = last_use[send.row as usize];
            }
            sends.sort_unstable_by_key(|send| (send.after, send.row));
            for to in 0..workers as u32 {
                for (slot, send) in (0..).zip(sends.iter_mut().filter(|send| send.to == to)) {
                    send.slot = slot;
                    exchange.parcels.push(send.row);
                }
                exchange.parcel_ends.push(exchange.parcels.len());
            }
            exchange.sends.extend(sends);
            exchange.ends.push(exchange.sends.len());
        }
        for (row, writer) in (0..).zip(last_writer) {
            if let Some(writer) = writer {
                exchange.homes[writer].push(row);
            }
        }
        exchange
    }

    /// What worker `from` sends after `batch`, in the order in which it is done with the rows.
    pub fn sends(&self, batch: usize, from: usize) -> &[Send] {
        &self.sends[range(&self.ends, batch * self.workers + from)]
    }

    /// The rows that worker `from` sends to worker `to` after `batch`.
    pub fn parcel(&self, batch: usize, from: usize, to: usize) -> &[u32] {
        &self.parcels[range(&self.parcel_ends, (batch * self.workers + from) * self.workers + to)]
    }

    /// The rows that `worker` writes last in an epoch, in ascending order.
    pub fn home(&self, worker: usize) -> &[u32] {
        &self.homes[worker]
    }

    /// Rows in the largest parcel from one worker to another.
    pub fn largest_parcel(&self, from: usize, to: usize) -> usize {
        (0..self.batches()).map(|batch| self.parcel(batch, from, to).len()).max().unwrap_or(0)
    }

    /// The most rows that worker `from` sends after a batch, to all others together.
    pub fn most_sends(&self, from: usize) -> usize {
        (0..self.batches()).map(|batch| self.sends(batch, from).len()).max().unwrap_or(0)
    }

    /// Rows that cross in an epoch.
    pub fn rows(&self) -> usize {
        self.sends.len()
    }

    fn batches(&self) -> usize {
        self.ends.len() / self.workers
    }
}

/// The part that list number `list` has of all lists in a row.
fn range(ends: &[usize], list: usize) -> Range<usize> {
    let begin = if list == 0 { 0 } else { ends[list - 1] };
    begin..ends[list]
}
