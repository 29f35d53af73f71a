//! The atomics that the protocols are written with: the standard library's, or loom's in a model run
//! (`RUSTFLAGS="--cfg loom"`).
#[cfg(loom)]
pub(crate) mod model;

#[cfg(loom)]
pub(crate) use self::model::{AtomicU32, AtomicU64, fence};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::Ordering;
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A place between two steps of a protocol where a participant may die.
///
/// In an ordinary build this is nothing. A loom model ends the calling thread here when its fuse burns
/// down; with the feature `fault-points` a process kills itself here when its countdown ends, which is how
/// the tests die at every step of a round.
#[inline(always)]
pub(crate) fn fault_point() {
    #[cfg(loom)]
    model::burn();
    #[cfg(all(not(loom), feature = "fault-points"))]
    crate::fault::burn();
}
