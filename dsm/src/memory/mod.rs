//! The segment: one sparse memfd per job and host, what lies where in it, and what moves bytes inside it.
pub(crate) mod allocator;
pub(crate) mod cgroup;
pub(crate) mod copy;
pub(crate) mod fork;
pub(crate) mod index;
mod inspect;
pub(crate) mod layout;
pub(crate) mod limits;
pub(crate) mod mutex;
pub(crate) mod peek;
mod process_limits;
pub(crate) mod segment;
pub(crate) mod tenure;
