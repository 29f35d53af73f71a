//! The job and the areas of the load.

/// Elements and reader copies of the areas of the load. With one copy, an area stands still while a straggler
/// may look at it. In other jobs than [`JOB`], each has three.
pub(crate) const AREAS: [(usize, u32); 4] = [(20, 2), (60_000, 2), (5_000, 2), (20_000, 3)];
/// The job of the load.
pub(crate) const JOB: &str = "load";
