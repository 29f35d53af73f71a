//! How rows get from worker to worker.

use super::super::super::kernel::Element;
use super::replica::{Replica, Work};
use hectare::{Result, Worker};

/// The differences between the ways to send rows.
pub trait Transport<E: Element> {
    /// Does the work of one batch: brings in what it needs that others wrote in the batch before, learns, and sends
    /// what others need. Workers call this for one batch after the other, epoch after epoch.
    fn batch(&mut self, worker: &mut Worker, replica: &mut Replica<E>, work: &Work<'_, E>) -> Result<()>;
}

/// Cuts `whole` into parts of these lengths.
pub fn split<E>(mut whole: &mut [E], lengths: impl Iterator<Item = usize>) -> Vec<&mut [E]> {
    let cut = |length| {
        let (part, rest) = std::mem::take(&mut whole).split_at_mut(length);
        whole = rest;
        part
    };
    lengths.map(cut).collect()
}
