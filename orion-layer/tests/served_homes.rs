//! Homes of served keys that change hands, keys that nobody foresaw, lists that have become useless, and odd sizes.
use crate::common;

use common::watchdog::watched;
use hectare_orion::relax::{Apply, Consistency, Every, Sum};
use hectare_orion::serve::PrefetchStats;
use hectare_orion::{Context, PerWorker, Result, parallel_for, run};
use std::cell::Cell;

const RELAXED: [Consistency; 3] = [Consistency::Bsp, Consistency::Bounded(1), Consistency::Async];

fn serving(w: &mut Context<'_>) -> Result<PrefetchStats> {
    Ok(w.reports()?.swap_remove(0).serving)
}

/// Iteration `at` uses key `first` when the slice computes it, and `then` when the body does.
fn turncoat(k: usize, at: usize, first: usize, then: usize) -> usize {
    thread_local!(static CALLS: Cell<usize> = const { Cell::new(0) });
    match k == at {
        true if CALLS.replace(CALLS.get() + 1).is_multiple_of(2) => first,
        true => then,
        false => k,
    }
}

/// A key that worker 0 alone has announced, and has not fetched yet, gets a contribution of worker 1's that no slice
/// had foreseen.
#[test]
fn an_unforeseen_contribution_reaches_a_key_that_its_home_has_not_fetched() {
    for consistency in RELAXED {
        for rows in [false, true] {
            let found = run(2, |w| {
                let (a, b) = (w.fill([1000], 7u64)?, w.fill([1000, 3], 7u64)?);
                let (mut sums, mut table) = (w.served(a, Sum)?, w.served(b, Sum)?);
                for _pass in 0..2 {
                    // Key 499 is in the last interval of worker 0; iteration 510 is in the first of worker 1.
                    if rows {
                        parallel_for!(w, unordered, serve table, consistency = consistency, every = Every::PerPass(10);
                        for k in 0..1000 {
                            let key = turncoat(k, 510, 510, 499);
                            table.add_row(key, &[1, 2, 3]);
                        })?;
                    } else {
                        parallel_for!(w, unordered, serve sums, consistency = consistency, every = Every::PerPass(10);
                        for k in 0..1000 {
                            let key = turncoat(k, 510, 510, 499);
                            sums.add(key, 1);
                        })?;
                    }
                }
                assert_eq!(serving(w)?.write_misses, 1);
                let table = table.array().to_vec(w)?;
                Ok(if rows { table.into_iter().step_by(3).collect() } else { sums.array().to_vec(w)? })
            });
            let values: Vec<u64> = found.unwrap().swap_remove(0);
            // The lists are kept, and in the second pass the function says what the slice was told.
            assert_eq!((values[499], values[510], values[511]), (10, 8, 9), "{consistency}, rows {rows}");
            assert_eq!(values.iter().sum::<u64>(), 7000 + 2000, "{consistency}, rows {rows}");
        }
    }
}

/// Counts how many merges of others came between the look at an element and the merge.
#[derive(Debug)]
struct Lag;

impl Apply<u64> for Lag {
    type State = u64;
    type Snapshot = u64;

    fn snapshot(&self, state: &u64) -> u64 {
        *state
    }

    fn apply(&self, target: &mut u64, state: &mut u64, _update: u64, seen: u64) {
        *target += *state - seen;
        *state += 1;
    }
}

#[test]
fn what_was_seen_of_a_key_is_seen_anew_when_others_begin_to_use_it() {
    let found = run(2, |w| {
        let zeros = w.zeros::<u64, 1>([100])?;
        let mut lags = w.served(zeros, Lag)?;
        let mut reads = Vec::new();
        for pass in 0..4 {
            // Worker 1 reads key 0 from pass 2 on; the lists of worker 0 stay as they are.
            let offset = PerWorker::new(if w.rank() == 1 && pass >= 2 { 0 } else { 50 });
            let me = PerWorker::new(w.rank());
            parallel_for!(w, unordered, serve lags, consistency = Consistency::Bsp, every = Every::PerPass(5), sum read: u64;
            for k in 0..20 {
                if *me == 0 {
                    lags.add(0, 1);
                } else {
                    read += lags.get(*offset + k % 2);
                }
            })?;
            reads.push(lags.array().get(w, [0])?);
        }
        assert_eq!(lags.state().unwrap().get(w, [0])?, 10 + 10 + 5 + 5);
        Ok(reads)
    });
    // Nobody but worker 0 contributes, and what it saw is what there was.
    assert_eq!(found.unwrap()[0], [0, 0, 0, 0]);
}

