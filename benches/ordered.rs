//! Loops whose iterations depend on their neighbours, and loops that write between each other's elements: the arrays lie in place.
//! Two workers against the serial loop over a plain vector, in turns; both must have made the same bits.
//!
//! `cargo bench --bench ordered [-- --quick] [-- --json FILE] [-- PART_OF_A_CASE]`
mod support;

use hectare::orion::{Context, Result, parallel_for};
use hectare::{DistArray, Element};
use std::sync::Barrier;
use support::{Case, Report, Times, nanos};

/// One loop: its serial form, and the same through the loop layer.
struct Sides<S, O> {
    serial: S,
    ours: O,
    target: f64,
}

fn measure<T, const N: usize>(
    report: &mut Report,
    case: &str,
    shape: [usize; N],
    at: impl Fn([usize; N]) -> T + Copy + Sync,
    sides: Sides<
        impl Fn(&mut [T]) + Sync,
        impl Fn(&mut Context<'_>, &mut DistArray<T, N>) -> Result<()> + Sync,
    >,
) where
    T: Element + PartialEq + std::fmt::Debug,
{
    if !report.wants(case) {
        return;
    }
    let repeats = if report.quick { 5 } else { 21 };
    let gate = Barrier::new(2);
    let results = hectare::run(2, |w| {
        let mut a = w.from_fn(shape, at)?;
        let mut plain = a.to_vec(w)?;
        let (mut ours, mut theirs) = (Times::default(), Times::default());
        for _ in 0..=repeats {
            gate.wait();
            if w.rank() == 0 {
                theirs.push(nanos(|| (sides.serial)(&mut plain)));
            }
            gate.wait();
            let mut ended = Ok(());
            ours.push(nanos(|| ended = (sides.ours)(w, &mut a)));
            ended?;
        }
        // The first plans the loop.
        let first = ours.0.remove(0);
        if w.rank() == 0 {
            theirs.0.remove(0);
            assert!(a.to_vec(w)? == plain, "other bits than the serial loop has made");
            if std::env::var_os("EXPLAIN").is_some() {
                println!("{}\nfirst pass {} ms", w.explain(), first / 1e6);
            }
        }
        Ok((ours, theirs))
    });
    let (ours, theirs) = results.expect("a run").swap_remove(0);
    report.add(Case {
        case: case.into(),
        value: ours.median() / 1e6,
        unit: "ms",
        best: ours.best() / 1e6,
        ratio: Some(theirs.median() / ours.median()),
        against: Some(format!("the serial loop, {:.3} ms", theirs.median() / 1e6)),
        target: Some(sides.target),
    });
}

fn gauss_seidel(report: &mut Report) {
    const N: usize = 4096;
    let serial = |a: &mut [f64]| {
        for i in 1..N - 1 {
            for j in 1..N - 1 {
                let sum = a[(i - 1) * N + j - 1]
                    + a[(i - 1) * N + j]
                    + a[(i - 1) * N + j + 1]
                    + a[i * N + j - 1]
                    + a[i * N + j]
                    + a[i * N + j + 1]
                    + a[(i + 1) * N + j - 1]
                    + a[(i + 1) * N + j]
                    + a[(i + 1) * N + j + 1];
                a[i * N + j] = sum / 9.0;
            }
        }
    };
    let ours = |w: &mut Context<'_>, a: &mut DistArray<f64, 2>| {
        parallel_for!(w, ordered, write a;
        for i in 1..N - 1 {
            for j in 1..N - 1 {
                let sum = a[[i - 1, j - 1]]
                    + a[[i - 1, j]]
                    + a[[i - 1, j + 1]]
                    + a[[i, j - 1]]
                    + a[[i, j]]
                    + a[[i, j + 1]]
                    + a[[i + 1, j - 1]]
                    + a[[i + 1, j]]
                    + a[[i + 1, j + 1]];
                a[[i, j]] = sum / 9.0;
            }
        })
    };
    let at = |[i, j]: [usize; 2]| ((i * 31 + j * 17) % 101) as f64;
    measure(report, "gauss-seidel/9 points/4096", [N, N], at, Sides { serial, ours, target: 1.6 });
}

