//! Loops described by hand, run by the executor.
#![allow(clippy::single_range_in_vec_init)]
use hectare_orion::accumulate::Sum;
use hectare_orion::execute::{LoopHead, Ranges};
use hectare_orion::loop_nest::{Access, Affine, LoopNest, Mode, Order, Subscript};
use hectare_orion::relax::Relaxation;
use hectare_orion::{Error, Site, run};

fn access(array: usize, subscripts: &[Affine], mode: Mode, text: &str) -> Access {
    let subscripts = subscripts.iter().cloned().map(Subscript::Index).collect();
    Access { array, subscripts, mode, text: text.into(), line: 0 }
}

fn head<'a>(order: Order, variables: &'a [&'a str], arrays: &'a [&'a str], site: Site) -> LoopHead<'a> {
    LoopHead {
        site,
        order,
        variables,
        arrays,
        invariants: &[],
        captured: &[],
        schedule: None,
        relax: Relaxation::default(),
    }
}

#[test]
fn a_rotation_runs_every_iteration_once_and_alone() {
    for workers in [1, 2, 3, 4] {
        let sums = run(workers, |w| {
            let mut a = w.zeros::<u64, 1>([50])?;
            let mut b = w.zeros::<u64, 1>([70])?;
            let site = Site::here();
            let mut total = 0;
            for _ in 0..3 {
                let (count,) = w.run_loop(
                    &head(Order::Unordered, &["i", "j"], &["a", "b"], site),
                    &Ranges([0..50, 0..70]),
                    (&mut a, &mut b),
                    (Sum::<u64>::new(),),
                    &|nest: &mut LoopNest| {
                        nest.accesses.push(access(0, &[Affine::var(0)], Mode::Update, "a[i]"));
                        nest.accesses.push(access(1, &[Affine::var(1)], Mode::Update, "b[j]"));
                    },
                    |[is, js], (a, b)| {
                        let mut count = 0;
                        for i in is {
                            for j in js.clone() {
                                a[i] += j as u64;
                                b[j] += i as u64;
                                count += 1;
                            }
                        }
                        (count,)
                    },
                )?;
                total += count;
            }
            assert!((0..50).all(|i| a.read(w).unwrap()[i] == 3 * 69 * 35));
            assert!((0..70).all(|j| b.read(w).unwrap()[j] == 3 * 49 * 25));
            Ok(total)
        })
        .unwrap();
        assert!(sums.iter().all(|sum| *sum == 3 * 50 * 70), "{sums:?}");
    }
}

#[test]
fn a_chain_runs_serially_and_in_order() {
    let run_with = |workers| {
        let mut results = run(workers, |w| {
            let mut a = w.from_fn([100], |[i]| i as u64)?;
            w.run_loop(
                &head(Order::Ordered, &["i"], &["a"], Site::here()),
                &Ranges([1..100]),
                (&mut a,),
                (),
                &|nest: &mut LoopNest| {
                    nest.accesses.push(access(0, &[Affine::var(0)], Mode::Update, "a[i]"));
                    let before = Affine::var(0).plus(&Affine::constant(-1));
                    nest.accesses.push(access(0, &[before], Mode::Read, "a[i - 1]"));
                },
                |[is], (a,)| {
                    for i in is {
                        a[i] = a[i].wrapping_mul(31) ^ a[i - 1].rotate_left(7);
                    }
                },
            )?;
            a.to_vec(w)
        })
        .unwrap();
        results.remove(0)
    };
    let mut expected: Vec<u64> = (0..100).collect();
    for i in 1..100 {
        expected[i] = expected[i].wrapping_mul(31) ^ expected[i - 1].rotate_left(7);
    }
    for workers in [1, 2, 3] {
        assert_eq!(run_with(workers), expected);
    }
}

#[test]
fn an_access_that_the_description_misses_is_an_error_on_every_worker() {
    let error = run(2, |w| {
        let mut a = w.zeros::<u64, 1>([100])?;
        let result = w.run_loop(
            &head(Order::Unordered, &["i"], &["a"], Site::here()),
            &Ranges([0..100]),
            (&mut a,),
            (),
            &|nest: &mut LoopNest| nest.accesses.push(access(0, &[Affine::var(0)], Mode::Update, "a[i]")),
            |[is], (a,)| {
                for i in is {
                    a[99 - i] += 1;
                }
            },
        );
        assert!(matches!(a.read(w), Err(Error::Poisoned { .. })));
        result
    });
    assert!(matches!(error, Err(Error::OutOfBounds { .. })), "{error:?}");
}

#[test]
fn an_array_can_be_read_until_the_worker_itself_writes_or_deletes_it() {
    for _ in 0..20 {
        run(3, |w| {
            let mut a = w.fill::<u64, 1>([30], 1)?;
            for pass in 1..10 {
                // Worker 0 is late: the others are at the next call already.
                if w.rank() == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(200));
                }
                assert_eq!(a.to_vec(w)?, [pass; 30]);
                a.write(w, 0..30, &[pass + 1; 30])?;
            }
            if w.rank() == 0 {
                std::thread::sleep(std::time::Duration::from_micros(200));
            }
            assert_eq!(a.to_vec(w)?, [10; 30]);
            a.delete(w)
        })
        .unwrap();
    }
}
