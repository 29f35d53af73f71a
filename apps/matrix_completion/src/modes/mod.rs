//! The ways to share a model between workers.
//!
//! A mode is a function `train(&Training, .., &mut Model, &mut OnEpoch)`: it makes the passes over the ratings and
//! calls back after each. Modes that work in the batches of a [`Plan`](super::plan::Plan) compute the same bits as
//! [`serial`], whatever the number of workers.

pub mod areas;
pub mod handover;
pub mod root;
pub mod serial;
pub mod shared;
pub mod team;
