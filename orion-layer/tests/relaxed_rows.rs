//! Rows of relaxed arrays read in place: beside a rotation, merged at every handover and interval, none lost.
use hectare_orion::relax::{Consistency, Every, Sum};
use hectare_orion::{Context, Error, Result, parallel_for, run};
use std::cell::RefCell;
use std::time::Duration;

const WIDTH: usize = 24;
const SIDE: usize = 40;

const COPIED: [Consistency; 5] = [
    Consistency::Serializable,
    Consistency::Bsp,
    Consistency::Bounded(0),
    Consistency::Bounded(2),
    Consistency::UNBOUNDED,
];

const INTERVALS: [Every; 5] = [
    Every::PerPass(1),
    Every::PerPass(16),
    Every::Iterations(20),
    Every::Staleness(50),
    Every::Time(Duration::from_micros(20)),
];

/// Counts of what the rotated array counts exactly, relaxed; and whether every row was read in place.
fn counts(w: &mut Context<'_>, consistency: Consistency, every: Every) -> Result<(Vec<i32>, Vec<i32>, bool)> {
    let space = w.entries([SIDE, SIDE], SIDE * SIDE, |k| ([k / SIDE, k % SIDE], k as u32))?;
    let mut rows = w.zeros::<i32, 2>([SIDE, WIDTH])?;
    let mut columns = w.zeros::<i32, 2>([SIDE, WIDTH])?;
    let mut totals = w.zeros::<i32, 2>([2, WIDTH])?;
    let mut copied = 0;
    for _pass in 0..3 {
        copied += parallel_for!(w, unordered, write [rows, columns], relax totals, consistency = consistency,
            every = every, sum copied: u64;
        for ((i, j), k) in space {
            let mut room = [i32::MIN; WIDTH];
            // A worker reads its own changes at once.
            let before = totals.row(1, &mut room)[*k as usize % WIDTH];
            let at = (*k as usize + before.unsigned_abs() as usize) % WIDTH;
            match k % 2 {
                0 => totals.add([1, at], 1),
                _ => totals.update_row(1, &mut room, |row| row[at] += 1),
            }
            let after = totals.row(1, &mut room)[at];
            assert!(after > 0);
            copied += u64::from(room[0] != i32::MIN);
            rows.row_mut(i)[at] += 1;
            columns.row_mut(j)[at] += 1;
        })?;
        let (exact, relaxed) = (columns.to_vec(w)?, totals.to_vec(w)?);
        for at in 0..WIDTH {
            let sum: i32 = exact.iter().skip(at).step_by(WIDTH).sum();
            assert_eq!(relaxed[WIDTH + at], sum, "{consistency}, {every:?}");
        }
    }
    Ok((columns.to_vec(w)?, totals.to_vec(w)?, copied == 0))
}

#[test]
fn rows_are_read_in_place_and_no_count_is_lost_beside_a_rotation() {
    for workers in [1, 2, 3, 4] {
        for consistency in COPIED {
            for every in INTERVALS {
                let all = run(workers, |w| counts(w, consistency, every)).unwrap();
                for (_, totals, in_place) in all {
                    assert!(in_place, "{workers} workers, {consistency}");
                    assert_eq!(totals.iter().sum::<i32>() as usize, 3 * SIDE * SIDE);
                }
            }
        }
    }
}

#[test]
fn one_worker_reads_in_place_under_all_and_several_copy_what_others_may_write() {
    let one = run(1, |w| counts(w, Consistency::Async, Every::PerPass(4))).unwrap();
    assert!(one[0].2, "alone");
    let copied = run(2, |w| {
        let mut totals = w.fill([2, WIDTH], 7i32)?;
        let copied = parallel_for!(w, unordered, relax totals, consistency = Consistency::Async, sum copied: u64;
        for k in 0..100 {
            let mut room = [0; WIDTH];
            let sum = totals.row(k % 2, &mut room).iter().sum::<i32>();
            assert_eq!(sum, 7 * WIDTH as i32);
            copied += u64::from(room == [7; WIDTH]);
            totals.write_row(k % 2, &[7; WIDTH]);
            // The body changes its room, which is copied back: the changes of both are the same ones.
            let last = totals.update_row(k % 2, &mut room, |row| {
                row.fill(7);
                row[WIDTH - 1]
            });
            copied += u64::from(last == 7 && room == [7; WIDTH]);
        })?;
        assert_eq!(totals.to_vec(w)?, [7; 2 * WIDTH]);
        Ok(copied)
    });
    assert_eq!(copied.unwrap()[0], 200);
}

