//! Served arrays: the keys that a loop uses are prefetched in bulk.
//!
//! A loop that `serve`s an array goes through its iterations in intervals, from clock to clock. Before the first pass, a
//! *slice* of the body, the statements on which the subscripts depend, determines the keys that each interval uses
//! (Orion's prefetch, Wei et al., 2019); a key is an element of a one-dimensional array, otherwise a row. At the
//! beginning of an interval, its keys are fetched together, sorted, into the worker's cache, on which the body works.
//! Contributions go to the *homes* of their keys at the clock, and are merged there by an [`Apply`](crate::relax::Apply)
//! function, as in a buffered array: each exactly once.
//!
//! - `blocks` divides keys into blocks, a cache line or a row each: the units of homes and of versions.
//! - `cache` has a loop's prefetch plan, made once as long as the data stay the same, and the fetched values: a block
//!   that has not changed since is not fetched again.
//! - `homes` determines which worker merges contributions to a block. Every worker declares the blocks that it uses; a
//!   block that only one worker uses is *relocated* to it, and then read and changed without delay, as in a serial loop
//!   (Lapse, Renz-Wieland et al., 2020). A block that a worker uses in more than half of its intervals, and that others
//!   use too, is *replicated*: refreshed at every clock (NuPS, Renz-Wieland et al., 2022).
//! - `carry` and `ring` bring contributions to their homes; `lookaside` has the keys that were not in the plan and were
//!   looked up one by one.
//! - `view` is what the body sees, `keys` what the slice sees.
//!
//! On one host, "fetching" copies from memory that all workers have mapped. On several (`relax::ring`), each worker has a
//! copy of the array, and applies everybody's contributions to it, clock by clock in the order of ranks: so network
//! traffic is proportional to the contributions, nobody waits for a value, and no key is relocated. The elements are
//! those that a buffered array would have.
mod arg;
mod blocks;
mod cache;
mod carrier;
mod carry;
mod homes;
mod intend;
mod keys;
mod lookaside;
mod prefetch;
mod ring;
mod served;
mod state;
mod view;
mod worker_areas;

pub(crate) use self::arg::ServedArg;
pub use self::keys::KeyView;
pub use self::served::Served;
pub use self::view::ServedView;
pub use crate::contract::{NoKeyView, NoKeyViewFamily, PrefetchStats, Serves};
