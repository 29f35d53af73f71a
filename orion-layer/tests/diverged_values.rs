//! Values that differ between workers: arguments and captured numbers always, what closures make while loops are checked.
use crate::common;

use common::diverging::assert_diverged;
use common::hand::on_each;
use hectare_orion::{Context, Error, PerWorker, parallel_for};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs a program in which worker 1 has another value: the error of each worker names both places and values.
fn differs(words: [&str; 2], program: impl Fn(&mut Context<'_>, bool) -> Result<(), Error> + Sync) {
    let results = on_each(3, |w| {
        let result = program(w, w.rank() == 1);
        // Nobody is out of step.
        w.check_loops(false);
        assert_eq!(w.fill([7], 2u8)?.to_vec(w)?, [2; 7]);
        result
    });
    assert_diverged("diverged_values.rs", words, results);
}

/// Of two values, the one that this worker has.
fn of<T>(other: bool, values: [T; 2]) -> T {
    let [usual, others] = values;
    if other { others } else { usual }
}

#[test]
fn captured_numbers() {
    fn pass(w: &mut Context<'_>, rate: f32, shift: i8, up: bool) -> Result<(), Error> {
        let mut a = w.zeros::<f32, 1>([90])?;
        let (limits, sign) = ((3usize, 0.5f64), '+');
        parallel_for!(w, unordered, write a;
        for i in 0..90 {
            let step = if up && sign == '+' { rate * f32::from(shift) } else { -rate };
            a[i] = step + (i % limits.0) as f32 * limits.1 as f32;
        })
    }
    for checks in [false, true] {
        differs(["with rate = 0.5", "with rate = 0.25"], |w, other| {
            w.check_loops(checks);
            pass(w, of(other, [0.5, 0.25]), 1, true)
        });
    }
    differs(["with up = true, shift = 1", "with up = false, shift = -1"], |w, other| {
        pass(w, 0.5, of(other, [1, -1]), !other)
    });
    // Equal values raise no error.
    let same = on_each(3, |w| pass(w, 0.5, 1, true));
    assert!(same.iter().all(Result::is_ok), "{same:?}");
}

#[test]
fn captured_fields_references_and_arguments() {
    struct Settings {
        rate: f64,
        _name: String,
    }
    fn step(x: f64, rate: f64) -> f64 {
        x * rate
    }
    differs(["settings.rate = 1.0", "settings.rate = 2.0"], |w, other| {
        let settings = Settings { rate: of(other, [1.0, 2.0]), _name: "not compared".into() };
        let mut a = w.zeros::<f64, 1>([90])?;
        parallel_for!(w, unordered, write a; for i in 0..90 { a[i] = step(i as f64, settings.rate); })
    });
    differs(["rate = 1.0", "rate = 2.0"], |w, other| {
        let (rate, mut sums) = (&of(other, [1.0, 2.0]), w.zeros::<f64, 1>([9])?);
        parallel_for!(w, unordered, relax sums; for i in 0..90 { sums.add(i % 9, *rate); })
    });
    // In a later pass.
    differs(["turn = 2", "turn = 3"], |w, other| {
        let mut a = w.zeros::<usize, 1>([90])?;
        for pass in 0..3 {
            let turn = pass + usize::from(other && pass == 2);
            let done = parallel_for!(w, unordered, write a; for i in 0..90 { a[i] = turn; });
            assert_eq!(done.is_err(), pass == 2);
            done?;
        }
        Ok(())
    });
}

#[test]
fn names_that_are_no_variables_from_outside_are_left_alone() {
    fn twice<T: Copy + std::ops::Add<Output = T>>(x: T) -> T {
        x + x
    }
    let results = on_each(2, |w| {
        let me = PerWorker::new(w.rank());
        let mut a = w.zeros::<u32, 1>([90])?;
        let numbers = [1u32, 2, 3];
        parallel_for!(w, unordered, write a;
        for i in 0..90 {
            fn inner(x: u32) -> u32 { x }
            let rate = numbers.iter().copied().map(twice).map(inner).sum::<u32>();
            let rates = (0..3).map(|rate| rate * 2).filter(|rate| *rate > 0).count() as u32;
            #[cfg(any())]
            let missing = not_there;
            #[cfg(any())]
            println!("{}", not_there_either);
            // Meant to differ, and not compared.
            assert!(*me < 2);
            a[i] = match rate { total if total > 3 => total + rates, other => other };
        })?;
        a.to_vec(w)
    });
    for result in results {
        assert_eq!(result.unwrap(), [14; 90]);
    }
}

#[test]
fn arguments_of_makers() {
    differs(["shape [8] of f32", "shape [9] of f32"], |w, other| {
        w.zeros::<f32, 1>([of(other, [8, 9])]).map(drop)
    });
    differs(["the value 0.5", "the value 0.25"], |w, other| w.fill([8], of(other, [0.5f32, 0.25])).map(drop));
    differs(["seed 1", "seed 2"], |w, other| w.normal::<f32, 1>([8], 1.0, of(other, [1, 2])).map(drop));
    differs(["the range 0.0..1.0", "the range 0.0..2.0"], |w, other| {
        w.uniform::<f32, 1>([8], 0.0..of(other, [1.0, 2.0]), 1).map(drop)
    });
    differs(["set_seed(0)", "set_seed(5)"], |w, other| {
        w.set_seed(of(other, [0, 5]));
        w.uniform::<f32, 1>([8], 0.0..1.0, 1).map(drop)
    });
    differs(["30 entries", "31 entries"], |w, other| {
        w.entries([40], of(other, [30, 31]), |k| ([k], 1u8)).map(drop)
    });
    differs(["the range 0..8", "the range 1..9"], |w, other| {
        let start = i64::from(other);
        w.range(start..start + 8).map(drop)
    });
}

#[test]
fn arguments_of_writes() {
    for checks in [false, true] {
        differs(["the value 0.5", "the value 0.25"], |w, other| {
            let mut a = w.zeros::<f32, 1>([8])?;
            w.check_loops(checks);
            let filled = a.fill(w, of(other, [0.5, 0.25]));
            // Nothing was written.
            assert_eq!(a.to_vec(w)?, [0.0; 8]);
            filled
        });
        differs(["element [7] = 0.5", "element [7] = 0.25"], |w, other| {
            let mut a = w.zeros::<f32, 1>([8])?;
            w.check_loops(checks);
            a.set(w, [7], of(other, [0.5, 0.25]))
        });
        differs(["element [1] = 0.5", "element [7] = 0.5"], |w, other| {
            let mut a = w.zeros::<f32, 1>([8])?;
            w.check_loops(checks);
            a.set(w, [of(other, [1, 7])], 0.5)
        });
        differs(["the range [2..4]", "the range [3..5]"], |w, other| {
            let mut a = w.zeros::<f32, 1>([8])?;
            w.check_loops(checks);
            let start = of(other, [2, 3]);
            a.write(w, start..start + 2, &[0.5, 1.0])
        });
        differs(["values of the checksum ", "values of the checksum "], |w, other| {
            let mut a = w.zeros::<f32, 2>([8, 2])?;
            w.check_loops(checks);
            a.write_range(w, [1..3, 1..2], &[0.5, of(other, [1.0, 1.5])])
        });
    }
    // Another array.
    differs(["array 1", "array 2"], |w, other| {
        let mut arrays = [w.zeros::<u8, 1>([8])?, w.zeros([8])?];
        arrays[usize::from(other)].fill(w, 1)
    });
    // Many values, under a check only.
    let long = |w: &mut Context<'_>, other| {
        let mut values = vec![0u64; 1000];
        values[999] = u64::from(other);
        w.zeros([1000])?.write(w, 0..1000, &values)
    };
    assert!(on_each(3, |w| long(w, w.rank() == 1)).iter().all(Result::is_ok));
    differs(["values of the checksum ", "values of the checksum "], |w, other| {
        w.check_loops(true);
        long(w, other)
    });
    differs(["seed 1", "seed 2"], |w, other| {
        w.zeros::<u8, 1>([8])?.permute(w, 0, of(other, [1, 2])).map(drop)
    });
    differs(["dimension 0", "dimension 1"], |w, other| {
        w.entries([8, 8], 4, |k| ([k, k], 1u8))?.permute(w, of(other, [0, 1]), 1).map(drop)
    });
}

