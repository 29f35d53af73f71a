//! Running loops: planning once, then passes that take, work, give.
mod align;
mod alike;
mod arrays;
mod body;
mod check;
mod clocks;
mod control;
mod description;
mod foresee;
mod lacking;
pub(crate) mod mutant;
mod notes;
mod pass;
mod places;
mod plan;
mod run;
mod space;
#[cfg(test)]
mod tests;
mod timing;
pub(crate) mod unwound;
mod work;

pub use self::alike::Rule;
pub use self::arrays::{ArrayArg, Arrays, Family, Of, Reads, Writes};
pub use self::control::Control;
pub use self::notes::{Note, Notes};
pub use self::plan::LoopPlan;
pub(crate) use self::plan::Plans;
pub use self::space::{Boxes, IterationSpace, Ranges, Visit, entry_parts};
pub use self::timing::Timing;
#[doc(hidden)]
pub use self::unwound::begin_iteration;
pub(crate) use self::unwound::{merging, merging_at};

use crate::context::Site;
use crate::describe::Plain;
use crate::relax::Relax;
use hectare_dependence::loop_nest::{LoopNest, Order};
use hectare_dependence::schedule::Schedule;

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
    /// Numbers from outside that the body uses, with their names: the same on all workers, or the loop ends with
    /// [`Error::Diverged`](crate::Error::Diverged). What is no number, truth value or character is not compared.
    pub captured: &'a [(&'static str, Option<Plain>)],
    /// A schedule of one's own, instead of one that the runtime chooses.
    pub schedule: Option<&'a dyn Schedule>,
    /// What is promised about the arrays that it relaxes and buffers. [`Relax::default`] relaxes nothing.
    pub relax: Relax,
}

impl LoopHead<'_> {
    pub(crate) fn name(&self) -> String {
        self.site.to_string()
    }
}

/// Completes the description of a loop: its inner variables and its accesses.
pub type Describe<'a> = &'a dyn Fn(&mut LoopNest);
