//! Loops whose accesses are lines, against the same loops over plain memory.
use crate::mutant::{self, Mutant};
use crate::{Context, DistArray, Error, Result, parallel_for, run};

const ROWS: usize = 24;
const COLUMNS: usize = 300;

fn start([i, j]: [usize; 2]) -> i64 {
    (i * 31 + j * 17) as i64 % 101 - 40
}

fn other([i, j]: [usize; 2]) -> i64 {
    (i * 7 + j * 13) as i64 % 29 + 1
}

type Grid = Vec<[i64; COLUMNS]>;

fn grid(at: impl Fn([usize; 2]) -> i64) -> Grid {
    (0..ROWS).map(|i| std::array::from_fn(|j| at([i, j]))).collect()
}

type Ours = fn(&mut Context<'_>, &mut DistArray<i64, 2>, &DistArray<i64, 2>) -> Result<()>;

/// A loop that changes one array and reads another, and the same over plain memory.
struct Case {
    name: &'static str,
    ours: Ours,
    serial: fn(&mut Grid, &Grid),
    /// Whether it reads by lines, wherever it is cut.
    reads_lines: bool,
}

fn neighbours() -> Case {
    Case {
        name: "neighbours",
        ours: |w, a, _b| {
            parallel_for!(w, ordered, write a;
            for i in 1..ROWS {
                for j in 1..COLUMNS - 1 {
                    a[[i, j]] = a[[i - 1, j + 1]] * 3 - a[[i, j - 1]] + a[[i, j]] % 7;
                    a[[i, j]] %= 10_007;
                }
            })
        },
        serial: |a, _b| {
            for i in 1..ROWS {
                for j in 1..COLUMNS - 1 {
                    a[i][j] = a[i - 1][j + 1] * 3 - a[i][j - 1] + a[i][j] % 7;
                    a[i][j] %= 10_007;
                }
            }
        },
        reads_lines: true,
    }
}

/// An access that not every iteration makes, and that would lie outside in those that do not.
fn guarded() -> Case {
    Case {
        name: "guarded",
        ours: |w, a, _b| {
            parallel_for!(w, ordered, write a;
            for i in 0..ROWS {
                for j in 0..COLUMNS {
                    let left = if j > 0 { a[[i, j - 1]] } else { 5 };
                    let above = if i > 0 { a[[i - 1, j]] } else { 3 };
                    a[[i, j]] = (a[[i, j]] + left - above) % 1009;
                }
            })
        },
        serial: |a, _b| {
            for i in 0..ROWS {
                for j in 0..COLUMNS {
                    let left = if j > 0 { a[i][j - 1] } else { 5 };
                    let above = if i > 0 { a[i - 1][j] } else { 3 };
                    a[i][j] = (a[i][j] + left - above) % 1009;
                }
            }
        },
        reads_lines: false,
    }
}

fn backwards_and_across() -> Case {
    Case {
        name: "backwards and across",
        ours: |w, a, b| {
            parallel_for!(w, unordered, read b, write a;
            for i in 0..ROWS {
                for j in 0..ROWS {
                    a[[i, j]] += b[[i, COLUMNS - 1 - j]] * b[[j, i]] + b[[j, j + i / 2]];
                }
            })
        },
        serial: |a, b| {
            for i in 0..ROWS {
                for j in 0..ROWS {
                    a[i][j] += b[i][COLUMNS - 1 - j] * b[j][i] + b[j][j + i / 2];
                }
            }
        },
        // `i / 2` is no affine form.
        reads_lines: false,
    }
}

fn transposed() -> Case {
    Case {
        name: "transposed",
        ours: |w, a, b| {
            parallel_for!(w, unordered, read b, write a;
            for i in 0..ROWS {
                for j in 0..ROWS {
                    a[[i, j]] += b[[i, COLUMNS - 1 - j]] * b[[j, i]];
                }
            })
        },
        serial: |a, b| {
            for i in 0..ROWS {
                for j in 0..ROWS {
                    a[i][j] += b[i][COLUMNS - 1 - j] * b[j][i];
                }
            }
        },
        reads_lines: true,
    }
}

/// An inner loop, iterations that end early, references, methods, names and values from outside.
fn statements() -> Case {
    Case {
        name: "statements",
        ours: |w, a, b| {
            let (ahead, narrow) = (2usize, 3u8);
            let double = |x: i64| 2 * x;
            parallel_for!(w, unordered, read b, write a;
            for i in 0..ROWS {
                for j in 0..COLUMNS - 6 {
                    if b[[i, j]] % 3 == 0 {
                        continue;
                    }
                    let there = j + ahead;
                    for k in 0..3 {
                        a[[i, j]] += b[[i, there]] * k;
                    }
                    let from = &b[[i, j + narrow as usize]];
                    let to = &mut a[[i, j]];
                    *to -= double(*from);
                    a[[i, j]] = a[[i, j]].abs().max(b[[i, j]].pow(2));
                }
            })
        },
        serial: |a, b| {
            for i in 0..ROWS {
                for j in 0..COLUMNS - 6 {
                    if b[i][j] % 3 == 0 {
                        continue;
                    }
                    for k in 0..3 {
                        a[i][j] += b[i][j + 2] * k;
                    }
                    a[i][j] -= 2 * b[i][j + 3];
                    a[i][j] = a[i][j].abs().max(b[i][j].pow(2));
                }
            }
        },
        reads_lines: true,
    }
}

/// Each of the first columns of a row times that of the other array.
fn multiply(a: &mut Grid, b: &Grid, columns: usize) {
    a.iter_mut().zip(b).for_each(|(a, b)| (0..columns).for_each(|j| a[j] *= b[j]));
}

/// One array by lines, the other by rows.
fn rows() -> Case {
    Case {
        name: "rows",
        ours: |w, a, b| {
            parallel_for!(w, unordered, read b, write a;
            for i in 0..ROWS {
                for j in 0..COLUMNS {
                    a[[i, j]] *= b.row(i)[j];
                }
            })
        },
        serial: |a, b| multiply(a, b, COLUMNS),
        reads_lines: false,
    }
}

/// Macros may hide accesses.
fn macros() -> Case {
    Case {
        name: "macros",
        ours: |w, a, b| {
            parallel_for!(w, unordered, read b, write a;
            for i in 0..ROWS {
                for j in 0..COLUMNS {
                    assert!(b[[i, j]] > 0);
                    a[[i, j]] *= b[[i, j]];
                }
            })
        },
        serial: |a, b| multiply(a, b, COLUMNS),
        reads_lines: false,
    }
}

/// Too few elements for lines.
fn short() -> Case {
    Case {
        name: "short",
        ours: |w, a, b| {
            parallel_for!(w, unordered, read b, write a;
            for i in 0..ROWS {
                for j in 0..5 {
                    a[[i, j]] *= b[[i, j]];
                }
            })
        },
        serial: |a, b| multiply(a, b, 5),
        reads_lines: false,
    }
}

fn cases() -> Vec<Case> {
    vec![
        neighbours(),
        guarded(),
        backwards_and_across(),
        transposed(),
        statements(),
        rows(),
        macros(),
        short(),
    ]
}

/// Whether a loop makes the same elements as over plain memory.
fn is_right(case: &Case, workers: usize, fault: Option<Mutant>) -> bool {
    let (mut wanted, b) = (grid(start), grid(other));
    (case.serial)(&mut wanted, &b);
    let found = run(workers, |w| {
        let mut a = w.from_fn([ROWS, COLUMNS], start)?;
        let b = w.from_fn([ROWS, COLUMNS], other)?;
        match fault {
            Some(fault) => mutant::with(fault, || (case.ours)(w, &mut a, &b))?,
            None => (case.ours)(w, &mut a, &b)?,
        }
        a.to_vec(w)
    });
    found.unwrap().iter().all(|found| found == wanted.as_flattened())
}

#[test]
fn lines_change_nothing() {
    for case in cases() {
        for workers in 1..=3 {
            assert!(is_right(&case, workers, None), "{} with {workers} workers", case.name);
        }
    }
}

#[test]
fn innermost_loops_read_lines_where_they_can() {
    for case in cases() {
        assert_eq!(!is_right(&case, 1, Some(Mutant::StuckLines)), case.reads_lines, "{}", case.name);
    }
}

/// Elements between those that others write, and ends that no element has.
#[test]
fn every_second_element_is_a_line() {
    const N: usize = 500;
    for workers in 1..=3 {
        let results = run(workers, |w| {
            let mut a = w.from_fn([2 * N + 3], |[i]| (i * i % 1009) as f64)?;
            parallel_for!(w, unordered, write a; for i in 0..N { a[2 * i + 1] = 0.5 * (a[2 * i] + a[2 * i + 2]); })?;
            a.to_vec(w)
        });
        let mut wanted: Vec<f64> = (0..2 * N + 3).map(|i| (i * i % 1009) as f64).collect();
        (0..N).for_each(|i| wanted[2 * i + 1] = 0.5 * (wanted[2 * i] + wanted[2 * i + 2]));
        results.unwrap().into_iter().for_each(|found| assert_eq!(found, wanted));
    }
}

/// Parts of elements, and sums.
#[test]
fn elements_of_several_numbers_lie_in_lines() {
    for workers in 1..=3 {
        let results = run(workers, |w| {
            let mut pairs = w.from_fn([300], |[i]| [i as i64, 1])?;
            let total = parallel_for!(w, unordered, write pairs, sum total: i64; for i in 0..300 {
                pairs[i][1] += pairs[i][0];
                total += pairs[i][1];
            })?;
            Ok((pairs.to_vec(w)?, total))
        });
        for (pairs, total) in results.unwrap() {
            assert_eq!(total, 300 + 299 * 300 / 2);
            assert!(pairs.iter().enumerate().all(|(i, pair)| *pair == [i as i64, 1 + i as i64]));
        }
    }
}

/// Names whose types only subscripts tell are indices in both forms of the loop.
#[test]
fn subscripts_tell_the_types_of_numbers() {
    for len in [7, 400] {
        let results = run(1, |w| {
            let mut a = w.zeros::<f64, 2>([4, len])?;
            let mut b = w.zeros::<u64, 1>([len])?;
            parallel_for!(w, unordered, write [a, b];
            for i in 0..len {
                let k = 2;
                a[[k, i]] = (!k) as f64;
                let none = 0;
                a[[none, i]] = 1.0;
                b[i] = none.wrapping_sub(1) as u64;
            })?;
            Ok((a.to_vec(w)?, b.to_vec(w)?))
        });
        let (a, b) = results.unwrap().swap_remove(0);
        assert!(a[2 * len..3 * len].iter().all(|x| *x == !2usize as f64), "{len}: {}", a[2 * len]);
        assert!(b.iter().all(|x| *x == u64::MAX));
    }
}

/// An element that stands for what it holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
struct Wrapped(i64);

impl std::ops::Deref for Wrapped {
    type Target = i64;

    fn deref(&self) -> &i64 {
        &self.0
    }
}

impl std::ops::DerefMut for Wrapped {
    fn deref_mut(&mut self) -> &mut i64 {
        &mut self.0
    }
}

#[test]
fn what_is_written_through_an_element_is_written() {
    for workers in 1..=2 {
        let results = run(workers, |w| {
            let mut a = w.from_fn([300], |[i]| Wrapped(i as i64))?;
            parallel_for!(w, ordered, write a; for i in 1..300 { *a[i] += *a[i - 1]; })?;
            a.to_vec(w)
        });
        let sums = |i: i64| i * (i + 1) / 2;
        for found in results.unwrap() {
            assert!(found.iter().enumerate().all(|(i, x)| x.0 == sums(i as i64)));
        }
    }
}

fn iteration(error: Error) -> String {
    match error {
        Error::BodyPanicked { iteration, .. } => iteration,
        other => panic!("another error: {other}"),
    }
}

#[test]
fn a_panic_within_a_line_tells_its_iteration() {
    let calculates = run(1, |w| {
        let mut a = w.from_fn([9, 50], |[i, j]| if [i, j] == [4, 31] { 0 } else { 7 })?;
        parallel_for!(w, unordered, write a; for i in 0..9 { for j in 2..50 { a[[i, j]] = 100 / a[[i, j]]; } })
    });
    assert_eq!(iteration(calculates.unwrap_err()), "i = 4, j = 31");
    let calls = run(1, |w| {
        let mut a = w.from_fn([9, 50], |[i, j]| if [i, j] == [4, 31] { 0 } else { 7 })?;
        let not_zero = |x: i32| if x == 0 { panic!("it is zero") } else { x };
        parallel_for!(w, unordered, write a; for i in 0..9 { for j in 2..50 { a[[i, j]] = not_zero(a[[i, j]]); } })
    });
    assert_eq!(iteration(calls.unwrap_err()), "i = 4, j = 31");
}
