//! Whether a job has room for the ranks of a run.
use anyhow::Result;
use hectare_dsm::Job;
use hectare_wire::{Error, Refusal};
use std::os::fd::OwnedFd;

/// Checks it before a process is started: otherwise those without room would fail one by one, and the others wait for them.
///
/// # Errors
/// [`Refusal::Quota`], which names the setting.
pub(super) fn check_room(memory: &OwnedFd, job: &str, ranks: u32) -> Result<()> {
    let room = Job::inspect(memory)?.max_workers;
    if ranks <= room {
        return Ok(());
    }
    let by = format!(
        "the settings of job {job:?}: start fewer processes, raise defaults.workers in the configuration of hectared, or make \
         a job before by `hectare job create NAME --workers {ranks}` and start them in it by --job NAME"
    );
    let (asked, limit) = (ranks.into(), room.into());
    Err(Error::Refused(Refusal::Quota { what: "workers".into(), asked, limit, by }).into())
}