#[test]
fn bits_depend_on_nothing_but_the_number_of_workers() {
    // One worker is exact under all.
    let alone = run(1, |w| counts(w, Consistency::Async, Every::PerPass(3))).unwrap();
    for consistency in [Consistency::Bsp, Consistency::Bounded(1)] {
        assert_eq!(run(1, |w| counts(w, consistency, Every::PerPass(3))).unwrap(), alone, "{consistency}");
    }
    // Workers end different numbers of clocks in their tiles, and begin the next at the same clock.
    for workers in [2, 3, 4] {
        for every in [Every::PerPass(16), Every::Iterations(20)] {
            let first = run(workers, |w| counts(w, Consistency::Bsp, every)).unwrap();
            for _ in 0..5 {
                let again = run(workers, |w| counts(w, Consistency::Bsp, every)).unwrap();
                assert_eq!(again, first, "{workers} workers, {every:?}");
            }
        }
    }
}

#[test]
fn merges_come_with_every_handover_and_interval_and_drift_is_reported() {
    for (every, at_least) in [(Every::PerPass(1), 2), (Every::PerPass(16), 10)] {
        run(2, |w| {
            counts(w, Consistency::Bsp, every)?;
            let reports = w.reports()?;
            let report = reports.iter().find(|report| report.clocks > 0).expect("a relaxed loop");
            // Of two workers, in three passes.
            assert!(report.clocks >= 2 * 3 * at_least, "{every:?}: {report}");
            assert!(report.drift_samples > 0 && report.drift > 0.0, "{report}");
            assert!(report.to_string().contains("drift"), "{report}");
            Ok(())
        })
        .unwrap();
    }
}

#[test]
fn rows_outside_and_rooms_of_another_length_end_the_loop() {
    let outside = run(1, |w| {
        let mut totals = w.zeros::<i32, 2>([2, WIDTH])?;
        parallel_for!(w, unordered, relax totals; for k in 0..3 {
            let _ = totals.row(k, &mut [0; WIDTH])[0];
            totals.add([0, 0], 1);
        })
    });
    assert!(matches!(outside, Err(Error::OutOfBounds { .. })), "{outside:?}");
    // In place, too, where the room is not used.
    for (workers, consistency, update) in [
        (2, Consistency::Async, false),
        (2, Consistency::Async, true),
        (2, Consistency::Bsp, false),
        (1, Consistency::Bsp, true),
    ] {
        let short = run(workers, |w| {
            let mut totals = w.zeros::<i32, 2>([2, WIDTH])?;
            parallel_for!(w, unordered, relax totals, consistency = consistency; for k in 0..2 {
                match update {
                    true => totals.update_row(k, &mut [0; 3], |row| row[0] += 1),
                    false => totals.add([0, 0], totals.row(k, &mut [0; 3])[0]),
                }
            })
        });
        let error = short.unwrap_err().to_string();
        assert!(
            error.contains("room for 3 elements for a row of \"") && error.contains("which has 24"),
            "{error}"
        );
    }
}

/// Room whose length is known only at run time is made once for each worker.
#[test]
fn room_outlives_iterations() {
    for consistency in [Consistency::Bsp, Consistency::Async] {
        let sums = run(2, |w| {
            let mut totals = w.zeros::<u64, 2>([4, w.size() + 5])?;
            let room = RefCell::new(vec![0; w.size() + 5]);
            parallel_for!(w, unordered, relax totals, consistency = consistency; for k in 0..1000 {
                // Each worker has rows of its own.
                totals.update_row(k / 250, &mut room.borrow_mut(), |row| row[k % 7] += 1);
            })?;
            totals.to_vec(w)
        });
        assert_eq!(sums.unwrap()[0].iter().sum::<u64>(), 1000, "{consistency}");
    }
}

#[test]
fn buffers_beside_a_rotation_neither_lose_contributions_nor_stand_still() {
    for workers in [2, 3, 4] {
        for consistency in COPIED.into_iter().chain([Consistency::Bounded(9), Consistency::Async]) {
            for every in INTERVALS {
                let sums = run(workers, |w| {
                    let space = w.entries([SIDE, SIDE], SIDE * SIDE, |k| ([k / SIDE, k % SIDE], k as u32))?;
                    let mut rows = w.zeros::<i32, 2>([SIDE, WIDTH])?;
                    let mut columns = w.zeros::<i32, 2>([SIDE, WIDTH])?;
                    let zeros = w.zeros::<i32, 1>([WIDTH])?;
                    let mut totals = w.buffered(zeros, Sum)?;
                    for _pass in 0..2 {
                        parallel_for!(w, unordered, write [rows, columns], buffer totals,
                            consistency = consistency, every = every;
                        for ((i, j), k) in space {
                            let at = (*k as usize) * (*k as usize) % WIDTH;
                            rows.row_mut(i)[at] += 1;
                            columns.row_mut(j)[at] += 1;
                            totals.add(at, 1);
                        })?;
                    }
                    let columns = columns.to_vec(w)?;
                    let exact: Vec<i32> =
                        (0..WIDTH).map(|at| columns.iter().skip(at).step_by(WIDTH).sum()).collect();
                    assert_eq!(totals.array().to_vec(w)?, exact, "{consistency}, {every:?}");
                    Ok(exact.iter().sum::<i32>())
                });
                assert_eq!(sums.unwrap()[0] as usize, 2 * SIDE * SIDE);
            }
        }
    }
}
