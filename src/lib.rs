//! Hectare: distributed shared memory for machine-learning training.
pub use hectare_dsm::*;
