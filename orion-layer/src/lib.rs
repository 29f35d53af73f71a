//! The loop layer of Hectare: a serial training loop, run by many workers in an order that preserves its dependences.
//!
//! After Orion (Wei et al., EuroSys 2019). A loop over the entries of an array or over index ranges is described
//! as a [`LoopNest`]; [`dependence`] finds which iterations must not run at the same time, a schedule is chosen,
//! and the executor runs it by handing partitions of the arrays from worker to worker.
//!
//! ```
//! use hectare_orion::{parallel_for, run};
//!
//! let sums = run(2, |w| {
//!     // Every worker runs this program; what each does of a loop is its share.
//!     let x = w.from_fn([1000], |[i]| i as f64)?;
//!     let mut y = w.zeros::<f64, 1>([1000])?;
//!     let sum = parallel_for!(w, unordered, read x, write y, sum sum: f64;
//!         for i in 1..999 {
//!             y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0;
//!             sum += y[i];
//!         })?;
//!     // Why it runs as it does: no two iterations touch the same element of `y`.
//!     assert!(w.explain()[0].conflicts.is_empty());
//!     Ok(sum)
//! })?;
//! assert_eq!(sums[0], (1..999).sum::<usize>() as f64);
//! assert_eq!(sums[0], sums[1]);
//! # Ok::<(), hectare_orion::Error>(())
//! ```
//!
//! # Where to begin
//! - [`run`] starts a program on threads; [`Context::join`] is for one worker of a job, in any process.
//! - [`Context`] makes arrays: [`zeros`](Context::zeros), [`from_fn`](Context::from_fn),
//!   [`uniform`](Context::uniform), [`normal`](Context::normal); [`entries`](Context::entries) and
//!   [`text_file`](Context::text_file) for sparse ones; [`text_array`](Context::text_array) and
//!   [`npy_file`](Context::npy_file) for dense ones from files. Calls that are *collective* are to be made by every
//!   worker in the same order.
//! - [`DistArray`] is dense, of plain old data, and written by loops; [`SparseArray`] has entries of any serde type,
//!   which are only read.
//! - [`parallel_for!`] runs a loop; [`Context::run_loop`] runs one that was described by hand.
//! - In a body an array is a [`View`] or a [`ViewMut`]; [`dot`], [`axpy`], [`scale`] and [`norm2`] work on rows.
//! - [`relax`] and [`serve`] are for loops whose subscripts come from the data.
//! - [`priority`] draws which variables of a loop run next, by how much they changed.
//! - [`Context::explain`] says why loops run as they do, [`Context::timings`] how long they took,
//!   [`Context::check_loops`] whether their descriptions are true.
//! - [`Context::save_checkpoint`] and [`Context::open_checkpoint`] keep the state of a program.
//! # Guarantees
//! - An unordered loop has the result of some serial run of its iterations, an ordered one that of *the* serial run.
//! - The same program on the same number of workers gives the same bits. Loops without conflicts do so on every number
//!   of workers.
//! - A body is only ever given what its worker holds; anything else is [`Error::OutOfBounds`], never a race.
//! - Arrays that a loop relaxes or buffers are the exception, as far as its [`relax::Consistency`] says.
//! - After a pass that failed, the arrays that it wrote are [`Error::Poisoned`].
//!
//! # How it works
//! [`loop_nest`] is the description, [`dependence`] the analysis, [`schedule`] the choice, [`placement`] says where
//! arrays are, [`execute`] runs passes, [`accumulate`] adds up in a fixed tree. `docs/src/algorithms.md` of the project has
//! the algorithms with their sources, `docs/src/SUMMARY.md` the chapters for users.
#![forbid(unsafe_code)]
// Tests share code with those in `tests/`, which know the crate by its name.
#[cfg(test)]
extern crate self as hectare_orion;

pub mod accumulate;
pub mod array;
mod checkpoint;
mod checksum;
pub mod collections;
#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod common;
mod context;
mod contract;
#[doc(hidden)]
pub mod describe;
mod error;
pub mod execute;
pub mod explain;
mod fabric;
mod file;
pub mod lazy;
mod mutant;
mod panics;
mod parallel_for;
mod per_worker;
mod picture;
pub mod priority;
pub mod relax;
mod replica;
pub mod serve;
mod site;
mod text;
pub mod view;

#[doc(inline)]
pub use hectare_dependence::{analysis as dependence, loop_nest};

/// The placement of a loop's arrays.
pub mod placement {
    #[doc(inline)]
    pub use hectare_dependence::placement::ArrayPlacement;
}

/// Schedules: which worker runs which iterations, and when.
///
/// A loop's space is cut into a grid of *cells*. A schedule gives, for every step and worker, a *tile*: a box of
/// cells. Steps are not separated by barriers: what orders them is that a worker needs the partitions of the
/// arrays that its tile writes, and gets them from whoever used them last. Where arrays cannot be cut into partitions, they lie
/// in one piece, and a tile waits for those that come before it.
pub mod schedule {
    #[doc(inline)]
    pub use hectare_dependence::schedule::{
        Blocks, Candidate, Choice, Cost, Dynamic, Rotation, Schedule, Serial, Steps, Tile, Verdict, Wavefront,
    };
}

#[doc(hidden)]
pub use hectare_orion_macros::__parallel_for;

pub use self::array::{DistArray, SparseArray};
pub use self::checkpoint::{Checkpoint, CheckpointWriter};
pub use self::context::{Context, run, run_on};
pub use self::error::{Error, Result};
pub use self::execute::{BetweenHosts, LinkBytes, Rebalance};
pub use self::explain::{Explanation, Explanations};
pub use self::loop_nest::LoopNest;
pub use self::per_worker::PerWorker;
pub use self::site::Site;
pub use self::view::{View, ViewMut, axpy, dot, norm2, scale};
