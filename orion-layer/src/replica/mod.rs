//! A worker's copy of an array that a loop relaxes: the numbers that it is made of, what a body sees of it, and how workers
//! tell each other what they changed. Arrays keep one; `relax` has the loops.
mod copies;
mod number;
mod view;

pub(crate) use self::copies::Replica;
pub use self::number::Additive;
pub use self::view::{ElementIndex, RelaxedView};
