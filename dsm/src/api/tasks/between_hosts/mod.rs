//! Runs over arrays of which each host has a copy: what tasks wrote goes to the hosts that touch it next, and to the arrays' homes in
//! the end.
//!
//! The plan says which elements go where ([`Crossing`]). After a task a worker copies what others need into rings ([`rings`]), and has
//! them published with how many tasks it has done. Whoever waits on another host puts what has come in place and stores the count in the
//! words of the sender's seat here (`Inbox`, `TaskWords`): from then on it is as if that worker were one of this host. See `SYNC.md`,
//! "tasks on several hosts".
mod anew;
mod announce;
mod between;
mod head;
mod planned;
mod replicas;
mod rings;
mod sender;

use self::announce::{Announced, announce, meet, places, refuse};
pub(super) use self::between::Between;
use self::planned::Planned;
pub(crate) use self::rings::is_ring;
use super::part::{InPlace, Order, Part};
use crate::api::worker::Worker;
use crate::error::{Error, Result};
use crate::protocol::tasks::crossing::{Crossing, Places};
use crate::protocol::tasks::{RowError, Unsendable};
use std::cell::RefCell;
use std::sync::Arc;

/// A run, as its plan describes it.
pub(super) struct Described<'a> {
    /// How many of the workers are here is found.
    pub(super) order: Order,
    /// How often each worker goes through its tasks, and the tasks of this one in each pass.
    pub(super) passes: usize,
    pub(super) tasks: usize,
    /// The fault of an array's area, if it has one.
    pub(super) misfit: &'a dyn Fn(usize, &InPlace) -> Option<String>,
    /// The bytes of a unit of an array, in this area.
    pub(super) unit_bytes: &'a dyn Fn(usize, &InPlace) -> usize,
    /// The elements that go between hosts.
    pub(super) crossing: &'a dyn Fn(&Places) -> std::result::Result<Arc<Crossing>, NoCrossing>,
}

/// Why what a plan touches cannot go between hosts.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum NoCrossing {
    #[error(transparent)]
    Graph(#[from] Unsendable),
    #[error(transparent)]
    Rows(#[from] RowError),
}

/// Begins a run: all workers of the job meet in it.
pub(super) fn begin(
    worker: &mut Worker,
    described: &Described<'_>,
    areas: &[InPlace],
) -> Result<(Part, RefCell<Between>)> {
    let announced = announce_described(worker, described, areas);
    let refused = if announced.is_err() { refuse(worker, None, None) } else { Ok(()) };
    worker.barrier()?;
    let (order, announced, crossing) = announced?;
    refused?;
    let planned = Planned {
        crossing,
        passes: described.passes,
        tasks: described.tasks,
        unit_bytes: areas.iter().enumerate().map(|(at, area)| (described.unit_bytes)(at, area)).collect(),
    };
    let begun = begin_announced(worker, &order, &announced, planned, areas);
    if let Err(error) = &begun {
        let because_of = if let Error::TaskLeft { rank } = error { Some(*rank) } else { None };
        refuse(worker, Some(&announced), because_of)?;
    }
    begun
}

/// Tells the others that this worker begins nothing, where they meet.
pub(super) fn decline(worker: &mut Worker) -> Result<()> {
    // Who cannot say so has said nothing, and others find that.
    let _ = refuse(worker, None, None);
    worker.barrier()
}

/// Says to all workers which run this one is about to begin.
fn announce_described(
    worker: &mut Worker,
    described: &Described<'_>,
    areas: &[InPlace],
) -> Result<(Order, Announced, Arc<Crossing>)> {
    let rank = worker.rank();
    let refuse = |what: String| Err(Error::Tasks { rank, what });
    let Order { workers, arrays, .. } = described.order;
    if rank as usize >= workers {
        return refuse(format!("they are for workers 0 to {}", workers.saturating_sub(1)));
    }
    if areas.is_empty() || areas.len() != arrays {
        return refuse(format!("they have {arrays} arrays, and were given {} areas", areas.len()));
    }
    let places = places(worker, workers, areas)?;
    if let Some(what) = areas.iter().enumerate().find_map(|(at, area)| (described.misfit)(at, area)) {
        return refuse(what);
    }
    let crossing = match (described.crossing)(&places) {
        Ok(crossing) => crossing,
        Err(error) => return refuse(error.to_string()),
    };
    let here = worker.shared().segment.config().here as usize;
    let here = places.host_of.iter().filter(|host| **host == here).count();
    let order = Order { here, ..described.order };
    let bytes: Vec<usize> = areas.iter().map(|area| area.len() * area.element_bytes()).collect();
    let announced = announce(worker, &order, places, areas, &bytes)?;
    Ok((order, announced, crossing))
}

/// Begins a run that all have announced.
fn begin_announced(
    worker: &mut Worker,
    order: &Order,
    announced: &Announced,
    planned: Planned,
    areas: &[InPlace],
) -> Result<(Part, RefCell<Between>)> {
    let here = meet(worker, announced, areas)?;
    let mut part = Part::begin(worker, order, &here, |_| None, |_, _| None)?;
    part.stand_for(areas);
    let between = Between::begin(worker, announced, planned, part.areas(), part.number())?;
    Ok((part, RefCell::new(between)))
}
