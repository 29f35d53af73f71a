//! What an array must do for loops, and a loop for its arrays: all that the two know of each other.
//!
//! An array is passed to a loop as an [`ArrayArg`]; the executor sees it as a [`Control`], the body as its view. What it
//! runs over is an [`IterationSpace`]. Neither the executor nor any kind of array is known here.
mod arrays;
mod consistency;
mod control;
mod layout;
mod notes;
mod plain;
mod rule;
mod serves;
mod serving;
mod space;
mod treatment;

pub use self::arrays::{ArrayArg, Arrays, Family, Of};
pub use self::consistency::{Consistency, Every, Relax};
pub use self::control::Control;
pub use self::layout::Layout;
pub use self::notes::{Note, Notes};
pub use self::plain::Plain;
pub use self::rule::Rule;
pub use self::serves::{Serves, Unseen, Unseens};
pub use self::serving::Serving;
pub use self::space::{Boxes, IterationSpace, Ranges, Visit, entry_parts};
pub use self::treatment::{Moved, Pace, Treatment};