#[test]
fn lists_that_miss_much_are_made_anew() {
    let found = run(2, |w| {
        let zeros = w.zeros::<u64, 1>([1000])?;
        let mut sums = w.served(zeros, Sum)?;
        let mut misses = Vec::new();
        for pass in 0..5 {
            // To the macro, a function that stays the same.
            let shift = if pass < 2 { 0 } else { 500 };
            let place = |k: usize| (k + shift) % 1000;
            parallel_for!(w, unordered, serve sums;
            for k in 0..300 {
                sums.add(place(k), 1);
            })?;
            let serving = serving(w)?;
            misses.push((serving.write_misses, serving.plans_made));
        }
        let values = sums.array().to_vec(w)?;
        assert!((0..300).all(|k| values[k] == 2 && values[500 + k] == 3));
        Ok(misses)
    });
    // Pass 2 looks all up, pass 3 has new lists.
    assert_eq!(found.unwrap()[0], [(0, 2), (0, 2), (300, 2), (300, 4), (300, 4)]);
}

#[test]
fn many_loops_over_one_array() {
    let found = run(2, |w| {
        let zeros = w.zeros::<u64, 1>([200])?;
        let mut sums = w.served(zeros, Sum)?;
        // More than lists are kept of, one after the other and again.
        for turn in 0..3u64 {
            for size in 1..=12 {
                parallel_for!(w, unordered, serve sums, every = Every::PerPass(3);
                for k in 0..10 * size {
                    let before = sums.get(k);
                    sums.add(k, 1 + before / 1000);
                })?;
            }
            let values = sums.array().to_vec(w)?;
            let expected = |k: usize| (turn + 1) * (12 - k / 10).min(12) as u64;
            assert!((0..120).all(|k| values[k] == expected(k)), "{values:?}");
        }
        Ok(())
    });
    found.unwrap();
}

/// Few keys, many workers, iterations for some of them only, keys named many times over.
#[test]
fn odd_sizes() {
    watched("odd sizes", || {
        for workers in [1, 2, 5] {
            for (keys, rows) in [(1, 0), (1, 1), (1, 7), (3, 2), (7, 40), (40, 3)] {
                for consistency in RELAXED {
                    let found = run(workers, |w| {
                        let (a, b) = (w.zeros::<u64, 1>([keys])?, w.zeros::<u64, 3>([keys, 1, 2])?);
                        let (mut sums, mut table) = (w.served(a, Sum)?, w.served(b, Sum)?);
                        for _pass in 0..3 {
                            parallel_for!(w, unordered, serve [sums, table], consistency = consistency;
                            for k in 0..rows {
                                for turn in 0..6 {
                                    sums.add(k * turn % keys, 1);
                                    sums.add(k * turn % keys, 1);
                                    table.add([k % keys, 0, 1], 1);
                                }
                                table.add_row([k % keys, 0], &[1, 0]);
                            })?;
                        }
                        let serving = serving(w)?;
                        assert_eq!((serving.read_misses, serving.write_misses), (0, 0), "{serving:?}");
                        Ok((sums.array().to_vec(w)?, table.array().to_vec(w)?))
                    });
                    let (sums, table) = found.unwrap().swap_remove(0);
                    let what = format!("{workers} workers, {keys} keys, {rows} rows, {consistency}");
                    assert_eq!(sums.iter().sum::<u64>(), 3 * 12 * rows as u64, "{what}");
                    assert_eq!(table.iter().step_by(2).sum::<u64>(), 3 * rows as u64, "{what}");
                    assert_eq!(table.iter().skip(1).step_by(2).sum::<u64>(), 18 * rows as u64, "{what}");
                }
            }
        }
    });
}

/// Rows that no slice had foreseen, in number.
#[test]
fn many_rows_looked_up() {
    let found = run(2, |w| {
        let table = w.from_fn([20_000, 2], |[row, at]| (2 * row + at) as u64)?;
        let mut table = w.served(table, Sum)?;
        let sum = parallel_for!(w, unordered, serve table, prefetch = false, every = Every::PerPass(1), sum sum: u64;
        for k in 0..40_000 {
            let row = table.row(k / 2);
            sum += row[0] + row[1];
            if k == 39_999 {
                table.add([k / 2, 0], 1);
            }
        })?;
        assert_eq!(serving(w)?.read_misses, 40_000);
        Ok(sum)
    });
    assert_eq!(found.unwrap()[0], 2 * (0..40_000).sum::<u64>());
}
