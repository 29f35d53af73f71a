//! Which iterations each worker runs in each batch, and which rows these touch.
use hectare_dependence::inspect::{Batches, Dealt, Touched};
use hectare_dsm::tasks::{RowList, Touched as TouchedRows};

/// The iterations of all workers, batch by batch.
pub(super) struct Lists {
    /// For each worker, where its batches begin, and the iterations.
    pub(super) all: Vec<(Vec<usize>, Vec<u32>)>,
    /// The groups of this worker, if they are told apart.
    pub(super) groups: Vec<(usize, usize)>,
}

/// Deals batches out to workers.
pub(super) fn lists(batches: &Batches, dealt: &Dealt, workers: usize, me: usize, by_group: bool) -> Lists {
    let mut lists = Lists { all: vec![(vec![0], Vec::new()); workers], groups: Vec::new() };
    for batch in 0..batches.len() {
        for (worker, (starts, list)) in lists.all.iter_mut().enumerate() {
            match by_group {
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
