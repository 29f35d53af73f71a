//! No parcels: each worker's whole replica is published after every batch, all rows that it wrote, and everybody
//! takes what they need out of the others' reader copies. The plain way, and what sending only the rows that
//! cross is measured against.

use super::super::super::exchange::{Exchange, Share};
use super::super::super::kernel::Element;
use super::super::super::sweep::{AHEAD, Rows, Sweep, prefetch, prefetch_to_write};
use super::replica::{Replica, Work};
use super::transport::Transport;
use hectare::{Area, Result, Worker, WriteGuard};

/// The readers' side of all replicas.
#[derive(Debug)]
pub struct Logged<'a, E: Element> {
    exchange: &'a Exchange,
    /// Users and items of each worker.
    replicas: Vec<[Area<E>; 2]>,
}

impl<'a, E: Element> Logged<'a, E> {
    /// Attaches to all replicas.
    pub fn new(worker: &mut Worker, exchange: &'a Exchange, workers: usize) -> Result<Self> {
        worker.barrier()?;
        let mut attach = |of, what| worker.attach(&format!("replica/{of}/{what}"));
        let replicas =
            (0..workers).map(|of| Ok([attach(of, "users")?, attach(of, "items")?])).collect::<Result<_>>()?;
        Ok(Self { exchange, replicas })
    }
}

impl<E: Element> Transport<E> for Logged<'_, E> {
    fn batch(&mut self, worker: &mut Worker, replica: &mut Replica<E>, work: &Work<'_, E>) -> Result<()> {
        let mut rows =
            LoggedRows { users: replica.users.write(worker)?, items: replica.items.write(worker)? };
        let Share { ratings, count, .. } = work.share;
        let sweep = Sweep { rows: &mut rows, ratings, count, idle_turns: work.idle_turns };
        work.kernels.run(work.rate, sweep);

        worker.barrier()?;
        let worker = &*worker;
        let (stride, first_item) = (replica.stride, replica.first_item);
        let mut mine =
            LoggedRows { users: replica.users.write(worker)?, items: replica.items.write(worker)? };
        for (from, [users, items]) in self.replicas.iter().enumerate() {
            let (users, items) = (users.read(worker)?, items.read(worker)?);
            let rows = self.exchange.parcel(work.batch, from, worker.rank() as usize);
            let find = |row: u32| match row.checked_sub(first_item) {
                None => (users, row),
                Some(item) => (items, item),
            };
            for (place, row) in rows.iter().enumerate() {
                if let Some(soon) = rows.get(place + AHEAD) {
                    let (theirs, soon) = find(*soon);
                    prefetch(theirs.as_ptr(), soon, stride);
                }
                let (theirs, at) = find(*row);
                let guard = if *row < first_item { &mut mine.users } else { &mut mine.items };
                guard.row_mut(at as usize).copy_from_slice(&theirs[at as usize * stride..][..stride]);
            }
        }
        Ok(())
    }
}

/// Rows in two areas that are logged when they are written.
#[derive(Debug)]
struct LoggedRows<'w, E: Element> {
    users: WriteGuard<'w, E>,
    items: WriteGuard<'w, E>,
}

impl<E: Element> Rows<E> for LoggedRows<'_, E> {
    #[inline(always)]
    fn pair(&mut self, user: u32, item: u32, stride: usize) -> (&mut [E], &mut [E]) {
        let (user, item) = (self.users.row_mut(user as usize), self.items.row_mut(item as usize));
        (&mut user[..stride], &mut item[..stride])
    }

    #[inline(always)]
    fn prefetch(&self, user: u32, item: u32, stride: usize) {
        prefetch_to_write(self.users.as_ptr(), user, stride);
        prefetch_to_write(self.items.as_ptr(), item, stride);
    }
}
