//! The atomics that the protocols are written with: the standard library's, or loom's in a model run
//! (`RUSTFLAGS="--cfg loom"`).

#[cfg(loom)]
pub(crate) use self::model::{AtomicU32, AtomicU64};
#[cfg(loom)]
pub(crate) use loom::sync::atomic::Ordering;
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
    //! Death in a loom model: a fuse per thread, burnt at each fault point. And atomics whose sequentially
    //! consistent loads are what they should be.
    use loom::sync::atomic::{Ordering, fence};
    use loom::thread_local;
    use std::cell::Cell;

    /// loom takes sequentially consistent accesses for acquire and release. A fence before such a load gives
    /// back what two threads need that each store to one word and then load the other's; a store followed by
    /// a weaker load stays as weak as the language lets it be.
    macro_rules! atomic {
        ($name:ident, $type:ty) => {
            #[derive(Debug)]
            pub(crate) struct $name(loom::sync::atomic::$name);

            impl $name {
                pub(crate) fn new(value: $type) -> Self {
                    Self(loom::sync::atomic::$name::new(value))
                }

                pub(crate) fn load(&self, order: Ordering) -> $type {
                    if order == Ordering::SeqCst {
                        fence(Ordering::SeqCst);
                        return self.0.load(Ordering::Acquire);
                    }
                    self.0.load(order)
                }

                pub(crate) fn store(&self, value: $type, order: Ordering) {
                    self.0.store(value, order);
                }

                pub(crate) fn swap(&self, value: $type, order: Ordering) -> $type {
                    self.0.swap(value, order)
                }

                pub(crate) fn fetch_max(&self, value: $type, order: Ordering) -> $type {
                    self.0.fetch_max(value, order)
                }

                pub(crate) fn compare_exchange(
                    &self,
                    current: $type,
                    new: $type,
                    success: Ordering,
                    failure: Ordering,
                ) -> Result<$type, $type> {
                    self.0.compare_exchange(current, new, success, failure)
                }
            }
        };
    }

    atomic!(AtomicU32, u32);
    atomic!(AtomicU64, u64);

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
