//! Relaxed loops: arrays whose dependences the programmer relaxes, and the guarantees that remain.
//!
//! If subscripts come from the data (`w[feature]`), all iterations must be assumed to depend on each other, and the loop
//! runs on one worker. Its arrays can be relaxed in two ways:
//!
//! - A *relaxed* array (`relax w` in `parallel_for!`) is read and changed by all workers, by [`RelaxedView`]: each in its
//!   own copy, whose changes are added up at clocks ([`Consistency::Bsp`], [`Consistency::Bounded`]), or in place, if
//!   that is not slower ([`Consistency::Async`]; `Trials` choose).
//! - A *buffered* array ([`Buffered`], `buffer w`) is read as it was at the last clock, and takes contributions, which an
//!   [`Apply`] function merges at clocks, where the elements live: each exactly once.
//!
//! Nothing else changes: the dependences of other arrays are preserved, schedules are verified, and a failed pass poisons
//! the arrays that it wrote. `ClockTable` has the clocks, `execute::clocks` the order of events at one.
mod apply;
mod beside;
mod buffer;
mod buffer_view;
mod buffered;
mod clock_table;
mod explained;
mod make;
mod mirror;
mod news;
mod relaxed;
mod report;
pub(crate) mod ring;
mod touched;
mod trials;

pub use self::apply::{AdaGrad, AdaRevision, Apply, Mean, Snapshot, Sum};
pub use self::buffer_view::BufferView;
pub(crate) use self::buffered::BufferArg;
pub use self::buffered::Buffered;
pub(crate) use self::clock_table::ClockTable;
pub(crate) use self::explained::{Sharing, explained};
pub(crate) use self::relaxed::Relaxed;
pub use self::report::{LoopReport, Staleness};
pub(crate) use self::trials::Trials;
pub use crate::contract::{Applied, Consistency, Every, PassParams, Relaxation, Tail, Traffic, Treatment};
pub use crate::replica::{Additive, ElementIndex, RelaxedView};

use hectare_dsm::SlotRing;

/// The number of clocks of a worker whose contributions may be on their way to a buffered array.
pub(crate) const RING: u64 = 4;
pub(crate) const SLOTS: SlotRing = SlotRing::new(RING);
/// The most of them on several hosts, where a slot is used again only after a round trip.
pub(crate) const MOST_SLOTS: SlotRing = SlotRing::new(4 * RING);
