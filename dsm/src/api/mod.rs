//! The interface for programs: jobs, workers and areas.
pub(crate) mod agent;
pub(crate) mod area;
pub(crate) mod job;
pub(crate) mod tasks;
pub(crate) mod worker;
