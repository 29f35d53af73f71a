//! The part of a pass that its views need: where to note accesses, and the task under way.
use crate::view::{Recorder, Recording};
use hectare_dependence::inspect::{Key, TooMany, Touched};
use hectare_dependence::reads::Reads;
use hectare_dsm::tasks::{RowBatch, RowMarks, RunningTask};
use std::cell::{Cell, RefCell};

/// The part of a pass that the view of one array needs.
#[derive(Clone, Copy, Debug)]
pub struct ArrayTrace<'a> {
    recorder: Option<Recorder<'a>>,
    cell: &'a Cell<usize>,
    task: Option<(&'a RunningTask<'a>, usize)>,
    rows: Option<(&'a RowBatch<'a>, usize, &'a RowMarks)>,
    reads: Option<&'a Reads>,
}

impl<'a> ArrayTrace<'a> {
    pub(crate) fn recorder(self) -> Option<Recorder<'a>> {
        self.recorder
    }

    /// If the array lies in place: the task that is under way, and the number of the array in it.
    pub(crate) fn task(self) -> Option<(&'a RunningTask<'a>, usize)> {
        self.task
    }

    /// If rows of the array are lent batch by batch: the batch that is under way, the number of the array in it, and the marks of
    /// its rows.
    pub(crate) fn rows(self) -> Option<(&'a RowBatch<'a>, usize, &'a RowMarks)> {
        self.rows
    }

    /// On several hosts, what the workers read of it where others have it.
    pub(crate) fn reads(self) -> Option<&'a Reads> {
        self.reads
    }

    /// The number of the cell of the loop that is under way.
    pub(crate) fn cell(self) -> &'a Cell<usize> {
        self.cell
    }
}

/// The part of a pass that the views of a loop need.
#[derive(Clone, Copy, Debug)]
pub struct PassTrace<'a> {
    recording: Option<&'a Recording>,
    cell: &'a Cell<usize>,
    /// The task that is under way, and which arrays of the loop are in it.
    task: Option<(&'a RunningTask<'a>, &'a [usize])>,
    /// The batch that is under way, which arrays of the loop are in it, and the marks of their rows.
    rows: Option<(&'a RowBatch<'a>, &'a [usize], &'a [RowMarks])>,
    /// By array, on several hosts: what the workers read of it.
    reads: &'a [Option<Reads>],
}

impl<'a> PassTrace<'a> {
    /// `cell` is the cell of the loop that is under way.
    pub(crate) fn new(cell: &'a Cell<usize>) -> PassTrace<'a> {
        PassTrace { recording: None, cell, task: None, rows: None, reads: &[] }
    }

    /// For a loop over several hosts, whose workers read this of each array.
    pub(crate) fn reading(self, reads: &'a [Option<Reads>]) -> PassTrace<'a> {
        PassTrace { reads, ..self }
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

    /// For a batch in which rows of these arrays of the loop are lent.
    pub(crate) fn of_rows(
        cell: &'a Cell<usize>,
        batch: &'a RowBatch<'a>,
        arrays: &'a [usize],
        marks: &'a [RowMarks],
    ) -> PassTrace<'a> {
        PassTrace { rows: Some((batch, arrays, marks)), ..PassTrace::new(cell) }
    }

    /// The part of array number `array`.
    pub fn of(self, array: usize) -> ArrayTrace<'a> {
        let in_task = |(task, arrays): (&'a RunningTask<'a>, &[usize])| {
            Some((task, arrays.iter().position(|other| *other == array)?))
        };
        let in_rows = |(batch, arrays, marks): (&'a RowBatch<'a>, &[usize], &'a [RowMarks])| {
            let at = arrays.iter().position(|other| *other == array)?;
            Some((batch, at, marks.get(at)?))
        };
        ArrayTrace {
            recorder: self.recording.map(|list| Recorder { array, list }),
            cell: self.cell,
            task: self.task.and_then(in_task),
            rows: self.rows.and_then(in_rows),
            reads: self.reads.get(array).and_then(Option::as_ref),
        }
    }
}

/// The elements that iterations touch of the arrays that the loop writes, as its slice names them.
#[derive(Debug)]
pub(crate) struct Noted {
    touched: RefCell<Touched>,
    /// The number of the first row of each array, among those of all; `None` for arrays that are not written.
    firsts: Vec<Option<usize>>,
}

impl Noted {
    /// Of arrays with these numbers of rows; `None` for arrays that are not written.
    pub(crate) fn new(rows: &[Option<usize>], iterations: usize) -> Result<Noted, TooMany> {
        let written: Vec<usize> = rows.iter().flatten().copied().collect();
        let mut first = 0;
        let firsts = rows.iter().map(|rows| {
            let own = rows.map(|_| first);
            first += rows.unwrap_or(0);
            own
        });
        let firsts = firsts.collect();
        let mut touched = Touched::new(&written)?;
        touched.reserve(iterations);
        Ok(Noted { touched: RefCell::new(touched), firsts })
    }

    /// Ends an iteration.
    #[inline]
    pub(crate) fn end_iteration(&self) -> Result<(), TooMany> {
        self.touched.borrow_mut().end_iteration()
    }

    /// All iterations.
    pub(crate) fn into_touched(self) -> Touched {
        self.touched.into_inner()
    }
}

/// Where the keys of an array are noted, if its loop is inspected.
#[derive(Clone, Copy, Debug)]
pub struct KeyNotes<'a>(Option<(&'a Noted, usize)>);

impl<'a> KeyNotes<'a> {
    /// Of a loop whose slice tells served arrays of their keys.
    pub(crate) const NONE: KeyNotes<'static> = KeyNotes(None);

    /// Of a loop that is inspected.
    pub(crate) fn of(noted: &'a Noted) -> KeyNotes<'a> {
        KeyNotes(Some((noted, 0)))
    }

    /// The notes of array number `array`.
    pub fn array(self, array: usize) -> KeyNotes<'a> {
        KeyNotes(self.0.and_then(|(noted, _)| Some((noted, noted.firsts.get(array).copied()??))))
    }

    /// Notes that the iteration touches a row of the array.
    #[inline(always)]
    pub fn note(self, row: usize, writes: bool) {
        if let Some((noted, first)) = self.0 {
            noted.touched.borrow_mut().note(Key::new(first + row, writes));
        }
    }
}
