//! Random loops by their descriptions alone, for the tests of the crate that knows nothing else of a loop.
#![allow(dead_code, unreachable_pub)]
pub mod case;
pub mod generate;
pub mod random;
pub mod replay;
pub mod schedules;
