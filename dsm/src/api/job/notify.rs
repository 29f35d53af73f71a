//! Descriptors that become readable when an area has a new version.
use crate::api::area::handle::Area;
use crate::engine::area_core::AreaCore;
use crate::engine::shared::Subscriber;
use crate::error::{Error, Result};
use crate::protocol::publication::Version;
use crate::segment::element::Element;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
struct Subscription {
    core: Arc<AreaCore>,
    event: OwnedFd,
    seen: Mutex<Option<Version>>,
}

impl Subscriber for Subscription {
    fn look(&self) -> bool {
        if self.core.check_live().is_err() {
            return false;
        }
        let newest = self.core.newest();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if *seen != newest {
            *seen = newest;
            let one = 1u64;
            // SAFETY: `one` is readable for its eight bytes.
            unsafe { libc::write(self.event.as_raw_fd(), (&raw const one).cast(), 8) };
        }
        true
    }
}

/// A descriptor that becomes readable when an area gets a new version: for `poll`, `epoll` and event loops.
///
/// Dropping it ends the notification.
#[derive(Clone, Debug)]
pub struct Notification {
    subscription: Arc<Subscription>,
}

impl AsFd for Notification {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.subscription.event.as_fd()
    }
}

impl Notification {
    /// Makes the descriptor unreadable again until the next new version; returns how many signals had come
    /// since the last call, 0 if none.
    ///
    /// # Errors
    /// [`Error::Os`].
    pub fn clear(&self) -> Result<u64> {
        let mut count = 0u64;
        let fd = self.subscription.event.as_raw_fd();
        // SAFETY: `count` is writable for its eight bytes.
        let got = unsafe { libc::read(fd, (&raw mut count).cast(), 8) };
        if got == 8 {
            return Ok(count);
        }
        let source = std::io::Error::last_os_error();
        if source.kind() == std::io::ErrorKind::WouldBlock {
            Ok(0)
        } else {
            Err(Error::Os { call: "read(eventfd)", source })
        }
    }
}

impl<T: Element> Area<T> {
    /// A descriptor that becomes readable whenever this area gets a new version.
    ///
    /// # Errors
    /// [`Error::NoReaderCopy`], [`Error::Deleted`], [`Error::ForkedChild`], [`Error::Os`].
    pub fn notify(&self) -> Result<Notification> {
        let shared = &self.core.shared;
        shared.check_process()?;
        self.core.check_live()?;
        if self.core.layout.copies == 0 {
            return Err(self.core.no_copy());
        }
        // SAFETY: a plain system call; the descriptor is owned by nobody else.
        let event = unsafe {
            let fd = libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK);
            if fd < 0 {
                return Err(Error::Os { call: "eventfd", source: std::io::Error::last_os_error() });
            }
            OwnedFd::from_raw_fd(fd)
        };
        let seen = Mutex::new(self.core.newest());
        let subscription = Arc::new(Subscription { core: self.core.clone(), event, seen });
        let subscriber: Arc<dyn Subscriber> = subscription.clone();
        shared.subscribe(Arc::downgrade(&subscriber))?;
        Ok(Notification { subscription })
    }
}
