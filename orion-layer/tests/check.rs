//! Checked loops: what the description misses is found, and what it names is not.
use hectare_orion::accumulate::Sum;
use hectare_orion::execute::{LoopHead, Ranges, entry_parts};
use hectare_orion::loop_nest::{Access, Affine, LoopNest, LoopVar, Mode, Order, Subscript};
use hectare_orion::relax::Relaxation;
use hectare_orion::schedule::Rotation;
use hectare_orion::{Error, Site, run};

fn access(array: usize, subscripts: &[Subscript], mode: Mode, text: &str) -> Access {
    Access { array, subscripts: subscripts.to_vec(), mode, text: text.into(), line: 0 }
}

fn var(variable: usize) -> Subscript {
    Subscript::Index(Affine::var(variable))
}

fn head<'a>(order: Order, variables: &'a [&'a str], arrays: &'a [&'a str]) -> LoopHead<'a> {
    LoopHead {
        site: Site::here(),
        order,
        variables,
        arrays,
        invariants: &[],
        captured: &[],
        schedule: None,
        relax: Relaxation::default(),
    }
}

/// A factorization's accesses, with what each loop really does to row `i + shift` of `u`.
fn factorize(workers: usize, shift: usize, read_next: bool) -> Result<Vec<Vec<u64>>, Error> {
    run(workers, |w| {
        w.check_loops(true);
        let r = w.entries([20, 10], 150, |k| ([k % 20, (k + k / 20) % 10], k as u64))?;
        let mut u = w.zeros::<u64, 2>([24, 3])?.named("u");
        let mut v = w.from_fn([10, 3], |[j, k]| (j + k) as u64)?.named("v");
        let mut total = 0;
        for _ in 0..2 {
            // So small a loop would run serially by itself.
            let rotation = Rotation::over(vec![0, 1]);
            let head = head(Order::Unordered, &["i", "j"], &["u", "v"]);
            let (sum,) = w.run_loop(
                &LoopHead { schedule: Some(&rotation), ..head },
                &r,
                (&mut u, &mut v),
                (Sum::<u64>::new(),),
                &|nest: &mut LoopNest| {
                    nest.accesses.push(access(0, &[var(0), Subscript::Full], Mode::Update, "u.row_mut(i)"));
                    nest.accesses.push(access(1, &[var(1), Subscript::Full], Mode::Update, "v.row_mut(j)"));
                },
                |entries, (u, v)| {
                    let mut sum = 0;
                    for entry in entries {
                        let ([i, j], x) = entry_parts(entry);
                        let next = if read_next { v[[(j + 1) % 10, 0]] } else { 0 };
                        let (a, b) = (u.row_mut(i + shift), v.row_mut(j));
                        a[0] += b[1] + next;
                        b[2] ^= a[0].rotate_left(3);
                        sum += x;
                    }
                    (sum,)
                },
            )?;
            total += sum;
        }
        assert_eq!(total, 2 * (0..150).sum::<u64>());
        let mut all = u.to_vec(w)?;
        all.extend(v.to_vec(w)?);
        Ok(all)
    })
}

/// The same loop written serially.
fn serial() -> Vec<u64> {
    let mut u = [[0u64; 3]; 24];
    let mut v: [[u64; 3]; 10] = std::array::from_fn(|j| std::array::from_fn(|k| (j + k) as u64));
    for _ in 0..2 {
        for k in 0..150 {
            let (a, b) = (&mut u[k % 20], &mut v[(k + k / 20) % 10]);
            a[0] += b[1];
            b[2] ^= a[0].rotate_left(3);
        }
    }
    u.into_iter().flatten().chain(v.into_iter().flatten()).collect()
}

#[test]
fn a_right_description_passes_and_gives_the_serial_result() {
    for workers in [1, 2, 3] {
        for result in factorize(workers, 0, false).unwrap() {
            assert_eq!(result, serial());
        }
    }
}

fn findings(error: Error) -> String {
    match error {
        Error::Check { findings, .. } => findings,
        other => panic!("{other}"),
    }
}

#[test]
fn an_access_that_is_not_named_is_reported_with_its_iteration() {
    let text = findings(factorize(2, 1, false).unwrap_err());
    assert!(text.contains("iteration (i=0, j=0) writes u[1, 0..3]"), "{text}");
    assert!(text.contains("of u it names: u.row_mut(i)") && text.contains("more writes of u"), "{text}");
    assert!(!text.contains(" v["), "{text}");
}

#[test]
fn a_race_that_the_schedule_would_allow_is_reported() {
    let text = findings(factorize(2, 0, true).unwrap_err());
    assert!(text.contains("reads v["), "{text}");
    assert!(text.contains("nothing in the schedule keeps workers"), "{text}");
}

#[test]
fn a_read_of_what_is_only_written_and_a_write_beyond_a_range_are_reported() {
    let check = |wide: usize, mode: Mode| {
        run(2, |w| {
            w.check_loops(true);
            let mut a = w.zeros::<u64, 1>([60])?.named("a");
            w.run_loop(
                &head(Order::Unordered, &["i"], &["a"]),
                &Ranges([0..20; 1]),
                (&mut a,),
                (),
                &|nest: &mut LoopNest| {
                    let from = Affine::var(0).times(3);
                    let range = Subscript::Range(from.clone(), from.plus(&Affine::constant(2)));
                    nest.accesses.push(access(0, &[range], mode, "a.slice_mut(3 * i..3 * i + 2)"));
                },
                |[is], (a,)| {
                    for i in is {
                        a.slice_mut(3 * i..3 * i + wide)[0] = i as u64;
                        assert_eq!(a[3 * i], i as u64);
                    }
                },
            )?;
            a.to_vec(w)
        })
    };
    assert!(check(2, Mode::Update).is_ok() && check(1, Mode::Update).is_ok());
    assert!(findings(check(3, Mode::Update).unwrap_err()).contains("iteration (i=0) writes a[0..3]"));
    assert!(findings(check(2, Mode::Write).unwrap_err()).contains("iteration (i=0) reads a[0]"));
}

#[test]
fn inner_variables_name_all_their_values_and_no_more() {
    let check = |inner: usize| {
        run(2, |w| {
            w.check_loops(true);
            let x = w.from_fn([8, 5], |[i, k]| (i * k) as u64)?.named("x");
            let mut a = w.zeros::<u64, 1>([8])?.named("a");
            w.run_loop(
                &head(Order::Ordered, &["i"], &["x", "a"]),
                &Ranges([0..8; 1]),
                (&x, &mut a),
                (),
                &|nest: &mut LoopNest| {
                    nest.inner.push(LoopVar { name: "k".into(), bounds: Some((0, 4)) });
                    nest.accesses.push(access(0, &[var(0), var(1)], Mode::Read, "x[[i, k]]"));
                    nest.accesses.push(access(1, &[var(0)], Mode::Update, "a[i]"));
                },
                |[is], (x, a)| {
                    for i in is {
                        for k in 0..inner {
                            a[i] += x[[i, k]];
                        }
                    }
                },
            )?;
            a.to_vec(w)
        })
    };
    assert_eq!(check(4).unwrap()[0], (0..8).map(|i| 6 * i).collect::<Vec<u64>>());
    let text = findings(check(5).unwrap_err());
    assert!(text.contains("iteration (i=0) reads x[0, 4]"), "{text}");
}

#[test]
fn arrays_made_of_other_values_on_another_worker_are_found() {
    let make = |checked: bool| {
        run(2, |w| {
            w.check_loops(checked);
            let values = [1.0, 2.0, f64::from(w.rank())];
            w.from_slice([3], &values).map(|_| ())
        })
    };
    assert!(make(false).is_ok());
    let error = make(true).unwrap_err();
    assert!(matches!(error, Error::ValueMismatch { rank: 1, .. }), "{error}");
}
