//! Loops whose subscripts come from data: what the slice finds of them, kept while the data stay (inspector), and passes in
//! batches that touch nothing in common (executor).
//!
//! All workers inspect the same iterations and find the same; nothing is exchanged for it. The pass runs on arrays that lie in
//! place, row by row as the plan says, which the core has checked (`hectare_dsm::tasks::RowPlan`). On several hosts the core has a copy
//! of them on each, and sends rows that a worker of another host touches next.
mod estimate;
mod find;
mod lists;
mod run;

use super::inspection::Inspection;

use super::any_loop::AnyLoop;
use super::plan::LoopPlan;
use crate::context::Context;
use crate::relax::Treatment;
use hectare_dependence::loop_nest::Order;

impl LoopPlan {
    /// The rows and elements that the iterations of the loop touch, as far as known, if it is to be inspected.
    pub(super) fn inspection(&self, running: &dyn AnyLoop<'_>, context: &Context<'_>) -> Option<Inspection> {
        let exact = self.sharing.treatments.iter().all(|treatment| *treatment == Treatment::Exact);
        let is_irregular = running.slice_basis().is_some() && running.head().schedule.is_none() && exact;
        // One worker runs the loop as it is, unless what is accumulated would be combined otherwise than by several.
        let helps = context.size() > 1 || self.accumulates && self.nest.order == Order::Ordered;
        // Batches are not in the order of the loop.
        let is_free = !self.nest.combines_in_order;
        let wanted = is_irregular && is_free && self.choice.is_serial() && !self.dependences.is_empty();
        (wanted && helps).then(Inspection::default)
    }
}
