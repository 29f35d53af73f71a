//! Pins of observers: which copies of which areas they read at this moment.
//!
//! A pin lies in the observer's own record, so that the pins of a dead observer are forgotten with it.
use super::mapping::Segment;
use crate::memory::mutex::Locked;
use crate::protocol::pin;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const FREE: u32 = 0;
pub(crate) const LIVE: u32 = 1;

/// The pin of an area's copy; never 0.
pub(crate) fn pin_word(area: usize, copy: usize) -> u64 {
    (area as u64 + 1) << 8 | copy as u64
}

/// The area whose copy a pin is of, if it is one.
pub(crate) fn pinned_area(word: u64) -> Option<usize> {
    (word >> 8).checked_sub(1).map(|area| area as usize)
}

/// Whether any living observer pins the copy.
pub(crate) fn is_pinned(segment: &Segment, area: usize, copy: usize) -> bool {
    // SeqCst: comes after `pin::mark`'s store; pairs with `Observer::register`, which raises this before it pins.
    let high = segment.header().sync.observers_high.load(Ordering::SeqCst) as usize;
    let wanted = pin_word(area, copy);
    (0..high).any(|observer| {
        segment.pins(observer).iter().any(|pin| pin::is_at(pin, wanted)) && !reap_if_dead(segment, observer)
    })
}

/// Whether an agent holds what `held` is about: pins a copy, or uses an area. What an agent held that is dead counts no more; in a
/// job on several hosts it counts until the next agent is ready.
pub(crate) fn is_held(segment: &Segment, held: &AtomicU64) -> bool {
    // SeqCst: comes after `pin::mark`'s store, or that of a deletion; pairs with `pin::pin`, and with `Desk::hold`.
    let holder = held.load(Ordering::SeqCst);
    if holder == 0 {
        return false;
    }
    let record = &segment.header().agent;
    // Acquire: pairs with the release in `Agent::ready`: what the new agent holds comes before.
    if holder < record.holding_from.load(Ordering::Acquire) {
        return false;
    }
    // Of a dead agent of a job on several hosts, another goes on with what it held.
    if segment.spans_hosts() {
        return true;
    }
    // SeqCst: as above. An agent has its number before it holds anything.
    if holder != record.attached.load(Ordering::SeqCst) {
        return false;
    }
    is_agent_there(segment)
}

/// Whether an agent lives, as the kernel says.
pub(crate) fn is_agent_there(segment: &Segment) -> bool {
    let life = &segment.header().agent.life;
    let Some(how) = life.try_lock() else { return true };
    if how == Locked::OwnerDied {
        segment.doorbell().detach();
    }
    life.unlock();
    false
}

/// Forgets the pins of an observer that the kernel says is dead; true if it did.
pub(crate) fn reap_if_dead(segment: &Segment, observer: usize) -> bool {
    let record = &segment.observers()[observer];
    match record.life.try_lock() {
        None => false,
        Some(Locked::Clean) => {
            record.life.unlock();
            // Between being handed a record and locking it, an observer has no pins.
            false
        }
        Some(Locked::OwnerDied) => {
            clear(segment, observer);
            record.state.store(FREE, Ordering::Relaxed);
            record.life.unlock();
            true
        }
    }
}

/// Takes all pins of an observer back.
pub(crate) fn clear(segment: &Segment, observer: usize) {
    segment.pins(observer).iter().for_each(pin::unpin);
}

thread_local! {
    /// The pins of this thread's observers: segment and word of each.
    static PINS: RefCell<Vec<(usize, u64)>> = const { RefCell::new(Vec::new()) };
}

fn of_thread(segment: &Segment, word: u64) -> (usize, u64) {
    (std::ptr::from_ref(segment).addr(), word)
}

/// An observer of this thread has pinned a version.
pub(crate) fn taken(segment: &Segment, word: u64) {
    PINS.with_borrow_mut(|pins| pins.push(of_thread(segment, word)));
}

/// An observer of this thread has dropped one.
pub(crate) fn dropped(segment: &Segment, word: u64) {
    let pin = of_thread(segment, word);
    PINS.with_borrow_mut(|pins| {
        if let Some(at) = pins.iter().position(|other| *other == pin) {
            pins.swap_remove(at);
        }
    });
}

/// Whether this thread holds a version of any area of the job.
pub(crate) fn are_here(segment: &Segment) -> bool {
    !words_of_thread(segment).is_empty()
}

/// The pins of this thread's observers in this job, each once.
fn words_of_thread(segment: &Segment) -> BTreeSet<u64> {
    let (address, _) = of_thread(segment, 0);
    PINS.with_borrow(|pins| pins.iter().filter(|pin| pin.0 == address).map(|pin| pin.1).collect())
}

/// Whether this thread holds versions in all copies of an area whose publication waits: it would wait for itself. `present` gives the
/// number of copies of an area.
pub(crate) fn hold_all_copies(segment: &Segment, present: impl Fn(usize) -> usize) -> bool {
    let areas: Vec<usize> = words_of_thread(segment).into_iter().filter_map(pinned_area).collect();
    // The words of an area follow on each other.
    areas.chunk_by(|a, b| a == b).any(|held| {
        let area = held[0];
        segment.dirty(area).is_set() && is_awaited(segment, area) && held.len() >= present(area)
    })
}

/// Whether the publication of an area that was asked for waits for pins to be dropped, as far as one can tell.
pub(crate) fn is_awaited(segment: &Segment, area: usize) -> bool {
    segment.header().sync.acting.postponed.load(Ordering::Relaxed) != 0 && segment.forced(area).is_set()
}

/// The areas whose publication waits, each with the process of an observer that holds a version.
pub(crate) fn awaited(segment: &Segment) -> Vec<(usize, u32)> {
    let observers = segment.observers().iter().enumerate();
    let live = observers.filter(|(_, record)| record.state.load(Ordering::Relaxed) == LIVE);
    let pinned = live.flat_map(|(index, record)| {
        let areas = segment.pins(index).iter().filter_map(|pin| pinned_area(pin.load(Ordering::Relaxed)));
        areas.map(|area| (area, record.pid.load(Ordering::Relaxed)))
    });
    let mut found: Vec<(usize, u32)> = pinned.filter(|(area, _)| is_awaited(segment, *area)).collect();
    found.sort_unstable();
    found.dedup();
    found
}
