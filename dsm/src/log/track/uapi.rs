//! The kernel's interface to userfaultfd and to `PAGEMAP_SCAN`, as far as it is used here.
//!
//! Names, values and layouts are those of `linux/userfaultfd.h` and `linux/fs.h`.

use rustix::mm::UserfaultfdFlags;
use std::ffi::c_int;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// `userfaultfd` flag: faults of the kernel on our behalf are not delivered, so that no privilege is needed.
/// Asynchronous write protection delivers none, and handles the kernel's writes like ours.
pub(super) const UFFD_USER_MODE_ONLY: UserfaultfdFlags = UserfaultfdFlags::from_bits_retain(1);
/// The version of the interface.
pub(super) const UFFD_API: u64 = 0xaa;
/// Feature: write protection, of anonymous memory.
pub(super) const UFFD_FEATURE_PAGEFAULT_FLAG_WP: u64 = 1 << 0;
/// Feature: write protection, of shared memory and huge pages.
pub(super) const UFFD_FEATURE_WP_HUGETLBFS_SHMEM: u64 = 1 << 12;
/// Feature: write protection of pages that are not there yet.
pub(super) const UFFD_FEATURE_WP_UNPOPULATED: u64 = 1 << 13;
/// Feature: the kernel resolves write-protection faults itself.
pub(super) const UFFD_FEATURE_WP_ASYNC: u64 = 1 << 15;
/// Registration for write-protection faults.
pub(super) const UFFDIO_REGISTER_MODE_WP: u64 = 1 << 1;
/// Write protection is to be set, not removed.
pub(super) const UFFDIO_WRITEPROTECT_MODE_WP: u64 = 1 << 0;
/// `PAGEMAP_SCAN` flag: write-protect the pages that are reported.
pub(super) const PM_SCAN_WP_MATCHING: u64 = 1 << 0;
/// `PAGEMAP_SCAN` flag: fail where asynchronous write protection is not registered.
pub(super) const PM_SCAN_CHECK_WPASYNC: u64 = 1 << 1;
/// Page category: written since it was write-protected.
pub(super) const PAGE_IS_WRITTEN: u64 = 1 << 1;

/// `struct uffdio_api`: the handshake.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct UffdioApi {
    /// [`UFFD_API`].
    pub(super) api: u64,
    /// In: the features asked for. Out: those that there are.
    pub(super) features: u64,
    /// Out: the requests that the descriptor knows.
    pub(super) ioctls: u64,
}

/// `struct uffdio_range`: addresses of whole pages.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct UffdioRange {
    /// The address of the first byte.
    pub(super) start: u64,
    /// The length in bytes.
    pub(super) len: u64,
}

/// `struct uffdio_register`: which faults of a range are to be handled.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct UffdioRegister {
    /// The range.
    pub(super) range: UffdioRange,
    /// [`UFFDIO_REGISTER_MODE_WP`].
    pub(super) mode: u64,
    /// Out: the requests that the range knows.
    pub(super) ioctls: u64,
}

/// `struct uffdio_writeprotect`: sets or removes write protection.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct UffdioWriteprotect {
    /// The range.
    pub(super) range: UffdioRange,
    /// [`UFFDIO_WRITEPROTECT_MODE_WP`].
    pub(super) mode: u64,
}

/// `struct pm_scan_arg`: what to look for in the page tables.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct PmScanArg {
    /// The size of this structure.
    pub(super) size: u64,
    /// `PM_SCAN_*`.
    pub(super) flags: u64,
    /// The address to start at.
    pub(super) start: u64,
    /// The address to end before.
    pub(super) end: u64,
    /// Out: the address that the scan got to.
    pub(super) walk_end: u64,
    /// The address of an array of [`PageRegion`].
    pub(super) vec: u64,
    /// How many regions the array has room for.
    pub(super) vec_len: u64,
    /// After how many reported pages to stop; 0 for never.
    pub(super) max_pages: u64,
    /// The categories that must be absent rather than present.
    pub(super) category_inverted: u64,
    /// The categories that a page must have to be reported.
    pub(super) category_mask: u64,
    /// The categories of which a page must have one.
    pub(super) category_anyof_mask: u64,
    /// The categories that are reported.
    pub(super) return_mask: u64,
}

/// `struct page_region`: consecutive pages of the same categories.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PageRegion {
    /// The address of the first byte.
    pub(super) start: u64,
    /// The address behind the last byte.
    pub(super) end: u64,
    /// `PAGE_IS_*`.
    pub(super) categories: u64,
}

const _: () = assert!(size_of::<UffdioApi>() == 24);
const _: () = assert!(size_of::<UffdioRange>() == 16);
const _: () = assert!(size_of::<UffdioRegister>() == 32);
const _: () = assert!(size_of::<UffdioWriteprotect>() == 24);
const _: () = assert!(size_of::<PmScanArg>() == 96);
const _: () = assert!(size_of::<PageRegion>() == 24);

/// Opens a userfaultfd.
pub(super) fn userfaultfd(flags: UserfaultfdFlags) -> io::Result<OwnedFd> {
    // SAFETY: nothing is registered with it yet.
    Ok(unsafe { rustix::mm::userfaultfd(flags) }?)
}

/// An argument structure of an `ioctl` request.
///
/// # Safety
/// `REQUEST` must make the kernel read and write no memory of this process other than the structure itself,
/// unless the caller of [`request`] vouches for it.
pub(super) unsafe trait Request {
    /// The request's number.
    const REQUEST: libc::Ioctl;
}

// SAFETY: the handshake reads and fills the structure only.
unsafe impl Request for UffdioApi {
    const REQUEST: libc::Ioctl = libc::_IOWR::<Self>(0xaa, 0x3f);
}

// SAFETY: registration reads and fills the structure only, and changes no content of the range.
unsafe impl Request for UffdioRegister {
    const REQUEST: libc::Ioctl = libc::_IOWR::<Self>(0xaa, 0x00);
}

// SAFETY: used to unregister a range; reads the structure only, and changes no content of the range.
unsafe impl Request for UffdioRange {
    const REQUEST: libc::Ioctl = libc::_IOR::<Self>(0xaa, 0x01);
}

// SAFETY: reads the structure only; what becomes write-protected stays as readable and writable as it was for
// the program, since the kernel resolves the faults.
unsafe impl Request for UffdioWriteprotect {
    const REQUEST: libc::Ioctl = libc::_IOWR::<Self>(0xaa, 0x06);
}

// SAFETY: besides the structure the scan fills the array that `vec` and `vec_len` describe, for which whoever
// calls `request` with it vouches.
unsafe impl Request for PmScanArg {
    const REQUEST: libc::Ioctl = libc::_IOWR::<Self>(b'f' as u32, 16);
}

/// Sends a request to the kernel and returns what it answers, if that is not negative.
///
/// # Safety
/// Pointers within `argument` must be valid for what the request does with them. Only [`PmScanArg`] has one:
/// `vec` must be valid for writes of `vec_len` regions.
pub(super) unsafe fn request<R: Request>(fd: BorrowedFd<'_>, argument: &mut R) -> io::Result<c_int> {
    // SAFETY: the argument is exclusively borrowed and of the type that `REQUEST` names; what it points to is
    // valid by this function's contract.
    match unsafe { libc::ioctl(fd.as_raw_fd(), R::REQUEST, std::ptr::from_mut(argument)) } {
        -1 => Err(io::Error::last_os_error()),
        answer => Ok(answer),
    }
}
