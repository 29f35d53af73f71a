//! The view of a buffered array.
use super::beside::Place;
use super::touched::Touched;
use super::{Additive, Apply, ElementIndex};
use crate::panics::merging;
use crate::view::{PartBounds, Recorder, RowIndex, Window, refuse};
use hectare_dsm::bytemuck::Zeroable;
use std::any::type_name;

/// A buffered array: its elements as they were at this worker's last clock, and a place for contributions, which are
/// merged at the next: for a [`Tail`](super::Tail), at clocks that merge it. In a loop that is serializable, or checked, contributions
/// are merged at once.
///
/// An index outside of the array ends the loop with [`Error::OutOfBounds`](crate::Error::OutOfBounds).
#[derive(Debug)]
pub struct BufferView<'a, T: Additive, const N: usize, A: Apply<T>> {
    window: Window<N>,
    whole: Window<N>,
    /// The elements, and sums of contributions beside them.
    cells: &'a mut [T],
    place: Place,
    sink: Sink<'a, T, A>,
    bounds: PartBounds<'a>,
    recorder: Option<Recorder<'a>>,
}

/// Where contributions go.
#[derive(Debug)]
pub(super) enum Sink<'a, T: Additive, A: Apply<T>> {
    /// They are added up, and it is noted where.
    Later(&'a mut Touched),
    /// They are merged into the elements, with these states, if there are any.
    Now(&'a A, &'a mut [A::State]),
}

impl<'a, T: Additive, const N: usize, A: Apply<T>> BufferView<'a, T, N, A> {
    pub(super) fn new(
        bounds: PartBounds<'a>,
        whole: Window<N>,
        (cells, place): (&'a mut [T], Place),
        sink: Sink<'a, T, A>,
        recorder: Option<Recorder<'a>>,
    ) -> Self {
        let window = if recorder.is_some() { whole.emptied() } else { whole };
        BufferView { window, whole, cells, place, sink, bounds, recorder }
    }

    /// An element.
    #[inline(always)]
    pub fn get<I: ElementIndex<N>>(&self, index: I) -> T {
        match self.window.place(index.index()).and_then(|at| self.cells.get(self.place.value(at))) {
            Some(value) => *value,
            None => self.cells[self.place.value(self.place_elsewhere(index.index(), false))],
        }
    }

    /// A row, as it was at the last clock.
    #[inline]
    pub fn row<R: RowIndex<N>>(&self, row: R) -> &[T] {
        let place = match self.window.row_place(row) {
            Some(place) => place,
            None => self.row_elsewhere(row, false),
        };
        let first = self.place.value(place);
        &self.cells[first..first + self.whole.row_len()]
    }

    /// Contributes to an element.
    #[inline(always)]
    pub fn add<I: ElementIndex<N>>(&mut self, index: I, contribution: T) {
        let place = match self.window.place(index.index()) {
            Some(place) => place,
            None => self.place_elsewhere(index.index(), true),
        };
        self.put(place, contribution);
    }

    /// Contributes to a row, element by element.
    ///
    /// # Panics
    /// If `contributions` is not as long as a row.
    #[inline]
    pub fn add_row<R: RowIndex<N>>(&mut self, row: R, contributions: &[T]) {
        let place = match self.window.row_place(row) {
            Some(place) => place,
            None => self.row_elsewhere(row, true),
        };
        assert_eq!(contributions.len(), self.whole.row_len(), "contributions to a row");
        if let Sink::Later(touched) = &mut self.sink {
            touched.add_all(place..place + contributions.len());
            let first = self.place.sum(place);
            let sums = &mut self.cells[first..first + contributions.len()];
            sums.iter_mut().zip(contributions).for_each(|(sum, more)| *sum = sum.plus(*more));
            return;
        }
        for (at, contribution) in contributions.iter().enumerate() {
            self.put(place + at, *contribution);
        }
    }

    #[inline(always)]
    fn put(&mut self, place: usize, contribution: T) {
        match &mut self.sink {
            Sink::Later(touched) => {
                let sum = &mut self.cells[self.place.sum(place)];
                *sum = sum.plus(contribution);
                touched.add(place);
            }
            Sink::Now(rule, states) => {
                let merge = || merge(*rule, &mut self.cells[place], states.get_mut(place), contribution);
                merging(self.bounds.array, type_name::<A>(), merge);
            }
        }
    }

    #[cold]
    #[inline(never)]
    fn row_elsewhere<R: RowIndex<N>>(&self, row: R, writes: bool) -> usize {
        if let Some(recorder) = self.recorder {
            recorder.note_row(row, self.whole.row_len(), writes);
        }
        self.whole.row_place(row).unwrap_or_else(|| self.refuse(row.to_vec()))
    }

    #[cold]
    #[inline(never)]
    fn place_elsewhere(&self, index: [usize; N], writes: bool) -> usize {
        if let Some(recorder) = self.recorder {
            recorder.note_element(index, writes);
        }
        self.whole.place(index).unwrap_or_else(|| self.refuse(index.to_vec()))
    }

    fn refuse(&self, index: Vec<usize>) -> ! {
        refuse(self.bounds, index, &[self.whole.range(self.bounds.dim)])
    }
}

#[cold]
#[inline(never)]
fn merge<T: Additive, A: Apply<T>>(rule: &A, target: &mut T, state: Option<&mut A::State>, contribution: T) {
    if contribution.is_zero() {
        return;
    }
    let mut none = A::State::zeroed();
    let state = state.unwrap_or(&mut none);
    let seen = rule.snapshot(state);
    rule.apply(target, state, contribution, seen);
}
