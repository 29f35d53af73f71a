//! Rows of a batch by their numbers, as a loop's body asks for them.
use super::rows::Rows;
use std::cell::Cell;
use std::ops::Range;

/// Marks of the rows of an array, by which [`Patches::of_rows`](super::patches::Patches::of_rows) tells those of a batch from others.
/// Each batch has another mark, so nothing is cleared from one to the next. Marks are used for one batch at a time: what a batch marks,
/// an earlier one does not find any more.
#[derive(Debug, Default)]
pub struct RowMarks {
    /// Of each row, the last batch that had it: twice its number, and 1 if the row may be written.
    of: Vec<Cell<u32>>,
    /// The number of the last batch.
    last: Cell<u32>,
    /// How many batches look at the marks.
    looking: Cell<usize>,
}

/// The most batches that are told apart before all marks are cleared.
const MOST: u32 = u32::MAX >> 1;

impl RowMarks {
    /// Of an array with so many rows.
    pub fn new(rows: usize) -> RowMarks {
        RowMarks { of: vec![Cell::new(0); rows], last: Cell::new(0), looking: Cell::new(0) }
    }

    /// The number of another batch, which no row has, and no batch that looks at the marks; 0, which is the number of none, if there
    /// is no such number.
    fn next(&self) -> u32 {
        if self.last.get() == MOST && self.looking.get() == 0 {
            self.of.iter().for_each(|mark| mark.set(0));
            self.last.set(0);
        }
        if self.last.get() == MOST {
            return 0;
        }
        self.last.set(self.last.get() + 1);
        self.last.get()
    }
}

/// Rows that a batch lends, found by number.
pub(super) struct Listed<'a, T, const N: usize> {
    shape: [usize; N],
    rows: Rows<'a, T>,
    marks: &'a RowMarks,
    /// The number of this batch. A row is marked with it only if it is in a list of `rows`, and as one that may be written only if it
    /// is in the list of those.
    batch: u32,
}

impl<'a, T, const N: usize> Listed<'a, T, N> {
    /// Marks rows; those of `found` are found in another way.
    pub(super) fn new(
        shape: [usize; N],
        rows: Rows<'a, T>,
        marks: &'a RowMarks,
        found: bool,
    ) -> Listed<'a, T, N> {
        let batch = marks.next();
        marks.looking.set(marks.looking.get() + 1);
        let set = |row: &u32, mark: u32| {
            if let Some(of) = marks.of.get(*row as usize) {
                of.set(mark);
            }
        };
        rows.reads().iter().for_each(|row| set(row, batch << 1));
        // A row in both lists may be written.
        if !found {
            rows.writes().iter().for_each(|row| set(row, batch << 1 | 1));
        }
        Listed { shape, rows, marks, batch }
    }

    /// The number of the row with this index; in one dimension, of the element.
    #[inline(always)]
    fn number(&self, index: [usize; N]) -> Option<usize> {
        if N <= 2 {
            return Some(index[0]);
        }
        let dims = self.shape.iter().zip(index).take(N - 1);
        // The shape is the caller's: numbers that do not fit are those of no row.
        dims.into_iter().try_fold(0usize, |number, (extent, at)| {
            if at < *extent { number.checked_mul(*extent)?.checked_add(at) } else { None }
        })
    }

    /// Where a row begins, and how many elements it has, if it is in a list and may be used so.
    #[inline(always)]
    pub(super) fn row(&self, index: [usize; N], writes: bool) -> Option<(*mut T, usize)> {
        if N == 1 { None } else { self.find(index, writes) }
    }

    #[inline(always)]
    fn find(&self, index: [usize; N], writes: bool) -> Option<(*mut T, usize)> {
        let number = self.number(index)?;
        let mark = self.marks.of.get(number)?.get();
        let known = if writes { mark == self.batch << 1 | 1 } else { mark >> 1 == self.batch };
        // A number that is marked is one of a list, and fits.
        (known && self.batch != 0).then(|| self.rows.row(number as u32))
    }

    #[inline(never)]
    pub(super) fn element(&self, index: [usize; N], writes: bool) -> Option<*mut T> {
        let (start, len) = self.find(index, writes)?;
        let within = if N == 1 { 0 } else { index[N - 1] };
        (within < len).then(|| start.wrapping_add(within))
    }
}

impl<T, const N: usize> Drop for Listed<'_, T, N> {
    fn drop(&mut self) {
        self.marks.looking.set(self.marks.looking.get() - 1);
    }
}

