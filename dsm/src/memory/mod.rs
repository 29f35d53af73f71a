//! Services of the system and the processor: limits, mutexes, processes and their ends, memory to carve up, copy kernels.
pub(crate) mod allocator;
pub(crate) mod cgroup;
pub(crate) mod clock;
pub(crate) mod copy;
mod file;
pub(crate) mod fork;
pub(crate) mod limits;
pub(crate) mod mutex;
pub(crate) mod process;
pub(crate) mod process_limits;
pub(crate) mod tenure;

/// Unit of the write log: one bit per line.
pub(crate) const LINE: u64 = 64;
