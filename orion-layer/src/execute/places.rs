//! Where the arrays of a loop have to be when a pass begins, and where they are when it ends.
use super::LoopPlan;
use crate::contract::Layout;
use hectare_dependence::loop_nest::Subscript;
use hectare_dependence::placement::{ArrayPlacement, bounds_around};
use hectare_dsm::Rank;

impl LoopPlan {
    /// The layout that array `array`, which lies as in `present`, has to have when the pass begins; `None` if any will do.
    pub(super) fn layout(&self, array: usize, present: &Layout) -> Option<Layout> {
        match &self.choice.placement.arrays[array] {
            ArrayPlacement::Parts { dim, bounds, .. } => {
                let first = &self.choice.placement.first[array];
                let owners = first.iter().map(|rank| rank.unwrap_or(0)).collect();
                Some(Layout { dim: *dim, bounds: bounds.clone(), owners })
            }
            ArrayPlacement::Ghosted { dim, written, owners } => {
                let is_along = present.dim == *dim;
                let known = is_along.then_some(&present.bounds[..]);
                let bounds = bounds_around(written, self.nest.arrays[array].shape[*dim], known);
                Some(Layout { dim: *dim, bounds, owners: owners.clone() })
            }
            _ => None,
        }
    }

    /// The layout that array `array`, which lies as in `present`, has to have when the pass begins, if a loop that is not
    /// cut needs all of it, or that writes it in place: one piece, where rows or slices would otherwise lie in several, where a rule merges what is
    /// contributed, and where data say what is looked up, for that is faster in one.
    pub(super) fn one_piece(&self, array: usize, by_rule: bool, present: &Layout) -> Option<Layout> {
        let shape = &self.nest.arrays[array].shape;
        let rows_are_cut = shape.len() > 1 && present.dim + 1 == shape.len();
        let is_range = |subscript: &Subscript| matches!(subscript, Subscript::Range(..));
        let is_unknown = |subscript: &Subscript| *subscript == Subscript::Unknown;
        let mut subscripts = self.nest.accesses_of(array).flat_map(|access| &access.subscripts);
        let whole = self.choice.placement.arrays[array] == ArrayPlacement::Whole;
        let relaxed = self.choice.placement.arrays[array] == ArrayPlacement::Relaxed;
        let in_place = self.choice.placement.arrays[array] == ArrayPlacement::InPlace;
        let wanted = relaxed
            || in_place
            || whole && (rows_are_cut || by_rule || subscripts.any(|one| is_range(one) || is_unknown(one)));
        (wanted && present.parts() > 1).then(|| Layout {
            dim: 0,
            bounds: vec![0, shape[0]],
            owners: vec![self.only_worker()],
        })
    }

    /// Whether an array that the loop writes has ghost regions.
    pub(super) fn has_ghosts(&self, array: usize) -> bool {
        matches!(self.choice.placement.arrays[array], ArrayPlacement::Ghosted { .. })
    }

    /// Whether no parts of an array that the loop writes are handed on, by the next pass least of all.
    pub(super) fn stays_put(&self, array: usize) -> bool {
        !matches!(self.choice.placement.arrays[array], ArrayPlacement::Parts { rotates: true, .. })
    }

    /// The worker that needs all of every written array, in a loop that is not cut.
    pub(super) fn only_worker(&self) -> Rank {
        self.tiles.iter().position(|tiles| !tiles.is_empty()).unwrap_or(0) as Rank
    }

    /// Who has part `part` of array `array` when the pass begins, if its owner at rest is `owner`.
    pub(super) fn first(&self, array: usize, part: usize, owner: Rank) -> Rank {
        match &self.choice.placement.arrays[array] {
            ArrayPlacement::Replicated | ArrayPlacement::Relaxed | ArrayPlacement::InPlace => owner,
            ArrayPlacement::Whole => self.only_worker(),
            ArrayPlacement::Parts { .. } | ArrayPlacement::Ghosted { .. } => {
                self.choice.placement.first[array][part].unwrap_or(owner)
            }
        }
    }

    /// Who has it at the end.
    pub(super) fn last(&self, array: usize, part: usize, owner: Rank) -> Rank {
        match &self.choice.placement.arrays[array] {
            ArrayPlacement::Replicated | ArrayPlacement::Relaxed | ArrayPlacement::InPlace => owner,
            ArrayPlacement::Whole => self.only_worker(),
            ArrayPlacement::Parts { .. } | ArrayPlacement::Ghosted { .. } => {
                self.choice.placement.last[array][part].unwrap_or(owner)
            }
        }
    }
}
