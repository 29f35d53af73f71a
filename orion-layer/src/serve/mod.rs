//! Served arrays: what a loop looks up is fetched in bulk before it runs.
//!
//! A loop that `serve`s an array goes through its iterations in intervals, from clock to clock. Before the first pass a
//! *slice* of the body, the statements on which the subscripts depend, has said which keys each interval uses (Orion's
//! prefetch, Wei et al., 2019); a key is an element of an array of one dimension, else a row. At the begin of an interval
//! its keys are fetched in one go, sorted, into a cache of the worker's own, and the body works on that. What it
//! contributes goes to the *homes* of the keys at the clock, and is merged there by an
//! [`Apply`](crate::relax::Apply) function, as in a buffered array: each contribution exactly once.
//!
//! - `blocks` divides keys into blocks, a cache line or a row each: the units of homes and of versions.
//! - `cache` has the lists of keys of a loop, made once while the data stay as they are, and the values that were
//!   fetched: a block that has not changed since is not fetched again.
//! - `homes` says who merges contributions to a block. Every worker says which blocks it uses; a block that one worker
//!   alone uses is *relocated* to it, and then read and changed without delay, as in a serial loop (Lapse, Renz-Wieland
//!   et al., 2020). A block that a worker uses in more than half of its intervals, and others use too, is *replicated*:
//!   refreshed at every clock (NuPS, Renz-Wieland et al., 2022).
//! - `carry` and `ring` bring contributions home, `lookaside` what was looked up one by one, because no slice had foreseen it.
//! - `view` is what the body sees, `keys` what the slice sees.
//!
//! On one host "fetching" copies from memory that everybody has mapped. On several (`relax::ring`) each worker has a copy of the array, and
//! applies what all contribute to it, each clock's in the order of ranks: so what crosses is in proportion to what a loop
//! contributes to, nobody waits for a value, and no key is relocated. The elements are those that a buffered array would have.
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
pub use crate::contract::{NoKeyView, NoKeyViewFamily, Serves, Serving};
