//! The atomics that the protocols are written with: the standard library's, or loom's in a model run
//! (`RUSTFLAGS="--cfg loom"`).

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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

#[cfg(loom)]
pub(crate) mod model {
    //! Death in a loom model: a fuse per thread, burnt at each fault point.
    use loom::thread_local;
    use std::cell::Cell;

    thread_local! { static FUSE: Cell<u32> = Cell::new(u32::MAX); }

    /// The payload with which a model thread dies.
    #[derive(Debug)]
    pub(crate) struct Died;

    /// Lets the calling model thread pass `steps` fault points and die at the next.
    pub(crate) fn light(steps: u32) {
        FUSE.with(|fuse| fuse.set(steps));
    }

    pub(crate) fn burn() {
        let left = FUSE.with(|fuse| {
            let left = fuse.get();
            if left != u32::MAX {
                fuse.set(left.wrapping_sub(1));
            }
            left
        });
        if left == 0 {
            std::panic::panic_any(Died);
        }
    }
}
