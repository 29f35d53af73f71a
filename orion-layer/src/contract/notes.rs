//! What views know of the pass in which they are made: where they note what is touched, and the task under way.
use crate::view::{Recorder, Recording};
use hectare_dsm::tasks::RunningTask;
use std::cell::Cell;

/// What the view of an array knows of the pass.
#[derive(Clone, Copy, Debug)]
pub struct ArrayTrace<'a> {
    recorder: Option<Recorder<'a>>,
    cell: &'a Cell<usize>,
    task: Option<(&'a RunningTask<'a>, usize)>,
}

impl<'a> ArrayTrace<'a> {
    pub(crate) fn recorder(self) -> Option<Recorder<'a>> {
        self.recorder
    }

    /// If the array lies in place: the task that is under way, and the number of the array in it.
    pub(crate) fn task(self) -> Option<(&'a RunningTask<'a>, usize)> {
        self.task
    }

    /// The number of the cell of the loop that is under way.
    pub(crate) fn cell(self) -> &'a Cell<usize> {
        self.cell
    }
}

/// What the views of a loop know of the pass.
#[derive(Clone, Copy, Debug)]
pub struct PassTrace<'a> {
    recording: Option<&'a Recording>,
    cell: &'a Cell<usize>,
    /// The task that is under way, and which arrays of the loop are in it.
    task: Option<(&'a RunningTask<'a>, &'a [usize])>,
}

impl<'a> PassTrace<'a> {
    /// `cell` is the cell of the loop that is under way.
    pub(crate) fn new(cell: &'a Cell<usize>) -> PassTrace<'a> {
        PassTrace { recording: None, cell, task: None }
    }

    /// For views that note what is touched.
    pub(crate) fn recording(cell: &'a Cell<usize>, recording: &'a Recording) -> PassTrace<'a> {
        PassTrace { recording: Some(recording), ..PassTrace::new(cell) }
    }

    /// For a task in which these arrays of the loop lie in place.
    pub(crate) fn of_task(
        cell: &'a Cell<usize>,
        task: &'a RunningTask<'a>,
        arrays: &'a [usize],
    ) -> PassTrace<'a> {
        PassTrace { task: Some((task, arrays)), ..PassTrace::new(cell) }
    }

    /// What the view of array number `array` knows.
    pub fn of(self, array: usize) -> ArrayTrace<'a> {
        let in_task = |(task, arrays): (&'a RunningTask<'a>, &[usize])| {
            Some((task, arrays.iter().position(|other| *other == array)?))
        };
        ArrayTrace {
            recorder: self.recording.map(|list| Recorder { array, list }),
            cell: self.cell,
            task: self.task.and_then(in_task),
        }
    }
}
