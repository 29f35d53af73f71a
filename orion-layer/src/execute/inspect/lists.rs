//! Which iterations each worker runs in each batch, and which rows these touch.
use hectare_dependence::inspect::{Batches, BlockRows, Dealt, Touched};
use hectare_dsm::tasks::{RowList, Touched as TouchedRows};
use std::ops::Range;

/// The iterations of all workers, batch by batch.
pub(super) struct Lists {
    /// For each worker, where its batches begin, and the iterations.
    pub(super) all: Vec<(Vec<usize>, Vec<u32>)>,
    /// The groups of this worker, if they are told apart.
    pub(super) groups: Vec<(usize, usize)>,
}

/// Deals batches out to workers: if `only_mine`, the lists of others stay empty.
pub(super) fn lists(
    batches: &Batches,
    dealt: &Dealt,
    workers: usize,
    me: usize,
    (by_group, only_mine): (bool, bool),
) -> Lists {
    let mut lists = Lists { all: vec![(vec![0], Vec::new()); workers], groups: Vec::new() };
    for batch in 0..batches.len() {
        for (worker, (starts, list)) in lists.all.iter_mut().enumerate() {
            match by_group {
                _ if only_mine && worker != me => {}
                false => dealt.list(batches, (batch, worker), list),
                true => {
                    for group in batches.groups_of(batch) {
                        if dealt.workers[group] as usize == worker {
                            list.extend_from_slice(batches.of_group(group));
                            if worker == me {
                                lists.groups.push((group, list.len()));
                            }
                        }
                    }
                }
            }
            starts.push(list.len());
        }
    }
    lists
}

/// The rows that each worker touches of each array, batch by batch.
pub(super) fn row_lists(
    touched: &Touched,
    lists: &[(Vec<usize>, Vec<u32>)],
    workers: usize,
    batches: usize,
) -> Vec<Vec<TouchedRows>> {
    let arrays: Vec<_> = touched.arrays().collect();
    // The array of a row is found among their ends.
    let array_of = |row: usize| arrays.iter().position(|rows| row < rows.end).unwrap_or(0);
    let mut seen = vec![(0u32, 0u32); touched.rows()];
    let mut stamp = 0;
    (0..workers)
        .map(|worker| {
            let (starts, list) = &lists[worker];
            let empty = || (vec![0usize], Vec::new());
            let mut of: Vec<[(Vec<usize>, Vec<u32>); 2]> =
                arrays.iter().map(|_| [empty(), empty()]).collect();
            for batch in 0..batches {
                stamp += 1;
                for iteration in &list[starts[batch]..starts[batch + 1]] {
                    for key in touched.of(*iteration as usize) {
                        let (row, writes) = (key.number(), key.writes());
                        let (written, read) = &mut seen[row];
                        let known = *written == stamp || !writes && *read == stamp;
                        if known {
                            continue;
                        }
                        *(if writes { written } else { read }) = stamp;
                        let array = array_of(row);
                        of[array][usize::from(!writes)].1.push((row - arrays[array].start) as u32);
                    }
                }
                for (starts, rows) in of.iter_mut().flatten() {
                    starts.push(rows.len());
                }
            }
            let list = |(starts, rows)| RowList::new(starts, rows);
            of.into_iter()
                .map(|[writes, reads]| TouchedRows { writes: list(writes), reads: list(reads) })
                .collect()
        })
        .collect()
}

/// The same where groups are tiles of blocks of rows: all rows of their blocks, which nobody else touches in the batch, and the rows
/// that nobody writes.
pub(super) fn block_lists(
    touched: &Touched,
    batches: &Batches,
    blocks: &BlockRows,
    dealt: &Dealt,
    workers: usize,
) -> Vec<Vec<TouchedRows>> {
    let arrays: Vec<_> = touched.arrays().collect();
    let mut all = vec![vec![TouchedRows::default(); arrays.len()]; workers];
    for batch in 0..batches.len() {
        for (worker, lists) in all.iter_mut().enumerate() {
            let own = batches.groups_of(batch).filter(|group| dealt.workers[*group] as usize == worker);
            let mut here: Vec<u32> = own.clone().flat_map(|group| blocks.of_group[group].clone()).collect();
            here.sort_unstable();
            here.dedup();
            let is_there = own.count() > 0;
            for (lists, rows) in lists.iter_mut().zip(&arrays) {
                let within = |row: &u32| rows.contains(&(*row as usize));
                let number = |row: &u32| *row - rows.start as u32;
                let written = here.iter().flat_map(|block| &blocks.rows[*block as usize]);
                lists.writes.add(batch, written.filter(|row| within(row)).map(number));
                let read = blocks.read.iter().filter(|row| is_there && within(row)).map(number);
                lists.reads.add(batch, read);
            }
        }
    }
    all
}

/// Where the other rows of a range are added to those that are touched, at least one row in this many is touched.
const SPARSEST: usize = 4;

