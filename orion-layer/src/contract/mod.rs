//! The contract between arrays and loops: all that the two know of each other.
//!
//! An array is passed to a loop as an [`ArrayArg`]; the executor sees it as a [`LoopArray`], the body as its view. What it
//! runs over is an [`IterationSpace`]. Neither the executor nor any kind of array is known here.
mod applied;
mod arrays;
mod captured_value;
mod consistency;
mod layout;
mod loop_array;
mod notes;
mod pieces;
mod rule;
mod serves;
mod serving;
mod space;
mod tail;
mod treatment;

pub use self::applied::Applied;
pub use self::arrays::{AnyArrays, ArrayArg, Arrays, Family, Of};
pub use self::captured_value::CapturedValue;
pub use self::consistency::{Consistency, Every, Relaxation};
pub use self::layout::Layout;
pub use self::loop_array::LoopArray;
pub(crate) use self::notes::Noted;
pub use self::notes::{ArrayTrace, KeyNotes, PassTrace};
pub(crate) use self::pieces::Each;
pub use self::pieces::{Pieces, SlicePieces};
pub use self::rule::Rule;
pub use self::serves::{NoKeyView, NoKeyViewFamily, Serves};
pub use self::serving::PrefetchStats;
pub use self::space::{AnySpace, IterationSpace, Ranges, Visit, entry_parts};
pub(crate) use self::tail::Extent;
pub use self::tail::Tail;
pub use self::treatment::{PassParams, Traffic, Treatment};
