//! Credit for output: how many bytes may be on their way to a reader that may be slow.
//!
//! Who sends takes credit, and waits while there is too little; it comes back when the bytes are written. So a reader that stops fills
//! neither memory nor the pipe by which other messages come.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that may be on their way at a time, of one stream of one host.
const WINDOW: usize = 512 << 10;

/// The credit that one stream has left.
#[derive(Debug)]
pub(super) struct Credit {
    left: Mutex<usize>,
    more: Condvar,
}

/// Credit that comes back when this is dropped.
#[derive(Debug)]
pub(super) struct Held {
    of: Arc<Credit>,
    bytes: usize,
}

impl Credit {
    pub(super) fn new() -> Credit {
        Credit { left: Mutex::new(WINDOW), more: Condvar::new() }
    }

    fn left(&self) -> MutexGuard<'_, usize> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes credit for `bytes`, at most for a whole window; waits until there is enough.
    pub(super) fn take(&self, bytes: usize) {
        let wanted = bytes.min(WINDOW);
        let left = self.more.wait_while(self.left(), |left| *left < wanted);
        *left.unwrap_or_else(PoisonError::into_inner) -= wanted;
    }

    /// Gives back the credit for `bytes`.
    pub(super) fn give(&self, bytes: usize) {
        let mut left = self.left();
        *left = left.saturating_add(bytes.min(WINDOW)).min(WINDOW);
        self.more.notify_all();
    }

    /// Takes credit until the value is dropped.
    pub(super) fn hold(self: &Arc<Credit>, bytes: usize) -> Held {
        self.take(bytes);
        Held { of: self.clone(), bytes }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.give(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{RecvTimeoutError, channel};
    use std::time::Duration;

    #[test]
    fn who_has_no_credit_waits_until_it_comes_back() {
        let credit = Arc::new(Credit::new());
        credit.take(WINDOW - 1);
        let held = credit.hold(1);
        let (took, taken) = channel();
        let waiting = credit.clone();
        let thread = std::thread::spawn(move || {
            waiting.take(2 * WINDOW);
            took.send(()).unwrap();
        });
        drop(held);
        assert_eq!(taken.recv_timeout(Duration::from_millis(50)), Err(RecvTimeoutError::Timeout));
        credit.give(WINDOW - 1);
        taken.recv().unwrap();
        thread.join().unwrap();
        assert_eq!(*credit.left(), 0);
    }
}
