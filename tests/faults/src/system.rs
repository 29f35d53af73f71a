//! System calls that the standard library does not wrap, and writes through a bare pointer. Besides
//! `clock.rs`, the only file of this program with `unsafe` in it.
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Writes `values` to elements `start..` behind `data`, which [`Owned::as_mut_ptr`] returned for an area that
/// has so many.
///
/// [`Owned::as_mut_ptr`]: hectare_dsm::Owned::as_mut_ptr
pub(crate) fn fill_raw(data: *mut u64, start: usize, values: &[u64]) {
    // SAFETY: the caller owns the area, whose elements `start..start + values.len()` lie behind `data`; nobody
    // else writes the writer copy, and no reference to it is alive.
    unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), data.add(start), values.len()) };
}

/// Ends this process as `kill -9` would.
pub(crate) fn kill_self() -> ! {
    // SAFETY: plain system calls.
    unsafe {
        libc::raise(libc::SIGKILL);
        loop {
            libc::pause();
        }
    }
}

/// Sends a signal to a process that the caller started and did not wait for yet.
pub(crate) fn signal(pid: u32, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: a plain system call.
    checked(unsafe { libc::kill(pid as libc::pid_t, signal) })
}

fn checked(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Forks, runs `act` in the child and returns the child's exit code, which is what `act` returns.
///
/// A forked child of a process with threads may not allocate if a thread held the allocator's lock; glibc's
/// allocator takes its locks around `fork`, so with it `act` may.
pub(crate) fn in_forked_child(act: impl FnOnce() -> u8) -> io::Result<i32> {
    // SAFETY: see above for the child; it ends by `_exit`, without destructors. The parent waits for it.
    unsafe {
        match libc::fork() {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).unwrap_or(101);
                libc::_exit(code.into())
            }
            child => {
                let mut status = 0;
                if libc::waitpid(child, &mut status, 0) != child {
                    return Err(io::Error::last_os_error());
                }
                Ok(if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 256 })
            }
        }
    }
}

/// Lowers a limit of this process, soft and hard.
pub(crate) fn limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: `limit` is a valid structure that the call reads.
    checked(unsafe { libc::setrlimit(resource, &limit) })
}

/// Runs `before` in the child that `command` starts, before its program; it must be safe after a fork.
pub(crate) fn before_exec(
    command: &mut Command,
    before: impl FnMut() -> io::Result<()> + Send + Sync + 'static,
) {
    // SAFETY: the callers pass closures that make system calls only.
    unsafe { command.pre_exec(before) };
}

/// Makes a memfd of `len` bytes with the seals that a job's memory has.
pub(crate) fn sealed_memfd(content: &[u8], len: u64) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call with a valid C string; the descriptor is new and owned by nobody else.
    let fd = unsafe {
        let fd = libc::memfd_create(c"faults".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
        checked(libc::c_int::from(fd < 0))?;
        OwnedFd::from_raw_fd(fd)
    };
    let file = std::fs::File::from(fd);
    file.set_len(len)?;
    std::os::unix::fs::FileExt::write_all_at(&file, content, 0)?;
    let fd = OwnedFd::from(file);
    let seals = libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;
    // SAFETY: a plain system call on an open descriptor.
    checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_ADD_SEALS, seals) })?;
    Ok(fd)
}

/// A socket that sends and receives whole frames at a device of this thread's network namespace, and does not wait for any.
pub(crate) fn frames_of(device: &str) -> io::Result<OwnedFd> {
    let name = std::ffi::CString::new(device)?;
    let protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: plain system calls with a valid string and a structure that the call reads; the descriptor is new and owned by nobody
    // else. All zeros are a valid `sockaddr_ll`.
    unsafe {
        let index = libc::if_nametoindex(name.as_ptr());
        if index == 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::socket(
            libc::AF_PACKET,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK,
            i32::from(protocol),
        );
        checked(libc::c_int::from(fd < 0))?;
        let fd = OwnedFd::from_raw_fd(fd);
        let mut place: libc::sockaddr_ll = std::mem::zeroed();
        place.sll_family = libc::AF_PACKET as u16;
        place.sll_protocol = protocol;
        place.sll_ifindex = index as i32;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        checked(libc::bind(fd.as_raw_fd(), (&raw const place).cast(), length))?;
        Ok(fd)
    }
}

/// Memory that others map, too: a job's, by somebody who keeps to no protocol, or a file's.
#[derive(Debug)]
pub(crate) struct Scratch {
    base: *mut u8,
    len: usize,
}

// SAFETY: the mapping belongs to the process, and is read and written by atomics alone.
unsafe impl Send for Scratch {}
// SAFETY: as above.
unsafe impl Sync for Scratch {}

impl Scratch {
    /// Maps the first `len` bytes of a descriptor, which has so many.
    pub(crate) fn map(fd: BorrowedFd<'_>, len: usize) -> io::Result<Scratch> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at a place that the kernel chooses.
        let base =
            unsafe { libc::mmap(std::ptr::null_mut(), len, prot, libc::MAP_SHARED, fd.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Scratch { base: base.cast(), len })
    }

    /// Stores a word at the offset, rounded down to a multiple of eight.
    pub(crate) fn store(&self, offset: usize, value: u64) {
        let word = offset % self.len / 8;
        // SAFETY: inside the mapping, aligned; the store is atomic, as whoever reads it does so by atomics or
        // finds garbage, which is the purpose.
        unsafe {
            (*self.base.cast::<std::sync::atomic::AtomicU64>().add(word))
                .store(value, std::sync::atomic::Ordering::Relaxed);
        }
    }

    /// The word at an offset.
    pub(crate) fn load(&self, offset: usize) -> u64 {
        let word = offset % self.len / 8;
        // SAFETY: inside the mapping and aligned.
        unsafe {
            (*self.base.cast::<std::sync::atomic::AtomicU64>().add(word))
                .load(std::sync::atomic::Ordering::Relaxed)
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the mapping was made by `map` with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.cast(), self.len) };
    }
}
