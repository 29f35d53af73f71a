//! Memory to be tracked: memfds and mappings of them.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{Tracker, Unsupported};

/// The size of a page in bytes.
pub(super) const PAGE: usize = 4096;
/// The size of a huge page in bytes.
pub(super) const HUGE: usize = 2 << 20;

/// A memfd of `len` bytes, all of it a hole.
pub(super) fn memfd(len: usize) -> File {
    // SAFETY: the name is a string with a terminating zero.
    let fd = unsafe { libc::memfd_create(c"track-test".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "{}", io::Error::last_os_error());
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    let file = unsafe { File::from_raw_fd(fd) };
    file.set_len(len as u64).unwrap();
    file
}

/// A shared mapping of a file at a multiple of 2 MiB, unmapped when dropped.
pub(super) struct Mapping {
    reserved: *mut u8,
    /// Where it starts.
    pub(super) start: *mut u8,
    /// Its length in bytes.
    pub(super) len: usize,
}

// SAFETY: the mapping belongs to the process and not to a thread, and is accessed by atomics only.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps all of the file.
    pub(super) fn new(file: &File) -> Self {
        let len = file.metadata().unwrap().len() as usize;
        let (none, anonymous) = (libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel picks addresses that nothing else uses.
        let reserved = unsafe { libc::mmap(ptr::null_mut(), len + HUGE, none, anonymous, -1, 0) };
        assert_ne!(reserved, libc::MAP_FAILED);
        let reserved = reserved.cast::<u8>();
        let start = reserved.wrapping_add(reserved.addr().next_multiple_of(HUGE) - reserved.addr());
        let (access, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
        // SAFETY: it replaces a part of the addresses that were reserved above, which nothing else uses.
        let mapped = unsafe { libc::mmap(start.cast(), len, access, shared, file.as_raw_fd(), 0) };
        assert_eq!(mapped, start.cast());
        Self { reserved, start, len }
    }

    /// How many pages there are.
    pub(super) fn pages(&self) -> usize {
        self.len / PAGE
    }

    /// A word of a page, not always the same one.
    pub(super) fn word(&self, page: usize) -> &AtomicU64 {
        assert!(page < self.pages());
        // SAFETY: the address is within the mapping and aligned, and accessed by atomics only.
        unsafe { AtomicU64::from_ptr(self.start.add(page * PAGE + page % 512 * 8).cast()) }
    }

    /// Writes to one page.
    pub(super) fn write(&self, page: usize) {
        self.word(page).fetch_add(1, Ordering::Relaxed);
    }

    /// Writes to every page.
    pub(super) fn write_all(&self) {
        (0..self.pages()).for_each(|page| self.write(page));
    }

    /// Calls `madvise`.
    pub(super) fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the range is this mapping, whose content is plain integers.
        match unsafe { libc::madvise(self.start.cast(), self.len, advice) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Starts to track it, or says why this host cannot.
    pub(super) fn track(&self) -> Option<Tracker> {
        match Tracker::new(self.start, self.len) {
            Ok(tracker) => Some(tracker),
            Err(
                error @ (Unsupported::Userfaultfd(_) | Unsupported::Feature { .. } | Unsupported::Scan(_)),
            ) => {
                hectare_testing::skip("page tracking", error);
                None
            }
            Err(error) => panic!("{error:?}"),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the addresses were reserved by `new`, and whoever borrowed the mapping is gone.
        unsafe { libc::munmap(self.reserved.cast(), self.len + HUGE) };
    }
}
