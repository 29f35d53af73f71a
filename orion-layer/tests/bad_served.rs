//! Served arrays that are used wrongly: errors that name array, iteration and key, nothing taken for a result.
use crate::common;

use crate::common::relaxing;
use common::watchdog::watched;
use hectare_orion::relax::{Consistency, Every, Sum};
use hectare_orion::{Error, parallel_for, run};
use relaxing::Touchy;
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};

const ALL: [Consistency; 4] =
    [Consistency::Serializable, Consistency::Bsp, Consistency::Bounded(1), Consistency::Async];

#[test]
fn a_key_that_is_missing_is_named() {
    for consistency in ALL {
        for add in [false, true] {
            let failed = watched("a missing key", || {
                run(2, |w| {
                    let zeros = w.zeros::<u64, 1>([100])?.named("weights");
                    let mut weights = w.served(zeros, Sum)?;
                    let error = parallel_for!(w, unordered, serve weights, consistency = consistency;
                    for k in 0..1000 {
                        let key = if k == 777 { 100 } else { k % 100 };
                        if !add {
                            assert_eq!(weights.get(key), weights.get(key));
                        }
                        weights.add(key, 1);
                    })
                    .unwrap_err();
                    assert!(matches!(weights.array().to_vec(w), Err(Error::Poisoned { .. })));
                    Err::<(), Error>(error)
                })
            });
            let error = failed.unwrap_err();
            let named = matches!(&error, Error::OutOfBounds { index, array, .. } if index == &[100] && array == "weights");
            assert!(named, "{consistency}: {error}");
        }
    }
}

#[test]
fn a_row_that_is_missing_is_named() {
    for consistency in ALL {
        for what in 0..3 {
            let failed = run(2, |w| {
                let zeros = w.zeros::<u64, 3>([10, 4, 3])?.named("table");
                let mut table = w.served(zeros, Sum)?;
                parallel_for!(w, unordered, serve table, consistency = consistency;
                for k in 0..100 {
                    let row = [k % 10, if k == 55 { 4 } else { 1 }];
                    match what {
                        0 => assert_eq!(table.row(row).len(), 3),
                        1 => table.add_row(row, &[1, 2, 3]),
                        _ => table.add([row[0], 1, if k == 55 { 3 } else { 1 }], 1),
                    }
                })
            });
            let error = failed.unwrap_err();
            let at = if what == 2 { vec![5, 1, 3] } else { vec![5, 4] };
            let named =
                matches!(&error, Error::OutOfBounds { index, array, .. } if index == &at && array == "table");
            assert!(named, "{consistency}, {what}: {error}");
        }
    }
}

/// A subscript that is another each time it is computed.
fn fickle(k: usize) -> usize {
    thread_local!(static CALLS: Cell<usize> = const { Cell::new(0) });
    match k {
        37 => 40 + CALLS.replace(CALLS.get() + 1) % 50,
        _ => k % 40,
    }
}

#[test]
fn a_check_finds_subscripts_that_are_not_the_same_twice() {
    let failed = run(2, |w| {
        w.check_loops(true);
        let zeros = w.zeros::<u64, 1>([100])?;
        let mut weights = w.served(zeros, Sum)?;
        parallel_for!(w, unordered, serve weights;
        for k in 0..100 {
            let key = fickle(k);
            weights.add(key, 1);
        })
    });
    let error = failed.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Check { .. }), "{text}");
    assert!(text.contains("iteration (k=37) uses weights[41]"), "{text}");
    assert!(text.contains("names weights[40]:"), "{text}");
    assert!(!text.contains("more"), "only that one: {text}");
}

#[test]
fn without_a_check_such_a_key_is_looked_up_and_counted() {
    for workers in [1, 2] {
        let found = run(workers, |w| {
            let zeros = w.zeros::<u64, 1>([100])?;
            let mut weights = w.served(zeros, Sum)?;
            parallel_for!(w, unordered, serve weights;
            for k in 0..100 {
                let key = fickle(k);
                weights.add(key, 1);
            })?;
            Ok((weights.array().to_vec(w)?, w.reports()?.swap_remove(0).serving))
        });
        let (values, serving) = found.unwrap().swap_remove(0);
        assert_eq!(values.iter().sum::<u64>(), 100);
        assert_eq!(serving.write_misses, 1, "{serving:?}");
    }
}

