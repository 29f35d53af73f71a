//! What a body sees of a relaxed array.
use crate::accumulate::Number;
use crate::view::{Frame, PartBounds, Recorder, RowIndex, refuse};
use hectare_dsm::{Cells, Element};

/// Elements of a row that are changed together.
const GROUP: usize = 16;

/// The index of an element: a number for one dimension, an array of numbers for any.
pub trait ElementIndex<const N: usize>: Copy {
    /// All of it.
    fn index(self) -> [usize; N];
}

impl ElementIndex<1> for usize {
    #[inline(always)]
    fn index(self) -> [usize; 1] {
        [self]
    }
}

impl<const N: usize> ElementIndex<N> for [usize; N] {
    #[inline(always)]
    fn index(self) -> [usize; N] {
        self
    }
}

/// A relaxed array: elements and rows are copied out and in, since others may change them meanwhile.
///
/// An element is never torn. A row may be: it is as many elements, each for itself.
///
/// An index outside of the array ends the loop with [`Error::Outside`](crate::Error::Outside).
#[derive(Debug)]
pub struct RelaxedView<'a, T, const N: usize> {
    frame: Frame<N>,
    cells: Cells<'a, T>,
    others: Vec<(Frame<N>, Cells<'a, T>)>,
    bounds: PartBounds<'a>,
    recorder: Option<Recorder<'a>>,
}

impl<'a, T: Element, const N: usize> RelaxedView<'a, T, N> {
    /// A view of these parts; one that notes what is touched finds nothing at once.
    pub(crate) fn new(
        bounds: PartBounds<'a>,
        mut parts: Vec<(Frame<N>, Cells<'a, T>)>,
        recorder: Option<Recorder<'a>>,
    ) -> RelaxedView<'a, T, N> {
        let none = || (Frame::new(&[0; N], 0, &(0..0)), Cells::from_mut(&mut []));
        let (frame, cells) = match (recorder, parts.is_empty()) {
            (Some(_), false) => (parts[0].0.emptied(), parts[0].1),
            (_, true) => none(),
            (None, false) => parts.remove(0),
        };
        // As many as the part has: whoever asks the cells need not ask the frame, in one dimension.
        let cells = cells.part(0, frame.len());
        RelaxedView { frame, cells, others: parts, bounds, recorder }
    }

    /// An element, as it is at this moment.
    #[inline(always)]
    pub fn get<I: ElementIndex<N>>(&self, index: I) -> T {
        match self.frame.place_or_beyond(index.index()).and_then(|place| self.cells.try_get(place)) {
            Some(value) => value,
            None => self.get_elsewhere(index.index()),
        }
    }

    /// Writes an element.
    #[inline(always)]
    pub fn set<I: ElementIndex<N>>(&mut self, index: I, value: T) {
        match self.frame.place_or_beyond(index.index()) {
            Some(place) if self.cells.try_set(place, value) => {}
            _ => self.set_elsewhere(index.index(), value),
        }
    }

    /// Adds to an element; integers wrap. A load and a store: under
    /// [`Consistency::Async`](super::Consistency::Async) another worker's change in between is lost.
    #[inline(always)]
    pub fn add<I: ElementIndex<N>>(&mut self, index: I, value: T)
    where
        T: Number,
    {
        let place = self.frame.place_or_beyond(index.index());
        match place.and_then(|place| Some((place, self.cells.try_get(place)?))) {
            Some((place, before)) => self.cells.set(place, before.plus(value)),
            None => {
                let before = self.get_elsewhere(index.index());
                self.set_elsewhere(index.index(), before.plus(value));
            }
        }
    }

    /// Copies a row out.
    ///
    /// # Panics
    /// If `to` is not as long as a row.
    #[inline]
    pub fn read_row<R: RowIndex<N>>(&self, row: R, to: &mut [T]) {
        self.row(row, false).load(to);
    }

    /// Copies a row in.
    ///
    /// # Panics
    /// If `from` is not as long as a row.
    #[inline]
    pub fn write_row<R: RowIndex<N>>(&mut self, row: R, from: &[T]) {
        self.row(row, true).store(from);
    }

    /// Adds to the elements of a row, as [`RelaxedView::add`] does.
    ///
    /// # Panics
    /// If `changes` is not as long as a row.
    #[inline]
    pub fn add_row<R: RowIndex<N>>(&mut self, row: R, changes: &[T])
    where
        T: Number,
    {
        let cells = self.row(row, true);
        assert!(
            changes.len() == cells.len(),
            "{} changes to a row of {} elements",
            changes.len(),
            cells.len()
        );
        let mut room = [T::default(); GROUP];
        for (group, changes) in changes.chunks(GROUP).enumerate() {
            let (cells, room) = (cells.part(group * GROUP, changes.len()), &mut room[..changes.len()]);
            cells.load(room);
            room.iter_mut().zip(changes).for_each(|(element, change)| *element = element.plus(*change));
            cells.store(room);
        }
    }

    #[inline]
    fn row<R: RowIndex<N>>(&self, row: R, writes: bool) -> Cells<'a, T> {
        match self.frame.row_place(row) {
            Some(place) => self.cells.part(place, self.frame.row_len()),
            None => self.row_elsewhere(row, writes),
        }
    }

    #[cold]
    #[inline(never)]
    fn row_elsewhere<R: RowIndex<N>>(&self, row: R, writes: bool) -> Cells<'a, T> {
        if let (Some(recorder), Some((frame, _))) = (self.recorder, self.others.first()) {
            recorder.note_row(row, frame.row_len(), writes);
        }
        let found = self
            .others
            .iter()
            .find_map(|(frame, cells)| frame.row_place(row).map(|place| cells.part(place, frame.row_len())));
        found.unwrap_or_else(|| self.refuse(row.to_vec()))
    }

    fn place_elsewhere(&self, index: [usize; N], writes: bool) -> (Cells<'a, T>, usize) {
        if let Some(recorder) = self.recorder {
            recorder.note_element(index, writes);
        }
        let found =
            self.others.iter().find_map(|(frame, cells)| frame.place(index).map(|place| (*cells, place)));
        found.unwrap_or_else(|| self.refuse(index.to_vec()))
    }

    #[cold]
    #[inline(never)]
    fn get_elsewhere(&self, index: [usize; N]) -> T {
        let (cells, place) = self.place_elsewhere(index, false);
        cells.get(place)
    }

    #[cold]
    #[inline(never)]
    fn set_elsewhere(&self, index: [usize; N], value: T) {
        let (cells, place) = self.place_elsewhere(index, true);
        cells.set(place, value);
    }

    fn refuse(&self, index: Vec<usize>) -> ! {
        let first = (self.recorder.is_none()).then_some(&self.frame);
        let frames = first.into_iter().chain(self.others.iter().map(|(frame, _)| frame));
        let held: Vec<_> = frames.map(|frame| frame.range(self.bounds.dim)).collect();
        refuse(self.bounds, index, &held)
    }
}
