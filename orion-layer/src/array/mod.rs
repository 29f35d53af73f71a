//! Distributed arrays.
pub mod random;
