//! One area of a plan: whether it is published, and into which copy.
use super::lock;
use super::presence::{Presence, Presences};
use crate::primitive::AtomicU64;

/// In place of an owner's rank: that of an area whose owner is on another host, or has lent it and is not in the round. Everybody copies
/// it.
pub(crate) const OTHER_HOST: u32 = u32::MAX;

/// A plan's finding on an area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Its owner is on another host, and nothing has arrived that is not published.
    Awaited,
    /// It has no owner, or one that is dead or has left: what that one had not published is lost.
    Ownerless,
    /// Its owner lives and is not in the round.
    Outside { owner: u32 },
    /// Its owner should have looked it through for this round and did not.
    Unscanned { owner: u32 },
    /// There is nothing to publish.
    Clean,
    /// There is no copy to publish into.
    Pinned { owner: u32 },
    /// It is published into this copy, which is marked.
    Planned { owner: u32, copy: usize },
}

/// The words of an area by which a plan sees a claim, or that its owner takes it back, or is seen there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owning<'s> {
    pub(crate) lock: &'s AtomicU64,
    pub(crate) ownership: &'s AtomicU64,
    /// The ranks of this host.
    pub(crate) here: (u32, u32),
    /// Whether the area is of a group.
    pub(crate) is_grouped: bool,
}

impl Owning<'_> {
    /// Locks the area for `round` and looks at it. Where there is something to publish, `target` marks a copy, if one is
    /// free. An area that is on its way to its next owner was looked
    /// through by the last: `is_unscanned` is not asked. Nor is it, and nor is `is_dirty`, of an area whose owner is on another
    /// host: `has_arrived` tells. An area that is on its way to a worker of another host is published for that one: its giver has
    /// written all that it will, and the agent leaves it only when that is published. One that is lent is published wherever its owner
    /// is: that one has looked it through, and writes it again only when the round is past (`lock::take_back`). But one of a group stays
    /// as the group's other areas of an owner that is gone.
    pub(crate) fn consider(
        self,
        round: u64,
        presences: &Presences,
        is_unscanned: impl FnOnce() -> bool,
        is_dirty: impl FnOnce() -> bool,
        has_arrived: impl FnOnce() -> bool,
        target: impl FnOnce() -> Option<usize>,
    ) -> Found {
        // Before anything else of the area is looked at: see `lock`.
        let word = lock::lock_for_round(self.lock, self.ownership, round);
        if word.is_remote() {
            return match has_arrived() {
                true => found_target(OTHER_HOST, target()),
                false => Found::Awaited,
            };
        }
        let (holder, is_lent) = (word.holder(), word.is_lent());
        // Of one that is dropped: nobody's.
        let presence = holder.map_or(Presence::Gone, |owner| presences.of(owner));
        let owner = match holder {
            Some(owner) if !is_lent || presence == Presence::Present => owner,
            _ if is_lent && !(self.is_grouped && presence == Presence::Gone) => OTHER_HOST,
            _ => return Found::Ownerless,
        };
        let is_away = word.is_transit() && !(self.here.0..self.here.1).contains(&owner);
        match if is_away || is_lent { Presence::Present } else { presence } {
            Presence::Gone => return Found::Ownerless,
            Presence::Outside => return Found::Outside { owner },
            Presence::Present => {}
        }
        if !word.is_transit() && !is_lent && is_unscanned() {
            return Found::Unscanned { owner };
        }
        if !is_dirty() {
            return Found::Clean;
        }
        found_target(owner, target())
    }
}

fn found_target(owner: u32, target: Option<usize>) -> Found {
    target.map_or(Found::Pinned { owner }, |copy| Found::Planned { owner, copy })
}
