//! Reserve before use: memory of a sparse memfd is taken from the host before anybody may write to it.
//!
//! Without that, the first write to a page that cannot be had ends the process with SIGBUS. `fallocate` alone
//! is no guard: within a memory cgroup the kernel answers a request beyond the limit with SIGKILL instead of
//! an error. So [`reserve`] looks at the host's memory and at the limit of every ancestor cgroup first, goes
//! on in slices that get smaller as memory gets short, looks again between them, and leaves a margin to the
//! kernel. Whoever reserves pays: the pages are charged to the caller's cgroup, also when other processes map
//! them.

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cgroup::{self, Charge, Group};
use super::file;

#[cfg(test)]
mod tests;

/// The most that is reserved between two looks at the limits, in bytes.
const SLICE: u64 = 16 << 20;
/// The least that is reserved at a time, in bytes. A multiple of every usual page size.
const SMALLEST_SLICE: u64 = 64 << 10;
/// Of how many steps the memory that is free is one at most.
const STEPS: u64 = 8;
/// The most that is left to the kernel, in bytes: page tables, other allocations between two looks.
const LARGEST_MARGIN: u64 = 64 << 20;

/// How much memory can still be had, and what limits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Headroom {
    /// How many bytes can be reserved without a risk: free or reclaimable, less a margin of a sixteenth of the
    /// limit or 64 MiB, whichever is less. Swap does not count.
    pub free: u64,
    /// The limit that `free` is left of, in bytes.
    pub limit: u64,
    /// The holder of the limit: `host`, or `cgroup` and its path.
    pub payer: String,
}

/// Memory could not be reserved. Nothing of the request stays reserved.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReserveError {
    /// There is not enough memory.
    #[error("out of memory: asked for {asked} bytes, {free} of {limit} are free for {payer}")]
    OutOfMemory {
        /// How many bytes were asked for.
        asked: u64,
        /// How many can be reserved.
        free: u64,
        /// The limit that these are left of, in bytes.
        limit: u64,
        /// The holder of the limit: `host`, or `cgroup` and its path.
        payer: String,
    },
    /// The system refused for another reason.
    #[error("cannot reserve memory: {call}: {source}")]
    Os {
        /// The system call.
        call: &'static str,
        /// Its error.
        r#source: io::Error,
    },
}

/// How much memory this process can still reserve: the least that the host and any of its cgroups leave.
///
/// # Errors
/// When `/proc/meminfo` or a file of a cgroup cannot be read or understood.
pub(crate) fn headroom() -> io::Result<Headroom> {
    Limits::of_this_process()?.headroom()
}

/// Allocates the pages of `offset..offset + len` in a memfd that is at least that long, so that writing to
/// them cannot fail later. Both are multiples of the page size.
///
/// The range should hold nothing yet, since a failure punches out what was reserved until then, with what it
/// held. Two reservations at a time may both fail where one of them alone would not. `pause` is called between slices,
/// which take some milliseconds each.
///
/// # Errors
/// [`ReserveError::OutOfMemory`] when there is not enough memory, [`ReserveError::Os`] when the range is not
/// aligned, the limits cannot be read or the kernel refuses. The range is a hole afterwards.
pub(crate) fn reserve(
    fd: BorrowedFd<'_>,
    offset: u64,
    len: u64,
    pause: &mut dyn FnMut(),
) -> Result<(), ReserveError> {
    let os = |source| ReserveError::Os { call: "read the memory limits", source };
    let limits = Limits::of_this_process().map_err(os)?;
    reserve_within(fd, offset, len, |enough| {
        pause();
        limits.headroom_for(enough).map_err(os)
    })
}

/// Gives the pages of `offset..offset + len` back to the host; they read as zeros. The file keeps its length.
///
/// # Errors
/// Punches a hole; fails, for instance, when the descriptor is no memfd or sealed against writing.
pub(crate) fn punch(fd: BorrowedFd<'_>, offset: u64, len: u64) -> io::Result<()> {
    loop {
        match fallocate(fd, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, len) {
            Err(Errno::INTR) => {}
            result => return Ok(result?),
        }
    }
}

/// [`reserve`] with any source of headroom, which is told from how many bytes on it makes no difference how many there are.
fn reserve_within(
    fd: BorrowedFd<'_>,
    offset: u64,
    len: u64,
    headroom: impl FnMut(u64) -> Result<Headroom, ReserveError>,
) -> Result<(), ReserveError> {
    let mut done = 0;
    let result = reserve_slices(fd, offset, len, headroom, &mut done);
    if result.is_err()
        && let Err(error) = punch(fd, offset, done)
    {
        tracing::warn!(%error, offset, len = done, "memory of a failed reservation stays allocated");
    }
    result
}

