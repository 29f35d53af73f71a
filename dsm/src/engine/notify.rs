//! Notification by eventfd: a thread per process sleeps until a round publishes something, and signals the
//! descriptors whose areas have a new version.
use super::area_core::{AreaCore, Version};
use super::shared::Shared;
use super::wait::futex_wait;
use crate::error::{Error, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

/// The subscriptions of a process.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    pub(crate) subscribed: Mutex<Vec<Weak<Subscription>>>,
}

#[derive(Debug)]
pub(crate) struct Subscription {
    core: Arc<AreaCore>,
    pub(crate) event: OwnedFd,
    seen: Mutex<Option<Version>>,
}

impl AreaCore {
    /// Signals `event` from now on whenever the area gets a new version, until the subscription is dropped.
    ///
    /// # Errors
    /// [`Error::Os`] if the thread cannot be started.
    pub(crate) fn subscribe(self: &Arc<Self>, event: OwnedFd) -> Result<Arc<Subscription>> {
        let seen = Mutex::new(self.newest());
        let subscription = Arc::new(Subscription { core: self.clone(), event, seen });
        let shared = &self.shared;
        let mut list = shared.notifier.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
        let first = list.is_empty();
        list.push(Arc::downgrade(&subscription));
        drop(list);
        if first {
            // The thread ends when the last subscription is gone.
            let shared = shared.clone();
            let spawned =
                std::thread::Builder::new().name("hectare-notify".into()).spawn(move || watch(&shared));
            if let Err(source) = spawned {
                self.shared.notifier.subscribed.lock().unwrap_or_else(PoisonError::into_inner).clear();
                return Err(Error::Os { call: "starting the notifier thread", source });
            }
        }
        Ok(subscription)
    }
}

/// Signals subscriptions until none is left.
fn watch(shared: &Shared) {
    let header = shared.segment.header();
    // SeqCst: comes before the look at `published`; pairs with `Shared::wake_notifiers`, which looks the other way around.
    header.notifiers.fetch_add(1, Ordering::SeqCst);
    loop {
        // SeqCst: after the increment above; pairs with the publisher's, of which it acquires the publication.
        let seen = header.sync.published.load(Ordering::SeqCst);
        {
            let mut list = shared.notifier.subscribed.lock().unwrap_or_else(PoisonError::into_inner);
            list.retain(|subscription| subscription.upgrade().is_some_and(|live| live.look()));
            if list.is_empty() {
                break;
            }
        }
        futex_wait(&header.sync.published, seen, Duration::from_millis(200));
    }
    header.notifiers.fetch_sub(1, Ordering::Relaxed);
}

impl Subscription {
    /// Signals if there is a new version; false when the area is gone.
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
