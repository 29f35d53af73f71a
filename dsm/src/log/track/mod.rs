//! Automatic tracking: which pages of a range were written, as the page tables know it.
//!
//! The range is write-protected by an asynchronous userfaultfd: the kernel resolves the fault of the first
//! write to a page by itself and notes the write in the page table. The `PAGEMAP_SCAN` ioctl reports the
//! pages that were written and protects them again, in one step. Both came with Linux 6.7.
//!
//! Its limits:
//! - Registration is a property of a mapping in a process. Writes through another mapping of the same memory,
//!   in this process or another, are **not** seen. Hence a giver collects before it gives, and the taker has
//!   a tracker of its own.
//! - Writes by the kernel on behalf of this process (`read` into the range) are seen, reads are not reported.
//! - It never misses a write, but a page may be reported that was not written: memory that the kernel moved
//!   or swapped out after it was written, and what was punched out.
//! - The kernel maps a tracked range by small pages, also where the memory itself is huge pages, so that it
//!   stays exact to the page; address translation is as costly as with small pages.
//! - What it must not be used with: `madvise(MADV_DONTNEED)` on the range, after which the kernel may free page
//!   tables and forget the writes that they noted; unmapping the range, which ends the tracking unnoticed.
//! - `madvise(MADV_COLLAPSE)` is refused on a tracked range: collapse first, then track.
//! - A forked child inherits the mapping but not the tracking.

use crate::memory::fork;
use rustix::mm::UserfaultfdFlags;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicU32;

mod uapi;

#[cfg(test)]
mod tests;

use uapi::{PageRegion, PmScanArg, UffdioApi, UffdioRange, UffdioRegister, UffdioWriteprotect};

/// How many regions one scan can report; 24 bytes each. A longer report takes several scans.
const REGIONS: usize = 512;

/// The features that tracking asks of userfaultfd, and their names in an error.
const FEATURES: [(u64, &str); 4] = [
    (uapi::UFFD_FEATURE_PAGEFAULT_FLAG_WP, "UFFD_FEATURE_PAGEFAULT_FLAG_WP"),
    (uapi::UFFD_FEATURE_WP_HUGETLBFS_SHMEM, "UFFD_FEATURE_WP_HUGETLBFS_SHMEM"),
    (uapi::UFFD_FEATURE_WP_UNPOPULATED, "UFFD_FEATURE_WP_UNPOPULATED"),
    (uapi::UFFD_FEATURE_WP_ASYNC, "UFFD_FEATURE_WP_ASYNC"),
];

/// Why writes to a range cannot be tracked. Fall back to comparing the whole range.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unsupported {
    /// There is no userfaultfd, or this process may not use it.
    #[error("cannot open a userfaultfd, is it configured, and allowed for this process?: {0}")]
    Userfaultfd(io::Error),
    /// The kernel's userfaultfd cannot do what is needed.
    #[error("the kernel's userfaultfd lacks {feature}, which Linux 6.7 and later have")]
    Feature {
        /// The kernel's name of the feature.
        feature: &'static str,
    },
    /// The process's page tables cannot be read.
    #[error("cannot open /proc/self/pagemap: {0}")]
    Pagemap(io::Error),
    /// The range cannot be registered or protected: it is no mapping of pages that supports it, it is tracked
    /// already (`EBUSY`), or there is no memory for page tables.
    #[error("cannot track writes to {start:#x}+{len:#x}: {call}: {source}")]
    Range {
        /// The address of the first byte.
        start: usize,
        /// The length in bytes.
        len: usize,
        /// The system call.
        call: &'static str,
        /// Its error.
        r#source: io::Error,
    },
    /// The kernel cannot report written pages.
    #[error("the kernel lacks the PAGEMAP_SCAN ioctl, which Linux 6.7 and later have: {0}")]
    Scan(io::Error),
}

/// Tracks which pages of a range of this process's memory are written.
///
/// It holds two descriptors, closed on `exec`. Dropping it ends the tracking; drop it before unmapping the
/// range.
#[derive(Debug)]
pub(crate) struct Tracker {
    start: usize,
    len: usize,
    uffd: OwnedFd,
    /// Tells whether this is the process that tracks.
    canary: &'static AtomicU32,
    pagemap: File,
    /// Written regions that the kernel reported, hence protected again: `regions[next..filled]` are still to
    /// be visited.
    regions: Box<[PageRegion; REGIONS]>,
    next: usize,
    filled: usize,
}

impl Tracker {
    /// Starts to track writes to `start..start + len`, whole pages of a shared mapping of a memfd.
    ///
    /// Writes that happen before it returns may or may not be seen: count the whole range as written first.
    /// Page tables for the whole range are allocated, 1/512 of its size.
    ///
    /// # Errors
    /// [`Unsupported`] says what is missing.
    pub(crate) fn new(start: *mut u8, len: usize) -> Result<Self, Unsupported> {
        let start = start.addr();
        let uffd = open_userfaultfd()?;
        let pagemap = File::open("/proc/self/pagemap").map_err(Unsupported::Pagemap)?;
        let range = UffdioRange { start: start as u64, len: len as u64 };
        let refused = |call| move |source| Unsupported::Range { start, len, call, source };

        let mut register = UffdioRegister { range, mode: uapi::UFFDIO_REGISTER_MODE_WP, ioctls: 0 };
        // SAFETY: the argument holds no pointers.
        unsafe { uapi::request(uffd.as_fd(), &mut register) }.map_err(refused("UFFDIO_REGISTER"))?;
        let mut protect = UffdioWriteprotect { range, mode: uapi::UFFDIO_WRITEPROTECT_MODE_WP };
        // SAFETY: the argument holds no pointers.
        unsafe { uapi::request(uffd.as_fd(), &mut protect) }.map_err(refused("UFFDIO_WRITEPROTECT"))?;

        let regions = Box::new([PageRegion::default(); REGIONS]);
        let mut tracker =
            Self { start, len, uffd, canary: fork::canary(), pagemap, regions, next: 0, filled: 0 };
        // A first look at one page tells whether the kernel can scan at all. It consumes nothing.
        let probe = tracker.scan(tracker.start, tracker.start + 1, uapi::PM_SCAN_CHECK_WPASYNC);
        probe.map_err(|source| match source.raw_os_error() {
            Some(libc::ENOTTY | libc::EINVAL) => Unsupported::Scan(source),
            _ => refused("PAGEMAP_SCAN")(source),
        })?;
        tracker.filled = 0;
        Ok(tracker)
    }

