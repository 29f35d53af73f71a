//! Sums that are arrays: the same for every number of workers, and what is refused.
#![allow(clippy::single_range_in_vec_init)]
use crate::common::diverging::assert_diverged;
use crate::common::hand::{access, head, on_each};
use hectare_orion::accumulate::{Accumulator, Accumulators, ArraySum};
use hectare_orion::execute::{LoopHead, Ranges};
use hectare_orion::loop_nest::{Mode, Subscript};
use hectare_orion::relax::{Consistency, Every, Relaxation};
use hectare_orion::{Context, Error, Result, parallel_for, run};
use std::panic::resume_unwind;

const COUNT: usize = 1000;

/// A value whose sums round differently in different orders.
fn value(i: usize) -> f64 {
    1.0 / (i as f64 + 0.3) * if i.is_multiple_of(3) { -1e6 } else { 1.0 }
}

fn histogram(w: &mut Context<'_>, bins: usize) -> Result<Vec<f64>> {
    let sums = parallel_for!(w, unordered, sum sums: [f64; 2 * bins];
    for i in 0..COUNT {
        let bin = i * i % bins;
        sums[2 * bin] += value(i);
        sums.add(2 * bin + 1, 1.0);
    })?;
    Ok(sums.into_vec())
}

#[test]
fn floats_have_the_same_bits_for_every_number_of_workers() {
    // 9,000 bins do not fit a frame between workers.
    for bins in [1, 7, 9000] {
        let alone = run(1, |w| histogram(w, bins)).unwrap().swap_remove(0);
        let mut plain = vec![0.0; 2 * bins];
        for i in 0..COUNT {
            plain[2 * (i * i % bins)] += value(i);
            plain[2 * (i * i % bins) + 1] += 1.0;
        }
        let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * a.abs().max(1.0);
        assert!(alone.iter().zip(&plain).all(near), "{bins} bins");
        let bits = |sums: &[f64]| sums.iter().map(|sum| sum.to_bits()).collect::<Vec<_>>();
        for workers in 2..=4 {
            for other in run(workers, |w| histogram(w, bins)).unwrap() {
                assert_eq!(bits(&other), bits(&alone), "{workers} workers, {bins} bins");
            }
        }
    }
}

/// A program by hand may use its accumulators again. The worker that waits for the one that fails has run some of its cells.
#[test]
fn what_a_failed_pass_has_added_up_is_forgotten() {
    let every = Every::PerPass(8);
    let relax = Relaxation { consistency: Consistency::Bsp, every, ..Relaxation::default() };
    for result in on_each(2, |w| {
        let sums = (ArraySum::<u64>::new(3),);
        let pass = |w: &mut Context<'_>, broken: bool| {
            let mut bins = w.zeros::<u64, 1>([3])?;
            w.run_loop(
                &LoopHead { relax, ..head(&["i"], &["bins"]) },
                &Ranges([0..COUNT]),
                (bins.relaxed(),),
                &sums,
                &|nest| nest.accesses.push(access(0, vec![Subscript::Unknown], Mode::Update, "bins[?]")),
                |[is], (bins,)| {
                    let mut own = sums.identities();
                    for i in is {
                        if broken && i + 1 == COUNT {
                            resume_unwind(Box::new("broken"));
                        }
                        bins.add(i % 3, 1);
                        own.0.add(i % 3, 1);
                    }
                    own
                },
            )
        };
        pass(w, true).expect_err("one worker panics");
        Ok(pass(w, false)?.0.into_vec())
    }) {
        assert_eq!(result.unwrap(), [334, 333, 333]);
    }
}

#[test]
fn rows_beside_other_accumulators_and_over_entries() {
    for workers in 1..=3 {
        let all = run(workers, |w| {
            let entries = w.entries([40, 5], 100, |k| ([k * 7 % 40, k % 5], k as u64))?;
            let (sums, most, nothing) = parallel_for!(w, unordered,
            sum sums: [u64; 15], max most: u64, sum nothing: [i32; 0];
            for ((_row, column), x) in entries {
                let row = [*x, 1, u64::MAX];
                sums.add_row(3 * column, &row);
                most = most.max(*x);
                let mut view = sums.view(3 * column, 2);
                view.add(0, 5);
                view.add_row(1, &[2]);
                nothing.add_row(0, &[]);
            })?;
            Ok((sums.into_vec(), most, nothing.len()))
        });
        let column = |c: u64| {
            let values = (0..100).filter(|k| k % 5 == c);
            {
                let count = values.clone().count() as u64;
                [values.sum::<u64>() + 5 * count, 3 * count, count.wrapping_neg()]
            }
        };
        let wanted: Vec<u64> = (0..5).flat_map(column).collect();
        for found in all.unwrap() {
            assert_eq!(found, (wanted.clone(), 99, 0), "{workers} workers");
        }
    }
}

#[test]
fn sums_of_nothing_are_zeros() {
    for workers in 1..=4 {
        let all = run(workers, |w| {
            let none = parallel_for!(w, unordered, sum none: [i64; 3]; for i in 0..0 { none[i] += 1; })?;
            let few = parallel_for!(w, unordered, sum few: [f32; 3]; for i in 0..2 { few[i] += 1.0; })?;
            Ok((none.into_vec(), few.into_vec()))
        });
        assert_eq!(all.unwrap(), vec![(vec![0; 3], vec![1.0, 1.0, 0.0]); workers]);
    }
}

#[test]
fn checked_loops_add_up_the_same() {
    let sums = |checks: bool| {
        let all = run(2, |w| {
            w.check_loops(checks);
            let sums =
                parallel_for!(w, ordered, sum sums: [i64; 3]; for i in 0..30 { sums[i % 3] += i as i64; })?;
            Ok(sums.into_vec())
        });
        all.unwrap()
    };
    assert_eq!(sums(true), [[135, 145, 155]; 2]);
    assert_eq!(sums(true), sums(false));
}

#[test]
fn a_length_that_differs_is_an_error_on_all_workers() {
    let results = on_each(3, |w| {
        let len = if w.rank() == 1 { 4 } else { 3 };
        parallel_for!(w, unordered, sum sums: [u64; len]; for i in 0..9 { sums[i % 3] += 1; }).map(|_| ())
    });
    assert_diverged("array_sums.rs", ["sums.len() = 3", "sums.len() = 4"], results);
}

#[test]
fn a_place_beyond_the_end_is_an_error() {
    let error = run(2, |w| {
        parallel_for!(w, unordered, sum sums: [u64; 3]; for i in 0..9 { sums[i] += 1; }).map(|_| ())
    });
    assert!(matches!(error, Err(Error::BodyPanicked { .. })), "{error:?}");
}

#[test]
fn partials_that_are_cut_off_are_not_read() {
    let sums = ArraySum::<u32>::new(3);
    let mut value = sums.identity();
    value.add_row(1, &[5, u32::MAX]);
    let mut bytes = Vec::new();
    sums.write(&value, &mut bytes);
    assert_eq!(sums.read(&mut &bytes[..]), Some(value));
    assert_eq!(sums.read(&mut &bytes[..12]), None);
    assert_eq!(sums.read(&mut &[][..]), None);
    assert_eq!(ArraySum::<u32>::new(usize::MAX).read(&mut &bytes[..]), None);
}
