//! Rows of a batch by their numbers, as a loop's body asks for them.
use super::rows::{RowBatch, Rows};
use std::ops::Range;

/// For each row of an array, its place in the lists of a batch. What it says of rows that are in no list means nothing, and is
/// found to be wrong when it is used: so nothing is cleared from batch to batch.
#[derive(Clone, Debug, Default)]
pub struct RowPlaces {
    /// Twice the place, and 1 if the list is that of the rows that are only read.
    of: Vec<u32>,
}

impl RowPlaces {
    /// Of an array with so many rows.
    pub fn new(rows: usize) -> RowPlaces {
        RowPlaces { of: vec![0; rows] }
    }

    /// Goes over to the lists of a batch: array number `array` of its plan.
    pub fn set(&mut self, batch: &RowBatch<'_>, array: usize) {
        let (writes, reads) = batch.lists(array);
        for (place, row) in (0u32..).zip(reads) {
            if let Some(of) = self.of.get_mut(*row as usize) {
                *of = place << 1 | 1;
            }
        }
        // A row in both lists may be written.
        for (place, row) in (0u32..).zip(writes) {
            if let Some(of) = self.of.get_mut(*row as usize) {
                *of = place << 1;
            }
        }
    }
}

/// Rows that a batch lends, found by number.
pub(super) struct Listed<'a, T, const N: usize> {
    shape: [usize; N],
    rows: Rows<'a, T>,
    places: &'a [u32],
}

impl<'a, T, const N: usize> Listed<'a, T, N> {
    pub(super) fn new(shape: [usize; N], rows: Rows<'a, T>, places: &'a RowPlaces) -> Listed<'a, T, N> {
        Listed { shape, rows, places: &places.of }
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
        let place = *self.places.get(number)?;
        self.rows.find(number, (place >> 1) as usize, writes, place & 1 == 0)
    }

    #[inline(never)]
    pub(super) fn element(&self, index: [usize; N], writes: bool) -> Option<*mut T> {
        let (start, len) = self.find(index, writes)?;
        let within = if N == 1 { 0 } else { index[N - 1] };
        (within < len).then(|| start.wrapping_add(within))
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
        let mut places = RowPlaces::new(6);
        let mut found = Vec::new();
        while let Some(batch) = run.next(&mut worker).unwrap() {
            places.set(&batch, 0);
            let rows = batch.rows(&area, 0).unwrap();
            let mut patches = Patches::of_rows(&[2, 3, 2], rows, &places);
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
        let mut places = RowPlaces::new(3);
        let batch = run.next(&mut worker).unwrap().unwrap();
        assert!(matches!(batch.rows(&large.area(), 0), Err(crate::Error::OtherJob { .. })));
        places.set(&batch, 0);
        // Two times the second extent is no number, and not that of row 0.
        let shape = [4, 1 << (usize::BITS - 1), 2];
        let mut patches = Patches::of_rows(&shape, batch.rows(&area, 0).unwrap(), &places);
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
}
