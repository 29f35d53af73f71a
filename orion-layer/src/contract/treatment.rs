//! How a loop treats its arrays, and what an array tells of a pass.
use super::Relaxation;

/// The parameters of this worker's part of a pass, for an array that takes part in its clocks.
#[derive(Clone, Copy, Debug)]
pub struct PassParams {
    pub(crate) relax: Relaxation,
    /// Whether workers keep copies of relaxed arrays.
    pub(crate) in_copies: bool,
    pub(crate) me: usize,
    pub(crate) workers: usize,
}

impl PassParams {
    /// The elements of `len` that this worker is responsible for.
    pub(crate) fn share(&self, len: usize) -> std::ops::Range<usize> {
        self.share_of(self.me, len)
    }

    /// Those that a worker is responsible for.
    pub(crate) fn share_of(&self, worker: usize, len: usize) -> std::ops::Range<usize> {
        let bound = |worker: usize| (len as u128 * worker as u128 / self.workers as u128) as usize;
        bound(worker)..bound(worker + 1)
    }
}

/// How a loop treats one of its arrays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Treatment {
    /// Its dependences are kept.
    Exact,
    /// Everybody reads and changes it.
    Relaxed,
    /// Everybody contributes to it.
    Buffered,
    /// The same, and what is read is fetched before.
    Served,
    /// Everybody contributes to it, and sees what it was when the pass began: as an accumulator has none, it has no
    /// dependences, whatever the consistency.
    Collected,
}

impl Treatment {
    /// Whether contributions are merged by a rule.
    pub(crate) fn contributes(self) -> bool {
        matches!(self, Treatment::Buffered | Treatment::Served)
    }
}

/// The bytes that were copied between workers, and how much of them was change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    pub(crate) bytes: u64,
    /// Σ|Δ| of what was published, and Σ|value|.
    pub(crate) change: f64,
    pub(crate) size: f64,
    /// Whether these were measured.
    pub(crate) measured: bool,
}
