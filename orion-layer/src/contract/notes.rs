//! Where views note what is touched.
use crate::view::{Recorder, Recording};
use std::cell::Cell;

/// Where a view notes what is touched, in a loop that is checked.
#[derive(Clone, Copy, Debug)]
pub struct ArrayTrace<'a>(Option<Recorder<'a>>, &'a Cell<usize>);

impl<'a> ArrayTrace<'a> {
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
pub struct PassTrace<'a>(pub(crate) Option<&'a Recording>, pub(crate) &'a Cell<usize>);

impl<'a> PassTrace<'a> {
    /// Where the view of array number `array` does.
    pub fn of(self, array: usize) -> ArrayTrace<'a> {
        ArrayTrace(self.0.map(|list| Recorder { array, list }), self.1)
    }
}
