//! When areas with an interval are due: a time for each word of 64 areas, and one for all. Planners raise them, and a worker that
//! creates such an area lowers them; a planner lowers the one for all if what it has postponed is to be tried again. Written over bare
//! words, so that the models run it.
//!
//! No time may be later than the time at which the first of its areas is due. A planner that has not seen a new area may raise the
//! times beyond that. So it looks at a word again if another area was marked there meanwhile, and at all words if one was entered.
use crate::primitive::{AtomicU32, AtomicU64, Ordering};

/// The words that are about all areas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Due<'s> {
    /// Rises with every area that is entered, after it can be found and before the times are lowered.
    pub(crate) entered: &'s AtomicU32,
    /// None falls due before; `u64::MAX`: there is none.
    pub(crate) next_ns: &'s AtomicU64,
}

/// The words that are about 64 areas.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DueWord<'s> {
    /// Those that have an interval.
    pub(crate) timed: &'s AtomicU64,
    /// None of those falls due before. They may all fall due later.
    pub(crate) due_ns: &'s AtomicU64,
}

impl Due<'_> {
    /// Enters an area that falls due at `at`, as bit `bit` of `word`.
    pub(crate) fn enter(self, word: DueWord<'_>, bit: usize, at: u64) {
        // SeqCst, in this order: a planner that sees neither the mark nor that `entered` has risen has moved its times
        // before they are lowered here; pairs with the loads in `look` and `DueWord::look`. Release: who sees the mark sees
        // what the area says of its time.
        word.timed.fetch_or(1 << bit, Ordering::SeqCst);
        self.entered.fetch_add(1, Ordering::SeqCst);
        word.due_ns.fetch_min(at, Ordering::SeqCst);
        self.next_ns.fetch_min(at, Ordering::SeqCst);
    }

    /// Has a round fall due at `at`, whatever falls due then. A planner calls it after [`Due::look`], which may raise the time.
    pub(crate) fn try_again(self, at: u64) {
        // SeqCst: pairs with `enter`. A time that was lowered for a new area stays.
        self.next_ns.fetch_min(at, Ordering::SeqCst);
    }

    /// Calls `look` until no area was entered meanwhile. It gets whether there are areas with an interval, and says
    /// when the next falls due, if there are.
    pub(crate) fn look<R>(self, mut look: impl FnMut(bool) -> (R, u64)) -> R {
        loop {
            // SeqCst, here and below: pairs with `enter`. If an area was entered meanwhile, its time may have been
            // lowered before ours were stored: look again.
            let entered = self.entered.load(Ordering::SeqCst);
            let known = self.next_ns.load(Ordering::SeqCst);
            let (found, next) = look(known != u64::MAX);
            if known != u64::MAX {
                replace(self.next_ns, known, next);
            }
            if self.entered.load(Ordering::SeqCst) == entered {
                return found;
            }
        }
    }
}

impl DueWord<'_> {
    /// The areas that are due at `now`, and when the next falls due after this round. `area` has the interval of an area and
    /// when it falls due, if it lives.
    pub(crate) fn look(self, now: u64, area: impl Fn(usize) -> Option<(u64, u64)>) -> (u64, u64) {
        // SeqCst, here and below: pairs with `Due::enter`.
        let known = self.due_ns.load(Ordering::SeqCst);
        let mut timed = self.timed.load(Ordering::SeqCst);
        if timed == 0 {
            return (0, u64::MAX);
        }
        if known > now {
            return (0, known);
        }
        loop {
            let (mut due, mut next, mut later) = (0, u64::MAX, u64::MAX);
            let mut left = timed;
            while left != 0 {
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                let Some((interval, at)) = area(bit) else { continue };
                if at <= now {
                    due |= 1 << bit;
                    next = next.min(now.saturating_add(interval));
                } else {
                    later = later.min(at);
                }
            }
            // Where areas are due, whoever plans this round again is to find them.
            if due == 0 {
                replace(self.due_ns, known, later);
            }
            // SeqCst: pairs with `Due::enter`. If an area was entered meanwhile, our time may be over its own.
            let marked = self.timed.load(Ordering::SeqCst);
            if due != 0 || marked == timed {
                return (due, next.min(later));
            }
            timed = marked;
        }
    }
}

/// Changes a time from `known` to `next`; what somebody has lowered it to meanwhile is not raised.
fn replace(time: &AtomicU64, known: u64, next: u64) {
    // SeqCst: pairs with `Due::enter`.
    if time.compare_exchange(known, next, Ordering::SeqCst, Ordering::SeqCst).is_err() {
        time.fetch_min(next, Ordering::SeqCst);
    }
}
