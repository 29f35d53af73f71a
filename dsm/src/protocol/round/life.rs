//! The mutex that a worker holds for life: a worker that gets it takes the seat, and one that finds its holder dead records the death.
use super::{Rounds, Seat, slot_state};
use crate::primitive::{Ordering, fault_point};

/// A mutex that the kernel unlocks when its holder dies.
pub(crate) trait Life {
    /// Locks it if nobody living holds it: whether the last holder died with it.
    fn try_lock(&self) -> Option<bool>;
    /// Unlocks it; the caller holds it.
    fn unlock(&self);
}

/// Whether the worker at a seat lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It lives, or there is none.
    Living,
    /// It is dead, which the caller is the first to find.
    Died,
    /// It is dead, and was known to be.
    Dead,
}

impl Seat {
    /// Whether the worker at this seat is dead. `has_ended` is asked with the mutex held, and whether the last holder
    /// died with it.
    pub(crate) fn look(&self, life: &impl Life, has_ended: impl FnOnce(bool) -> bool) -> Found {
        match self.state() {
            slot_state::DEAD => return Found::Dead,
            slot_state::FREE => return Found::Living,
            slot_state::LOST => return Found::Dead,
            state if slot_state::is_elsewhere(state) => return Found::Living,
            _ => {}
        }
        let Some(died) = life.try_lock() else { return Found::Living };
        // Again: it may be another worker's by now, or nobody's.
        let found = match self.state() {
            slot_state::DEAD => Found::Dead,
            // Who held it died after it had given the slot back, or before it had taken it.
            slot_state::FREE => Found::Living,
            _ if has_ended(died) => Found::Died,
            _ => Found::Living,
        };
        if found == Found::Died {
            self.set_state(slot_state::DEAD);
        }
        life.unlock();
        found
    }

    /// Gives the seat of the caller, who has left the rounds, back. `count` counts the seats.
    pub(crate) fn give_back(&self, life: &impl Life, count: impl FnOnce()) {
        self.set_state(slot_state::FREE);
        fault_point();
        count();
        fault_point();
        // Last: only the holder takes a seat, and finds it free.
        life.unlock();
    }
}

impl Rounds<'_> {
    /// Takes a seat if it is free and nobody else is taking it: it is in `JOINING`, and the caller holds `life`. `begin`
    /// says who the worker is; its clock begins at `clock`.
    pub(crate) fn take_seat(&self, rank: u32, life: &impl Life, clock: u64, begin: impl FnOnce()) -> bool {
        // Also from one who died before its seat was in `JOINING`, or after it was free again.
        if life.try_lock().is_none() {
            return false;
        }
        let seat = &self.all_seats[rank as usize];
        // Only the holder of `life` takes a seat; whoever left stored this before it unlocked.
        if seat.state() != slot_state::FREE {
            life.unlock();
            return false;
        }
        begin();
        fault_point();
        seat.incarnation.fetch_add(1, Ordering::Relaxed);
        seat.missed.store(0, Ordering::Relaxed);
        seat.clock.store(clock, Ordering::Relaxed);
        seat.waits.store(0, Ordering::Relaxed);
        seat.tasks.take_over();
        // SeqCst: before the seat is live and settles; pairs with `Rounds::seats`. And before the seat is taken, so
        // that no look at the seats that were ever taken lacks one that is.
        self.seats_high.fetch_max(rank + 1, Ordering::SeqCst);
        seat.set_state(slot_state::JOINING);
        true
    }
}
