//! Distributed arrays.
