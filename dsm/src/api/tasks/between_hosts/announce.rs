//! Before a run, all workers meet: each says to all what it is about to run, and none begins if another says something else.
use super::head::{Head, State};
use super::replicas;
use super::rings::Rings;
use crate::api::tasks::part::{InPlace, Order, not_there};
use crate::api::worker::Worker;
use crate::engine::shared::Shared;
use crate::error::{Error, Rank, Result};
use crate::protocol::ownership;
use crate::protocol::tasks::crossing::Places;
use fnv::FnvHasher;
use std::cmp::Reverse;
use std::hash::{Hash, Hasher};

/// Where the workers of a run and the owners of its areas are.
///
/// # Errors
/// [`Error::Tasks`] for workers that the hosts have no ranks for, and for an area whose owner is not known; [`Error::InvalidArea`] for one
/// of another host that is not sent on demand; [`Error::OtherJob`], [`Error::Deleted`].
pub(super) fn places(worker: &Worker, workers: usize, areas: &[InPlace]) -> Result<Places> {
    let segment = &worker.shared().segment;
    let (hosts, here) = (segment.config().hosts as usize, segment.config().here as usize);
    let host_of = |rank: Rank| {
        let found = (0..hosts).find(|host| segment.ranks_of(*host).contains(&rank));
        let what = || format!("they are for {workers} workers, and the job has no rank {rank}");
        found.ok_or_else(|| Error::Tasks { rank: worker.rank(), what: what() })
    };
    let host_of = (0..workers as Rank).map(host_of).collect::<Result<Vec<_>>>()?;
    let home = |area: &InPlace| {
        let core = area.core();
        core.check_job(worker.shared())?;
        core.check_live()?;
        let word = ownership::load_to_read(&core.slot().own.ownership);
        if !word.is_remote() {
            // Whether it is open is looked at when all have met.
            return Ok(here);
        }
        if !core.slot().about.about().on_demand {
            let what =
                "used by tasks on several hosts, and sent whenever it changes: create it with `on_demand()`";
            return Err(Error::InvalidArea { name: core.name.clone(), what: what.into() });
        }
        let known = segment.owner_host(word).filter(|host| host_of.contains(host));
        known.ok_or_else(|| Error::Tasks {
            rank: worker.rank(),
            what: format!("area {:?} is of a host on which no worker runs them", core.name),
        })
    };
    let homes = areas.iter().map(home).collect::<Result<Vec<_>>>()?;
    Ok(Places { hosts, host_of, homes })
}

/// A worker's announcement of a run, before all meet.
#[derive(Debug)]
pub(super) struct Announced {
    pub(super) places: Places,
    digest: u64,
    /// As in [`Head`].
    since: u64,
}

/// Says to all workers that this one is about to begin a run, and makes the replicas that are its affair. `bytes` has those of each
/// area.
pub(super) fn announce(
    worker: &mut Worker,
    order: &Order,
    places: Places,
    areas: &[InPlace],
    bytes: &[usize],
) -> Result<Announced> {
    let mut hash = FnvHasher::default();
    (order.workers, order.digest, &places.homes).hash(&mut hash);
    areas.iter().for_each(|area| (area.name(), area.len()).hash(&mut hash));
    let digest = hash.finish();
    let rings = Rings::of(worker)?;
    let here = worker.shared().segment.config().here as usize;
    let mut since = 0;
    if places.first_of(here) == Some(worker.rank()) {
        for (array, bytes) in bytes.iter().enumerate().filter(|(array, _)| places.homes[*array] != here) {
            since = since.max(replicas::make(worker, &mut rings.borrow_mut().replicas, array, *bytes)?);
        }
    }
    rings.borrow_mut().begin(worker, Head { digest, state: State::Begun, since, ..Head::default() })?;
    Ok(Announced { places, digest, since })
}

/// Says to all workers that this one does not begin the run that it has announced, if it has, perhaps because of another.
pub(super) fn refuse(
    worker: &mut Worker,
    announced: Option<&Announced>,
    because_of: Option<Rank>,
) -> Result<()> {
    let rings = Rings::of(worker)?;
    let mut rings = rings.borrow_mut();
    let digest = announced.map_or(0, |announced| announced.digest);
    let blamed = because_of.map_or(0, |rank| rank + 1);
    rings.begin(worker, Head { digest, state: State::Refused, blamed, ..Head::default() })
}

