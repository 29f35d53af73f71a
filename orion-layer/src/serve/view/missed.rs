//! The slow paths of a view: keys that no slice has foreseen, keys of its worker's own, and exact passes.
use super::super::blocks::Blocks;
use super::super::cache::{NONE, RELOCATED, TOUCHED, fetched_for};
use super::super::homes::Versions;
use super::super::lookaside::{LookasideTable, PendingUpdate, PendingUpdates};
use super::super::state::{Home, State};
use super::{Rest, ServedView};
use crate::panics::merging;
use crate::relax::{Additive, Apply};
use crate::view::{PartBounds, RowIndex, Window, refuse};
use hectare_dsm::bytemuck::Zeroable;
use std::any::type_name;
use std::cell::Cell;

/// The parts of a view for keys that have no slot in its table.
#[derive(Debug)]
pub(in super::super) struct Missed<'a, T: Additive, const N: usize, A: Apply<T>> {
    pub(in super::super) whole: Window<N>,
    pub(in super::super) bounds: PartBounds<'a>,
    pub(in super::super) home: Home<'a, T, A>,
    pub(in super::super) blocks: Blocks,
    pub(in super::super) versions: Versions<'a>,
    /// The keys of the slots.
    pub(in super::super) known: &'a [u32],
    /// The versions of the slots.
    pub(in super::super) fetched: &'a mut [u64],
    pub(in super::super) seen: &'a mut [A::Snapshot],
    pub(in super::super) dirty: &'a mut Vec<u32>,
    pub(in super::super) lookaside: &'a mut LookasideTable<T>,
    pub(in super::super) pending: &'a mut PendingUpdates<T, A::Snapshot>,
    pub(in super::super) read_misses: &'a Cell<u64>,
    pub(in super::super) write_misses: &'a mut u64,
    /// Whether no other worker could use a key.
    pub(in super::super) alone: bool,
}

impl<T: Additive, const N: usize, A: Apply<T>> Missed<'_, T, N, A> {
    fn refuse(&self, index: Vec<usize>) -> ! {
        refuse(self.bounds, index, &[self.whole.range(0)])
    }

    fn note_look(&self) {
        self.read_misses.set(self.read_misses.get() + 1);
    }

    /// Contributes to elements of a key that the loop does not know.
    fn contribute(&mut self, key: usize, within: usize, contributions: &[T]) {
        let (unit, first) = (self.blocks.unit, key * self.blocks.unit);
        if self.alone {
            for (at, contribution) in contributions.iter().enumerate() {
                let place = first + within + at;
                let mut value = self.home.target.get(place);
                let merge = || self.home.merge(&mut value, place, *contribution);
                merging(self.bounds.array, type_name::<A>(), merge);
                self.home.target.set(place, value);
            }
            self.versions.set(self.blocks.block(key as u32), self.versions.next());
            self.versions.tell();
            return self.lookaside.forget(key as u32);
        }
        let home = &self.home;
        let update = self.pending.entry(key as u32).or_insert_with(|| {
            let mut seen = vec![A::Snapshot::zeroed(); if State::<T, A>::REMEMBERS { unit } else { 0 }];
            home.snapshot(first, &mut seen);
            PendingUpdate { sums: vec![T::default(); unit].into(), seen: seen.into() }
        });
        for (sum, contribution) in update.sums[within..].iter_mut().zip(contributions) {
            *sum = sum.plus(*contribution);
        }
    }
}

