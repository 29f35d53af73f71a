//! The view of a relaxed array.
use crate::accumulate::Number;
use crate::view::{PartBounds, Recorder, RowIndex, Window, refuse};
use hectare_dsm::{Element, OwnOrShared};

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
/// An index outside of the array ends the loop with [`Error::OutOfBounds`](crate::Error::OutOfBounds).
#[derive(Debug)]
pub struct RelaxedView<'a, T, const N: usize> {
    window: Window<N>,
    cells: OwnOrShared<'a, T>,
    others: Vec<(Window<N>, OwnOrShared<'a, T>)>,
    bounds: PartBounds<'a>,
    recorder: Option<Recorder<'a>>,
}

impl<'a, T: Element, const N: usize> RelaxedView<'a, T, N> {
    /// A view of these parts; one that notes what is touched finds nothing at once.
    pub(crate) fn new(
        bounds: PartBounds<'a>,
        mut parts: Vec<(Window<N>, OwnOrShared<'a, T>)>,
        recorder: Option<Recorder<'a>>,
    ) -> RelaxedView<'a, T, N> {
        let none = || OwnOrShared::own(&mut []);
        let (window, cells) = match (recorder, parts.is_empty()) {
            (Some(_), false) => (parts[0].0.emptied(), none()),
            (_, true) => (Window::new(&[0; N], 0, &(0..0)), none()),
            (None, false) => parts.remove(0),
        };
        // As many as the part has: whoever asks the cells need not ask the window, in one dimension.
        let cells = cells.truncated(window.len());
        RelaxedView { window, cells, others: parts, bounds, recorder }
    }

    /// An element, as it is at this moment.
    #[inline(always)]
    pub fn get<I: ElementIndex<N>>(&self, index: I) -> T {
        match self.window.place_or_beyond(index.index()).and_then(|place| self.cells.try_get(place)) {
            Some(value) => value,
            None => self.get_elsewhere(index.index()),
        }
    }

    /// Writes an element. Where workers have copies, what a clock tells the others is the *difference* to what the worker
    /// had at its last clock, and differences are added up:
    ///
    /// ```
    /// use hectare_orion::relax::Every;
    /// use hectare_orion::{parallel_for, run};
    ///
    /// run(2, |w| {
    ///     let mut a = w.fill([1], 5)?;
    ///     parallel_for!(w, unordered, relax a, every = Every::PerPass(1);
    ///         for _i in 0..100 {
    ///             a.set(0, 7);
    ///         })?;
    ///     // Each of the two workers has made it two more.
    ///     assert_eq!(a.get(w, [0])?, 9);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), hectare_orion::Error>(())
    /// ```
    #[inline(always)]
    pub fn set<I: ElementIndex<N>>(&mut self, index: I, value: T) {
        match self.window.place_or_beyond(index.index()) {
            Some(place) if self.cells.try_set(place, value) => {}
            _ => self.set_elsewhere(index.index(), value),
        }
    }

    /// Adds to an element; integers wrap. A load and a store: under
    /// [`Consistency::Async`](crate::relax::Consistency::Async) another worker's change in between is lost.
    #[inline(always)]
    pub fn add<I: ElementIndex<N>>(&mut self, index: I, value: T)
    where
        T: Number,
    {
        let place = self.window.place_or_beyond(index.index());
        match place.and_then(|place| Some((place, self.cells.try_get(place)?))) {
            Some((place, before)) => self.cells.set(place, before.plus(value)),
            None => {
                let before = self.get_elsewhere(index.index());
                self.set_elsewhere(index.index(), before.plus(value));
            }
        }
    }

    /// A row: in place where this worker's copy is its own, as it is but under
    /// [`Consistency::Async`](crate::relax::Consistency::Async) on several workers; there it is copied into `room`.
    ///
    /// # Panics
    /// If `room` is not as long as a row. An empty one says that the row is known to lie in place, and does where it does not.
    #[inline]
    pub fn row<'s, R: RowIndex<N>>(&'s self, row: R, room: &'s mut [T]) -> &'s [T] {
        let (of, place) = self.find_row(row, false);
        let cells = self.cells_of(of);
        match cells.as_slice() {
            Some(own) => {
                check_room(self.bounds, self.window.row_len(), room.len(), true);
                &own[place..place + self.window.row_len()]
            }
            None => {
                check_room(self.bounds, self.window.row_len(), room.len(), false);
                cells.load(place, room);
                room
            }
        }
    }

    /// Copies a row out.
    ///
    /// # Panics
    /// If `to` is not as long as a row.
    #[inline]
    pub fn read_row<R: RowIndex<N>>(&self, row: R, to: &mut [T]) {
        let (of, place) = self.find_row(row, false);
        check_len(self.bounds, self.window.row_len(), to.len());
        self.cells_of(of).load(place, to);
    }

