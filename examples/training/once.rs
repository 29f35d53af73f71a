//! Work that is done once: by the first worker for all, or in each process for itself.
use super::invalid;
use hectare::Job;
use hectare::orion::{Context, Result};

/// Does on the first worker what is done for all, and is an error of all. Collective.
pub(crate) fn at_root(w: &mut Context<'_>, body: impl FnOnce() -> anyhow::Result<()>) -> Result<()> {
    w.broadcast(|| body().map_err(invalid))
}

/// Runs a program on one worker of a job of its own. Unlike [`hectare::run`], also in a process that is one of several, as
/// often as is needed: for the serial twins, and for files that a process reads before its workers begin.
pub(crate) fn alone<R: Send>(program: impl Fn(&mut Context<'_>) -> Result<R> + Sync) -> Result<R> {
    Ok(hectare::run_on(&Job::builder().embedded()?, 1, program)?.swap_remove(0))
}
