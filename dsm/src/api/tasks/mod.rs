//! Tasks over areas in place: the graph of what runs when is checked (`protocol/tasks`), then each worker runs its own.
pub(crate) mod patches;
pub(crate) mod run;
#[cfg(test)]
mod tests;
