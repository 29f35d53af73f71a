//! Relaxed arrays of many blocks, of which a clock changes few: what is skipped must not be missed.
use hectare_orion::relax::{Consistency, Every};
use hectare_orion::{Error, parallel_for, run};

/// Some blocks, and a piece of one.
const LEN: usize = 4999;
const COUNT: usize = 6000;
const PASSES: usize = 6;

/// Changes stay near a place for a while, and then go on to another.
fn place(pass: usize, k: usize) -> usize {
    ((k / 150) * 1571 + pass * 83 + k % 5 * 40) % LEN
}

#[test]
fn changes_here_and_there_are_all_found() {
    let mut expected = vec![0u64; LEN];
    for pass in 0..PASSES {
        (0..COUNT).for_each(|k| expected[place(pass, k)] += 1 + k as u64);
        // A loop that is not relaxed writes in between.
        expected.iter_mut().step_by(7).for_each(|value| *value += 1);
    }
    for workers in [2, 3] {
        for every in [Every::PerPass(1), Every::PerPass(9), Every::PerPass(100)] {
            let found = run(workers, |w| {
                let mut a = w.zeros::<u64, 1>([LEN])?;
                for pass in 0..PASSES {
                    // From one to the next, so that each finds what the other left.
                    let consistency = match pass % 4 {
                        0 | 3 => Consistency::Bsp,
                        1 => Consistency::Bounded(1),
                        _ => Consistency::UNBOUNDED,
                    };
                    parallel_for!(w, unordered, relax a, consistency = consistency, every = every;
                    for k in 0..COUNT {
                        a.add(place(pass, k), 1 + k as u64);
                    })?;
                    parallel_for!(w, unordered, write a; for k in 0..LEN {
                        a[k] += u64::from(k % 7 == 0);
                    })?;
                }
                a.to_vec(w)
            });
            assert_eq!(found.unwrap()[0], expected, "{workers} workers, {every:?}");
        }
    }
}

/// Every iteration reads an element that somebody changes, and finds what it was when the clock began, and its worker's
/// own changes.
#[test]
fn reads_of_blocks_are_those_of_the_clock() {
    const CLOCKS: usize = 4;
    for workers in [2, 3, 4] {
        let (share, period) = (CLOCKS * 60, 60);
        let count = workers * share;
        let read = |pass: usize, k: usize| place(pass, k % share);
        let write = |pass: usize, k: usize| place(pass, (k % share + 45) % share);
        let found = run(workers, |w| {
            let mut a = w.zeros::<u64, 1>([LEN])?;
            let mut seen = w.zeros::<u64, 1>([count])?;
            let mut all = Vec::new();
            for pass in 0..PASSES {
                parallel_for!(w, unordered, write seen, relax a,
                consistency = Consistency::Bsp, every = Every::PerPass(CLOCKS);
                for k in 0..count {
                    seen[k] = a.get(read(pass, k));
                    a.add(write(pass, k), 1 + k as u64);
                })?;
                all.push(seen.to_vec(w)?);
            }
            Ok(all)
        });
        let mut base = vec![0u64; LEN];
        for (pass, seen) in found.unwrap()[0].iter().enumerate() {
            for clock in 0..CLOCKS {
                let mut after = base.clone();
                for worker in 0..workers {
                    let mut own = base.clone();
                    let first = worker * share + clock * period;
                    for (k, seen) in (first..).zip(&seen[first..first + period]) {
                        assert_eq!(
                            *seen,
                            own[read(pass, k)],
                            "{workers} workers, pass {pass}, iteration {k}"
                        );
                        own[write(pass, k)] += 1 + k as u64;
                        after[write(pass, k)] += 1 + k as u64;
                    }
                }
                base = after;
            }
        }
    }
}

#[test]
fn rows_are_read_changed_and_written() {
    // Rows of an odd length lie at every alignment.
    const WIDTH: usize = 37;
    for consistency in [Consistency::Bsp, Consistency::Bounded(2), Consistency::Async] {
        let rows = run(2, |w| {
            let mut a = w.from_fn([90, WIDTH], |[i, j]| (i * WIDTH + j) as f32)?;
            let differ = parallel_for!(w, unordered, relax a, consistency = consistency, sum differ: u64;
            for i in 0..90 {
                let mut row = vec![0.0; WIDTH];
                a.read_row(i, &mut row);
                differ += (0..WIDTH).filter(|j| row[*j] != (i * WIDTH + j) as f32).count() as u64;
                row.iter_mut().for_each(|x| *x = -*x);
                a.write_row(i, &row);
                a.add_row(i, &[0.5; WIDTH]);
            })?;
            assert_eq!(differ, 0);
            a.to_vec(w)
        });
        let expected: Vec<f32> = (0..90 * WIDTH).map(|at| 0.5 - at as f32).collect();
        assert_eq!(rows.unwrap()[0], expected, "{consistency}");
    }
}

#[test]
fn a_row_of_another_length_is_refused() {
    let failed = run(1, |w| {
        let mut a = w.zeros::<f32, 2>([4, 8])?;
        parallel_for!(w, unordered, relax a, consistency = Consistency::Async;
        for i in 0..4 {
            a.write_row(i, &[0.0; 7]);
        })
    });
    assert!(matches!(failed, Err(Error::BodyPanicked { .. })), "{failed:?}");
}

#[test]
fn asynchronous_loops_try_copies_and_lose_nothing_that_one_worker_alone_changes() {
    const PASSES: usize = 14;
    for workers in [2, 3] {
        let found = run(workers, |w| {
            let mut a = w.zeros::<u64, 1>([LEN])?;
            for pass in 0..PASSES {
                // Every element is changed by one iteration.
                parallel_for!(w, unordered, relax a, consistency = Consistency::Async;
                for k in 0..LEN {
                    a.add((k * 7) % LEN, (k + pass) as u64);
                })?;
            }
            let reports = w.reports()?;
            let relaxed = reports.iter().find(|report| report.in_place + report.in_copies > 0);
            let relaxed = relaxed.expect("a report of the asynchronous loop");
            assert_eq!(
                (relaxed.in_place + relaxed.in_copies, relaxed.passes),
                (PASSES as u64, PASSES as u64)
            );
            assert!(relaxed.in_place >= 2 && relaxed.in_copies >= 2, "both are tried: {relaxed}");
            a.to_vec(w)
        });
        let mut expected = vec![0u64; LEN];
        for pass in 0..PASSES {
            (0..LEN).for_each(|k| expected[(k * 7) % LEN] += (k + pass) as u64);
        }
        assert_eq!(found.unwrap()[0], expected, "{workers} workers");
    }
}
