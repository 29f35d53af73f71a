//! What a loop's report says of served arrays.
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What serving arrays has cost in a loop, over all its passes and workers (in a
/// [`LoopReport`](crate::relax::LoopReport)). A key is an element of an array of one dimension, else a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Serving {
    /// Keys that were fetched in bulk.
    pub fetched: u64,
    /// Bytes of these, and of what a rule remembers of their states.
    pub bytes: u64,
    /// Keys of a stretch that were not fetched, since they had not changed.
    pub hits: u64,
    /// Reads of keys that no slice had foreseen: looked up one by one.
    pub looked_up: u64,
    /// Contributions to keys that no slice had foreseen.
    pub unforeseen: u64,
    /// Keys that one worker alone uses, and that it is the home of: in the last pass, summed over the workers.
    pub relocated: u64,
    /// Keys that are refreshed at every clock: in the last pass, summed over the workers.
    pub replicated: u64,
    /// Keys in all lists of the last pass, summed over the workers: each counts in every stretch that uses it.
    pub listed: u64,
    /// How often lists of keys were made: once for each worker, as long as what subscripts are computed from stays.
    pub lists_made: u64,
    /// Running slices and making lists.
    pub slicing: Duration,
    /// Fetching.
    pub fetching: Duration,
}

impl Serving {
    pub(crate) fn merge(&mut self, other: &Serving) {
        self.fetched += other.fetched;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.looked_up += other.looked_up;
        self.unforeseen += other.unforeseen;
        self.relocated += other.relocated;
        self.replicated += other.replicated;
        self.listed += other.listed;
        self.lists_made += other.lists_made;
        self.slicing += other.slicing;
        self.fetching += other.fetching;
    }
}
