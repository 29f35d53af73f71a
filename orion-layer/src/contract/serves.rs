//! Served arrays, whatever their types, and arrays that slices cannot see.
use super::{Family, PrefetchStats};
use crate::error::Result;
use hectare_dsm::Worker;

/// An array that no slice may use: what it holds changes while the loop runs.
#[derive(Clone, Copy, Debug)]
pub struct NoKeyView;

/// [`NoKeyView`].
#[derive(Debug)]
pub struct NoKeyViewFamily;

impl Family for NoKeyViewFamily {
    type Of<'a> = NoKeyView;
}

/// The executor's interface to a served array, besides that to all arrays.
pub trait Serves {
    /// Whether the lists of loop `plan` are known and were made from `basis`: what the subscripts are computed from.
    fn knows(&self, plan: u64, basis: Option<u64>) -> bool;
    /// The keys that the slice has named since the last call are those of the next interval; `None` if the slice could
    /// not name them.
    fn end_list(&mut self, named: bool);
    /// All lists are made; those of the loop are current from now on.
    fn end_lists(&mut self, plan: u64, basis: Option<u64>);
    /// Tells the others which blocks loop `plan` uses here. To be followed by a barrier.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn announce(&mut self, worker: &mut Worker, plan: u64, workers: usize) -> Result<()>;
    /// Fetches the keys of an interval.
    ///
    /// # Errors
    /// [`Error::Core`](crate::Error::Core).
    fn prefetch(&mut self, worker: &Worker, interval: usize) -> Result<()>;
    /// Takes what has been counted.
    fn take_tally(&mut self) -> PrefetchStats;
    /// Takes the keys that the slice has named, in a loop that is checked.
    fn take_keys(&mut self) -> Vec<u32>;
}
