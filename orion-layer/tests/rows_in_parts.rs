//! Rows and slices that lie in several parts of their array are whole, for every number of workers.
use hectare_orion::{Context, DistArray, Result, parallel_for, run};

/// An array that a loop over its last dimension has written: cut across its rows, where there are several workers.
fn across(w: &mut Context<'_>, factor: u64) -> Result<DistArray<u64, 2>> {
    let mut a = w.zeros::<u64, 2>([4, 6])?.named("a");
    write(w, &mut a, factor)?;
    assert!(w.size() == 1 || (a.layout().dim, a.layout().parts()) == (1, w.size()));
    Ok(a)
}

fn write(w: &mut Context<'_>, a: &mut DistArray<u64, 2>, factor: u64) -> Result<()> {
    parallel_for!(w, unordered, write a;
    for d in 0..6 {
        for b in 0..4 {
            a[[b, d]] = factor * (10 * b + d) as u64;
        }
    })
}

fn row(b: usize, factor: u64) -> Vec<u64> {
    (0..6).map(|d| factor * (10 * b + d) as u64).collect()
}

#[test]
fn rows_that_are_cut_are_read_whole() {
    for workers in [1, 2, 3] {
        for check in [false, true] {
            run(workers, |w| {
                let mut a = across(w, 1)?;
                w.check_loops(check);
                for factor in [2, 3] {
                    // The copies for the rows before are forgotten.
                    write(w, &mut a, factor)?;
                    assert_eq!(a.read(w)?.row(3), row(3, factor));
                    let mut sums = w.zeros::<u64, 1>([4])?;
                    parallel_for!(w, unordered, read a, write sums;
                    for b in 0..4 {
                        sums[b] = a.row(b).iter().sum::<u64>() + a.row(3 - b)[b];
                    })?;
                    let sum = |b: usize| row(b, factor).iter().sum::<u64>() + row(3 - b, factor)[b];
                    assert_eq!(sums.to_vec(w)?, (0..4).map(sum).collect::<Vec<_>>());
                }
                a.fill(w, 5)?;
                assert_eq!(a.read(w)?.row(0), [5; 6]);
                a.set(w, [0, 5], 6)?;
                assert_eq!(a.read(w)?.row(0), [5, 5, 5, 5, 5, 6]);
                Ok(())
            })
            .unwrap();
        }
    }
}

#[test]
fn rows_that_are_cut_are_written_whole_in_a_serial_loop() {
    for workers in [1, 2, 3] {
        run(workers, |w| {
            let mut a = across(w, 1)?;
            parallel_for!(w, ordered, write a;
            for b in 1..4 {
                let (before, row) = a.rows_mut(b - 1, b);
                row.iter_mut().zip(before).for_each(|(x, y)| *x += *y);
            })?;
            let sum = |d: usize| (0..4).map(|b| (10 * b + d) as u64).sum::<u64>();
            assert_eq!(a.read(w)?.row(3), (0..6).map(sum).collect::<Vec<_>>());
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn slices_over_several_parts_are_whole() {
    for workers in [1, 2, 3] {
        run(workers, |w| {
            let mut a = w.from_fn([12], |[i]| i as u64)?;
            let total = parallel_for!(w, unordered, read a, sum total: u64;
            for i in 0..4 {
                total += a.slice(i..i + 8).iter().sum::<u64>();
            })?;
            assert_eq!(total, (0..4u64).map(|i| 8 * i + 28).sum::<u64>());
            parallel_for!(w, ordered, write a;
            for i in 0..4 {
                a.slice_mut(i..i + 8).rotate_left(1);
            })?;
            let mut expected: Vec<u64> = (0..12).collect();
            (0..4).for_each(|i| expected[i..i + 8].rotate_left(1));
            assert_eq!(a.read(w)?.slice(0..12), expected);
            Ok(())
        })
        .unwrap();
    }
}