impl<T> Listed<'_, T, 1> {
    /// Elements side by side, if all are in a list.
    pub(super) fn range(&self, range: &Range<usize>, writes: bool) -> Option<*mut T> {
        let (start, _) = match range.is_empty() {
            true => {
                return (range.start <= range.end && range.end <= self.shape[0]).then(std::ptr::dangling_mut);
            }
            false => self.find([range.start], writes)?,
        };
        // One element each: an area without elements has none to give.
        let is_there = |at| self.find([at], writes).is_some_and(|(_, len)| len == 1);
        range.clone().all(is_there).then_some(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{Patches, RowList, RowPlan, RowRun, Touched};
    use crate::{AreaSpec, Job};
    use std::sync::Arc;

    #[test]
    fn only_listed_rows_are_found_by_their_numbers() {
        let job = Job::embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let owned = worker.create::<u32>(AreaSpec::new("rows").copies(0), 2 * 3 * 2).unwrap();
        let (area, opened) = (owned.area(), owned.open_to_tasks(&worker).unwrap());
        let lists = |rows: [&[u32]; 2]| rows.into_iter().collect::<RowList>();
        // Rows [0, 1] and [1, 2], then row [1, 0], which reads [1, 2].
        let touched = Touched { writes: lists([&[5, 1], &[3]]), reads: lists([&[], &[5]]) };
        let plan = Arc::new(RowPlan::new(vec![6], 2, vec![vec![touched]]).unwrap());
        let mut run = RowRun::begin(&worker, plan, 1, &[area.in_place()]).unwrap();
        let marks = RowMarks::new(6);
        let mut found = Vec::new();
        while let Some(batch) = run.next(&mut worker).unwrap() {
            let rows = batch.rows(&area, 0).unwrap();
            let mut patches = Patches::of_rows(&[2, 3, 2], rows, &marks);
            for row in (0..2).flat_map(|i| (0..4).map(move |j| [i, j, 0])) {
                let writes = patches.row_mut(row).is_ok();
                assert_eq!(patches.may_write_row(row), writes);
                assert_eq!(patches.get_mut([row[0], row[1], 1]).is_ok(), writes);
                assert_eq!(patches.get([row[0], row[1], 2]), None, "beyond the row");
                found.push((batch.number(), row, patches.row(row).is_some(), writes));
            }
            if let Ok(row) = patches.row_mut([1, 2, 0]) {
                row.fill(7);
                assert!(patches.rows_mut([1, 2, 0], [1, 2, 0]).is_err());
            } else {
                let (from, to) = patches.row_and_row_mut([1, 2, 0], [1, 0, 0]).unwrap();
                to.copy_from_slice(from);
            }
        }
        found.retain(|(_, _, reads, _)| *reads);
        let expected = [
            (0, [0, 1, 0], true, true),
            (0, [1, 2, 0], true, true),
            (1, [1, 0, 0], true, true),
            (1, [1, 2, 0], true, false),
        ];
        assert_eq!(found, expected);
        drop(run);
        let rows = opened.close(&mut worker).unwrap().finish(&mut worker).unwrap();
        assert_eq!(rows.read(&worker).unwrap(), [0, 0, 0, 0, 0, 0, 7, 7, 0, 0, 7, 7]);
    }

    #[test]
    fn no_shape_and_no_other_handle_finds_more_than_the_plan_gives() {
        let job = Job::embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let owned = worker.create::<u8>(AreaSpec::new("rows").copies(0), 6).unwrap();
        let (area, _opened) = (owned.area(), owned.open_to_tasks(&worker).unwrap());
        let touched = Touched { writes: [[0u32]].into_iter().collect(), reads: RowList::default() };
        let plan = Arc::new(RowPlan::new(vec![3], 1, vec![vec![touched]]).unwrap());
        let mut run = RowRun::begin(&worker, plan, 1, &[area.in_place()]).unwrap();
        // The first area of another job, with the same number.
        let other = Job::embedded().unwrap();
        let mut stranger = other.worker().unwrap();
        let large = stranger.create::<u64>(AreaSpec::new("rows").copies(0), 6000).unwrap();
        assert_eq!(large.area().core.id, area.core.id);
        let marks = RowMarks::new(3);
        let batch = run.next(&mut worker).unwrap().unwrap();
        assert!(matches!(batch.rows(&large.area(), 0), Err(crate::Error::OtherJob { .. })));
        // Two times the second extent is no number, and not that of row 0.
        let shape = [4, 1 << (usize::BITS - 1), 2];
        let mut patches = Patches::of_rows(&shape, batch.rows(&area, 0).unwrap(), &marks);
        assert!(patches.row_mut([0, 0, 0]).is_ok() && patches.row_mut([2, 0, 0]).is_err());
        assert!(patches.rows_mut([0, 0, 0], [2, 0, 0]).is_err());
    }

    #[test]
    fn an_area_without_elements_has_no_rows() {
        let job = Job::embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let owned = worker.create::<u8>(AreaSpec::new("none").copies(0), 0).unwrap();
        let (area, _opened) = (owned.area(), owned.open_to_tasks(&worker).unwrap());
        let touched = Touched { writes: [[0u32]].into_iter().collect(), reads: RowList::default() };
        let plan = Arc::new(RowPlan::new(vec![3], 1, vec![vec![touched]]).unwrap());
        let begun = RowRun::begin(&worker, plan, 1, &[area.in_place()]);
        assert!(matches!(begun, Err(crate::Error::Tasks { .. })), "{begun:?}");
    }

    /// One worker's run of one array with rows of two elements, and the lists of its batches.
    fn batches(
        rows: usize,
        lists: &[[&[u32]; 2]],
        mut look: impl FnMut(Patches<'_, u32, 2>, usize),
        marks: &RowMarks,
    ) {
        let job = Job::embedded().unwrap();
        let mut worker = job.worker().unwrap();
        let owned = worker.create::<u32>(AreaSpec::new("rows").copies(0), rows * 2).unwrap();
        let (area, _opened) = (owned.area(), owned.open_to_tasks(&worker).unwrap());
        let of = |list: usize| lists.iter().map(|lists| lists[list]).collect::<RowList>();
        let touched = Touched { writes: of(0), reads: of(1) };
        let plan = Arc::new(RowPlan::new(vec![rows], lists.len(), vec![vec![touched]]).unwrap());
        let mut run = RowRun::begin(&worker, plan, 1, &[area.in_place()]).unwrap();
        while let Some(batch) = run.next(&mut worker).unwrap() {
            let number = batch.number();
            look(Patches::of_rows(&[rows, 2], batch.rows(&area, 0).unwrap(), marks), number);
        }
    }

    #[test]
    fn rows_side_by_side_are_found_as_a_box_and_no_row_beside_it() {
        // A whole range, one with a gap, one that goes down, one with a row twice; then a range and rows that are read.
        let lists: [[&[u32]; 2]; 5] = [
            [&[2, 3, 4], &[]],
            [&[2, 4, 5], &[]],
            [&[5, 4, 3], &[]],
            [&[3, 3, 4], &[]],
            [&[1, 2], &[2, 5, 0]],
        ];
        let marks = RowMarks::new(7);
        let look = |mut patches: Patches<'_, u32, 2>, batch: usize| {
            let [writes, reads] = lists[batch];
            for row in (0..9).chain([usize::MAX, usize::MAX / 2 + 1]) {
                let is = |list: &[u32]| list.iter().any(|one| *one as usize == row);
                let (writes, reads) = (is(writes), is(writes) || is(reads));
                assert_eq!(patches.row_mut([row, 0]).is_ok(), writes, "row {row} of {batch}");
                assert_eq!(
                    patches.row([row, 9]).map(<[u32]>::len),
                    reads.then_some(2),
                    "row {row} of {batch}"
                );
                for column in 0..3 {
                    assert_eq!(patches.get([row, column]).is_some(), reads && column < 2);
                    assert_eq!(patches.get_mut([row, column]).is_ok(), writes && column < 2);
                }
                assert_eq!(patches.may_write_row([row, 0]), writes);
            }
        };
        batches(7, &lists, look, &marks);
        assert_eq!(marks.looking.get(), 0);
    }

    #[test]
    fn marks_of_a_batch_are_not_those_of_another_that_had_the_same_number() {
        let marks = RowMarks::new(4);
        marks.last.set(MOST - 1);
        let lists: [[&[u32]; 2]; 3] = [[&[0, 3], &[]], [&[1, 3], &[]], [&[2, 0], &[3]]];
        let mut found = Vec::new();
        let look = |mut patches: Patches<'_, u32, 2>, batch: usize| {
            found.extend((0..4).filter(|row| patches.row_mut([*row, 0]).is_ok()).map(|row| (batch, row)));
        };
        batches(4, &lists, look, &marks);
        assert_eq!(found, [(0, 0), (0, 3), (1, 1), (1, 3), (2, 0), (2, 2)]);
        assert_eq!(marks.last.get(), 2, "marks were cleared");
        // Whoever still looks keeps its marks: who comes then finds nothing.
        marks.last.set(MOST);
        marks.looking.set(1);
        batches(
            4,
            &lists[..1],
            |mut patches, _| {
                assert!(
                    (0..4).all(|row| patches.row_mut([row, 0]).is_err() && patches.row([row, 0]).is_none())
                )
            },
            &marks,
        );
        assert_eq!(marks.last.get(), MOST);
    }

    #[test]
    fn two_batches_that_share_marks_do_not_find_each_others_rows() {
        let (marks, lists): (RowMarks, [[&[u32]; 2]; 1]) = (RowMarks::new(4), [[&[0, 2], &[]]]);
        let look = |mut first: Patches<'_, u32, 2>, _: usize| {
            assert!(first.row_mut([2, 0]).is_ok());
            let other: [[&[u32]; 2]; 1] = [[&[3, 2], &[]]];
            let inner = |mut second: Patches<'_, u32, 2>, _: usize| {
                let has = |patches: &mut Patches<'_, u32, 2>| {
                    (0..4).filter(|row| patches.row_mut([*row, 0]).is_ok()).collect::<Vec<_>>()
                };
                assert_eq!((has(&mut first), has(&mut second)), (vec![0], vec![2, 3]));
            };
            batches(4, &other, inner, &marks);
        };
        batches(4, &lists, look, &marks);
    }
}
