//! The part of a plan that its runs on several hosts need.
use crate::protocol::tasks::crossing::Crossing;
use std::sync::Arc;

/// See the head of the file.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) crossing: Arc<Crossing>,
    /// How often each worker goes through its tasks, and the tasks of this one in each pass.
    pub(super) passes: usize,
    pub(super) tasks: usize,
    /// By array: bytes of a unit.
    pub(super) unit_bytes: Vec<usize>,
}
