//! Running loops: planning once, then passes that take, work, give.
mod arrays;
mod body;
mod check;
pub(crate) mod mutant;
mod pass;
mod plan;
mod space;
#[cfg(test)]
mod tests;
mod timing;

pub use self::arrays::{ArrayArg, Arrays, Control, Family, Note, Notes, Of, Reads, Writes};
pub use self::plan::LoopPlan;
pub(crate) use self::plan::Plans;
pub use self::space::{Boxes, IterationSpace, Ranges, Visit, entry_parts};
pub use self::timing::Timing;

use crate::context::Site;
use crate::loop_nest::{LoopNest, Order};
use crate::schedule::Schedule;

/// What `parallel_for!` says of a loop, besides its body.
#[derive(Debug)]
pub struct LoopHead<'a> {
    /// Where it stands.
    pub site: Site,
    /// Ordered or not.
    pub order: Order,
    /// The names of its variables, outermost first.
    pub variables: &'a [&'a str],
    /// The names of its arrays, in the order in which they are passed.
    pub arrays: &'a [&'a str],
    /// Values that the description depends on besides the shapes of the arrays: a plan is kept for each.
    pub invariants: &'a [i64],
    /// A schedule of one's own, instead of one that the runtime chooses.
    pub schedule: Option<&'a dyn Schedule>,
}

impl LoopHead<'_> {
    pub(crate) fn name(&self) -> String {
        self.site.to_string()
    }
}

/// Completes the description of a loop: its inner variables and its accesses.
pub type Describe<'a> = &'a dyn Fn(&mut LoopNest);
