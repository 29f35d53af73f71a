//! Threads in ordinary shared memory, in conflict-free batches (Cyclades: Pan et al., 2016).
//!
//! The plan gives each worker ratings whose rows no other worker touches in the same batch, so rows need no locks;
//! a barrier between batches hands them on. Losses are those of `serial`, bit by bit.

use super::super::barrier::Barrier;
use super::super::kernel::Element;
use super::super::model::Model;
use super::super::plan::Plan;
use super::super::sweep::{Rows, Sweep, prefetch_to_write};
use super::super::train::{EpochEnd, OnEpoch, Training};
use anyhow::{Context, Result};
use std::marker::PhantomData;
use std::thread;
use std::time::Instant;

/// Trains `model` in the batches of `plan`, with as many threads as it has workers.
///
/// # Errors
/// When the system does not start a thread.
///
/// # Panics
/// When the plan was made for other numbers of users and items than the model has.
pub fn train<E: Element>(
    training: &Training<'_, E>,
    plan: &Plan,
    model: &mut Model<E>,
    on_epoch: &mut OnEpoch<'_, E>,
) -> Result<()> {
    assert_eq!((plan.users(), plan.items()), (model.users.rows(), model.items.rows()), "the plan's rows");
    let barrier = Barrier::new(plan.workers());
    for epoch in 0..training.epochs {
        let rows = SharedRows::new(model);
        let rate = training.schedule.rate(epoch);
        let work = |worker: usize| {
            let mut rows = rows;
            let guard = barrier.abort_on_panic();
            barrier.wait();
            let begin = Instant::now();
            for batch in 0..plan.batches() {
                let (ratings, count) = plan.share_and_rest(worker, batch);
                training
                    .kernels
                    .run(rate, Sweep { rows: &mut rows, ratings, count, idle_turns: training.idle_turns });
                barrier.wait();
            }
            drop(guard);
            begin.elapsed()
        };
        // Threads live for an epoch, so that in between the model is an ordinary borrow for the callback.
        let time = thread::scope(|scope| {
            for worker in 1..plan.workers() {
                let thread = thread::Builder::new().name(format!("worker {worker}"));
                if let Err(error) = thread.spawn_scoped(scope, move || work(worker)) {
                    barrier.abort();
                    return Err(error).with_context(|| format!("cannot start worker {worker}"));
                }
            }
            Ok(work(0))
        })?;
        if on_epoch(EpochEnd { epoch, time, model }).is_break() {
            break;
        }
    }
    Ok(())
}

/// The rows of a model that all workers write.
struct SharedRows<'a, E> {
    users: *mut E,
    items: *mut E,
    stride: usize,
    model: PhantomData<&'a mut Model<E>>,
}

impl<E> Clone for SharedRows<'_, E> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<E> Copy for SharedRows<'_, E> {}

// SAFETY: it stands for a `&mut Model<E>`; what the threads that have it do at the same time is in `pair`.
unsafe impl<E: Send> Send for SharedRows<'_, E> {}
// SAFETY: as above; a shared reference to it only gives out copies and prefetches.
unsafe impl<E: Send> Sync for SharedRows<'_, E> {}

impl<'a, E: Element> SharedRows<'a, E> {
    fn new(model: &'a mut Model<E>) -> Self {
        let stride = model.layout().stride;
        let (users, items) = (model.users.as_mut_slice(), model.items.as_mut_slice());
        Self { users: users.as_mut_ptr(), items: items.as_mut_ptr(), stride, model: PhantomData }
    }
}

impl<E: Element> Rows<E> for SharedRows<'_, E> {
    #[inline(always)]
    fn pair(&mut self, user: u32, item: u32, stride: usize) -> (&mut [E], &mut [E]) {
        assert_eq!(stride, self.stride);
        let (user, item) = (user as usize * stride, item as usize * stride);
        // SAFETY: `train` calls this for ratings of the plan only. The plan checked that their rows exist
        // (`Plan::new`), and `train` that its matrices are as large as the model's, so both slices are inside of
        // what `new` borrowed. Between two waits at the barrier no other worker has a rating with either row (the
        // plan keeps whole connected components together), and the barrier orders the accesses before and
        // after it; within this worker the borrow of `self` ends before the next pair.
        unsafe {
            (
                std::slice::from_raw_parts_mut(self.users.add(user), stride),
                std::slice::from_raw_parts_mut(self.items.add(item), stride),
            )
        }
    }

    #[inline(always)]
    fn prefetch(&self, user: u32, item: u32, stride: usize) {
        // Pointers only: another worker may be writing these rows.
        prefetch_to_write(self.users, user, stride);
        prefetch_to_write(self.items, item, stride);
    }
}
