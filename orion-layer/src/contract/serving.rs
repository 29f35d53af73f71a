//! The part of a loop's report about served arrays.
use crate::text::counted;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// The cost of serving arrays in a loop, over all its passes and workers (in a
/// [`LoopReport`](crate::relax::LoopReport)). A key is an element of an array of one dimension, else a row.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PrefetchStats {
    /// Keys that were fetched in bulk.
    pub fetched: u64,
    /// Bytes of these, and of what a rule remembers of their states.
    pub bytes: u64,
    /// Keys of an interval that were not fetched, because they had not changed.
    pub hits: u64,
    /// Reads of keys outside the prefetch plan, which were looked up one by one.
    pub read_misses: u64,
    /// Contributions to keys outside the prefetch plan.
    pub write_misses: u64,
    /// Keys that only one worker uses, and whose home it is: in the last pass, summed over the workers.
    pub relocated: u64,
    /// Keys that are refreshed at every clock: in the last pass, summed over the workers.
    pub replicated: u64,
    /// Keys in the prefetch plans of the last pass, summed over the workers: each counts in every interval that uses it.
    pub planned_keys: u64,
    /// How often prefetch plans were made: once for each worker, as long as the inputs of the subscripts stay the same.
    pub plans_made: u64,
    /// Passes with a prefetch plan, summed over the workers: as many as `plans_made` if plans are made in every pass.
    pub listed_passes: u64,
    /// Time for running slices and making plans.
    pub slicing: Duration,
    /// Fetching.
    pub fetching: Duration,
}

impl PrefetchStats {
    pub(crate) fn merge(&mut self, other: &PrefetchStats) {
        self.fetched += other.fetched;
        self.bytes += other.bytes;
        self.hits += other.hits;
        self.read_misses += other.read_misses;
        self.write_misses += other.write_misses;
        self.relocated += other.relocated;
        self.replicated += other.replicated;
        self.planned_keys += other.planned_keys;
        self.plans_made += other.plans_made;
        self.listed_passes += other.listed_passes;
        self.slicing += other.slicing;
        self.fetching += other.fetching;
    }

    /// Advice, in words.
    pub(crate) fn advice(&self, passes: u64) -> Option<String> {
        let (looks, served) = (self.read_misses + self.write_misses, self.fetched + self.hits);
        if looks > 0 && self.plans_made == 0 {
            return Some(format!(
                "{} looked up one by one: let the macro find keys out before (without `prefetch = false`), or \
                 name them by `intend`",
                were(looks)
            ));
        }
        if looks > served / 100 {
            return Some(format!(
                "{} not foreseen, and looked up one by one: a check (`check_loops`) names subscripts that are \
                 not the same whenever they are computed; functions and closures are taken to stay the same from pass to pass",
                were(looks)
            ));
        }
        // Both are sums over the workers.
        let anew = passes > 1 && 2 * self.plans_made > self.listed_passes;
        (anew && 4 * self.slicing > self.fetching).then(|| {
            "key lists are made in many passes: what subscripts are computed from changes, or cannot be compared. Values that \
             implement `Hash`, and arrays of the program, can"
                .into()
        })
    }
}

fn were(keys: u64) -> String {
    format!("{} {}", counted(keys, "key"), if keys == 1 { "was" } else { "were" })
}

impl fmt::Display for PrefetchStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "  served: {} fetched ({:.1} MB), {} unchanged, {} looked up, {} not foreseen",
            counted(self.fetched, "key"),
            self.bytes as f64 / 1e6,
            self.hits,
            self.read_misses,
            counted(self.write_misses, "contribution")
        )?;
        writeln!(
            f,
            "  keys in lists: {}, relocated {}, replicated {}; lists made {}; slicing {:.3} s, fetching {:.3} s",
            self.planned_keys,
            self.relocated,
            self.replicated,
            counted(self.plans_made, "time"),
            self.slicing.as_secs_f64(),
            self.fetching.as_secs_f64()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(passes: u64, workers: u64, plans_made: u64) -> Option<String> {
        let slicing = Duration::from_secs(2);
        let listed_passes = passes * workers;
        let tally =
            PrefetchStats { hits: 1_000_000, plans_made, listed_passes, slicing, ..PrefetchStats::default() };
        tally.advice(passes)
    }

    #[test]
    fn lists_are_anew_if_most_passes_make_them() {
        // Once on each of eight workers, in four passes.
        assert_eq!(advice(4, 8, 8), None);
        assert!(advice(4, 8, 32).unwrap().contains("in many passes"));
        assert!(advice(4, 1, 4).is_some() && advice(4, 1, 1).is_none() && advice(1, 2, 2).is_none());
    }
}