/// Reserves slice by slice, and says in `done` how far it got.
fn reserve_slices(
    fd: BorrowedFd<'_>,
    offset: u64,
    len: u64,
    mut headroom: impl FnMut(u64) -> Result<Headroom, ReserveError>,
    done: &mut u64,
) -> Result<(), ReserveError> {
    let call = "fallocate";
    if !offset.is_multiple_of(page_size()) || !len.is_multiple_of(page_size()) {
        let message = format!("{offset:#x}+{len:#x} is not a range of whole pages");
        let source = io::Error::new(io::ErrorKind::InvalidInput, message);
        return Err(ReserveError::Os { call, source });
    }
    let mut largest_slice = SLICE;
    while *done < len {
        let left = len - *done;
        // The whole step, and all that is left.
        let enough = left.max(STEPS * left.min(largest_slice));
        let Headroom { free, limit, payer } = headroom(enough)?;
        if free < left {
            // Memory that is reserved already is going to be punched out, hence free again.
            return Err(ReserveError::OutOfMemory {
                asked: len,
                free: (free + *done).min(limit),
                limit,
                payer,
            });
        }
        // Several processes may be at this at once: the less is left, the smaller the steps.
        let step =
            (free / STEPS / SMALLEST_SLICE * SMALLEST_SLICE).clamp(SMALLEST_SLICE, largest_slice).min(left);
        match fallocate(fd, FallocateFlags::KEEP_SIZE, offset + *done, step) {
            Ok(()) => *done += step,
            // The kernel drops a slice that a signal interrupts; smaller ones get through between signals.
            Err(Errno::INTR) => {
                largest_slice = (largest_slice / 2).max(SMALLEST_SLICE);
            }
            Err(Errno::NOSPC | Errno::NOMEM) => {
                let Headroom { limit, payer, .. } = headroom(u64::MAX)?;
                return Err(ReserveError::OutOfMemory { asked: len, free: *done, limit, payer });
            }
            Err(error) => return Err(ReserveError::Os { call, source: error.into() }),
        }
    }
    Ok(())
}

fn fallocate(fd: BorrowedFd<'_>, mode: FallocateFlags, offset: u64, len: u64) -> Result<(), Errno> {
    if len == 0 { Ok(()) } else { rustix::fs::fallocate(fd, mode, offset, len) }
}

fn page_size() -> u64 {
    // SAFETY: `sysconf` takes no pointers and has no preconditions.
    let size = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    u64::try_from(size).expect("the page size is a positive number")
}

/// Everything that limits this process, found once and read as often as needed.
#[derive(Debug)]
struct Limits {
    meminfo: PathBuf,
    /// Outermost first, so that the outermost of equal limits is named.
    groups: Arc<[Group]>,
}

impl Limits {
    fn of_this_process() -> io::Result<Self> {
        Ok(Self { meminfo: "/proc/meminfo".into(), groups: cgroup::groups()? })
    }

    /// Of a host whose files are below `root`.
    #[cfg(test)]
    fn below(root: &Path) -> io::Result<Self> {
        Ok(Self { meminfo: root.join("proc/meminfo"), groups: cgroup::groups_below(root)?.into() })
    }

    fn headroom(&self) -> io::Result<Headroom> {
        self.least(Group::charge)
    }

    /// The same, or at least `enough` if there is more: the files that say what could be reclaimed are read if it matters.
    fn headroom_for(&self, enough: u64) -> io::Result<Headroom> {
        let rough = self.least(Group::rough_charge)?;
        if rough.free >= enough { Ok(rough) } else { self.headroom() }
    }

    fn least(&self, charge: impl Fn(&Group) -> io::Result<Option<Charge>>) -> io::Result<Headroom> {
        let (available, total) = host_memory(&self.meminfo)?;
        let mut least = Headroom {
            free: available.saturating_sub(margin(total)),
            limit: total,
            payer: "host".to_owned(),
        };
        for group in self.groups.iter() {
            let Some(charge) = charge(group)? else { continue };
            let free = charge.limit.saturating_sub(charge.used).saturating_sub(margin(charge.limit));
            if free < least.free {
                least = Headroom { free, limit: charge.limit, payer: format!("cgroup {}", group.name) };
            }
        }
        Ok(least)
    }
}

/// How much of a limit is left to the kernel.
fn margin(limit: u64) -> u64 {
    (limit / 16).min(LARGEST_MARGIN)
}

/// `MemAvailable` and `MemTotal` in bytes.
fn host_memory(meminfo: &Path) -> io::Result<(u64, u64)> {
    let in_file = |kind, message: &dyn std::fmt::Display| {
        io::Error::new(kind, format!("{}: {message}", meminfo.display()))
    };
    let text = file::read(meminfo).map_err(|error| in_file(error.kind(), &error))?;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"));
        let bytes = value.and_then(|kib| kib.trim().parse::<u64>().ok()?.checked_mul(1024));
        bytes.ok_or_else(|| in_file(io::ErrorKind::InvalidData, &format!("no number of kB after {name}")))
    };
    Ok((field("MemAvailable:")?, field("MemTotal:")?))
}
