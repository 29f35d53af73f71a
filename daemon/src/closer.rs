//! Closing descriptors in threads that nobody waits for.
//!
//! `close` may block: a TCP socket with SO_LINGER and unsent data for as long as its owner chose, a file of a FUSE that
//! does not answer for ever, a large memory for seconds. Clients can send such descriptors, and those that lie unread in
//! a client's socket are closed with it. So the thread that serves clients closes nothing of theirs itself.
use hectare_wire::{Received, Socket};
use rustix::net::sockopt::set_socket_linger;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use tracing::warn;

/// Threads that close descriptors: one, and more while those are blocked.
const MOST_THREADS: usize = 4;

/// Closes descriptors by threads of its own. Copies share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Closer {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    more: Condvar,
}

#[derive(Debug)]
enum Garbage {
    Descriptor(OwnedFd),
    Connection(Socket),
}

impl Garbage {
    fn close(self) {
        match self {
            Garbage::Descriptor(descriptor) => {
                // Unsent data of a socket is lost. Other files refuse this call, and may block in `close`.
                let _ = set_socket_linger(&descriptor, None);
            }
            Garbage::Connection(socket) => {
                // Nothing more arrives, and the kernel does not yet close descriptors that have arrived.
                socket.shut();
                let mut descriptors = Vec::new();
                while let Ok(Received::Message(..) | Received::TooLong) =
                    socket.receive_with(&mut descriptors)
                {
                    descriptors.drain(..).for_each(|descriptor| Garbage::Descriptor(descriptor).close());
                }
            }
        }
    }
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Garbage>,
    threads: usize,
    idle: usize,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_all(&self) {
        let mut state = self.lock();
        loop {
            if let Some(garbage) = state.waiting.pop_front() {
                drop(state);
                garbage.close();
                state = self.lock();
            } else {
                state.idle += 1;
                state = self.more.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.idle -= 1;
            }
        }
    }
}

impl Closer {
    /// Closes a descriptor, soon.
    pub(crate) fn close(&self, descriptor: OwnedFd) {
        self.put(Garbage::Descriptor(descriptor));
    }

    /// Ends a connection, soon, with all that lies unread in it.
    pub(crate) fn hang_up(&self, socket: Socket) {
        self.put(Garbage::Connection(socket));
    }

    fn put(&self, garbage: Garbage) {
        let mut state = self.shared.lock();
        state.waiting.push_back(garbage);
        // A thread that was woken for an earlier descriptor may still count as idle.
        if state.idle < state.waiting.len() && state.threads < MOST_THREADS {
            let shared = self.shared.clone();
            let spawned = std::thread::Builder::new().name("close".into()).spawn(move || shared.close_all());
            match spawned {
                Ok(_) => state.threads += 1,
                Err(error) => warn!(%error, "no thread for closing descriptors can be started"),
            }
        }
        drop(state);
        self.shared.more.notify_one();
    }
}
