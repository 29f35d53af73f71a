//! Hectare: distributed shared memory for machine-learning training.
//!
//! Training programs keep their state in *areas*: named, versioned, contiguous memory with exactly one
//! writer each. Reads and writes run at local-memory speed; the runtime moves the differences between
//! workers at synchronization points.
//!
//! Begin with [`Job`], [`Worker`], [`Area`] and [`Owned`]; `README.md` has a program of twenty-five lines.
pub use hectare_dsm::*;

/// What most programs need: `use hectare::prelude::*;`.
pub mod prelude {
    pub use hectare_dsm::{
        Area, AreaSpec, Error, Job, Owned, Rank, Result, Tracking, Version, Worker, WriteGuard,
    };
}

/// The programs of the README, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
