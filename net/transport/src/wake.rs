//! Waking a thread that sleeps in `wait`.
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

/// Wakes the thread that owns a transport. Clones wake the same.
#[derive(Debug, Clone)]
pub struct Waker {
    event: Arc<OwnedFd>,
}

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        Ok(Waker { event: Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?) })
    }

    /// Ends the wait under way, or the next one.
    pub fn wake(&self) {
        // It fails only if it was used 2^64 times since the last wait: then that wait ends too.
        let _ = write(&*self.event, &1_u64.to_ne_bytes());
    }

    /// Sleeps until it was used, one of `also` can be read, or `longest` has passed. Whether there is something to wake for.
    pub(crate) fn wait(&self, also: &[BorrowedFd<'_>], longest: Duration) -> io::Result<bool> {
        let mut set = vec![PollFd::new(&*self.event, PollFlags::IN)];
        set.extend(also.iter().map(|also| PollFd::new(also, PollFlags::IN)));
        let timeout = Timespec::try_from(longest).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        match poll(&mut set, Some(&timeout)) {
            Ok(0) | Err(Errno::INTR) => return Ok(false),
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        if set[0].revents().contains(PollFlags::IN) {
            // Only this thread reads, so there is something to be read.
            let _ = read(self.event.as_fd(), &mut [0; 8]);
        }
        Ok(true)
    }
}
