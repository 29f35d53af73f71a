//! The core of Hectare on one host: areas, the write log, internal sync, ownership and workers.
//!
//! Programs use it through the facade crate `hectare`.
#[cfg(not(loom))]
pub(crate) mod api;
#[cfg(not(loom))]
pub(crate) mod engine;
#[cfg(not(loom))]
mod error;
#[cfg(all(not(loom), feature = "fault-points"))]
pub mod fault;
#[cfg(not(loom))]
pub(crate) mod log;
#[cfg(not(loom))]
pub(crate) mod memory;
pub(crate) mod primitive;
pub(crate) mod protocol;
#[cfg(not(loom))]
pub(crate) mod segment;

#[cfg(not(loom))]
pub use self::{
    api::area::ask::Asked,
    api::area::bytes::AreaBytes,
    api::area::cells::Cells,
    api::area::guard::WriteGuard,
    api::area::handle::Area,
    api::area::info::AreaInfo,
    api::area::lend::{Lent, Recalled},
    api::area::observer::{Observer, Pinned},
    api::area::open::Opened,
    api::area::own_or_shared::OwnOrShared,
    api::area::owned::{GiveError, Owned, RawLog},
    api::area::reduce::{Number, Reducer},
    api::area::transfer::{Claimed, Loss},
    api::job::info::{Stats, WorkerInfo, WorkerState},
    api::job::inspect::MemoryInfo,
    api::job::monitor::{AreaSnapshot, Monitor, Snapshot, WorkerSnapshot},
    api::job::notify::Notification,
    api::job::{HugePages, Job, JobBuilder, StallPolicy},
    api::worker::{Synced, Worker},
    engine::directory::spec::{AreaSpec, Tracking},
    engine::runtime::scan::UnloggedWrite,
    error::{Error, Rank, Result, Unshared},
    protocol::area_state::AreaId,
    protocol::clock_words::ClockWords,
    protocol::publication::Version,
    protocol::words::SlotRing,
    segment::element::{Element, ElementType},
};
/// The stand-in, on a host, for everybody on other hosts: for Hectare's own agent, not for programs.
#[cfg(not(loom))]
pub mod agent {
    pub use crate::api::agent::{
        Agent,
        bell::Bell,
        describe::AreaDescription,
        expose::{ExposedCopy, ExposedWriter},
        force::{Forced, Published},
        held::{Held, LineSet, State},
        news::Event,
        receive::{Arrival, Receiving, Source},
        remote_clocks::RemoteWorker,
    };
    pub use crate::engine::refusal::Refusal;
    pub use crate::protocol::conflict::{Conflict, Over};
}
/// Tasks of several workers over areas in place: checked before they run, so that each may write what lies between what others
/// write.
#[cfg(not(loom))]
pub mod tasks {
    pub use crate::api::tasks::{
        ended::EndedRun,
        lines::{Line, Lines},
        marks::RowMarks,
        part::InPlace,
        patches::{Asked, Elements, Patches, Watch},
        row_slices::Rows,
        rows::{RowBatch, RowRun},
        run::{RunningTask, TaskRun},
        runs::Runs,
    };
    pub use crate::protocol::tasks::{
        Access, Region, RowError, RowList, RowPlan, Span, Task, TaskError, TaskGraph, Touched, merged,
    };
}
/// The traits and derives of plain old data, for element types of one's own.
#[cfg(not(loom))]
pub use bytemuck;
/// The control protocol of the daemon: its errors and refusals.
#[cfg(not(loom))]
pub use hectare_wire as wire;
#[cfg(not(loom))]
pub use hectare_wire::Membership;
