//! The process behind a connection, by a descriptor that no reused id can turn into another process; and what it has not
//! received yet.
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// The pidfd of the process that made the connection (Linux 6.5); `None` where the kernel has none, or the
/// process is gone already.
///
/// The id that `SO_PEERCRED` tells is not opened instead: it may have come to mean another process.
///
/// # Errors
/// For want of descriptors or memory: without its pidfd, the death of the process would not be seen.
pub(crate) fn process_of(socket: impl AsFd) -> Result<Option<OwnedFd>, Errno> {
    /// `SO_PEERPIDFD` of `asm-generic/socket.h`, which is not in `libc` for every target.
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut descriptor: libc::c_int = -1;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: `descriptor` and `len` are writable, and `len` is the size of `descriptor`.
    let got = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut descriptor).cast(),
            &mut len,
        )
    };
    if got != 0 || descriptor < 0 {
        let error = std::io::Error::last_os_error().raw_os_error().map(Errno::from_raw_os_error);
        let is_want = |error: &Errno| matches!(*error, Errno::MFILE | Errno::NFILE | Errno::NOMEM);
        return error.filter(is_want).map_or(Ok(None), Err);
    }
    // SAFETY: the kernel just made the descriptor for this call; nobody else owns it.
    Ok(Some(unsafe { OwnedFd::from_raw_fd(descriptor) }))
}

/// Whether the process of a pidfd lives: it is neither a zombie nor gone.
pub(crate) fn is_alive(process: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(process, PollFlags::IN)];
    poll(&mut fds, Some(&Timespec::default())) == Ok(0)
}

/// Bytes of messages that the other side has not received yet, as the kernel counts them; 0 if it does not say.
pub(crate) fn unread(socket: impl AsFd) -> usize {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the request (SIOCOUTQ) writes one int, and `bytes` is one.
    let got = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if got == 0 { usize::try_from(bytes).unwrap_or(0) } else { 0 }
}
