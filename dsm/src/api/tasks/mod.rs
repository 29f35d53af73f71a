//! Tasks over areas in place: the graph of what runs when is checked (`protocol/tasks`), then each worker runs its own.
mod between_hosts;
pub(crate) mod ended;
pub(crate) mod lines;
#[cfg(test)]
mod lines_tests;
pub(crate) mod marks;
#[cfg(test)]
mod marks_tests;
pub(crate) mod part;
mod patch;
pub(crate) mod patches;
pub(crate) mod row_slices;
pub(crate) mod rows;
#[cfg(test)]
mod rows_tests;
pub(crate) mod run;
pub(crate) mod runs;
#[cfg(test)]
mod runs_tests;
#[cfg(test)]
mod tests;

pub(crate) use self::between_hosts::is_ring;
