//! Which rows and elements a batch finds by their marks.
use super::marks::{MOST, RowMarks};
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
    let mut run = RowRun::begin(&mut worker, plan, 1, &[area.in_place()]).unwrap();
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
    let mut run = RowRun::begin(&mut worker, plan, 1, &[area.in_place()]).unwrap();
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
    let begun = RowRun::begin(&mut worker, plan, 1, &[area.in_place()]);
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
    let mut run = RowRun::begin(&mut worker, plan, 1, &[area.in_place()]).unwrap();
    while let Some(batch) = run.next(&mut worker).unwrap() {
        let number = batch.number();
        look(Patches::of_rows(&[rows, 2], batch.rows(&area, 0).unwrap(), marks), number);
    }
}

#[test]
fn rows_side_by_side_are_found_as_a_box_and_no_row_beside_it() {
    // A whole range, one with a gap, one that goes down, some with a row twice, of which two are as long as a range; then a range
    // and rows that are read.
    let lists: [[&[u32]; 2]; 7] = [
        [&[2, 3, 4], &[]],
        [&[2, 4, 5], &[]],
        [&[5, 4, 3], &[]],
        [&[3, 3, 4], &[]],
        [&[3, 3, 5], &[]],
        [&[2, 4, 4, 5], &[]],
        [&[1, 2], &[2, 5, 0]],
    ];
    let marks = RowMarks::new(7);
    let look = |mut patches: Patches<'_, u32, 2>, batch: usize| {
        let [writes, reads] = lists[batch];
        for row in (0..9).chain([usize::MAX, usize::MAX / 2 + 1]) {
            let is = |list: &[u32]| list.iter().any(|one| *one as usize == row);
            let (writes, reads) = (is(writes), is(writes) || is(reads));
            assert_eq!(patches.row_mut([row, 0]).is_ok(), writes, "row {row} of {batch}");
            assert_eq!(patches.row([row, 9]).map(<[u32]>::len), reads.then_some(2), "row {row} of {batch}");
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
            assert!((0..4).all(|row| patches.row_mut([row, 0]).is_err() && patches.row([row, 0]).is_none()))
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

/// One worker's run of one array of ten elements in rows of `len`, which are their numbers; its first batch.
fn elements(len: usize, lists: [&[u32]; 2], look: impl FnOnce(Patches<'_, u32, 1>)) {
    let job = Job::embedded().unwrap();
    let mut worker = job.worker().unwrap();
    let mut owned = worker.create::<u32>(AreaSpec::new("elements").copies(0), 10).unwrap();
    let mut written = owned.write(&worker).unwrap();
    written.as_mut_slice().iter_mut().zip(0..).for_each(|(element, at)| *element = at);
    let (area, _opened) = (owned.area(), owned.open_to_tasks(&worker).unwrap());
    let [writes, reads] = lists.map(|list| [list].into_iter().collect::<RowList>());
    let plan = Arc::new(RowPlan::new(vec![10 / len], 1, vec![vec![Touched { writes, reads }]]).unwrap());
    let mut run = RowRun::begin(&mut worker, plan, 1, &[area.in_place()]).unwrap();
    let batch = run.next(&mut worker).unwrap().unwrap();
    look(Patches::of_rows(&[10], batch.rows(&area, 0).unwrap(), &RowMarks::new(10)));
}

#[test]
fn a_range_of_elements_may_be_of_both_lists() {
    for writes in [&[2u32, 3, 4][..], &[4, 2, 3], &[2, 3, 4, 3]] {
        elements(1, [writes, &[5, 6, 1, 3]], |mut patches| {
            for range in (0..9).flat_map(|start| (start..9).map(move |end| start..end)) {
                let (reads, all) = (range.clone().all(|at| (1..7).contains(&at)), range.clone());
                let expected = reads.then(|| all.map(|at| at as u32).collect::<Vec<_>>());
                assert_eq!(patches.slice(range.clone()).map(<[u32]>::to_vec), expected, "{range:?}");
                let writes = range.clone().all(|at| (2..5).contains(&at));
                assert_eq!(patches.slice_mut(range.clone()).is_ok(), writes, "{range:?}");
            }
        });
    }
}

/// A handle of one dimension on rows of five elements finds the first of each, and no others in between.
#[test]
fn of_long_rows_in_one_dimension_nothing_is_found_beyond_the_lists() {
    for writes in [&[0u32, 1][..], &[1, 0], &[1]] {
        elements(5, [writes, &[]], |mut patches| {
            for at in 0..10 {
                let is_listed = writes.contains(&(at as u32));
                assert_eq!(patches.get([at]), is_listed.then_some(&(5 * at as u32)), "{at} of {writes:?}");
                assert_eq!(patches.get_mut([at]).is_ok(), is_listed);
                assert_eq!(patches.slice(at..at + 1), None);
                assert!(patches.slice_mut(at..at + 1).is_err());
            }
        });
    }
}

#[test]
fn who_watches_rows_is_told_of_each_look_and_finds_the_same() {
    for writes in [&[2u32, 3, 4][..], &[4, 2, 3]] {
        let asked = std::cell::RefCell::new(Vec::new());
        elements(1, [writes, &[5]], |patches| {
            let mut patches = patches.watched(Box::new(|one| asked.borrow_mut().push(one)));
            assert_eq!((patches.get([3]), patches.get([5]), patches.get([6])), (Some(&3), Some(&5), None));
            assert!(patches.get_mut([4]).is_ok() && patches.get_mut([5]).is_err());
            assert_eq!(patches.slice(2..6), Some(&[2, 3, 4, 5][..]));
            assert!(patches.slice_mut(2..5).is_ok() && patches.slice_mut(2..6).is_err());
        });
        assert_eq!(asked.into_inner().len(), 8);
        let lists: [[&[u32]; 2]; 1] = [[writes, &[5]]];
        let look = |patches: Patches<'_, u32, 2>, _: usize| {
            let asked = std::cell::RefCell::new(Vec::new());
            let mut patches = patches.watched(Box::new(|one| asked.borrow_mut().push(one)));
            assert!(patches.row([3, 0]).is_some() && patches.row([5, 0]).is_some());
            assert!(patches.row([6, 0]).is_none() && patches.row_mut([4, 0]).is_ok());
            assert!(patches.rows_mut([2, 0], [4, 0]).is_ok() && patches.may_write_row([2, 0]));
            assert!(patches.row_and_row_mut([5, 0], [2, 0]).is_ok());
            drop(patches);
            assert_eq!(asked.into_inner().len(), 8);
        };
        batches(7, &lists, look, &RowMarks::new(7));
    }
}
