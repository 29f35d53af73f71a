//! Hectare: distributed shared memory for machine-learning training.
//!
//! Training programs keep their state in *areas*: named, versioned, contiguous memory with exactly one writer each. Reads
//! and writes run at local-memory speed; the runtime propagates the differences between workers at synchronization
//! points.
//!
//! Begin with [`Job`], [`Worker`], [`Area`] and [`Owned`]; `docs/src/howto/areas.md` has a program of twenty-five lines.
//!
//! The examples in these pages use the crates `hectare_dsm` and `hectare_orion`, which your program calls `hectare` and
//! `hectare::orion`. There are two error types: areas and jobs return [`Result`]; [`run`] and loops return
//! [`orion::Result`], whose error has the other one as a variant.
//!
//! For serial loops that should run on many workers, begin with [`run`], [`DistArray`], [`orion`] and
//! [`parallel_for!`](orion::parallel_for); `docs/src/SUMMARY.md` has the chapters on them.
pub use hectare_dsm::*;
/// The loop layer: distributed arrays, and loops that run in parallel with their dependences preserved.
pub use hectare_orion as orion;
pub use hectare_orion::{Context, DistArray, SparseArray, parallel_for, run, run_on};

/// The names that most programs need: `use hectare::prelude::*;`.
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

/// The programs of the book, compiled and run: each chapter that has some.
#[cfg(doctest)]
mod book {
    #[doc = include_str!("../docs/src/howto/areas.md")]
    mod areas {}
    #[doc = include_str!("../docs/src/howto/check.md")]
    mod check {}
    #[doc = include_str!("../docs/src/howto/checkpoints.md")]
    mod checkpoints {}
    #[doc = include_str!("../docs/src/howto/consistency.md")]
    mod consistency {}
    #[doc = include_str!("../docs/src/howto/data.md")]
    mod data {}
    #[doc = include_str!("../docs/src/howto/maps.md")]
    mod maps {}
    #[doc = include_str!("../docs/src/howto/own-processes.md")]
    mod own_processes {}
    #[doc = include_str!("../docs/src/howto/pipelines.md")]
    mod pipelines {}
    #[doc = include_str!("../docs/src/howto/priority.md")]
    mod priority {}
    #[doc = include_str!("../docs/src/howto/rebalance.md")]
    mod rebalance {}
    #[doc = include_str!("../docs/src/howto/relax.md")]
    mod relax {}
    #[doc = include_str!("../docs/src/howto/rules.md")]
    mod rules {}
    #[doc = include_str!("../docs/src/howto/explain.md")]
    mod explain {}
    #[doc = include_str!("../docs/src/howto/inspect.md")]
    mod inspect {}
    #[doc = include_str!("../docs/src/howto/serial-loops.md")]
    mod serial_loops {}
    #[doc = include_str!("../docs/src/howto/serve.md")]
    mod serve {}
    #[doc = include_str!("../docs/src/howto/sums.md")]
    mod sums {}
    #[doc = include_str!("../docs/src/howto/text-to-loop.md")]
    mod text_to_loop {}
    #[doc = include_str!("../docs/src/reference/errors.md")]
    mod errors {}
    #[doc = include_str!("../docs/src/tutorial/first-program.md")]
    mod first_program {}
    #[doc = include_str!("../docs/src/tutorial/parallel-loop.md")]
    mod parallel_loop {}
}
