//! The core of Hectare on one host: areas, the write log, internal sync, ownership and workers.
//!
//! Programs use it through the facade crate `hectare`.
#[cfg(not(loom))]
pub(crate) mod area;
#[cfg(loom)]
pub(crate) mod area {
    pub(crate) mod clock_words;
    pub(crate) mod ownership;
    pub(crate) mod words;
}
#[cfg(not(loom))]
mod error;
#[cfg(all(not(loom), feature = "fault-points"))]
pub mod fault;
#[cfg(not(loom))]
pub(crate) mod job;
#[cfg(not(loom))]
pub(crate) mod log;
#[cfg(loom)]
pub(crate) mod log {
    pub(crate) mod generations;
}
#[cfg(not(loom))]
pub(crate) mod memory;
pub(crate) mod primitive;
pub(crate) mod sync;
#[cfg(not(loom))]
pub(crate) mod worker;

#[cfg(not(loom))]
pub use self::{
    area::bytes::AreaBytes,
    area::cells::Cells,
    area::clock_words::ClockWords,
    area::element::Element,
    area::guard::WriteGuard,
    area::handle::{Area, Version},
    area::info::AreaInfo,
    area::lend::{Lent, Recalled},
    area::observer::{Observer, Pinned},
    area::open::Opened,
    area::own_or_shared::OwnOrShared,
    area::owned::{GiveError, Owned, RawLog},
    area::reduce::{Number, Reducer},
    area::scan::UnloggedWrite,
    area::spec::{AreaSpec, Tracking},
    area::transfer::{Claimed, Loss},
    area::words::SlotRing,
    error::{Error, Rank, Result},
    job::info::{Stats, WorkerInfo, WorkerState},
    job::inspect::MemoryInfo,
    job::notify::Notification,
    job::watch::{AreaGlance, Glance, Watch, WorkerGlance},
    job::{HugePages, Job, JobBuilder, StallPolicy},
    worker::{Synced, Worker},
};
/// The traits and derives of plain old data, for element types of one's own.
#[cfg(not(loom))]
pub use bytemuck;
/// The control protocol of the daemon: its errors and refusals.
#[cfg(not(loom))]
pub use hectare_wire as wire;
#[cfg(not(loom))]
pub use hectare_wire::Membership;
