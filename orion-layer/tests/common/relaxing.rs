//! Shared by tests of relaxed loops: every consistency, contributions whose sums are known, a rule that fails.
#![allow(dead_code, unreachable_pub)]
use hectare_orion::relax::{Apply, Consistency};

pub const ALL: [Consistency; 6] = [
    Consistency::Serializable,
    Consistency::Bsp,
    Consistency::Bounded(0),
    Consistency::Bounded(1),
    Consistency::Bounded(5),
    Consistency::Async,
];

/// Iterations that contribute.
pub const COUNT: usize = 6000;

/// The bin to which iteration `k` contributes `k % 7`.
pub fn bin(k: usize, bins: usize) -> usize {
    k * k % bins
}

/// The bins after so many passes.
pub fn expected(bins: usize, passes: u64) -> Vec<u64> {
    let mut sums = vec![0; bins];
    (0..COUNT).for_each(|k| sums[bin(k, bins)] += passes * (k as u64 % 7));
    sums
}

/// Fails at an update of the wrong size.
#[derive(Debug)]
pub struct Touchy;

impl Apply<u64> for Touchy {
    type State = ();
    type Snapshot = ();

    fn snapshot(&self, _state: &()) {}

    fn apply(&self, target: &mut u64, _state: &mut (), update: u64, _seen: ()) {
        assert!(update < 1000, "an update of {update}");
        *target += update;
    }
}