    /// Calls `visit` with the ranges that were written since the last call, in bytes from the start, in
    /// ascending order, each of whole pages and maximal, and protects these pages again.
    ///
    /// A write that races with it is reported now or the next time. When `visit` unwinds, what was not
    /// visited yet is reported the next time, before the rest; a page may then be reported twice.
    ///
    /// # Errors
    /// When a part of the range was mapped again since the start, or the kernel fails. The kernel may then have
    /// forgotten writes that it did not report: count the whole range as written.
    pub(crate) fn collect(&mut self, mut visit: impl FnMut(Range<usize>)) -> io::Result<()> {
        let end = self.start + self.len;
        let mut from = self.start;
        let mut open: Option<Range<usize>> = None;
        loop {
            while self.next < self.filled {
                let region = self.regions[self.next];
                let region = region.start as usize - self.start..region.end as usize - self.start;
                match &mut open {
                    Some(range) if range.end == region.start => range.end = region.end,
                    _ => {
                        // The region is consumed after the visit, so that it survives a panic in there.
                        if let Some(range) = open.take() {
                            visit(range);
                        }
                        open = Some(region);
                    }
                }
                self.next += 1;
            }
            if from == end {
                break;
            }
            let flags = uapi::PM_SCAN_WP_MATCHING | uapi::PM_SCAN_CHECK_WPASYNC;
            match self.scan(from, end, flags) {
                Ok(scanned_to) => from = scanned_to,
                Err(error) => {
                    open.into_iter().for_each(visit);
                    return Err(error);
                }
            }
        }
        open.into_iter().for_each(visit);
        Ok(())
    }

    /// Looks for written pages from address `from`, and returns how far it came: to `to`, or less far because
    /// there was no room for more regions. The regions are in `self.regions` afterwards.
    fn scan(&mut self, from: usize, to: usize, flags: u64) -> io::Result<usize> {
        (self.next, self.filled) = (0, 0);
        let mut scan = PmScanArg {
            size: size_of::<PmScanArg>() as u64,
            flags,
            start: from as u64,
            end: to as u64,
            vec: self.regions.as_mut_ptr().expose_provenance() as u64,
            vec_len: self.regions.len() as u64,
            // With this category alone, a page that has no entry in the page table any more counts as written.
            category_mask: uapi::PAGE_IS_WRITTEN,
            return_mask: uapi::PAGE_IS_WRITTEN,
            ..PmScanArg::default()
        };
        // SAFETY: `vec` and `vec_len` describe an array that is borrowed exclusively, and any bytes are a
        // valid region.
        let found = unsafe { uapi::request(self.pagemap.as_fd(), &mut scan) }?;
        self.filled = usize::try_from(found).expect("a count");
        Ok(scan.walk_end as usize)
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        // In a forked child the descriptor still stands for the parent's memory, whose tracking goes on.
        if fork::is_child(self.canary) {
            return;
        }
        let mut range = UffdioRange { start: self.start as u64, len: self.len as u64 };
        // SAFETY: the argument holds no pointers.
        if let Err(error) = unsafe { uapi::request(self.uffd.as_fd(), &mut range) } {
            // The range is gone already, or closing the descriptor unregisters what is left of it.
            tracing::debug!(%error, start = self.start, len = self.len, "cannot unregister a tracked range");
        }
    }
}

/// Opens a userfaultfd that can protect shared memory asynchronously.
fn open_userfaultfd() -> Result<OwnedFd, Unsupported> {
    let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::NONBLOCK | uapi::UFFD_USER_MODE_ONLY;
    let uffd = uapi::userfaultfd(flags).map_err(Unsupported::Userfaultfd)?;
    let needed = FEATURES.iter().fold(0, |all, (feature, _)| all | feature);
    let mut api = UffdioApi { api: uapi::UFFD_API, features: needed, ioctls: 0 };
    // SAFETY: the argument holds no pointers.
    let Err(refusal) = (unsafe { uapi::request(uffd.as_fd(), &mut api) }) else { return Ok(uffd) };
    // A refused handshake names nothing. Another without wishes tells what there is.
    let mut api = UffdioApi { api: uapi::UFFD_API, features: 0, ioctls: 0 };
    // SAFETY: the argument holds no pointers.
    unsafe { uapi::request(uffd.as_fd(), &mut api) }.map_err(Unsupported::Userfaultfd)?;
    match FEATURES.iter().find(|(feature, _)| api.features & feature == 0) {
        Some((_, feature)) => Err(Unsupported::Feature { feature }),
        None => Err(Unsupported::Userfaultfd(refusal)),
    }
}
