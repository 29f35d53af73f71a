//! Replicas: a host's copy of an array whose area has its owner on another host. One worker of the host makes it and opens it to
//! tasks; all workers there run theirs in it.
use crate::api::area::handle::Area;
use crate::api::area::open::Opened;
use crate::api::tasks::part::InPlace;
use crate::api::worker::Worker;
use crate::engine::directory::AreaId;
use crate::error::{Error, Result};
use crate::segment::mapping::Segment;

/// A replica that this worker has made. It is kept for the next run.
#[derive(Debug)]
pub(super) struct Replica {
    array: usize,
    opened: Option<Opened<u8>>,
    area: Area<u8>,
}

fn name(segment: &Segment, array: usize) -> String {
    format!("hectare/tasks/copies/{}/{array}", segment.config().here)
}

impl Replica {
    pub(super) fn id(&self) -> AreaId {
        self.area.core.id
    }
}

/// Makes the replica of an array, or opens the one of the last run anew; the round since which all workers of this host have to pass a
/// synchronization point before anybody has its elements.
pub(super) fn make(
    worker: &mut Worker,
    replicas: &mut Vec<Replica>,
    array: usize,
    bytes: usize,
) -> Result<u64> {
    let kept = replicas.iter().position(|replica| replica.array == array).map(|at| replicas.swap_remove(at));
    let (owned, since) = match kept {
        Some(Replica { opened: Some(opened), area, .. }) if area.len() == bytes => {
            // Closed and opened again, it is in another epoch: runs are not counted on.
            let recalled = opened.close(worker)?;
            // SAFETY: it is opened again at once, and whoever begins a run in the new epoch has waited for all workers of this host before
            // (`begin_announced`).
            unsafe { recalled.without_waiting() }
        }
        kept => {
            if let Some(Replica { area, .. }) = kept {
                worker.delete(area.core.id)?;
            }
            let spec = crate::AreaSpec::new(name(&worker.shared().segment, array)).copies(0);
            (super::anew::make(worker, spec, bytes)?, 0)
        }
    };
    let area = owned.area();
    let opened = owned.open_to_tasks(worker).map_err(Error::from)?;
    replicas.push(Replica { array, opened: Some(opened), area });
    Ok(since)
}

/// The replica of an array that a worker of this host has made.
pub(super) fn find(worker: &Worker, array: usize) -> Result<InPlace> {
    Ok(worker.attach_here::<u8>(&name(&worker.shared().segment, array))?.in_place())
}
