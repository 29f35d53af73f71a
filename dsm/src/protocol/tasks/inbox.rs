//! How much of what a worker of another host sends is in place here: words of its seat, which all workers of this host change.
//!
//! Its traffic is a stream of bytes with a place for each (`crossing`), published in versions. Whoever needs it puts it in place,
//! one worker at a time, and stores how far the sender is in its tasks (`TaskWords`) when all that comes before is in place. A worker that
//! dies meanwhile has written nothing that another does not write again.
use crate::primitive::{AtomicU64, Ordering};

/// See the head of the file.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Inbox {
    /// `incarnation << 32 | 1 + rank` of the worker that puts in place; 0: nobody does.
    holder: AtomicU64,
    /// The newest run of the sender that somebody here took in, by a number that rises from one run to the next.
    run: AtomicU64,
    /// Bytes of its stream that are in place, or are not needed any more.
    placed: AtomicU64,
}

/// An inbox that one worker has.
#[derive(Debug)]
pub(crate) struct Opened<'i> {
    inbox: &'i Inbox,
}

impl Inbox {
    #[cfg(any(loom, test))]
    pub(crate) fn new() -> Inbox {
        let word = || AtomicU64::new(0);
        Inbox { holder: word(), run: word(), placed: word() }
    }

    #[cfg(loom)]
    pub(crate) fn weaken(&self, access: crate::primitive::model::Access, from: Ordering, to: Ordering) {
        self.holder.weaken(access, from, to);
    }

    /// Takes it, unless another has it that lives: `is_gone` is asked for its rank and incarnation.
    pub(crate) fn open(
        &self,
        (rank, incarnation): (u32, u32),
        is_gone: impl FnOnce(u32, u32) -> bool,
    ) -> Option<Opened<'_>> {
        let me = u64::from(incarnation) << 32 | u64::from(rank + 1);
        // Relaxed: only the exchange below gives it to anybody.
        let seen = self.holder.load(Ordering::Relaxed);
        if seen != 0 && !is_gone(seen as u32 - 1, (seen >> 32) as u32) {
            return None;
        }
        // Acquire: what the last holder wrote comes before; pairs with the store of `Opened::drop`. One that died is found dead
        // before this, and what it wrote is written again.
        let taken = self.holder.compare_exchange(seen, me, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then_some(Opened { inbox: self })
    }

    /// Bytes that are in place, for the sender to hear.
    pub(crate) fn placed(&self) -> u64 {
        // Relaxed: the sender writes over bytes of its own memory alone, of which nobody here reads more than published versions.
        self.placed.load(Ordering::Relaxed)
    }
}

impl Opened<'_> {
    /// Bytes that are in place of this run of the sender, whose first byte is `base`; `None` if others here take in a later run of it
    /// already: of this one there is nothing more to put in place, and what is in place of that one stays so.
    pub(crate) fn placed(&self, run: u64, base: u64) -> Option<u64> {
        // Relaxed, here and below: ordered by `holder`.
        let newest = self.inbox.run.load(Ordering::Relaxed);
        if newest < run {
            self.inbox.placed.store(base, Ordering::Relaxed);
            self.inbox.run.store(run, Ordering::Relaxed);
        }
        (newest <= run).then(|| self.inbox.placed.load(Ordering::Relaxed))
    }

    pub(crate) fn set_placed(&self, placed: u64) {
        self.inbox.placed.store(placed, Ordering::Relaxed);
    }
}

impl Drop for Opened<'_> {
    fn drop(&mut self) {
        // Release: what was put in place comes before; pairs with `Inbox::open`.
        self.inbox.holder.store(0, Ordering::Release);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    /// A worker that has left the clocks does not meet the others: it may still take in a run when they have begun the next.
    #[test]
    fn what_is_in_place_of_a_later_run_stays_so() {
        let inbox = Inbox::new();
        let open = || inbox.open((1, 1), |_, _| false).unwrap();
        let opened = open();
        assert_eq!(opened.placed(4, 100), Some(100));
        opened.set_placed(110);
        assert_eq!(opened.placed(4, 100), Some(110));
        assert_eq!(opened.placed(5, 120), Some(120));
        opened.set_placed(130);
        assert_eq!(opened.placed(4, 100), None);
        assert_eq!(opened.placed(5, 120), Some(130));
        drop(opened);
        assert_eq!(inbox.placed(), 130);
    }
}