#[test]
fn checked_loops_know_served_arrays() {
    let found = run(2, |w| {
        w.check_loops(true);
        let (zeros, more) = (w.zeros::<u64, 1>([100])?, w.zeros::<f64, 3>([5, 4, 3])?);
        let (mut a, mut b) = (w.served(zeros, Sum)?, w.served(more, Sum)?);
        for _pass in 0..2 {
            parallel_for!(w, unordered, serve [a, b], consistency = Consistency::Async;
            for k in 0..200 {
                let at = [k % 5, k / 5 % 4];
                if b.row(at)[0] < 3.0 {
                    b.add_row(at, &[1.0, 0.0, 0.5]);
                }
                a.add(k % 100, 1);
            })?;
        }
        // Unchecked again: what the checked passes changed is seen.
        w.check_loops(false);
        parallel_for!(w, unordered, serve a;
        for k in 0..100 {
            assert_eq!(a.get(k), 4);
            a.add(k, 1);
        })?;
        Ok((a.array().to_vec(w)?, b.array().to_vec(w)?))
    });
    let (a, b) = &found.unwrap()[0];
    assert!(a.iter().all(|value| *value == 5));
    assert!(b.chunks(3).all(|row| row == [3.0, 0.0, 1.5]));
}

#[test]
fn a_slice_that_fails_where_the_body_does_not_does_no_harm() {
    let found = run(2, |w| {
        let zeros = w.zeros::<u64, 1>([100])?;
        let mut weights = w.served(zeros, Sum)?;
        let next: Vec<usize> = (0..50).collect();
        let next = &next;
        // The condition guards the look into `next`, and is not known before.
        parallel_for!(w, unordered, serve weights, every = Every::PerPass(1);
        for k in 0..100 {
            if weights.get(k) == 1 {
                weights.add(next[k], 1);
            }
            weights.add(k, 1);
        })?;
        weights.array().to_vec(w)
    });
    assert!(found.unwrap()[0].iter().all(|value| *value == 1));
}

#[test]
fn a_body_that_panics_poisons_and_everybody_hears_of_it() {
    for consistency in ALL {
        for at in [0, 2999, 5999] {
            let failed = run(3, |w| {
                let zeros = w.zeros::<u64, 1>([100])?;
                let mut weights = w.served(zeros, Sum)?;
                let error = parallel_for!(w, unordered, serve weights, consistency = consistency;
                for k in 0..6000 {
                    assert!(k != at, "an accident");
                    weights.add(k % 100, 1);
                })
                .unwrap_err();
                assert!(matches!(weights.array().to_vec(w), Err(Error::Poisoned { .. })));
                Err::<(), Error>(error)
            });
            let error = failed.unwrap_err();
            assert!(
                matches!(&error, Error::BodyPanicked { message, .. } if message == "an accident"),
                "{error}"
            );
        }
    }
}

#[test]
fn a_rule_that_panics_poisons() {
    for consistency in ALL {
        let failed = run(3, |w| {
            let zeros = w.zeros::<u64, 1>([100])?;
            let mut weights = w.served(zeros, Touchy)?;
            let error = parallel_for!(w, unordered, serve weights, consistency = consistency;
            for k in 0..6000 {
                weights.add(k % 100, if k == 3210 { 1000 } else { 0 });
            })
            .unwrap_err();
            assert!(matches!(weights.array().to_vec(w), Err(Error::Poisoned { .. })));
            Err::<(), Error>(error)
        });
        let error = failed.unwrap_err();
        let named = matches!(&error, Error::RulePanicked { rule, message, .. }
            if rule == "Touchy" && message == "an update of 1000");
        assert!(named, "{error}");
    }
}

/// The slice runs what subscripts depend on, and nothing else of the body.
#[test]
fn a_slice_leaves_out_what_no_subscript_needs() {
    let (keys, others) = (AtomicUsize::new(0), AtomicUsize::new(0));
    run(1, |w| {
        let zeros = w.zeros::<u64, 1>([100])?;
        let mut weights = w.served(zeros, Sum)?;
        let key_of = |k: usize| {
            keys.fetch_add(1, Ordering::Relaxed);
            k % 100
        };
        let other = |k: usize| others.fetch_add(k, Ordering::Relaxed);
        for _pass in 0..3 {
            parallel_for!(w, unordered, serve weights;
            for k in 0..500 {
                let unused = other(1);
                other(unused.min(1));
                let key = key_of(k);
                weights.add(key, weights.get(key) + 1);
            })?;
        }
        Ok(())
    })
    .unwrap();
    let (keys, others) = (keys.into_inner(), others.into_inner());
    assert_eq!(keys, 500 + 3 * 500, "once for the lists, once for each iteration");
    assert!(others <= 3 * 500 * 2, "{others}");
}
