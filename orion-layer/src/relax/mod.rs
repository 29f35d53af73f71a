//! Relaxed loops: arrays whose dependences the programmer gives up, and what is promised instead.
//!
//! A loop that looks up what the data say (`w[feature]`) has dependences between all its iterations, as far as
//! anybody can tell, and runs on one worker. Its arrays can be given up to the loop in two ways:
//!
//! - A *relaxed* array ([`Relaxed`], `relax w` in `parallel_for!`) is read and changed by everybody, by
//!   [`RelaxedView`]: each worker in a copy of its own, whose changes are added up at clocks ([`Consistency::Bsp`],
//!   [`Consistency::Bounded`]), or in place, where that is not slower ([`Consistency::Async`]; `Trials` choose).
//! - A *buffered* array ([`Buffered`], `buffer w`) is read as it was at the last clock, and takes contributions, which an
//!   [`Apply`] function merges at clocks, where the elements live: each exactly once.
//!
//! Nothing else of the loop changes: the other arrays keep their dependences, schedules are verified, and what fails
//! poisons what it wrote. `Board` has the clocks, `execute::clocks` the order of events at one.
mod apply;
mod board;
mod buffer;
mod buffer_view;
mod buffered;
mod consistency;
mod explained;
mod make;
mod number;
mod relaxed;
mod replica;
mod report;
mod reports;
mod trials;
mod view;

pub use self::apply::{AdaGrad, AdaRevision, Apply, Mean, Seen, Sum};
pub(crate) use self::board::Board;
pub use self::buffer_view::BufferView;
pub use self::buffered::{BufferArg, Buffered, Buffers};
pub use self::consistency::{Consistency, Every, Relax};
pub(crate) use self::explained::{Sharing, explained};
pub use self::number::Additive;
pub use self::relaxed::{Relaxed, Relaxes};
pub(crate) use self::replica::Replica;
pub use self::report::{LoopReport, Staleness};
pub(crate) use self::trials::Trials;
pub use self::view::{ElementIndex, RelaxedView};

/// Contributions of so many clocks of a worker may be on their way to a buffered array.
pub(crate) const RING: u64 = 4;
pub(crate) const SLOTS: hectare_dsm::SlotRing = hectare_dsm::SlotRing::new(RING);

/// What this worker's part of a pass is like, for an array that takes part in its clocks.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    pub(crate) relax: Relax,
    /// Whether workers keep copies of relaxed arrays.
    pub(crate) in_copies: bool,
    pub(crate) me: usize,
    pub(crate) workers: usize,
}

impl Pace {
    /// The elements of `len` that this worker is responsible for.
    pub(crate) fn share(&self, len: usize) -> std::ops::Range<usize> {
        let bound = |worker: usize| (len as u128 * worker as u128 / self.workers as u128) as usize;
        bound(self.me)..bound(self.me + 1)
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

/// What was copied between workers, and how much of it was change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moved {
    pub(crate) bytes: u64,
    /// Σ|Δ| of what was published, and Σ|value|.
    pub(crate) change: f64,
    pub(crate) size: f64,
    /// Whether these were measured.
    pub(crate) measured: bool,
}
