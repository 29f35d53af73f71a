//! Random loops, the body that runs them, and what they are checked against.
//!
//! Every iteration of a [`Case`]'s loops mixes its indices with all that it reads and writes the mix to all that it
//! writes, so that a lost, repeated or reordered iteration changes what is left in the end. The order in which
//! iterations ran is logged by the body and replayed by [`check`] over plain vectors.
#![allow(dead_code, unreachable_pub, unused_imports)]
pub mod arrays;
pub mod body;
pub mod case;
pub mod check;
pub mod collected;
pub mod difficult;
pub mod diverging;
pub mod generate;
pub mod hand;
pub mod irregular;
pub mod neighbours;
pub mod oracle;
pub mod random;
pub mod relaxing;
pub mod replay;
pub mod running;
pub mod same;
pub mod schedules;
pub mod scratch;
pub mod state;
pub mod watchdog;

pub use self::same::same;
pub use self::scratch::Scratch;
