//! What a body does to keys that no slice has foreseen, to keys of its worker's own, and in exact passes.
use super::blocks::Blocks;
use super::cache::RELOCATED;
use super::looked::{Extra, Extras, Looked};
use super::state::{Home, State};
use super::view::{Rest, ServedView};
use crate::execute::merging;
use crate::relax::{Additive, Apply};
use crate::view::{Frame, PartBounds, RowIndex, refuse};
use hectare_dsm::Cells;
use hectare_dsm::bytemuck::Zeroable;
use std::any::type_name;
use std::cell::Cell;

/// What a view needs where its table has no slot.
#[derive(Debug)]
pub(super) struct Missed<'a, T: Additive, const N: usize, A: Apply<T>> {
    pub(super) whole: Frame<N>,
    pub(super) bounds: PartBounds<'a>,
    pub(super) home: Home<'a, T, A>,
    pub(super) blocks: Blocks,
    pub(super) versions: Cells<'a, u64>,
    /// Keys that other stretches of the loop use, ascending: their slots.
    pub(super) known: &'a [u32],
    pub(super) relocated: &'a [bool],
    /// The versions of the slots.
    pub(super) fetched: &'a mut [u64],
    pub(super) seen: &'a mut [A::Seen],
    pub(super) dirty: &'a mut Vec<u32>,
    /// Slots that are mapped though the stretch's list does not have them.
    pub(super) late: &'a mut Vec<u32>,
    pub(super) looked: &'a mut Looked<T>,
    pub(super) extras: &'a mut Extras<T, A::Seen>,
    pub(super) looked_up: &'a Cell<u64>,
    pub(super) unforeseen: &'a mut u64,
    /// Whether no other worker could use a key.
    pub(super) alone: bool,
}

impl<T: Additive, const N: usize, A: Apply<T>> Missed<'_, T, N, A> {
    fn refuse(&self, index: Vec<usize>) -> ! {
        refuse(self.bounds, index, &[self.whole.range(0)])
    }

    fn note_look(&self) {
        self.looked_up.set(self.looked_up.get() + 1);
    }

    /// The slot of a key of this worker's own that it has changed and not written back.
    fn changed(&self, key: usize, is_touched: &[bool]) -> Option<usize> {
        let slot = self.known.binary_search(&(key as u32)).ok()?;
        (self.relocated[slot] && is_touched[slot]).then_some(slot)
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
            let block = self.blocks.block(key as u32);
            self.versions.publish(block, self.versions.get(block) + 1);
            return self.looked.forget(key as u32);
        }
        let home = &self.home;
        let extra = self.extras.entry(key as u32).or_insert_with(|| {
            let mut seen = vec![A::Seen::zeroed(); if State::<T, A>::REMEMBERS { unit } else { 0 }];
            home.see(first, &mut seen);
            Extra { sums: vec![T::default(); unit].into(), seen: seen.into() }
        });
        for (sum, contribution) in extra.sums[within..].iter_mut().zip(contributions) {
            *sum = sum.plus(*contribution);
        }
    }
}

impl<T: Additive, const N: usize, A: Apply<T>> ServedView<'_, T, N, A> {
    /// An element that has no slot.
    #[cold]
    #[inline(never)]
    pub(super) fn look_up(&self, index: [usize; N]) -> T {
        let missed = match &self.rest {
            Rest::Exact(view) => return view.get(index),
            Rest::Served(missed) => missed,
        };
        let Some(place) = missed.whole.place(index) else { missed.refuse(index.to_vec()) };
        missed.note_look();
        match missed.changed(place / self.unit, self.is_touched) {
            Some(slot) => self.values[slot * self.unit + place % self.unit],
            None => missed.home.target.get(place),
        }
    }

    /// A row that has no slot.
    #[cold]
    #[inline(never)]
    pub(super) fn look_up_row<R: RowIndex<N>>(&self, row: R) -> &[T] {
        let missed = match &self.rest {
            Rest::Exact(view) => return view.row(row),
            Rest::Served(missed) => missed,
        };
        let Some(key) = self.keys.row_place(row) else { missed.refuse(row.to_vec()) };
        missed.note_look();
        if let Some(slot) = missed.changed(key, self.is_touched) {
            return &self.values[slot * self.unit..][..self.unit];
        }
        missed.looked.row(key as u32, || {
            let mut row = vec![T::default(); self.unit];
            missed.home.target.part(key * self.unit, self.unit).load(&mut row);
            row.into()
        })
    }

    /// Contributes to an element that has no slot.
    #[cold]
    #[inline(never)]
    pub(super) fn add_elsewhere(&mut self, index: [usize; N], contribution: T) {
        let missed = match &mut self.rest {
            Rest::Exact(view) => return view.add(index, contribution),
            Rest::Served(missed) => missed,
        };
        let Some(place) = missed.whole.place(index) else { missed.refuse(index.to_vec()) };
        *missed.unforeseen += 1;
        let (key, within) = (place / self.unit, place % self.unit);
        match self.map_late(key) {
            Some(slot) => self.put(slot, (slot & !RELOCATED) as usize * self.unit + within, contribution),
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
    pub(super) fn add_row_elsewhere<R: RowIndex<N>>(&mut self, row: R, contributions: &[T]) {
        let missed = match &mut self.rest {
            Rest::Exact(view) => return view.add_row(row, contributions),
            Rest::Served(missed) => missed,
        };
        let Some(key) = self.keys.row_place(row) else { missed.refuse(row.to_vec()) };
        assert_eq!(contributions.len(), self.unit, "contributions to a row");
        *missed.unforeseen += 1;
        if self.map_late(key).is_some() {
            return self.add_row(row, contributions);
        }
        if let Rest::Served(missed) = &mut self.rest {
            missed.contribute(key, 0, contributions);
        }
    }

    /// Fetches a key that other stretches of the loop use, so that what is contributed to it in this one and in those is
    /// in one place. Its slot, with its mark.
    fn map_late(&mut self, key: usize) -> Option<u32> {
        let Rest::Served(missed) = &mut self.rest else { return None };
        let slot = missed.known.binary_search(&(key as u32)).ok()?;
        let version = missed.versions.observe(missed.blocks.block(key as u32));
        let own = missed.relocated[slot];
        if missed.fetched[slot] != version && !(own && self.is_touched[slot]) {
            missed.fetched[slot] = version;
            let (unit, first) = (self.unit, key * self.unit);
            missed.home.target.part(first, unit).load(&mut self.values[slot * unit..][..unit]);
            if State::<T, A>::REMEMBERS {
                missed.home.see(first, &mut missed.seen[slot * unit..][..unit]);
            }
        }
        missed.late.push(slot as u32);
        let marked = slot as u32 | if own { RELOCATED } else { 0 };
        self.table[key] = marked;
        Some(marked)
    }

    /// Merges a contribution to a key of this worker's own.
    #[inline]
    pub(super) fn merge(&mut self, slot: u32, place: usize, contribution: T) {
        let Rest::Served(missed) = &mut self.rest else { return };
        let slot = slot as usize;
        let within = place - slot * self.unit;
        let in_array = missed.known[slot] as usize * self.unit + within;
        let merge = || missed.home.merge(&mut self.values[place], in_array, contribution);
        merging(missed.bounds.array, type_name::<A>(), merge);
        if !self.is_touched[slot] {
            self.is_touched[slot] = true;
            missed.dirty.push(slot as u32);
        }
    }
}
