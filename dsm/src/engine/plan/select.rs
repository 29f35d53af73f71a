//! Which areas a round looks at: a scan over words of marks, whose cost grows with the areas that changed or are due, and
//! hardly with those that exist.
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
        let now = sync.due().look(|timed| self.select_marked(used, timed, scratch));
        if !scratch.groups.is_empty() {
            self.select_groups(used, scratch);
        }
        if now == 0 && !scratch.selected.is_empty() { clock::now_ns() } else { now }
    }

    /// One look at the marks; `timed` says whether areas have an interval. Returns the time, 0 if nothing depends on it, and
    /// when the next area falls due.
    fn select_marked(&self, used: usize, timed: bool, scratch: &mut Scratch) -> (u64, u64) {
        let segment = &self.shared.segment;
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
        (now, next_due)
    }

    /// Of a word's areas, those that are due, and when the next falls due after this round.
    fn due_in(&self, word: usize, marks: &Marks, now: u64) -> (u64, u64) {
        marks.due_word().look(now, |bit| {
            let slot = &self.shared.segment.areas()[word * 64 + bit];
            let interval = slot.about.interval_ns.load(Ordering::Relaxed);
            // SeqCst: as in `select_marked`.
            let lives = interval != 0 && directory::is_live(slot.read.state.load(Ordering::SeqCst));
            lives.then(|| (interval, slot.round.next_due_ns.load(Ordering::Relaxed)))
        })
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