fn seidel_in_time(report: &mut Report) {
    const N: usize = 1000;
    const T: usize = 10;
    let serial = |a: &mut [f64]| {
        for _ in 0..T {
            for i in 1..N - 1 {
                for j in 1..N - 1 {
                    let sum = a[(i - 1) * N + j]
                        + a[i * N + j - 1]
                        + a[i * N + j]
                        + a[i * N + j + 1]
                        + a[(i + 1) * N + j];
                    a[i * N + j] = sum * 0.2;
                }
            }
        }
    };
    let ours = |w: &mut Context<'_>, a: &mut DistArray<f64, 2>| {
        parallel_for!(w, ordered, write a;
        for _t in 0..T {
            for i in 1..N - 1 {
                for j in 1..N - 1 {
                    let sum = a[[i - 1, j]] + a[[i, j - 1]] + a[[i, j]] + a[[i, j + 1]] + a[[i + 1, j]];
                    a[[i, j]] = sum * 0.2;
                }
            }
        })
    };
    let at = |[i, j]: [usize; 2]| ((i * 31 + j * 17) % 101) as f64;
    measure(report, "seidel/10 sweeps/1000", [N, N], at, Sides { serial, ours, target: 1.6 });
}

fn smith_waterman(report: &mut Report) {
    const N: usize = 3001;
    let letter = |k: usize, of: usize| k.wrapping_mul(2_654_435_761 + of) >> 7 & 3;
    let best = |same: bool, diagonal: i32, up: i32, left: i32| {
        (diagonal + if same { 3 } else { -2 }).max(up - 2).max(left - 2).max(0)
    };
    let serial = move |h: &mut [i32]| {
        for i in 1..N {
            for j in 1..N {
                let same = letter(i, 0) == letter(j, 1);
                h[i * N + j] = best(same, h[(i - 1) * N + j - 1], h[(i - 1) * N + j], h[i * N + j - 1]);
            }
        }
    };
    let ours = move |w: &mut Context<'_>, h: &mut DistArray<i32, 2>| {
        parallel_for!(w, ordered, write h;
        for i in 1..N {
            for j in 1..N {
                let same = letter(i, 0) == letter(j, 1);
                let (diagonal, up, left) = (h[[i - 1, j - 1]], h[[i - 1, j]], h[[i, j - 1]]);
                h[[i, j]] = best(same, diagonal, up, left);
            }
        })
    };
    measure(report, "smith-waterman/3000", [N, N], |_| 0, Sides { serial, ours, target: 1.6 });
}

fn red_black(report: &mut Report) {
    const N: usize = 4_000_000;
    let serial = |a: &mut [f64]| {
        for i in 0..N {
            a[2 * i + 1] = 0.5 * (a[2 * i] + a[2 * i + 2]);
        }
        for i in 0..N {
            a[2 * i + 2] = 0.5 * (a[2 * i + 1] + a[2 * i + 3]);
        }
    };
    let ours = |w: &mut Context<'_>, a: &mut DistArray<f64, 1>| {
        parallel_for!(w, unordered, write a; for i in 0..N { a[2 * i + 1] = 0.5 * (a[2 * i] + a[2 * i + 2]); })?;
        parallel_for!(w, unordered, write a; for i in 0..N { a[2 * i + 2] = 0.5 * (a[2 * i + 1] + a[2 * i + 3]); })
    };
    let at = |[i]: [usize; 1]| (i * i % 1009) as f64;
    measure(report, "red-black/8 M", [2 * N + 3], at, Sides { serial, ours, target: 1.6 });
}

fn elimination(report: &mut Report) {
    const N: usize = 1000;
    let at = |[i, j]: [usize; 2]| ((i * 31 + j * 17) % 101) as f64 / 101.0 + if i == j { 200.0 } else { 0.0 };
    // Always of the same matrix.
    let serial = move |a: &mut [f64]| {
        for (k, element) in a.iter_mut().enumerate() {
            *element = at([k / N, k % N]);
        }
        for k in 0..N - 1 {
            let (above, below) = a.split_at_mut((k + 1) * N);
            let pivot = &above[k * N..];
            for row in below.chunks_exact_mut(N) {
                let factor = row[k] / pivot[k];
                row[k] = factor;
                for (x, p) in row[k + 1..].iter_mut().zip(&pivot[k + 1..]) {
                    *x -= factor * p;
                }
            }
        }
    };
    let ours = move |w: &mut Context<'_>, a: &mut DistArray<f64, 2>| {
        a.for_each_mut(w, |index, element| *element = at(index))?;
        for k in 0..N - 1 {
            parallel_for!(w, unordered, write a;
            for i in k + 1..N {
                let (pivot, row) = a.row_and_row_mut(k, i);
                let factor = row[k] / pivot[k];
                row[k] = factor;
                for (x, p) in row[k + 1..].iter_mut().zip(&pivot[k + 1..]) {
                    *x -= factor * p;
                }
            })?;
        }
        Ok(())
    };
    measure(report, "elimination/1000", [N, N], at, Sides { serial, ours, target: 1.6 });
}

fn main() {
    let mut report = Report::from_args("ordered: two workers against the serial loop, same bits");
    gauss_seidel(&mut report);
    seidel_in_time(&mut report);
    smith_waterman(&mut report);
    red_black(&mut report);
    elimination(&mut report);
    report.finish();
}
