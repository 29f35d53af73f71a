//! Tiles that are taken as they come free: who stands still keeps nobody from the rest, and who fails is an error on all.
//! Random loops are in `schedules.rs`.
#![allow(clippy::single_range_in_vec_init)]
use crate::common;

use common::hand::{access, blames, head, index, on_each};
use hectare_orion::accumulate::Sum;
use hectare_orion::execute::{IterationSpace, LoopHead, Of, Ranges, entry_parts};
use hectare_orion::loop_nest::{Affine, Mode};
use hectare_orion::schedule::Dynamic;
use hectare_orion::{Context, Error, parallel_for};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Iterations of a loop in each dimension.
const SIDE: usize = 48;
/// Blocks of two workers in each dimension.
const BLOCKS: [usize; 2] = [8, 4];

/// A loop over a square that counts in row `i` of `a` and row `j` of `b`, and calls `each` with every iteration.
fn square<S: IterationSpace>(
    w: &mut Context<'_>,
    space: &S,
    cell: impl Fn(Of<'_, S::Chunks>, &mut dyn FnMut(usize, usize)),
    each: impl Fn(usize, usize),
) -> Result<[Vec<u64>; 2], Error> {
    let mut a = w.zeros::<u64, 1>([SIDE])?.named("rows");
    let mut b = w.zeros::<u64, 1>([SIDE])?.named("columns");
    let mut counted = 0;
    let mut result = Ok(());
    for _ in 0..3 {
        let passed = w.run_loop(
            &LoopHead { schedule: Some(&Dynamic), ..head(&["i", "j"], &["a", "b"]) },
            space,
            (&mut a, &mut b),
            (Sum::<u64>::new(),),
            &|nest| {
                nest.arrays.iter_mut().for_each(|array| array.element_bytes = 1 << 16);
                nest.accesses.push(access(0, index(Affine::var(0)), Mode::Update, "a[i]"));
                nest.accesses.push(access(1, index(Affine::var(1)), Mode::Update, "b[j]"));
            },
            |chunk, (a, b)| {
                let mut count = 0;
                cell(chunk, &mut |i, j| {
                    each(i, j);
                    a[i] += 1;
                    b[j] += 1;
                    count += 1;
                });
                (count,)
            },
        );
        match passed {
            Ok((count,)) => counted += count,
            Err(error) => {
                result = Err(error);
                break;
            }
        }
    }
    if result.is_err() {
        for array in [&a, &b] {
            assert!(matches!(array.read(w), Err(Error::Poisoned { .. })), "{array:?} can be read");
        }
    }
    result?;
    assert!(w.explain().iter().all(|one| one.is_dynamic));
    let counts = [a.to_vec(w)?, b.to_vec(w)?];
    assert!(counts.iter().all(|counts| counts.iter().sum::<u64>() == counted));
    Ok(counts)
}

fn dense(w: &mut Context<'_>, each: impl Fn(usize, usize)) -> Result<[Vec<u64>; 2], Error> {
    square(
        w,
        &Ranges([0..SIDE, 0..SIDE]),
        |[is, js], visit| {
            is.for_each(|i| js.clone().for_each(|j| visit(i, j)));
        },
        each,
    )
}

fn entries(w: &mut Context<'_>, each: impl Fn(usize, usize)) -> Result<[Vec<u64>; 2], Error> {
    let all = w.entries([SIDE, SIDE], SIDE * SIDE, |k| ([k / SIDE, k % SIDE], k as f32))?;
    square(
        w,
        &all,
        |chunk, visit| {
            for entry in chunk {
                let ([i, j], value) = entry_parts(entry);
                assert_eq!(*value, (i * SIDE + j) as f32);
                visit(i, j);
            }
        },
        each,
    )
}

const COUNTS: u64 = 3 * SIDE as u64;

/// One of two workers stands still in its first tile until the other has run all that shares no part with that.
#[test]
fn a_worker_that_stands_still_keeps_nobody_from_the_rest() {
    for sparse in [false, true] {
        let (ran, stood) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let rest = BLOCKS.map(|blocks| SIDE / blocks * (blocks - 1));
        let results = on_each(2, |w| {
            let me = w.rank();
            let each = |_: usize, _: usize| match me {
                0 => _ = ran.fetch_add(1, SeqCst),
                _ => {
                    while stood.load(SeqCst) == 0 && ran.load(SeqCst) < rest[0] * rest[1] {
                        std::thread::yield_now();
                    }
                    stood.store(1, SeqCst);
                }
            };
            if sparse { entries(w, each) } else { dense(w, each) }
        });
        for result in results {
            assert_eq!(result.unwrap(), [vec![COUNTS; SIDE], vec![COUNTS; SIDE]]);
        }
    }
}

#[test]
fn a_panic_is_an_error_on_all() {
    for workers in [2, 3, 4] {
        for (i, j) in [(0, 0), (20, 31), (47, 47)] {
            let results = on_each(workers, |w| {
                let result = dense(w, |at, and| {
                    if (at, and) == (i, j) {
                        resume_unwind(Box::new(format!("broken at {i}, {j}")));
                    }
                });
                // The program can go on, with other arrays.
                assert_eq!(entries(w, |_, _| {}).unwrap(), [vec![COUNTS; SIDE], vec![COUNTS; SIDE]]);
                result
            });
            let broken = |result: &Result<_, _>| matches!(result, Err(Error::BodyPanicked { .. }));
            let culprit = results.iter().position(broken).unwrap_or_else(|| panic!("{results:?}"));
            blames(&results, culprit);
            let text = results[culprit].as_ref().unwrap_err().to_string();
            assert!(text.contains(&format!("broken at {i}, {j}")), "{text}");
        }
    }
}

/// Entries that loops with other cuts have moved meanwhile, and that are run elsewhere again.
#[test]
fn entries_may_move_between_loops() {
    let results = on_each(3, |w| {
        let r = w.entries([90, 70], 4000, |k| ([k * 7 % 90, k * 11 % 70], (k % 13) as u64))?;
        let (mut u, mut v) = (w.zeros::<u64, 2>([90, 40])?, w.zeros::<u64, 2>([70, 40])?);
        let mut sums = Vec::new();
        for _ in 0..3 {
            sums.push(parallel_for!(w, unordered, read r, write [u, v], sum all: u64, schedule = Dynamic;
            for ((i, j), x) in r {
                u.row_mut(i)[0] += x;
                v.row_mut(j)[1] += x;
                all += *x;
            })?);
            sums.push(parallel_for!(w, unordered, read r, write u, sum all: u64;
            for ((i, j), x) in r {
                u.row_mut(i)[2] += x * j as u64;
                all += *x;
            })?);
        }
        let rows: u64 = u.to_vec(w)?.chunks(40).map(|row| row[0]).sum();
        let columns: u64 = v.to_vec(w)?.chunks(40).map(|row| row[1]).sum();
        Ok((sums, rows, columns, w.explain().iter().filter(|one| one.is_dynamic).count()))
    });
    let expected: u64 = (0..4000).map(|k| k % 13).sum();
    for result in results {
        assert_eq!(result.unwrap(), (vec![expected; 6], 3 * expected, 3 * expected, 1));
    }
}

/// Tiles whose entries another worker would not find, or only copies of, run as planned.
#[test]
fn entries_with_other_values_are_run_as_planned() {
    let results = on_each(2, |w| {
        let r = w.entries([90, 70], 4000, |k| ([k * 7 % 90, k * 11 % 70], (k as u64, 1u8)))?;
        let (mut u, mut v) = (w.zeros::<u64, 2>([90, 40])?, w.zeros::<u64, 2>([70, 40])?);
        parallel_for!(w, unordered, read r, write [u, v], schedule = Dynamic;
        for ((i, j), x) in r {
            u.row_mut(i)[0] += x.0;
            v.row_mut(j)[1] += x.0;
        })?;
        Ok((u.to_vec(w)?.iter().sum::<u64>(), w.explain()[0].is_dynamic))
    });
    for result in results {
        assert_eq!(result.unwrap(), ((0..4000).sum(), false));
    }
}

#[test]
fn a_checked_loop_finds_nothing_wrong_with_it() {
    let results = on_each(3, |w| {
        w.check_loops(true);
        dense(w, |_, _| {})
    });
    for result in results {
        assert_eq!(result.unwrap(), [vec![COUNTS; SIDE], vec![COUNTS; SIDE]]);
    }
}
