//! Served arrays: fetched in bulk what a slice of the body has foreseen, and the rest one by one; nothing is lost, nothing
//! counts twice.
use crate::common::relaxing;
use hectare_orion::relax::{AdaGrad, AdaRevision, Consistency, Every, Sum};
use hectare_orion::serve::PrefetchStats;
use hectare_orion::{Context, PerWorker, Result, parallel_for, run};
use relaxing::{ALL, COUNT, bin, expected};
use std::time::Duration;

const BINS: usize = 371;

const INTERVALS: [Every; 4] =
    [Every::PerPass(1), Every::PerPass(16), Every::Iterations(100), Every::Time(Duration::from_micros(50))];

/// The cost of serving, over all loops.
fn serving(w: &mut Context<'_>) -> Result<PrefetchStats> {
    Ok(w.reports()?.swap_remove(0).serving)
}

#[test]
fn contributions_are_merged_exactly_once() {
    for workers in [1, 2, 3] {
        for (number, consistency) in ALL.into_iter().enumerate() {
            // Each interval with three of the six, others for each number of workers.
            for every in [INTERVALS[(number + workers) % 4], INTERVALS[(number + workers + 2) % 4]] {
                let found = run(workers, |w| {
                    let (zeros, more) = (w.zeros::<u64, 1>([BINS])?, w.zeros::<u64, 1>([BINS])?);
                    let (mut bins, mut looked) = (w.served(zeros, Sum)?, w.served(more, Sum)?);
                    for _pass in 0..3 {
                        parallel_for!(w, unordered, serve bins, consistency = consistency, every = every;
                        for k in 0..COUNT {
                            bins.add(bin(k, BINS), k as u64 % 7);
                        })?;
                        parallel_for!(w, unordered, serve looked, prefetch = false, consistency = consistency,
                        every = every;
                        for k in 0..COUNT {
                            looked.add(bin(k, BINS), k as u64 % 7);
                        })?;
                    }
                    let reports = w.reports()?;
                    Ok((bins.array().to_vec(w)?, looked.array().to_vec(w)?, reports))
                });
                let (bins, looked, reports) = found.unwrap().swap_remove(0);
                let what = format!("{workers} workers, {consistency}, {every:?}");
                assert_eq!(bins, expected(BINS, 3), "{what}");
                assert_eq!(looked, expected(BINS, 3), "{what}, one by one");
                if consistency != Consistency::Serializable {
                    assert_eq!(
                        (reports[0].serving.read_misses, reports[0].serving.write_misses),
                        (0, 0),
                        "{what}"
                    );
                    assert_eq!(reports[0].serving.plans_made, workers as u64, "{what}");
                    assert_eq!(reports[1].serving.write_misses, 3 * COUNT as u64, "{what}");
                }
            }
        }
    }
}

/// Rows and elements of two arrays, with rules whose results depend on the order of events; serially if there are no
/// workers.
fn steps(w: &mut Context<'_>, consistency: Consistency) -> Result<Vec<u32>> {
    let (rows, sums) = (w.zeros::<f32, 2>([BINS, 3])?, w.fill([2 * BINS], 0.5f32)?);
    let (mut rows, mut sums) = (w.served(rows, AdaRevision::new(0.1))?, w.served(sums, AdaGrad::new(0.3))?);
    let entries = w.entries([COUNT], COUNT, |k| ([k], [bin(k, BINS) as u32, bin(k + 7, BINS) as u32]))?;
    for pass in 0..3 {
        parallel_for!(w, unordered, serve [rows, sums], consistency = consistency;
        for ((k), bins) in entries {
            let [first, second] = *bins;
            let mut x = 1.0 / (1.0 + (k + pass) as f32);
            for value in rows.row(first as usize) {
                x -= 0.3 * value;
            }
            x *= sums.get(2 * second as usize + 1).cos();
            rows.add_row(first as usize, &[x, -x, 0.5 * x]);
            if x > 0.001 {
                rows.add([second as usize, 2], 0.1 * x);
            }
            sums.add(2 * second as usize + 1, x);
        })?;
    }
    let mut bits: Vec<u32> = rows.array().to_vec(w)?.into_iter().map(f32::to_bits).collect();
    bits.extend(sums.array().to_vec(w)?.into_iter().map(f32::to_bits));
    if consistency != Consistency::Serializable {
        let serving = serving(w)?;
        assert_eq!((serving.read_misses, serving.write_misses), (0, 0), "{serving:?}");
    }
    Ok(bits)
}

#[test]
fn one_worker_has_the_bits_of_the_serial_loop() {
    let serial = run(1, |w| steps(w, Consistency::Serializable)).unwrap();
    for consistency in ALL {
        assert_eq!(run(1, |w| steps(w, consistency)).unwrap(), serial, "{consistency}");
    }
}

#[test]
fn bulk_synchronous_runs_have_the_same_bits() {
    for workers in [2, 3, 4] {
        let first = run(workers, |w| steps(w, Consistency::Bsp)).unwrap();
        for _ in 0..5 {
            assert_eq!(run(workers, |w| steps(w, Consistency::Bsp)).unwrap(), first, "{workers} workers");
        }
    }
}

