//! One area of a plan: whether it is published, and into which copy.
use super::lock;
use super::standing::{Standing, Standings};
use crate::primitive::AtomicU64;

/// What a plan found of an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It has no owner, or one that is dead or has left: what that one had not published is lost.
    Ownerless,
    /// Its owner lives and is not in the round.
    Outside { owner: u32 },
    /// Its owner should have looked it through for this round and did not.
    Unscanned { owner: u32 },
    /// There is nothing to publish.
    Clean,
    /// There is no copy to publish into. `behind` tells whether workers outside of the round are why.
    Pinned { owner: u32, behind: bool },
    /// It is published into this copy, which is marked.
    Planned { owner: u32, copy: usize },
}

/// The words of an area by which a plan and a claim see each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owning<'s> {
    pub(crate) lock: &'s AtomicU64,
    pub(crate) ownership: &'s AtomicU64,
}

impl Owning<'_> {
    /// Locks the area for `round` and looks at it. Where there is something to publish, `target` marks a copy, or says
    /// whether workers outside of the round are why it cannot. An area that is on its way to its next owner was looked
    /// through by the last: `is_unscanned` is not asked.
    pub(crate) fn consider(
        self,
        round: u64,
        standings: &Standings,
        is_unscanned: impl FnOnce() -> bool,
        is_dirty: impl FnOnce() -> bool,
        target: impl FnOnce() -> Result<usize, bool>,
    ) -> Found {
        // Before anything else of the area is looked at: see `lock`.
        let word = lock::lock_for_round(self.lock, self.ownership, round);
        let Some(owner) = word.holder() else { return Found::Ownerless };
        match standings.of(owner) {
            Standing::Gone => return Found::Ownerless,
            Standing::Outside => return Found::Outside { owner },
            Standing::Present => {}
        }
        if !word.is_transit() && is_unscanned() {
            return Found::Unscanned { owner };
        }
        if !is_dirty() {
            return Found::Clean;
        }
        match target() {
            Ok(copy) => Found::Planned { owner, copy },
            Err(behind) => Found::Pinned { owner, behind },
        }
    }
}
