//! The loop layer of Hectare: a serial training loop, run by many workers in an order that keeps its
//! dependences.
//!
//! After Orion (Wei et al., EuroSys 2019). A loop over the entries of an array or over index ranges is described
//! as a [`LoopNest`]; [`dependence`] finds which iterations must not run at the same time, a schedule is chosen,
//! and the executor runs it by handing partitions of the arrays from worker to worker.
#![forbid(unsafe_code)]
// Tests share code with those in `tests/`, which know the crate by its name.
#[cfg(test)]
extern crate self as hectare_orion;

pub mod accumulate;
pub mod array;
mod check;
mod checkpoint;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
mod context;
pub mod dependence;
#[doc(hidden)]
pub mod describe;
mod error;
pub mod execute;
pub mod explain;
mod file;
pub mod loop_nest;
mod parallel_for;
pub mod placement;
pub mod schedule;
pub mod view;

#[doc(hidden)]
pub use hectare_orion_macros::__parallel_for;

pub use self::array::{DistArray, SparseArray};
pub use self::checkpoint::{Checkpoint, Saving};
pub use self::context::{Context, Site, run};
pub use self::error::{Error, Result};
pub use self::explain::Explanation;
pub use self::loop_nest::LoopNest;
pub use self::view::{View, ViewMut, axpy, dot, norm2, scale};