/// Adds rows that nobody touches in a batch to the lists of those who touch rows on both sides, where each worker's rows of an array
/// are then a range of their own: rows of whole ranges are found without a look into a list.
pub(super) fn fill_ranges(of_rows: &mut [Vec<TouchedRows>], batches: usize) {
    let arrays = of_rows.first().map_or(0, Vec::len);
    for array in 0..arrays {
        let ranges = |batch: usize| ranges(of_rows.iter().map(|lists| &lists[array]), batch);
        let filled: Vec<Option<Vec<Range<u32>>>> = (0..batches).map(ranges).collect();
        if filled.iter().all(Option::is_none) {
            continue;
        }
        for (worker, lists) in of_rows.iter_mut().enumerate() {
            let (mut starts, mut rows) = (vec![0], Vec::new());
            for (batch, filled) in filled.iter().enumerate() {
                match filled {
                    Some(ranges) => rows.extend(ranges[worker].clone()),
                    None => rows.extend_from_slice(lists[array].writes.of(batch)),
                }
                starts.push(rows.len());
            }
            lists[array].writes = RowList::new(starts, rows);
        }
    }
}

/// The ranges of the rows that each worker touches in a batch, if nobody touches a row of another's, and only writes.
fn ranges<'l>(lists: impl Iterator<Item = &'l TouchedRows>, batch: usize) -> Option<Vec<Range<u32>>> {
    let mut ranges = Vec::new();
    for list in lists {
        let rows = list.writes.of(batch);
        let range = match (rows.iter().min(), rows.iter().max()) {
            (Some(first), Some(last)) => *first..last.checked_add(1)?,
            _ => 0..0,
        };
        if !list.reads.of(batch).is_empty() || range.len() > SPARSEST * rows.len() {
            return None;
        }
        ranges.push(range);
    }
    let mut sorted: Vec<&Range<u32>> = ranges.iter().filter(|range| !range.is_empty()).collect();
    sorted.sort_by_key(|range| range.start);
    sorted.windows(2).all(|pair| pair[0].end <= pair[1].start).then_some(ranges)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hectare_dependence::inspect::{Cut, Key, blocks, deal};
    use hectare_dsm::tasks::RowPlan;

    fn lists(writes: [&[u32]; 3], reads: [&[u32]; 3]) -> TouchedRows {
        TouchedRows { writes: writes.into_iter().collect(), reads: reads.into_iter().collect() }
    }

    #[test]
    fn lists_of_blocks_have_all_rows_that_are_touched_and_no_row_for_two_workers() {
        // Two rows written of one array, one of another, and every third iteration reads what nobody writes.
        let mut touched = Touched::new(&[50, 40]).expect("few rows");
        for at in 0..3_000usize {
            touched.note(Key::new(at * 7919 % 47, at % 5 > 0));
            touched.note(Key::new(50 + at * at % 31, true));
            if at % 3 == 0 {
                touched.note(Key::new(47 + at % 2, false));
            }
            touched.end_iteration().expect("few iterations");
        }
        for (cut, parts) in [(Cut::Ranges, 2), (Cut::Ranges, 6), (Cut::Spread, 4)] {
            let batches = blocks(&touched, parts, cut).expect("few tiles");
            for workers in [1, 2, 3] {
                let dealt = deal(&touched, &batches, workers);
                let all = super::lists(&batches, &dealt, workers, 0, (false, false)).all;
                let exact = row_lists(&touched, &all, workers, batches.len());
                let of_blocks = batches.blocks.as_ref().expect("blocks");
                let mut lists = block_lists(&touched, &batches, of_blocks, &dealt, workers);
                fill_ranges(&mut lists, batches.len());
                for (worker, array, batch) in (0..workers)
                    .flat_map(|worker| [0, 1].map(|array| (worker, array)))
                    .flat_map(|(worker, array)| (0..batches.len()).map(move |batch| (worker, array, batch)))
                {
                    let (exact, lists) = (&exact[worker][array], &lists[worker][array]);
                    let (writes, reads) = (lists.writes.of(batch), lists.reads.of(batch));
                    assert!(exact.writes.of(batch).iter().all(|row| writes.contains(row)));
                    assert!(
                        exact.reads.of(batch).iter().all(|row| writes.contains(row) || reads.contains(row))
                    );
                }
                RowPlan::new(vec![50, 40], batches.len(), lists).expect("no row is touched by two");
            }
        }
    }

    #[test]
    fn rows_are_added_where_nobody_else_can_touch_them() {
        let none: [&[u32]; 3] = [&[], &[], &[]];
        let mut all = vec![
            // Apart; one within the range of the other; apart, and nothing.
            vec![lists([&[3, 1], &[0, 4], &[5]], none), lists([&[1, 3], &[0, 2], &[0, 9]], none)],
            vec![lists([&[8, 6], &[2], &[]], none), lists([&[5, 6], &[5, 3], &[]], [&[], &[7], &[]])],
        ];
        fill_ranges(&mut all, 3);
        assert_eq!(all[0][0], lists([&[1, 2, 3], &[0, 4], &[5]], none));
        assert_eq!(all[1][0], lists([&[6, 7, 8], &[2], &[]], none));
        // One of the second array's batches has rows that are read, and in one too few of a range are touched.
        assert_eq!(all[0][1], lists([&[1, 2, 3], &[0, 2], &[0, 9]], none));
        assert_eq!(all[1][1], lists([&[5, 6], &[5, 3], &[]], [&[], &[7], &[]]));
    }
}