#[test]
fn what_closures_make_is_compared_under_check() {
    differs(["entry 2999 = 0.5 at [9]", "entry 2999 = 0.25 at [9]"], |w, other| {
        w.check_loops(true);
        w.entries([10], 3000, |k| ([k % 10], if k == 2999 { of(other, [0.5f32, 0.25]) } else { 1.0 }))
            .map(drop)
    });
    differs(["entry 7 = 1 at [7]", "entry 7 = 1 at [8]"], |w, other| {
        w.check_loops(true);
        w.entries([10], 10, |k| ([if k == 7 && other { 8 } else { k }], 1u8)).map(drop)
    });
    differs(["element [1, 2] = 5", "element [1, 2] = -5"], |w, other| {
        w.check_loops(true);
        w.from_fn([3, 4], |at| if at == [1, 2] { of(other, [5i64, -5]) } else { 0 }).map(drop)
    });
    // A value that is another one with every call.
    let calls = AtomicUsize::new(0);
    let results = on_each(2, |w| {
        w.check_loops(true);
        w.entries([10], 10, |k| ([k], calls.fetch_add(1, Relaxed))).map(drop)
    });
    assert!(results.iter().all(|result| matches!(result, Err(Error::Diverged { .. }))), "{results:?}");
    // Without a check nobody makes more than its share.
    let made = AtomicUsize::new(0);
    let results = on_each(3, |w| {
        w.entries([10], 10, |k| {
            made.fetch_add(1, Relaxed);
            ([k], ())
        })
        .map(drop)
    });
    assert!(results.iter().all(Result::is_ok));
    assert_eq!(made.into_inner(), 10);
}
