//! Forced syncs: a worker requests the present state of an area from its owner's host, and is told when that is here. Written over
//! bare words, so that the models run it.
//!
//! Requests are counted, and an answer is the number of the last request that it is for. So no worker mistakes the answer to an
//! earlier request for one to its own, and a new agent sees the requests that its predecessor left open.
use crate::primitive::{AtomicU64, Ordering};

/// An area's requests and answers.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ForceRequest {
    /// How many requests there were. Written by workers.
    made: AtomicU64,
    /// `request << 1 | postponed`. Written by the agent.
    answered: AtomicU64,
}

impl ForceRequest {
    /// That of an area that nobody has asked for.
    #[cfg(loom)]
    pub(crate) fn new() -> ForceRequest {
        ForceRequest { made: AtomicU64::new(0), answered: AtomicU64::new(0) }
    }

    /// The same, in place, of an area that is being created.
    #[cfg(not(loom))]
    pub(crate) fn reset(&self) {
        self.made.store(0, Ordering::Relaxed);
        self.answered.store(0, Ordering::Relaxed);
    }

    /// Makes a request; its number, from 1 on. News are to be left after this.
    pub(crate) fn make(&self) -> u64 {
        // Relaxed: the news that follow order it (`doorbell::leave_news`).
        self.made.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The last request, if it is not answered; for the agent, after it took the news.
    pub(crate) fn open(&self) -> Option<u64> {
        // Relaxed, both: the agent itself writes the answers, or did before it died.
        let made = self.made.load(Ordering::Relaxed);
        (made > self.answered.load(Ordering::Relaxed) >> 1).then_some(made)
    }

    /// Answers all requests up to this one; `postponed` says that the owner could not publish. Who waits is to be looked for after
    /// this.
    pub(crate) fn answer(&self, request: u64, postponed: bool) {
        // SeqCst: before the look at who waits (`RemoteClocks::call`); pairs with the load in `answer_to`.
        self.answered.fetch_max(request << 1 | u64::from(postponed), Ordering::SeqCst);
    }

    /// The word that answers change, to sleep on.
    #[cfg(not(loom))]
    pub(crate) fn answers(&self) -> &AtomicU64 {
        &self.answered
    }

    /// The answer to a request: whether the owner could not publish.
    pub(crate) fn answer_to(&self, request: u64) -> Option<bool> {
        // SeqCst: after the worker has said that it waits (`Seat::set_waits`); pairs with `answer`. What was published here for
        // the answer was published before.
        let answered = self.answered.load(Ordering::SeqCst);
        (answered >> 1 >= request).then_some(answered & 1 != 0)
    }
}
