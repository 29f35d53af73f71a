//! Notification of publications: a thread per process sleeps until a round publishes something, and then has all subscribers
//! check whether that is what they wait for.
use super::shared::{Shared, Subscriber};
use super::wait::{futex_wait, futex_wake_all};
use crate::error::{Error, Result};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

impl Shared {
    /// Has `subscriber` look after each publication, until it is dropped.
    ///
    /// # Errors
    /// [`Error::Os`] if the thread cannot be started.
    pub(crate) fn subscribe(self: &Arc<Self>, subscriber: Weak<dyn Subscriber>) -> Result<()> {
        let mut list = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let first = list.is_empty();
        list.push(subscriber);
        drop(list);
        if first {
            // The thread ends when the last subscriber is gone.
            let shared = self.clone();
            let spawned =
                std::thread::Builder::new().name("hectare-notify".into()).spawn(move || watch(&shared));
            if let Err(source) = spawned {
                self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).clear();
                return Err(Error::Os { call: "starting the notifier thread", source });
            }
        }
        Ok(())
    }

    /// Wakes those threads of all processes.
    pub(crate) fn wake_notifiers(&self) {
        let header = self.segment.header();
        // SeqCst: comes after the increment of `published` (`Doorbell::published`); pairs with `watch`, which raises this before it looks at
        // that.
        if header.notifiers.load(Ordering::SeqCst) != 0 {
            futex_wake_all(&header.sync.published);
        }
    }
}

/// Has subscribers look until none is left.
fn watch(shared: &Shared) {
    let header = shared.segment.header();
    // SeqCst: comes before the look at `published`; pairs with `Shared::wake_notifiers`, which looks the other way around.
    header.notifiers.fetch_add(1, Ordering::SeqCst);
    loop {
        // SeqCst: after the increment above; pairs with the publisher's, of which it acquires the publication.
        let seen = header.sync.published.load(Ordering::SeqCst);
        {
            let mut list = shared.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
            list.retain(|subscriber| subscriber.upgrade().is_some_and(|live| live.look()));
            if list.is_empty() {
                break;
            }
        }
        futex_wait(&header.sync.published, seen, Duration::from_millis(200));
    }
    header.notifiers.fetch_sub(1, Ordering::Relaxed);
}