    /// Copies a row in.
    ///
    /// # Panics
    /// If `from` is not as long as a row.
    #[inline]
    pub fn write_row<R: RowIndex<N>>(&mut self, row: R, from: &[T]) {
        let (of, place) = self.find_row(row, true);
        check_len(self.bounds, self.window.row_len(), from.len());
        self.cells_of_mut(of).store(place, from);
    }

    /// Changes a row and returns what `change` returns: in place where [`RelaxedView::row`] reads in place; elsewhere the row is copied
    /// into `room`, changed there, and copied back, and another worker's change in between is lost.
    ///
    /// # Panics
    /// As [`RelaxedView::row`].
    #[inline]
    pub fn update_row<R: RowIndex<N>, O>(
        &mut self,
        row: R,
        room: &mut [T],
        change: impl FnOnce(&mut [T]) -> O,
    ) -> O {
        let (of, place) = self.find_row(row, true);
        let (bounds, len) = (self.bounds, self.window.row_len());
        let cells = self.cells_of_mut(of);
        if let Some(own) = cells.as_mut_slice() {
            check_room(bounds, len, room.len(), true);
            return change(&mut own[place..place + len]);
        }
        check_room(bounds, len, room.len(), false);
        cells.load(place, room);
        let result = change(room);
        cells.store(place, room);
        result
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
        let (of, place) = self.find_row(row, true);
        check_len(self.bounds, self.window.row_len(), changes.len());
        let (cells, mut room) = (self.cells_of_mut(of), [T::default(); GROUP]);
        for (group, changes) in changes.chunks(GROUP).enumerate() {
            let (first, room) = (place + group * GROUP, &mut room[..changes.len()]);
            cells.load(first, room);
            room.iter_mut().zip(changes).for_each(|(element, change)| *element = element.plus(*change));
            cells.store(first, room);
        }
    }

    /// The part that has a row, `None` for the first, and where the row begins there.
    #[inline]
    fn find_row<R: RowIndex<N>>(&self, row: R, writes: bool) -> (Option<usize>, usize) {
        match self.window.row_place(row) {
            Some(place) => (None, place),
            None => self.row_elsewhere(row, writes),
        }
    }

    #[inline]
    fn cells_of(&self, part: Option<usize>) -> &OwnOrShared<'a, T> {
        part.map_or(&self.cells, |other| &self.others[other].1)
    }

    #[inline]
    fn cells_of_mut(&mut self, part: Option<usize>) -> &mut OwnOrShared<'a, T> {
        match part {
            None => &mut self.cells,
            Some(other) => &mut self.others[other].1,
        }
    }

    #[cold]
    #[inline(never)]
    fn row_elsewhere<R: RowIndex<N>>(&self, row: R, writes: bool) -> (Option<usize>, usize) {
        if let (Some(recorder), Some((window, _))) = (self.recorder, self.others.first()) {
            recorder.note_row(row, window.row_len(), writes);
        }
        let mut others = self.others.iter().enumerate();
        let found = others.find_map(|(other, (window, _))| Some((Some(other), window.row_place(row)?)));
        found.unwrap_or_else(|| self.refuse(row.to_vec()))
    }

    fn place_elsewhere(&self, index: [usize; N], writes: bool) -> (usize, usize) {
        if let Some(recorder) = self.recorder {
            recorder.note_element(index, writes);
        }
        let mut others = self.others.iter().enumerate();
        let found = others.find_map(|(other, (window, _))| Some((other, window.place(index)?)));
        found.unwrap_or_else(|| self.refuse(index.to_vec()))
    }

    #[cold]
    #[inline(never)]
    fn get_elsewhere(&self, index: [usize; N]) -> T {
        let (other, place) = self.place_elsewhere(index, false);
        self.others[other].1.get(place)
    }

    #[cold]
    #[inline(never)]
    fn set_elsewhere(&mut self, index: [usize; N], value: T) {
        let (other, place) = self.place_elsewhere(index, true);
        self.others[other].1.set(place, value);
    }

    fn refuse(&self, index: Vec<usize>) -> ! {
        let first = (self.recorder.is_none()).then_some(&self.window);
        let windows = first.into_iter().chain(self.others.iter().map(|(window, _)| window));
        let held: Vec<_> = windows.map(|window| window.range(self.bounds.dim)).collect();
        refuse(self.bounds, index, &held)
    }
}

/// Whether room for a row is as long as one; what is in place needs none.
#[inline(always)]
fn check_room(bounds: PartBounds<'_>, row: usize, room: usize, in_place: bool) {
    if row != room && !(in_place && room == 0) {
        wrong_length(bounds, row, room, "room for ");
    }
}

/// Whether what is copied is as long as a row.
#[inline(always)]
fn check_len(bounds: PartBounds<'_>, row: usize, len: usize) {
    if row != len {
        wrong_length(bounds, row, len, "");
    }
}

#[cold]
#[inline(never)]
fn wrong_length(bounds: PartBounds<'_>, row: usize, len: usize, what: &str) -> ! {
    panic!("{what}{len} elements for a row of {:?}, which has {row}", bounds.array)
}
