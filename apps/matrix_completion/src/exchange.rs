//! Which rows go from whom to whom after each batch: the [`Imports`](super::plan::imports::Imports) of a plan, as seen by
//! those who send.
//!
//! A row is sent once, right after the batch in which it was written last before another worker needs it, to that
//! worker alone. Every epoch writes the same rows in the same batches, so one list serves all epochs: what the last
//! batches send at the end of one is what the first ones need in the next.

use super::components::Components;
use super::data::Rating;
use super::plan::Plan;
use std::ops::Range;

/// A row to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Send {
    /// Which rating of the sender's [`Share`] writes it last, counted from 0.
    pub after: u32,
    /// The row's number (see [`Plan::rows_of`]).
    pub row: u32,
    /// Who gets it.
    pub to: u32,
    /// Its place in the parcel.
    pub slot: u32,
}

/// A worker's ratings of a batch, those first that need nothing from the batch before: they can be learnt from while
/// its rows are still under way. Whole components move, so that the result stays what it was, bit by bit.
#[derive(Clone, Copy, Debug)]
pub struct Share<'a> {
    /// The ratings of this batch, and then those of all later ones.
    pub ratings: &'a [Rating],
    /// How many are of this batch.
    pub count: usize,
    /// How many of them need nothing that another worker wrote in the batch before.
    pub early: usize,
}

/// The rows that cross after each batch.
#[derive(Debug)]
pub struct Exchange {
    workers: usize,
    shares: Vec<Shares>,
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

/// The shares of one worker, one after the other.
#[derive(Debug, Default)]
struct Shares {
    ratings: Vec<Rating>,
    /// Where the early ratings of each batch end, and where all do.
    ends: Vec<[usize; 2]>,
}

impl Shares {
    fn new(plan: &Plan, worker: usize) -> Self {
        let mut components = Components::new(plan.users() + plan.items());
        let mut shares = Self::default();
        let (mut is_late, mut late) = (Vec::new(), Vec::new());
        for batch in 0..plan.batches() {
            let share = plan.share(worker, batch);
            components.find(share.iter().map(|rating| plan.rows_of(rating).into()));
            is_late.clear();
            is_late.resize(components.sizes().len(), false);
            let before = if batch == 0 { plan.batches() } else { batch } - 1;
            for import in plan.imports().of(1, worker, batch) {
                is_late[components.of(import.row)] |= import.written as usize == before;
            }
            for rating in share {
                let is_late = is_late[components.of(rating.user)];
                if is_late { &mut late } else { &mut shares.ratings }.push(*rating);
            }
            let early = shares.ratings.len();
            shares.ratings.append(&mut late);
            shares.ends.push([early, shares.ratings.len()]);
        }
        shares
    }

    fn of(&self, batch: usize) -> Share<'_> {
        let begin = if batch == 0 { 0 } else { self.ends[batch - 1][1] };
        let [early, end] = self.ends[batch];
        Share { ratings: &self.ratings[begin..], count: end - begin, early: early - begin }
    }
}

impl Exchange {
    /// The exchange of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let workers = plan.workers();
        let shares: Vec<Shares> = (0..workers).map(|worker| Shares::new(plan, worker)).collect();
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
            shares,
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
            let Share { ratings, count, .. } = exchange.shares[from].of(batch);
            for (place, rating) in (0..).zip(&ratings[..count]) {
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

    /// The ratings of `worker` in `batch`.
    pub fn share(&self, batch: usize, worker: usize) -> Share<'_> {
        self.shares[worker].of(batch)
    }

    /// The rows that worker `from` sends after `batch`, in the order in which it is done with them.
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

    /// Batches in an epoch.
    pub fn batches(&self) -> usize {
        self.ends.len() / self.workers
    }
}

/// The part that list number `list` has of all lists in a row.
fn range(ends: &[usize], list: usize) -> Range<usize> {
    let begin = if list == 0 { 0 } else { ends[list - 1] };
    begin..ends[list]
}
