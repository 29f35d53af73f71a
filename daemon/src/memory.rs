//! The memory of a job: made, or checked when a member brings it, then only passed on and asked for its size.
use hectare_dsm::{Job, StallPolicy};
use hectare_wire::{JobHosts, JobSettings, Stall};
use rustix::fs::OFlags;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

/// Reader copies of areas of jobs on several hosts: one that is sent, the last of the label before the newest, the newest, and
/// one to publish into. Those that an area did not ask for get memory when another host wants it.
const COPIES: u32 = 4;

/// Makes the memory of a job with these settings. The mapping is gone when this returns.
pub(crate) fn make(settings: &JobSettings, hosts: Option<&JobHosts>) -> Result<OwnedFd, hectare_dsm::Error> {
    let mut builder = Job::builder();
    if let Some(hosts) = hosts {
        let ranks: Vec<u32> = hosts.hosts.iter().map(|host| host.ranks).collect();
        builder = builder.hosts(&ranks, hosts.index.into()).min_copies(COPIES);
    }
    if let Some(bytes) = settings.bytes {
        builder = builder.reserve(bytes);
    }
    if let Some(areas) = settings.areas {
        builder = builder.max_areas(areas);
    }
    if let Some(workers) = settings.workers {
        builder = builder.max_workers(workers);
    }
    if let Some(timeout) = settings.round_timeout_ms {
        builder = builder.round_timeout(Duration::from_millis(timeout));
    }
    if let Some(stall) = settings.stall {
        builder = builder.stall_policy(match stall {
            Stall::Wait => StallPolicy::Wait,
            Stall::KillAfterMs(ms) => StallPolicy::Kill { after: Duration::from_millis(ms) },
            Stall::PinAfterMs(ms) => StallPolicy::Pin { after: Duration::from_millis(ms) },
        });
    }
    builder.check(settings.check.unwrap_or(false)).memory()
}

/// The identity of the memory: device and inode.
pub(crate) type Identity = (u64, u64);

/// The daemon's record of a job's memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) identity: Identity,
    pub(crate) reserve_bytes: u64,
    pub(crate) max_workers: u32,
    pub(crate) max_areas: u32,
}

/// Reasons for which a descriptor is refused as the memory of a job.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAdopted {
    #[error("it brings no memory")]
    Missing,
    #[error("its memory belongs to user {theirs}, not to user {own}")]
    Owner { theirs: u32, own: u32 },
    #[error("its memory is not open for reading and writing")]
    Mode,
    #[error(transparent)]
    System(std::io::Error),
    #[error(transparent)]
    Contents(#[from] hectare_dsm::Error),
}

impl From<rustix::io::Errno> for NotAdopted {
    fn from(error: rustix::io::Errno) -> NotAdopted {
        NotAdopted::System(error.into())
    }
}

/// Whether a descriptor is of memory that has seals, as that of jobs does. Of anything else, even a question for its size
/// may block (a file system in user space, for one); this one never does.
pub(crate) fn is_memfd(descriptor: impl AsFd) -> bool {
    rustix::fs::fcntl_get_seals(descriptor).is_ok()
}

/// Checks that a descriptor is one by which others may join a job: its memory, of this user, for reading and
/// writing. Reads its header once, by `pread`; the size that it was compared to is sealed.
pub(crate) fn check(memory: &OwnedFd) -> Result<About, NotAdopted> {
    let stat = rustix::fs::fstat(memory)?;
    let own = rustix::process::geteuid().as_raw();
    if stat.st_uid != own {
        return Err(NotAdopted::Owner { theirs: stat.st_uid, own });
    }
    let flags = rustix::fs::fcntl_getfl(memory)?;
    if flags & OFlags::RWMODE != OFlags::RDWR {
        return Err(NotAdopted::Mode);
    }
    let info = Job::inspect(memory)?;
    Ok(About {
        identity: (stat.st_dev, stat.st_ino),
        reserve_bytes: info.reserve_bytes,
        max_workers: info.max_workers,
        max_areas: info.max_areas,
    })
}

/// Bytes that the memory takes now; 0 if the system does not say.
pub(crate) fn resident_bytes(memory: impl AsFd) -> u64 {
    rustix::fs::fstat(memory).map_or(0, |stat| stat.st_blocks as u64 * 512)
}
