//! The memory of a job: made once, then only passed on and asked for its size.
use hectare_dsm::{Job, StallPolicy};
use hectare_wire::{JobSettings, Stall};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Makes the memory of a job with these settings. The mapping is gone when this returns.
pub(crate) fn make(settings: &JobSettings) -> Result<OwnedFd, hectare_dsm::Error> {
    let mut builder = Job::builder();
    if let Some(bytes) = settings.bytes {
        builder = builder.reserve(bytes);
    }
    if let Some(areas) = settings.areas {
        builder = builder.max_areas(areas);
    }
    if let Some(workers) = settings.workers {
        builder = builder.max_workers(workers);
    }
    if let Some(patience) = settings.patience_ms {
        builder = builder.patience(Duration::from_millis(patience));
    }
    if let Some(stall) = settings.stall {
        builder = builder.stall_policy(match stall {
            Stall::Wait => StallPolicy::Wait,
            Stall::KillAfterMs(ms) => StallPolicy::Kill { after: Duration::from_millis(ms) },
            Stall::QuarantineAfterMs(ms) => StallPolicy::Quarantine { after: Duration::from_millis(ms) },
        });
    }
    let job = builder.check(settings.check.unwrap_or(false)).embedded()?;
    job.descriptor().try_clone_to_owned().map_err(|source| hectare_dsm::Error::Os { call: "dup", source })
}

/// Bytes that the memory takes now; 0 if the system does not say.
pub(crate) fn resident_bytes(memory: impl AsFd) -> u64 {
    rustix::fs::fstat(memory).map_or(0, |stat| stat.st_blocks as u64 * 512)
}
