//! Joining: a slot, a seat that rounds know, and a place in the clocks.
use super::Worker;
use crate::engine::membership::{orphan_areas, take_slot};
use crate::engine::runtime::{Local, Runtime};
use crate::engine::shared::Shared;
use crate::error::{Rank, Result};
use crate::memory::tenure::Tenure;
use crate::primitive::fault_point;
use crate::protocol::round::slot_state;
use std::cell::Cell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

impl Worker {
    /// Makes the calling thread a worker: the given rank, or the lowest that is free.
    pub(crate) fn join(shared: &Arc<Shared>, rank: Option<Rank>) -> Result<Worker> {
        let shared = shared.clone();
        shared.check_process()?;
        let tenure = Tenure::begin(shared.segment.canary)?;
        let rank = take_slot(&shared, rank)?;
        let tenure = tenure.is(format!("worker {rank} of {}", shared.name()));
        let local = Rc::new(Local::new());
        // Measured before the worker counts as live, so that nobody waits for it meanwhile.
        crate::memory::copy::Kernels::get_for(&shared.segment.header().copy_measured);
        let seat = &shared.segment.all_seats()[rank as usize];
        // Areas given to the slot's last worker after it had gone are orphaned. The seat says JOINING by now, so that no
        // claimer finds the slot free from here on.
        orphan_areas(&shared, rank);
        let runtime = Runtime { shared: &shared, local: &local };
        seat.set_state(slot_state::LIVE);
        shared.note_worker_change();
        fault_point();
        let entered = super::clocks::enter(&runtime, rank);
        let idle = shared.segment.rounds().load();
        let worker = Worker {
            shared,
            local,
            rank,
            idle,
            countdown: Cell::new(1),
            skipped: Cell::new(0),
            stride: 1,
            looked_ns: 0,
            _tenure: tenure,
            _thread: PhantomData,
        };
        // Or it leaves again.
        entered.map(|()| worker)
    }
}
