//! The description of a loop, what its iterations depend on, and how workers may share it.
//!
//! The lowest crate of the loop layer: pure functions of descriptions. It knows no array and no worker, only shapes and
//! numbers of workers; it has no input, no output and no shared memory, and depends on no other crate of the project.
//!
//! - [`loop_nest`] describes a loop: its dimensions, and what its body does to which array at which subscripts.
//! - [`analysis`] finds which iterations may touch the same element.
//! - [`schedule`] has the ways to run a loop on several workers, what each costs, which one is chosen, and the verification
//!   that any schedule has to pass.
//! - [`placement`] says which parts of which array each worker needs under a schedule, and who hands them to whom.
//! - [`reads`] says what each worker reads of arrays that others have.
//! - [`in_place`] says which elements each tile touches of arrays that are not cut into parts.
//! - [`inspect`] groups the iterations of a loop whose subscripts come from data, by what each of them touches.
//! - [`hosts`] predicts how long a pass takes on several hosts.
//! - [`cuts`] and [`histogram`] cut a dimension into parts of equal weight.
//!
//! `docs/src/algorithms.md` of the project has the algorithms with their sources.
#![forbid(unsafe_code)]
// Tests share code with those of the crates above, which know this one by its name.
#[cfg(test)]
extern crate self as hectare_dependence;

pub mod analysis;
#[cfg(test)]
#[path = "../../tests/common/described.rs"]
mod common;
pub mod cuts;
pub mod histogram;
pub mod hosts;
pub mod in_place;
pub mod inspect;
#[cfg(test)]
mod isl;
pub mod loop_nest;
#[doc(hidden)]
pub mod mutant;
pub mod placement;
pub mod reads;
pub mod schedule;
mod tiles;
