//! The loop layer of Hectare: a serial training loop, run by many workers in an order that keeps its
//! dependences.
//!
//! After Orion (Wei et al., EuroSys 2019). A loop over the entries of a [`DistArray`](array) or over index
//! ranges is described as a [`LoopNest`]; [`dependence`] finds which iterations must not run at the same time,
//! a schedule is chosen, and the executor runs it by handing partitions of the arrays from worker to worker.
#![forbid(unsafe_code)]
pub mod array;
pub mod dependence;
pub mod loop_nest;

pub use self::loop_nest::LoopNest;
