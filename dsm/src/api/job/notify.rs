//! Descriptors that become readable when an area has a new version.
use crate::api::area::handle::Area;
use crate::engine::area_core::AreaCore;
use crate::engine::shared::Subscriber;
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::protocol::publication::Version;
use crate::segment::element::Element;
use crate::segment::mapping::failed;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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
            // It fails if the count is at its end already, and then the descriptor is readable.
            let _ = write(&self.event, &1u64.to_ne_bytes());
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
        let mut count = [0; 8];
        match read(&self.subscription.event, &mut count) {
            Ok(_) => Ok(u64::from_ne_bytes(count)),
            Err(Errno::AGAIN) => Ok(0),
            Err(error) => Err(failed("read(eventfd)")(error)),
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
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(failed("eventfd"))?;
        let seen = Mutex::new(self.core.newest());
        let subscription = Arc::new(Subscription { core: self.core.clone(), event, seen });
        let subscriber: Arc<dyn Subscriber> = subscription.clone();
        shared.subscribe(Arc::downgrade(&subscriber))?;
        Ok(Notification { subscription })
    }
}
