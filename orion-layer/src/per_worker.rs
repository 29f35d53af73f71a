//! Values that are meant to differ between workers.
use std::ops::Deref;

/// A value that is another one on every worker, and meant to be: loops that use it do not compare it.
///
/// Numbers, truth values and characters from outside that a loop's body uses have to be the same on all workers, for it must
/// not matter who runs an iteration. A loop ends with [`Error::Diverged`](crate::Error::Diverged) where they are not, unless
/// they are wrapped in this: to count what each worker did, say.
///
/// ```
/// use hectare_orion::{PerWorker, parallel_for, run};
///
/// run(2, |w| {
///     let me = PerWorker::new(w.rank());
///     let mut ran_by = w.zeros::<u32, 1>([100])?;
///     parallel_for!(w, unordered, write ran_by; for i in 0..100 { ran_by[i] = *me; })?;
///     assert!(ran_by.to_vec(w)?.contains(&1));
///     Ok(())
/// })?;
/// # Ok::<(), hectare_orion::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PerWorker<T>(T);

impl<T> PerWorker<T> {
    /// Marks a value as this worker's own.
    pub fn new(value: T) -> PerWorker<T> {
        PerWorker(value)
    }
}

impl<T> Deref for PerWorker<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
