//! Tasks over areas in place: which elements each task reads and writes, which tasks come before it, and a proof that no
//! two that may run at once touch the same element; and the same of rows, batch by batch. See `SYNC.md`, "tasks".
#[cfg(not(loom))]
pub(crate) mod crossing;
#[cfg(not(loom))]
mod graph;
mod inbox;
mod opening;
#[cfg(not(loom))]
mod region;
#[cfg(not(loom))]
mod rows;
mod words;

#[cfg(not(loom))]
pub(crate) use self::graph::Unsendable;
#[cfg(not(loom))]
pub use self::graph::{Access, Task, TaskError, TaskGraph};
pub(crate) use self::inbox::Inbox;
#[cfg(not(loom))]
pub(crate) use self::inbox::Opened as OpenInbox;
pub(crate) use self::opening::{OpeningWords, Past};
#[cfg(not(loom))]
pub use self::region::{Region, Span, merged};
#[cfg(not(loom))]
pub use self::rows::{RowError, RowList, RowPlan, Touched};
#[cfg(not(loom))]
pub(crate) use self::words::MOST_TASKS;
pub(crate) use self::words::{Done, TaskWords};