/// An objection to another worker's announcement, the least first: a fault of a description comes before its consequences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Objection {
    /// It could not begin what it has described.
    Failed,
    /// It has described nothing.
    Declined,
    Differs,
}

/// The objection to a worker, if any; it may have done all its tasks by now.
fn objection(head: &Head, digest: u64) -> Option<Objection> {
    match head.state {
        State::None => Some(Objection::Declined),
        State::Refused if head.digest == 0 => Some(Objection::Declined),
        _ if head.digest != digest => Some(Objection::Differs),
        State::Refused => Some(Objection::Failed),
        State::Begun | State::Finished | State::Left => None,
    }
}

/// The areas in which a run's arrays lie on this host, once all workers have met and have said the same.
///
/// # Errors
/// [`Error::Tasks`] if another worker has described other tasks; [`Error::TaskLeft`] for one that could not begin, or has gone;
/// [`Error::NoSuchWorker`].
pub(super) fn meet(worker: &mut Worker, announced: &Announced, areas: &[InPlace]) -> Result<Vec<InPlace>> {
    let rings = Rings::of(worker)?;
    let mut rings = rings.borrow_mut();
    let rank = worker.rank();
    let others = (0..announced.places.host_of.len() as Rank).filter(|other| *other != rank);
    for other in others.clone() {
        worker.check_peer(other).map_err(|_| not_there(worker.shared(), other))?;
        rings.attach(worker, other)?;
    }
    let here = worker.shared().segment.config().here as usize;
    let first = announced.places.first_of(here);
    let (mut worst, mut since) = (None, announced.since);
    for other in others {
        let ring = rings.incoming_mut(other).ok_or(Error::NoSuchWorker { rank: other })?;
        let (head, _) = ring.look(worker)?;
        let objection = match ring.meet(head.run) {
            true => objection(&head, announced.digest),
            false => Some(Objection::Declined),
        };
        if Some(other) == first {
            since = head.since;
        }
        // Who could not begin because of another names that one.
        let cause = if objection == Some(Objection::Failed) { head.cause(other) } else { other };
        let cause = if cause == rank { other } else { cause };
        worst = worst.max(objection.map(|objection| (objection, Reverse(cause))));
    }
    // Whoever describes more workers is waited for in vain.
    for other in announced.places.host_of.len() as Rank..worker.shared().segment.hosts_end() {
        if worker.check_peer(other).is_err() || rings.attach(worker, other).is_err() {
            continue;
        }
        let Some(ring) = rings.incoming_mut(other) else { continue };
        let (head, _) = ring.look(worker)?;
        if ring.meet(head.run) && objection(&head, announced.digest) == Some(Objection::Differs) {
            worst = worst.max(Some((Objection::Differs, Reverse(other))));
        }
    }
    match worst {
        None => {}
        Some((Objection::Differs, Reverse(other))) => {
            let host = host_text(worker.shared(), other);
            let what = format!("worker {other}, of host {host}, has described other tasks, or other areas");
            return Err(Error::Tasks { rank, what });
        }
        Some((_, Reverse(other))) => return Err(Error::TaskLeft { rank: other }),
    }
    drop(rings);
    let place = |(array, area): (usize, &InPlace)| match announced.places.homes[array] == here {
        true => Ok(area.clone()),
        false => replicas::find(worker, array),
    };
    let here = areas.iter().enumerate().map(place).collect::<Result<Vec<_>>>()?;
    // Whoever is in the clocks has been at a synchronization point, where all met. One that has left them may still have elements of a
    // replica that was closed and opened anew.
    if let Some(area) = here.first().filter(|_| since > 0) {
        worker.wait_for_readers(area.core(), since)?;
    }
    Ok(here)
}

fn host_text(shared: &Shared, rank: Rank) -> String {
    let segment = &shared.segment;
    let host = segment.host_of(rank).unwrap_or(segment.config().here as usize);
    segment.host_text(Some(host))
}