impl<T: Additive, const N: usize, A: Apply<T>> ServedView<'_, T, N, A> {
    /// The slot of a key of this worker's own that it has changed and not written back.
    fn changed(&self, key: usize) -> Option<usize> {
        let slot = self.table.get(key).copied().filter(|slot| *slot != NONE)? as usize;
        (self.states[slot] & RELOCATED != 0 && self.states[slot] & TOUCHED != 0).then_some(slot)
    }

    /// An element that has no slot.
    #[cold]
    #[inline(never)]
    pub(in super::super) fn look_up(&self, index: [usize; N]) -> T {
        let missed = match &self.rest {
            Rest::Exact(view) => return view.get(index),
            Rest::Served(missed) => missed,
        };
        let Some(place) = missed.whole.place(index) else { missed.refuse(index.to_vec()) };
        missed.note_look();
        match self.changed(place / self.unit) {
            Some(slot) => self.values[slot * self.unit + place % self.unit],
            None => missed.home.target.get(place),
        }
    }

    /// A row that has no slot.
    #[cold]
    #[inline(never)]
    pub(in super::super) fn look_up_row<R: RowIndex<N>>(&self, row: R) -> &[T] {
        let missed = match &self.rest {
            Rest::Exact(view) => return view.row(row),
            Rest::Served(missed) => missed,
        };
        let Some(key) = self.keys.row_place(row) else { missed.refuse(row.to_vec()) };
        missed.note_look();
        if let Some(slot) = self.changed(key) {
            return &self.values[slot * self.unit..][..self.unit];
        }
        missed.lookaside.row(key as u32, || {
            let mut row = vec![T::default(); self.unit];
            missed.home.target.part(key * self.unit, self.unit).load(&mut row);
            row.into()
        })
    }

    /// Contributes to an element that has no slot.
    #[cold]
    #[inline(never)]
    pub(in super::super) fn add_elsewhere(&mut self, index: [usize; N], contribution: T) {
        let missed = match &mut self.rest {
            Rest::Exact(view) => return view.add(index, contribution),
            Rest::Served(missed) => missed,
        };
        let Some(place) = missed.whole.place(index) else { missed.refuse(index.to_vec()) };
        *missed.write_misses += 1;
        let (key, within) = (place / self.unit, place % self.unit);
        match self.map_late(key) {
            Some(slot) => self.put(slot, slot * self.unit + within, contribution),
            None => {
                if let Rest::Served(missed) = &mut self.rest {
                    missed.contribute(key, within, &[contribution]);
                }
            }
        }
    }

    /// Contributes to a row that has no slot.
    #[cold]
    #[inline(never)]
    pub(in super::super) fn add_row_elsewhere<R: RowIndex<N>>(&mut self, row: R, contributions: &[T]) {
        let missed = match &mut self.rest {
            Rest::Exact(view) => return view.add_row(row, contributions),
            Rest::Served(missed) => missed,
        };
        let Some(key) = self.keys.row_place(row) else { missed.refuse(row.to_vec()) };
        assert_eq!(contributions.len(), self.unit, "contributions to a row");
        *missed.write_misses += 1;
        if self.map_late(key).is_some() {
            return self.add_row(row, contributions);
        }
        if let Rest::Served(missed) = &mut self.rest {
            missed.contribute(key, 0, contributions);
        }
    }

    /// Fetches a key that other intervals of the loop use, so that what is contributed to it in this one and in those is
    /// in one place. Its slot.
    fn map_late(&mut self, key: usize) -> Option<usize> {
        let Rest::Served(missed) = &mut self.rest else { return None };
        let slot = self.table.get(key).copied().filter(|slot| *slot != NONE)? as usize;
        let version = missed.versions.of(missed.blocks.block(key as u32));
        let (state, is_known) = (self.states[slot], missed.fetched[slot] == version);
        let is_own = state & RELOCATED != 0;
        if !(is_known || is_own && state & TOUCHED != 0) {
            missed.fetched[slot] = version;
            let (unit, first) = (self.unit, key * self.unit);
            missed.home.target.part(first, unit).load(&mut self.values[slot * unit..][..unit]);
            if State::<T, A>::REMEMBERS && state & TOUCHED == 0 {
                missed.home.snapshot(first, &mut missed.seen[slot * unit..][..unit]);
            }
        }
        self.states[slot] = fetched_for(self.interval, state);
        Some(slot)
    }

    /// Merges a contribution to a key of this worker's own.
    #[inline]
    pub(in super::super) fn merge(&mut self, slot: usize, place: usize, contribution: T) {
        let Rest::Served(missed) = &mut self.rest else { return };
        let within = place - slot * self.unit;
        let in_array = missed.known[slot] as usize * self.unit + within;
        let merge = || missed.home.merge(&mut self.values[place], in_array, contribution);
        merging(missed.bounds.array, type_name::<A>(), merge);
        if self.states[slot] & TOUCHED == 0 {
            self.states[slot] |= TOUCHED;
            missed.dirty.push(slot as u32);
        }
    }
}
