//! A small safe surface of RDMA verbs: devices, registered memory, reliable connected queue pairs, and one-sided writes.
//!
//! Empty without the feature `rdma`. libibverbs is loaded when the first device is opened, and not needed to build or to start a
//! program; all unsafe code that Hectare needs for it is here. One thread uses a device and all that belongs to it.
//!
//! A peer may write what a `Region` of an area's writer copy covers, for as long as that lives: its registration ends
//! when it is dropped, and after that a write of the peer fails and breaks the peer's queue pair.
#![cfg(feature = "rdma")]
mod card;
mod device;
mod error;
mod ffi;
mod library;
mod pair;
mod region;

pub use card::Card;
pub use device::{Device, Domain};
pub use error::{Broken, Error};
pub use pair::{BATCH, DEPTH, Done, Pair, Write};
pub use region::{Place, Region};
