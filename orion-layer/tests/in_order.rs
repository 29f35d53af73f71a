//! The values of an ordered loop's iterations are combined in their order, by functions that do not commute and collections that show
//! it, whatever the loop's arrays are and however it could run.
use crate::common::same;
use hectare_orion::schedule::Blocks;
use hectare_orion::{Context, Error, Result, SparseArray, parallel_for};

/// Two functions `x -> a * x + b`, one after the other: associative, and not commutative.
fn then(f: [u64; 2], g: [u64; 2]) -> [u64; 2] {
    [f[0].wrapping_mul(g[0]), f[1].wrapping_mul(g[0]).wrapping_add(g[1])]
}

/// The result of a serial loop that gives these numbers.
fn serial(numbers: impl IntoIterator<Item = usize>) -> [u64; 2] {
    numbers.into_iter().fold([1, 0], |h, number| then(h, [3, number as u64]))
}

const ROWS: usize = 60;
const COLUMNS: usize = 50;

#[test]
fn folds_of_dense_loops() {
    let all = serial(0..ROWS * COLUMNS);
    let inner = serial((1..ROWS).flat_map(|i| (1..COLUMNS).map(move |j| i * COLUMNS + j)));
    same((serial(0..1000), all, all, all, inner), |w| {
        let line = parallel_for!(w, ordered, fold h: [u64; 2] = [1, 0] with then;
        for i in 0..1000 {
            h = fold(h, [3, i as u64]);
        })?;
        let bare = parallel_for!(w, ordered, fold h: [u64; 2] = [1, 0] with then;
        for i in 0..ROWS {
            for j in 0..COLUMNS { h = fold(h, [3, (i * COLUMNS + j) as u64]); }
        })?;
        // Blocks of columns could run at once, of rows not.
        let mut columns = w.zeros::<u64, 1>([COLUMNS])?;
        let by_column = parallel_for!(w, ordered, write columns, fold h: [u64; 2] = [1, 0] with then;
        for i in 0..ROWS {
            for j in 0..COLUMNS {
                columns[j] += 1;
                h = fold(h, [3, (i * COLUMNS + j) as u64]);
            }
        })?;
        // Blocks of rows can, and keep the order.
        let mut rows = w.zeros::<u64, 1>([ROWS])?;
        let by_row = parallel_for!(w, ordered, write rows, fold h: [u64; 2] = [1, 0] with then;
        for i in 0..ROWS {
            for j in 0..COLUMNS {
                rows[i] += 1;
                h = fold(h, [3, (i * COLUMNS + j) as u64]);
            }
        })?;
        assert!(w.explain().to_string().contains("in blocks of i"), "{}", w.explain());
        let mut grid = w.zeros::<f64, 2>([ROWS, COLUMNS])?;
        let wavefront = parallel_for!(w, ordered, write grid, fold h: [u64; 2] = [1, 0] with then;
        for i in 1..ROWS {
            for j in 1..COLUMNS {
                grid[[i, j]] = 0.5 * (grid[[i - 1, j]] + grid[[i, j - 1]]) + 1.0;
                h = fold(h, [3, (i * COLUMNS + j) as u64]);
            }
        })?;
        Ok((line, bare, by_column, by_row, wavefront))
    });
}

/// Every entry of a sparse array of `ROWS` by `COLUMNS`, in no order.
fn entries(w: &mut Context<'_>) -> Result<SparseArray<u64, 2>> {
    let all = ROWS * COLUMNS;
    w.entries([ROWS, COLUMNS], all, |k| {
        let k = k * 7 % all;
        ([k / COLUMNS, k % COLUMNS], 1u64)
    })
}

#[test]
fn folds_of_entries_and_of_rows_that_a_table_names() {
    let all = serial(0..ROWS * COLUMNS);
    same((all, all, serial(0..1000)), |w| {
        let table = entries(w)?;
        let alone = parallel_for!(w, ordered, read table, fold h: [u64; 2] = [1, 0] with then;
        for ((i, j), x) in table {
            h = fold(h, [3, (i * COLUMNS + j) as u64]);
            let _ = x;
        })?;
        let mut columns = w.zeros::<u64, 1>([COLUMNS])?;
        let by_column = parallel_for!(w, ordered, read table, write columns, fold h: [u64; 2] = [1, 0] with then;
        for ((i, j), x) in table {
            columns[j] += x;
            h = fold(h, [3, (i * COLUMNS + j) as u64]);
        })?;
        let names = w.from_fn([1000], |[i]| (i * 37 % 501) as u32)?;
        let mut rows = w.zeros::<u64, 2>([600, 16])?;
        let named = parallel_for!(w, ordered, read names, write rows, fold h: [u64; 2] = [1, 0] with then;
        for i in 0..1000 {
            for x in rows.row_mut(names[i] as usize) { *x += i as u64; }
            h = fold(h, [3, i as u64]);
        })?;
        Ok((alone, by_column, named))
    });
}

#[test]
fn vectors_and_lists() {
    let all: Vec<u64> = (0..(ROWS * COLUMNS) as u64).collect();
    same((all.clone(), Some(all), Some((0..1000).collect::<Vec<u64>>())), |w| {
        let mut columns = w.zeros::<u64, 1>([COLUMNS])?;
        let mut found = w.dist_vec::<u64>()?;
        let mut lists = w.dist_multi_map::<u64, u64>()?;
        parallel_for!(w, ordered, write columns, buffer [found, lists];
        for i in 0..ROWS {
            for j in 0..COLUMNS {
                columns[j] += 1;
                found.push((i * COLUMNS + j) as u64);
                lists.add(&0, (i * COLUMNS + j) as u64);
            }
        })?;
        let names = w.from_fn([1000], |[i]| (i * 37 % 501) as u32)?;
        let mut rows = w.zeros::<u64, 2>([600, 16])?;
        parallel_for!(w, ordered, read names, write rows, buffer lists;
        for i in 0..1000 {
            for x in rows.row_mut(names[i] as usize) { *x += i as u64; }
            lists.add(&1, i as u64);
        })?;
        Ok((found.to_vec(w)?, lists.get(w, &0)?, lists.get(w, &1)?))
    });
}

#[test]
fn schedules_that_do_not_keep_the_order_are_refused() {
    for workers in 1..4 {
        hectare_orion::run(workers, |w| {
            let mut columns = w.zeros::<u64, 1>([COLUMNS])?;
            let schedule = Blocks { dim: 1 };
            let refused = parallel_for!(w, ordered, schedule = schedule, write columns,
                fold h: [u64; 2] = [1, 0] with then;
            for i in 0..ROWS {
                for j in 0..COLUMNS {
                    columns[j] += 1;
                    h = fold(h, [3, i as u64]);
                }
            });
            let refused = refused.unwrap_err();
            assert!(matches!(refused, Error::InvalidSchedule { .. }), "{refused}");
            assert!(refused.to_string().contains("combined in their order"), "{refused}");
            // Sums commute.
            let count = parallel_for!(w, ordered, schedule = Blocks { dim: 1 }, write columns, sum n: u64;
            for i in 0..ROWS {
                for j in 0..COLUMNS {
                    columns[j] += 1;
                    n += i as u64;
                }
            })?;
            assert_eq!(count, (0..ROWS as u64).sum::<u64>() * COLUMNS as u64);
            Ok(())
        })
        .unwrap();
    }
}
