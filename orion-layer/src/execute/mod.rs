//! Running loops: planning once, then passes that take, work, give.
mod ahead;
mod align;
mod any_loop;
mod between_hosts;
mod body;
mod called;
mod cells;
mod check;
mod clocks;
mod description;
mod divergence;
mod findings;
mod forecast;
mod free;
mod in_place;
mod inspect;
mod inspection;
mod links;
mod meter;
mod pass;
mod pass_dynamic;
#[cfg(test)]
mod pass_tests;
#[cfg(test)]
mod placement_tests;
mod places;
mod plan;
mod plans;
mod prefetch_plan;
mod rebalance;
mod reports;
mod run;
mod staleness_meter;
mod task_graph;
#[cfg(test)]
mod tests;
mod timing;
mod work;

pub use self::between_hosts::{BetweenHosts, LinkBytes};
pub use self::inspection::Inspected;
pub use self::plan::LoopPlan;
pub use self::rebalance::{Move, Moves, Rebalance};
pub use self::timing::Timing;
pub use crate::contract::{
    AnyArrays, AnySpace, ArrayArg, ArrayTrace, Arrays, Family, IterationSpace, KeyNotes, LoopArray, Of,
    PassTrace, Pieces, Ranges, Rule, SlicePieces, Visit, entry_parts,
};
#[doc(hidden)]
pub use crate::panics::{IterationMark, begin_iteration};

use crate::contract::{CapturedValue, Relaxation};
use crate::site::Site;
use hectare_dependence::loop_nest::{LoopNest, Order};
use hectare_dependence::schedule::Schedule;

/// The head of a loop, as `parallel_for!` writes it.
#[derive(Debug)]
pub struct LoopHead<'a> {
    /// The place of the loop in the program.
    pub site: Site,
    /// Ordered or not.
    pub order: Order,
    /// The names of its variables, outermost first.
    pub variables: &'a [&'a str],
    /// The names of its arrays, in the order in which they are passed.
    pub arrays: &'a [&'a str],
    /// Values that the description depends on besides the shapes of the arrays: a plan is kept for each.
    pub invariants: &'a [i64],
    /// Numbers from outside that the body uses, with their names: the same on all workers, or the loop ends with
    /// [`Error::Diverged`](crate::Error::Diverged). What is no number, truth value or character is not compared.
    pub captured: &'a [(&'static str, Option<CapturedValue>)],
    /// A schedule of one's own, instead of one that the runtime chooses.
    pub schedule: Option<&'a dyn Schedule>,
    /// The consistency of the arrays that it relaxes and buffers. [`Relaxation::default`] relaxes nothing.
    pub relax: Relaxation,
}

impl LoopHead<'_> {
    pub(crate) fn name(&self) -> String {
        self.site.to_string()
    }
}

/// Completes the description of a loop: its inner variables and its accesses.
pub type Describe<'a> = &'a dyn Fn(&mut LoopNest);
