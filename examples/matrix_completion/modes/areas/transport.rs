//! How rows get from worker to worker.

use super::super::super::element::Element;
use super::replica::{Replica, Share};
use hectare::{Result, Worker};

/// What differs between the ways to send rows.
pub trait Transport<E: Element> {
    /// Learns from the worker's share of `batch`.
    fn learn(
        &mut self,
        worker: &mut Worker,
        replica: &mut Replica<E>,
        batch: usize,
        share: Share<'_, E>,
    ) -> Result<()>;

    /// Sends the rows that others need of what `batch` has written, and puts those that come into the replica.
    fn exchange(&mut self, worker: &mut Worker, replica: &mut Replica<E>, batch: usize) -> Result<()>;
}

/// Cuts `whole` into parts of so many elements.
pub fn split<E>(mut whole: &mut [E], lengths: impl Iterator<Item = usize>) -> Vec<&mut [E]> {
    let cut = |length| {
        let (part, rest) = std::mem::take(&mut whole).split_at_mut(length);
        whole = rest;
        part
    };
    lengths.map(cut).collect()
}
