//! The view of a served array.
mod missed;

use super::cache::{Cache, RELOCATED, TOUCHED, is_fetched_for};
use super::keys::key_of;
use super::state::{Home, State};
use crate::error::Result;
use crate::relax::{Additive, Apply, BufferView, ElementIndex};
use crate::view::{PartBounds, RowIndex, Window};
use hectare_dsm::Worker;
use missed::Missed;

/// A served array: its elements as they were at this worker's last clock, and a place for contributions, which are merged
/// at the next. Keys that this worker alone uses are read and changed without delay. In a loop that is serializable, or
/// checked, all are.
///
/// A key that no slice has foreseen is looked up when it is used, and counted
/// ([`PrefetchStats::read_misses`](super::PrefetchStats::read_misses)). An index outside of the array ends the loop with
/// [`Error::OutOfBounds`](crate::Error::OutOfBounds).
#[derive(Debug)]
pub struct ServedView<'a, T: Additive, const N: usize, A: Apply<T>> {
    pub(super) keys: Window<N>,
    pub(super) unit: usize,
    pub(super) table: &'a mut [u32],
    pub(super) values: &'a mut [T],
    sums: &'a mut [T],
    pub(super) states: &'a mut [u32],
    /// The interval that runs.
    pub(super) interval: u32,
    touched: &'a mut Vec<u32>,
    pub(super) rest: Rest<'a, T, N, A>,
}

/// The rest, not needed where a slice has foreseen a key.
#[derive(Debug)]
pub(super) enum Rest<'a, T: Additive, const N: usize, A: Apply<T>> {
    /// One worker merges contributions at once.
    Exact(BufferView<'a, T, N, A>),
    Served(Box<Missed<'a, T, N, A>>),
}

impl<'a, T: Additive, const N: usize, A: Apply<T>> ServedView<'a, T, N, A> {
    /// A view in which everything goes by `view`: no key has a slot.
    pub(super) fn exact(view: BufferView<'a, T, N, A>, touched: &'a mut Vec<u32>) -> Self {
        ServedView {
            keys: Window::new(&[0; N], 0, &(0..0)),
            unit: 1,
            table: &mut [],
            values: &mut [],
            sums: &mut [],
            states: &mut [],
            interval: 0,
            touched,
            rest: Rest::Exact(view),
        }
    }

    pub(super) fn new(
        (bounds, whole): (PartBounds<'a>, Window<N>),
        keys: Window<N>,
        state: &'a mut State<T, A>,
        home: Home<'a, T, A>,
        worker: &'a Worker,
    ) -> Result<Self> {
        let versions = state.versions(worker)?;
        let State { table, interval, cache, lookaside, pending, read_misses, tally, blocks, workers, .. } =
            state;
        let Cache { keys: known, values, sums, seen, versions: fetched, states, touched, dirty, .. } = cache;
        let missed = Missed {
            whole,
            bounds,
            home,
            blocks: *blocks,
            versions,
            known,
            fetched,
            seen,
            dirty,
            lookaside,
            pending,
            read_misses,
            write_misses: &mut tally.write_misses,
            alone: *workers == 1,
        };
        let (unit, rest) = (blocks.unit, Rest::Served(Box::new(missed)));
        Ok(ServedView { keys, unit, table, values, sums, states, interval: *interval, touched, rest })
    }

    /// The slot of a key that was fetched for this interval.
    #[inline(always)]
    fn slot(&self, key: usize) -> Option<usize> {
        let slot = *self.table.get(key)? as usize;
        // A key without a slot has one that is out of range.
        let state = *self.states.get(slot)?;
        is_fetched_for(self.interval, state).then_some(slot)
    }

    /// The slot of an element, and its place in values.
    #[inline(always)]
    fn find(&self, index: [usize; N]) -> Option<(usize, usize)> {
        let (key, within) = key_of(&self.keys, index)?;
        let slot = self.slot(key)?;
        match N {
            1 => Some((slot, slot)),
            _ => (within < self.unit).then_some((slot, slot * self.unit + within)),
        }
    }

    /// An element.
    #[inline(always)]
    pub fn get<I: ElementIndex<N>>(&self, index: I) -> T {
        match self.find(index.index()) {
            Some((_, place)) => self.values[place],
            None => self.look_up(index.index()),
        }
    }

    /// A row, as it was at the last clock.
    #[inline]
    pub fn row<R: RowIndex<N>>(&self, row: R) -> &[T] {
        match self.keys.row_place(row).and_then(|key| self.slot(key)) {
            Some(slot) => &self.values[slot * self.unit..][..self.unit],
            None => self.look_up_row(row),
        }
    }

    /// Contributes to an element.
    #[inline(always)]
    pub fn add<I: ElementIndex<N>>(&mut self, index: I, contribution: T) {
        match self.find(index.index()) {
            Some((slot, place)) => self.put(slot, place, contribution),
            None => self.add_elsewhere(index.index(), contribution),
        }
    }

    /// Contributes to a row, element by element.
    ///
    /// # Panics
    /// If `contributions` is not as long as a row.
    #[inline]
    pub fn add_row<R: RowIndex<N>>(&mut self, row: R, contributions: &[T]) {
        let Some(slot) = self.keys.row_place(row).and_then(|key| self.slot(key)) else {
            return self.add_row_elsewhere(row, contributions);
        };
        assert_eq!(contributions.len(), self.unit, "contributions to a row");
        let first = slot * self.unit;
        for (at, contribution) in contributions.iter().enumerate() {
            self.put(slot, first + at, *contribution);
        }
    }

    #[inline(always)]
    pub(super) fn put(&mut self, slot: usize, place: usize, contribution: T) {
        let state = self.states[slot];
        if state & RELOCATED != 0 {
            return self.merge(slot, place, contribution);
        }
        self.sums[place] = self.sums[place].plus(contribution);
        if state & TOUCHED == 0 {
            self.states[slot] = state | TOUCHED;
            self.touched.push(slot as u32);
        }
    }
}
