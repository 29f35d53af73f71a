//! Loops whose written arrays cannot be cut into parts: they lie in place, and the bits are those of the serial loop.
use hectare_orion::schedule::Verdict;
use hectare_orion::{Context, Error, Result, parallel_for, run};
use std::fmt::Debug;

fn hash(a: u64, b: u64) -> u64 {
    (a.rotate_left(23) ^ b).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The schedule of the last loop that was planned.
fn chosen(w: &Context<'_>) -> String {
    let explained = w.explain();
    let last = explained.iter().last().expect("a loop was planned");
    let is_chosen = |verdict: &Verdict| matches!(verdict, Verdict::Chosen(_));
    last.candidates
        .iter()
        .find(|one| is_chosen(&one.verdict))
        .map(|one| one.name.clone())
        .expect("one is chosen")
}

/// Runs a program on 1 to 4 workers, with `HECTARE_CHECK`'s look at what it touches too, and compares what it makes.
fn compare<T: PartialEq + Debug + Send>(
    wanted: &T,
    kind: &str,
    program: impl Fn(&mut Context<'_>) -> Result<(T, String)> + Sync,
) {
    for (workers, checked) in [(1, false), (2, false), (4, false), (2, true)] {
        let results = run(workers, |w| {
            w.check_loops(checked);
            program(w)
        });
        for (made, name) in results.unwrap_or_else(|error| panic!("{workers} workers: {error}")) {
            assert!(made == *wanted, "{workers} workers, {name}: other values");
            assert!(name.contains(kind), "{workers} workers: {name}");
        }
    }
}

#[test]
fn red_and_black_elements_are_written_beside_each_other() {
    const N: usize = 5000;
    let mut wanted: Vec<u64> = (0..2 * N as u64 + 3).collect();
    for _ in 0..3 {
        for i in 0..N {
            wanted[2 * i + 1] = hash(wanted[2 * i], wanted[2 * i + 2]);
        }
        for i in 0..N {
            wanted[2 * i + 2] = hash(wanted[2 * i + 1], wanted[2 * i + 3]);
        }
    }
    compare(&wanted, "arrays in place", |w| {
        let mut a = w.from_fn([2 * N + 3], |[i]| i as u64)?;
        for _ in 0..3 {
            parallel_for!(w, unordered, write a; for i in 0..N { a[2 * i + 1] = hash(a[2 * i], a[2 * i + 2]); })?;
            parallel_for!(w, unordered, write a; for i in 0..N { a[2 * i + 2] = hash(a[2 * i + 1], a[2 * i + 3]); })?;
        }
        Ok((a.to_vec(w)?, chosen(w)))
    });
}

#[test]
fn every_third_element_is_written() {
    const N: usize = 5000;
    let mut wanted: Vec<u64> = (0..3 * N as u64).collect();
    for i in 0..N - 1 {
        wanted[3 * i + 2] = hash(wanted[3 * i], wanted[3 * i + 3]);
    }
    compare(&wanted, "arrays in place", |w| {
        let mut a = w.from_fn([3 * N], |[i]| i as u64)?;
        parallel_for!(w, ordered, write a; for i in 0..N - 1 { a[3 * i + 2] = hash(a[3 * i], a[3 * i + 3]); })?;
        Ok((a.to_vec(w)?, chosen(w)))
    });
}

#[test]
fn one_half_is_made_of_the_other() {
    const N: usize = 5000;
    let mut wanted: Vec<u64> = (0..2 * N as u64).collect();
    for i in 0..N {
        wanted[i + N] = hash(wanted[i], wanted[i + N]);
    }
    compare(&wanted, "arrays in place", |w| {
        let mut a = w.from_fn([2 * N], |[i]| i as u64)?;
        parallel_for!(w, unordered, write a; for i in 0..N { a[i + N] = hash(a[i], a[i + N]); })?;
        Ok((a.to_vec(w)?, chosen(w)))
    });
}

#[test]
fn rows_below_the_pivot_are_eliminated_at_once() {
    const N: usize = 40;
    let at = |i: usize, j: usize| {
        hash(i as u64 + 1, j as u64) as f64 / u64::MAX as f64 + if i == j { 8.0 } else { 0.0 }
    };
    let mut wanted: Vec<f64> = (0..N * N).map(|k| at(k / N, k % N)).collect();
    for k in 0..N - 1 {
        for i in k + 1..N {
            let factor = wanted[i * N + k] / wanted[k * N + k];
            wanted[i * N + k] = factor;
            for j in k + 1..N {
                wanted[i * N + j] -= factor * wanted[k * N + j];
            }
        }
    }
    compare(&wanted, "arrays in place", |w| {
        let mut a = w.from_fn([N, N], |[i, j]| at(i, j))?;
        for k in 0..N - 1 {
            parallel_for!(w, unordered, write a;
            for i in k + 1..N {
                let factor = a[[i, k]] / a[[k, k]];
                a[[i, k]] = factor;
                for j in k + 1..N {
                    a[[i, j]] -= factor * a[[k, j]];
                }
            })?;
        }
        // The last loops are too small to be worth it.
        let first = w.explain().iter().next().map(|loop_| format!("{loop_}")).unwrap_or_default();
        Ok((a.to_vec(w)?, first))
    });
}

#[test]
fn nine_neighbours_in_the_order_of_the_serial_sweep() {
    const N: usize = 400;
    let mut wanted: Vec<f64> = (0..N * N).map(|k| (k * k % 101) as f64).collect();
    for _ in 0..2 {
        for i in 1..N - 1 {
            for j in 1..N - 1 {
                let mut sum = 0.0;
                for di in 0..3 {
                    for dj in 0..3 {
                        sum += wanted[(i + di - 1) * N + j + dj - 1];
                    }
                }
                wanted[i * N + j] = sum / 9.0;
            }
        }
    }
    compare(&wanted, "wavefront", |w| {
        let mut a = w.from_fn([N, N], |[i, j]| ((i * N + j) * (i * N + j) % 101) as f64)?;
        for _ in 0..2 {
            parallel_for!(w, ordered, write a;
            for i in 1..N - 1 {
                for j in 1..N - 1 {
                    let mut sum = 0.0;
                    sum += a[[i - 1, j - 1]];
                    sum += a[[i - 1, j]];
                    sum += a[[i - 1, j + 1]];
                    sum += a[[i, j - 1]];
                    sum += a[[i, j]];
                    sum += a[[i, j + 1]];
                    sum += a[[i + 1, j - 1]];
                    sum += a[[i + 1, j]];
                    sum += a[[i + 1, j + 1]];
                    a[[i, j]] = sum / 9.0;
                }
            })?;
        }
        Ok((a.to_vec(w)?, chosen(w)))
    });
}

#[test]
fn sequences_are_aligned_from_corner_to_corner() {
    const N: usize = 200;
    const M: usize = 330;
    let (x, y) = (|i: usize| hash(i as u64, 3) % 4, |j: usize| hash(j as u64, 7) % 4);
    let score = |same: bool, diagonal: i64, up: i64, left: i64| {
        (diagonal + if same { 3 } else { -2 }).max(up - 2).max(left - 2).max(0)
    };
    let mut wanted = vec![0i64; (N + 1) * (M + 1)];
    for i in 1..=N {
        for j in 1..=M {
            let at = |i: usize, j: usize| wanted[i * (M + 1) + j];
            wanted[i * (M + 1) + j] = score(x(i) == y(j), at(i - 1, j - 1), at(i - 1, j), at(i, j - 1));
        }
    }
    compare(&wanted, "wavefront", |w| {
        let mut h = w.zeros::<i64, 2>([N + 1, M + 1])?;
        parallel_for!(w, ordered, write h;
        for i in 1..N + 1 {
            for j in 1..M + 1 {
                let (diagonal, up, left) = (h[[i - 1, j - 1]], h[[i - 1, j]], h[[i, j - 1]]);
                h[[i, j]] = score(x(i) == y(j), diagonal, up, left);
            }
        })?;
        Ok((h.to_vec(w)?, chosen(w)))
    });
}

#[test]
fn sweeps_follow_each_other_in_time() {
    const T: usize = 6;
    const N: usize = 40;
    let mut wanted: Vec<u64> = (0..(N * N) as u64).collect();
    for _ in 0..T {
        for i in 1..N - 1 {
            for j in 1..N - 1 {
                let at = |i: usize, j: usize| wanted[i * N + j];
                wanted[i * N + j] = hash(hash(at(i - 1, j), at(i + 1, j)), hash(at(i, j - 1), at(i, j + 1)));
            }
        }
    }
    compare(&wanted, "wavefront", |w| {
        let mut a = w.from_fn([N, N], |[i, j]| (i * N + j) as u64)?;
        parallel_for!(w, ordered, write a;
        for t in 0..T {
            for i in 1..N - 1 {
                for j in 1..N - 1 {
                    let _ = t;
                    a[[i, j]] = hash(hash(a[[i - 1, j]], a[[i + 1, j]]), hash(a[[i, j - 1]], a[[i, j + 1]]));
                }
            }
        })?;
        Ok((a.to_vec(w)?, chosen(w)))
    });
}

#[test]
fn a_body_that_fails_in_a_wavefront_is_told_on_all_workers() {
    const N: usize = 120;
    for workers in 1..=3 {
        let results = run(workers, |w| {
            let mut a = w.from_fn([N, N], |[i, j]| (i + j) as u64)?;
            let ended = parallel_for!(w, ordered, write a;
            for i in 1..N {
                for j in 1..N {
                    assert!((i, j) != (60, 60), "the middle");
                    a[[i, j]] = hash(a[[i - 1, j]], a[[i, j - 1]]);
                }
            });
            let poisoned = a.to_vec(w).map(drop);
            // The program goes on with other arrays, also in place.
            let mut b = w.from_fn([2 * N], |[i]| i as u64)?;
            parallel_for!(w, unordered, write b; for i in 0..N { b[i + N] = hash(b[i], 0); })?;
            Ok((ended, poisoned, b.get(w, [N + 1])?))
        });
        for (rank, (ended, poisoned, after)) in results.unwrap().into_iter().enumerate() {
            let told = ended.unwrap_err().to_string();
            assert!(told.contains("the middle") && told.contains("i = 60"), "{workers}, {rank}: {told}");
            assert!(matches!(poisoned, Err(Error::Poisoned { .. })), "{poisoned:?}");
            assert_eq!(after, hash(1, 0));
        }
    }
}
