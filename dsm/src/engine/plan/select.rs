//! Which areas a round looks at: a scan over words of marks, so that it costs something per area that changed or fell
//! due, and next to nothing per area that is there.
//!
//! An area without an interval is selected by its mark in `forced`. For those that have one, each word of 64 areas has a
//! time before which none of them falls due: only words whose time has come are looked through. A word in which areas
//! are due keeps its time, so that whoever plans the round again finds them, and gets its next time at the next look,
//! when the areas' own times have moved on.
use super::super::runtime::{Runtime, Scratch};
use crate::engine::directory;
use crate::memory::clock;
use crate::segment::layout::{Marks, bits};
use std::sync::atomic::Ordering;

impl Runtime<'_> {
    /// Fills `scratch.selected` with the areas that are forced or due, and their groups; returns the time.
    pub(crate) fn select(&self, used: usize, scratch: &mut Scratch) -> u64 {
        let sync = &self.shared.segment.header().sync;
        scratch.stuck.clear();
        let now = loop {
            // SeqCst, here and below: pairs with `Creation::finish`. If an area got an interval meanwhile, its time
            // may have been lowered before ours were stored: look again.
            let timed_areas = sync.timed_areas.load(Ordering::SeqCst);
            let now = self.select_marked(used, scratch);
            if sync.timed_areas.load(Ordering::SeqCst) == timed_areas {
                break now;
            }
        };
        if !scratch.groups.is_empty() {
            self.select_groups(used, scratch);
        }
        if now == 0 && !scratch.selected.is_empty() { clock::now_ns() } else { now }
    }

    /// One look at the marks; returns the time, 0 if nothing depends on it.
    fn select_marked(&self, used: usize, scratch: &mut Scratch) -> u64 {
        let segment = &self.shared.segment;
        let due = &segment.header().sync.next_due_ns;
        // SeqCst: see `select`.
        let known_due = due.load(Ordering::SeqCst);
        let timed = known_due != u64::MAX;
        let now = if timed { clock::now_ns() } else { 0 };
        let mut next_due = u64::MAX;
        scratch.selected.clear();
        scratch.groups.clear();
        for (word, marks) in segment.marks()[..used.div_ceil(64)].iter().enumerate() {
            let mut chosen = marks.forced.load(Ordering::Relaxed);
            if timed {
                let (fallen_due, next) = self.due_in(word, marks, now);
                chosen |= fallen_due;
                next_due = next_due.min(next);
            }
            for index in bits(chosen).map(|bit| word * 64 + bit) {
                let slot = &segment.areas()[index];
                // SeqCst: comes after the shift to Plan; pairs with the store in `Directory::delete`.
                if !directory::is_live(slot.read.state.load(Ordering::SeqCst)) {
                    continue;
                }
                scratch.selected.push(index as u32);
                let group = slot.about.group.load(Ordering::Relaxed);
                if group != 0 {
                    scratch.groups.push(group);
                }
            }
        }
        // Somebody who creates an area may have lowered it. SeqCst: see `select`.
        if timed && due.compare_exchange(known_due, next_due, Ordering::SeqCst, Ordering::SeqCst).is_err() {
            due.fetch_min(next_due, Ordering::SeqCst);
        }
        now
    }

    /// Of a word's areas, those that are due, and when the next falls due after this round.
    fn due_in(&self, word: usize, marks: &Marks, now: u64) -> (u64, u64) {
        // SeqCst, in all of this: see `select`, and for the state of a slot `select_marked`.
        let known = marks.due_ns.load(Ordering::SeqCst);
        let timed = marks.timed.load(Ordering::SeqCst);
        if timed == 0 {
            return (0, u64::MAX);
        }
        if known > now {
            return (0, known);
        }
        let (mut due, mut next, mut later) = (0, u64::MAX, u64::MAX);
        for bit in bits(timed) {
            let slot = &self.shared.segment.areas()[word * 64 + bit];
            let interval = slot.about.interval_ns.load(Ordering::Relaxed);
            // SeqCst: as there.
            if interval == 0 || !directory::is_live(slot.read.state.load(Ordering::SeqCst)) {
                continue;
            }
            let at = slot.round.next_due_ns.load(Ordering::Relaxed);
            if at <= now {
                due |= 1 << bit;
                next = next.min(now.saturating_add(interval));
            } else {
                later = later.min(at);
            }
        }
        // SeqCst: pairs with `Creation::finish`.
        if due == 0
            && marks.due_ns.compare_exchange(known, later, Ordering::SeqCst, Ordering::SeqCst).is_err()
        {
            marks.due_ns.fetch_min(later, Ordering::SeqCst);
        }
        (due, next.min(later))
    }

    /// Adds the other areas of the groups that were selected.
    fn select_groups(&self, used: usize, scratch: &mut Scratch) {
        let segment = &self.shared.segment;
        let Scratch { selected, groups, .. } = scratch;
        groups.sort_unstable();
        groups.dedup();
        let chosen = selected.len();
        for (word, marks) in segment.marks()[..used.div_ceil(64)].iter().enumerate() {
            for index in bits(marks.grouped.load(Ordering::Relaxed)).map(|bit| word * 64 + bit) {
                let slot = &segment.areas()[index];
                // SeqCst: as in `select_marked`.
                if groups.binary_search(&slot.about.group.load(Ordering::Relaxed)).is_ok()
                    && directory::is_live(slot.read.state.load(Ordering::SeqCst))
                    && selected[..chosen].binary_search(&(index as u32)).is_err()
                {
                    selected.push(index as u32);
                }
            }
        }
    }
}
