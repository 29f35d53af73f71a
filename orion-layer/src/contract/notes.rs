//! Where views note what is touched.
use crate::view::{Recorder, Recording};
use std::cell::Cell;

/// Where a view notes what is touched, in a loop that is checked.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a>(Option<Recorder<'a>>, &'a Cell<usize>);

impl<'a> Note<'a> {
    pub(crate) fn recorder(self) -> Option<Recorder<'a>> {
        self.0
    }

    /// The number of the cell of the loop that is under way.
    pub(crate) fn cell(self) -> &'a Cell<usize> {
        self.1
    }
}

/// Where the views of a loop note what is touched, if it is checked, and the cell of the loop that is under way.
#[derive(Clone, Copy, Debug)]
pub struct Notes<'a>(pub(crate) Option<&'a Recording>, pub(crate) &'a Cell<usize>);

impl<'a> Notes<'a> {
    /// Where the view of array number `array` does.
    pub fn of(self, array: usize) -> Note<'a> {
        Note(self.0.map(|list| Recorder { array, list }), self.1)
    }
}
