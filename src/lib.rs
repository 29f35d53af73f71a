//! Hectare: distributed shared memory for machine-learning training.
//!
//! Training programs keep their state in *areas*: named, versioned, contiguous memory with exactly one
//! writer each. Reads and writes run at local-memory speed; the runtime moves the differences between
//! workers at synchronization points.
//!
//! Begin with [`Job`], [`Worker`], [`Area`] and [`Owned`]; `docs/src/areas.md` has a program of twenty-five lines.
//!
//! The programs in these pages say `hectare_dsm` and `hectare_orion` for what yours calls `hectare` and
//! `hectare::orion`. There are two error types: [`Result`] is that of areas and jobs; what [`run`] and loops return is
//! [`orion::Result`], whose error has this one as a variant.
//!
//! For serial loops that should run on many workers, begin with [`run`], [`DistArray`], [`orion`] and
//! [`parallel_for!`](orion::parallel_for); `docs/loops.md` is a chapter on them.
pub use hectare_dsm::*;
/// The loop layer: distributed arrays, and loops that run in parallel with their dependences kept.
pub use hectare_orion as orion;
pub use hectare_orion::{Context, DistArray, SparseArray, parallel_for, run, run_on};

/// What most programs need: `use hectare::prelude::*;`.
pub mod prelude {
    pub use hectare_dsm::{
        Area, AreaSpec, Error, Job, Owned, Rank, Result, Tracking, Version, Worker, WriteGuard,
    };
    pub use hectare_orion::parallel_for;
}

/// The programs of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// The program of the chapter on areas, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/src/areas.md")]
mod areas {}

/// The programs of the chapter on loops, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/loops.md")]
mod loops {}
