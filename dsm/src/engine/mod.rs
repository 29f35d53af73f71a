//! A process's part in a job: the directory of areas, liveness, and rounds as a worker runs them.
pub(crate) mod area_core;
pub(crate) mod copying;
pub(crate) mod directory;
#[cfg(test)]
mod large_numbers;
pub(crate) mod liveness;
pub(crate) mod membership;
pub(crate) mod notify;
pub(crate) mod plan;
pub(crate) mod publish;
pub(crate) mod refusal;
pub(crate) mod runtime;
pub(crate) mod shared;
pub(crate) mod spins;
#[cfg(test)]
mod steps;
pub(crate) mod unchanged;
pub(crate) mod wait;
pub(crate) mod wanted;
mod work;