/// Every iteration of a bulk-synchronous loop reads the values of its clock, exactly.
#[test]
fn bulk_synchronous_reads_are_those_of_the_clock() {
    const CLOCKS: usize = 4;
    for workers in [2, 3, 4] {
        let rows = workers * CLOCKS * 12;
        let found = run(workers, |w| {
            let (a, b) = (w.zeros::<u64, 1>([200])?, w.zeros::<u64, 2>([5, 20])?);
            let (mut sums, mut looked) = (w.served(a, Sum)?, w.served(b, Sum)?);
            let mut seen = w.zeros::<u64, 2>([rows, 2])?;
            let mut lists = Vec::new();
            for _pass in 0..3 {
                parallel_for!(w, unordered, write seen, serve sums, consistency = Consistency::Bsp,
                every = Every::PerPass(CLOCKS);
                for k in 0..rows {
                    seen[[k, 0]] = sums.get(77);
                    sums.add(77, 1 + k as u64);
                })?;
                parallel_for!(w, unordered, write seen, serve looked, prefetch = false,
                consistency = Consistency::Bsp, every = Every::PerPass(CLOCKS);
                for k in 0..rows {
                    seen[[k, 1]] = looked.row(3)[5];
                    looked.add([3, 5], 1 + k as u64);
                })?;
                lists.push(seen.to_vec(w)?);
            }
            Ok(lists)
        });
        let lists = &found.unwrap()[0];
        let (share, period) = (rows / workers, rows / workers / CLOCKS);
        let mut base = 0;
        for seen in lists {
            for k in 0..rows {
                let clock = k % share / period;
                let begun: u64 = (0..workers)
                    .flat_map(|other| other * share..other * share + clock * period)
                    .map(|k| 1 + k as u64)
                    .sum();
                assert_eq!(seen[2 * k], base + begun, "{workers} workers, iteration {k}");
                assert_eq!(seen[2 * k + 1], base + begun, "{workers} workers, iteration {k}, one by one");
            }
            base += (0..rows).map(|k| 1 + k as u64).sum::<u64>();
        }
    }
}

#[test]
fn no_read_is_staler_than_the_bound() {
    for bound in [0, 1, 3] {
        let reports = run(3, |w| {
            let zeros = w.zeros::<u64, 1>([BINS])?;
            let mut bins = w.served(zeros, Sum)?;
            let me = PerWorker::new(w.rank());
            for _pass in 0..4 {
                let (consistency, every) = (Consistency::Bounded(bound), Every::PerPass(20));
                parallel_for!(w, unordered, serve bins, consistency = consistency, every = every;
                for k in 0..COUNT {
                    bins.add(bin(k, BINS), 1);
                    if *me == 1 && k % 50 == 0 {
                        std::thread::sleep(Duration::from_micros(200));
                    }
                })?;
            }
            assert_eq!(bins.array().to_vec(w)?.iter().sum::<u64>(), 4 * COUNT as u64);
            w.reports()
        })
        .unwrap();
        let report = &reports[0][0];
        assert!(report.staleness.most().unwrap() <= bound, "{report}");
    }
}

#[test]
fn several_loops_serve_one_array() {
    let found = run(3, |w| {
        let start = w.zeros::<u64, 1>([500])?;
        let mut sums = w.served(start, Sum)?;
        for pass in 0..4u64 {
            parallel_for!(w, unordered, serve sums, every = Every::PerPass(3);
            for k in 0..500 {
                assert_eq!(sums.get(k), 6 * pass);
                sums.add(k, 1);
            })?;
            parallel_for!(w, unordered, serve sums, consistency = Consistency::Serializable;
            for k in 0..500 {
                assert_eq!(sums.get(k), 6 * pass + 1);
                sums.add(k, 2);
            })?;
            parallel_for!(w, unordered, serve sums, consistency = Consistency::Async;
            for k in 0..500 {
                assert_eq!(sums.get(499 - k), 6 * pass + 3);
                sums.add(499 - k, 3);
            })?;
        }
        let (array, state) = sums.into_parts(w)?;
        assert!(state.is_none());
        array.to_vec(w)
    });
    assert_eq!(found.unwrap()[0], [24; 500]);
}

/// More keys in a clock than a ring has room for, none of them foreseen: it grows, and there are as many clocks as said.
#[test]
fn a_flood_of_unforeseen_contributions_makes_no_more_clocks() {
    for (consistency, times) in [
        (Consistency::Bsp, 1),
        (Consistency::Bsp, 4),
        (Consistency::Bounded(2), 4),
        (Consistency::UNBOUNDED, 4),
        (Consistency::Async, 1),
    ] {
        let found = run(3, |w| {
            let start = w.zeros::<u32, 1>([5000])?;
            let mut sums = w.served(start, Sum)?;
            for pass in 1..4u32 {
                // More of them in every pass.
                let most = 15_000 * pass as usize / 3;
                parallel_for!(w, unordered, serve sums, prefetch = false, consistency = consistency,
                    every = Every::PerPass(times);
                for k in 0..15_000 {
                    sums.add(k * 7 % 5000 * most / 15_000, 1);
                })?;
            }
            let clocks = w.reports()?[0].clocks;
            Ok((sums.array().to_vec(w)?, clocks))
        });
        let (sums, clocks) = &found.unwrap()[0];
        assert_eq!(sums.iter().sum::<u32>(), 3 * 15_000, "{consistency}");
        assert!(sums[..1666].iter().all(|sum| *sum >= 3 + 3 + 9), "{consistency}");
        assert_eq!(*clocks, 3 * 3 * times as u64, "{consistency}");
    }
}
