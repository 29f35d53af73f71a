//! Making an area from its draft: by workers, and by the agent.
use super::create::{Creation, Draft};
use super::{AreaId, Directory};
use crate::Rank;
use crate::engine::shared::Shared;
use crate::error::{Error, Result};

/// Who makes an area.
pub(crate) trait Maker {
    /// Its rank, or [`AGENT`](super::AGENT).
    fn rank(&self) -> Rank;

    /// Locks the directory.
    fn lock<'s>(&mut self, shared: &'s Shared) -> Result<Directory<'s>>;

    /// Called every few milliseconds while memory is taken.
    fn pause(&mut self);
}

/// Makes an area. A small one brings memory for others along, if there is as much.
///
/// # Errors
/// As that of a worker that creates an area.
pub(crate) fn make(maker: &mut impl Maker, shared: &Shared, draft: Draft<'_>) -> Result<AreaId> {
    let (result, brings_more) = make_once(maker, shared, &draft);
    if brings_more && matches!(result, Err(Error::OutOfMemory { .. })) {
        return make_once(maker, shared, &draft.with_own_memory()).0;
    }
    result
}

/// Makes an area; says too whether memory for others was to come along.
fn make_once(maker: &mut impl Maker, shared: &Shared, draft: &Draft<'_>) -> (Result<AreaId>, bool) {
    let rank = maker.rank();
    match maker.lock(shared).and_then(|directory| directory.begin(draft, rank)) {
        Ok(creation) => {
            let brings_more = creation.is_slab();
            (fill(maker, shared, draft, creation), brings_more)
        }
        Err(error) => (Err(error), false),
    }
}

fn fill(maker: &mut impl Maker, shared: &Shared, draft: &Draft<'_>, creation: Creation) -> Result<AreaId> {
    match creation.fill(shared, draft, &mut || maker.pause()) {
        Ok(()) => {
            // If the directory cannot be had, the area keeps all of it.
            if creation.is_slab()
                && let Ok(directory) = maker.lock(shared)
            {
                creation.share(&directory, draft);
            }
            Ok(creation.finish(shared, draft))
        }
        Err(error) => {
            // If the directory cannot be had, the range is given up once this one creates again, leaves or dies.
            if let Ok(directory) = maker.lock(shared) {
                creation.abandon(&directory);
            }
            Err(error)
        }
    }
}
