//! Loops that relax arrays: nothing is lost, nothing counts twice, nobody reads what is staler than allowed.
use crate::common::relaxing;
use hectare_orion::relax::{AdaGrad, AdaRevision, Consistency, Every, Mean, Sum};
use hectare_orion::{Context, PerWorker, Result, parallel_for, run};
use relaxing::{ALL, COUNT, bin, expected};
use std::time::Duration;

const BINS: usize = 37;

const INTERVALS: [Every; 5] = [
    Every::PerPass(1),
    Every::PerPass(16),
    Every::Iterations(100),
    Every::Time(Duration::from_micros(50)),
    Every::Staleness(150),
];

#[test]
fn contributions_to_a_buffer_are_applied_exactly_once() {
    for workers in [1, 2, 3] {
        for consistency in ALL {
            for every in INTERVALS {
                let bins = run(workers, |w| {
                    let zeros = w.zeros::<u64, 1>([BINS])?;
                    let mut bins = w.buffered(zeros, Sum)?;
                    for _pass in 0..3 {
                        parallel_for!(w, unordered, buffer bins, consistency = consistency, every = every;
                        for k in 0..COUNT {
                            bins.add(bin(k, BINS), k as u64 % 7);
                        })?;
                    }
                    bins.array().to_vec(w)
                });
                assert_eq!(
                    bins.unwrap()[0],
                    expected(BINS, 3),
                    "{workers} workers, {consistency}, {every:?}"
                );
            }
        }
    }
}

#[test]
fn changes_of_copies_are_added_up_exactly_once() {
    for workers in [1, 2, 3] {
        for consistency in ALL.into_iter().filter(|c| *c != Consistency::Async || workers == 1) {
            for every in INTERVALS {
                let bins = run(workers, |w| {
                    let mut bins = w.zeros::<u64, 1>([BINS])?;
                    for _pass in 0..3 {
                        parallel_for!(w, unordered, relax bins, consistency = consistency, every = every;
                        for k in 0..COUNT {
                            bins.set(bin(k, BINS), bins.get(bin(k, BINS)) + k as u64 % 7);
                        })?;
                    }
                    bins.to_vec(w)
                });
                assert_eq!(
                    bins.unwrap()[0],
                    expected(BINS, 3),
                    "{workers} workers, {consistency}, {every:?}"
                );
            }
        }
    }
}

#[test]
fn asynchronous_elements_are_whole_and_writes_arrive() {
    // Every worker writes its own elements, and reads all: a value is one that somebody wrote.
    let values = run(3, |w| {
        let mut a = w.fill([64], u64::MAX)?;
        let torn = parallel_for!(w, unordered, relax a, consistency = Consistency::Async, sum torn: u64;
        for k in 0..48_000 {
            let half = k as u64;
            a.set(k % 64, half << 32 | half);
            let other = a.get(k * 7 % 64);
            torn += u64::from(other >> 32 != other & 0xffff_ffff);
        })?;
        assert_eq!(torn, 0);
        a.to_vec(w)
    });
    for (k, value) in values.unwrap()[0].iter().enumerate() {
        assert!(
            value >> 32 == value & 0xffff_ffff && (value & 0xffff_ffff) as usize % 64 == k,
            "{k}: {value}"
        );
    }
}

/// Sums of floats whose result depends on the order in which they are added.
fn floats(w: &mut Context<'_>, consistency: Consistency) -> Result<Vec<u32>> {
    let zeros = w.zeros::<f32, 2>([BINS, 3])?;
    let mut steps = w.buffered(zeros, AdaRevision::new(0.1))?;
    let mut sums = w.zeros::<f32, 1>([BINS])?;
    for pass in 0..3 {
        parallel_for!(w, unordered, relax sums, buffer steps, consistency = consistency;
        for k in 0..COUNT {
            let x = 1.0 / (1.0 + (k + pass) as f32) - 0.3 * steps.get([bin(k, BINS), 1]);
            sums.add(bin(k, BINS), x * sums.get(bin(k + 1, BINS)).cos());
            steps.add_row(bin(k, BINS), &[x, -x, 0.5 * x]);
        })?;
    }
    let mut bits: Vec<u32> = sums.to_vec(w)?.into_iter().map(f32::to_bits).collect();
    bits.extend(steps.array().to_vec(w)?.into_iter().map(f32::to_bits));
    Ok(bits)
}

#[test]
fn bulk_synchronous_runs_have_the_same_bits() {
    for workers in [1, 2, 3, 4] {
        let first = run(workers, |w| floats(w, Consistency::Bsp)).unwrap();
        for _ in 0..5 {
            assert_eq!(run(workers, |w| floats(w, Consistency::Bsp)).unwrap(), first, "{workers} workers");
        }
    }
}

#[test]
fn no_read_is_staler_than_the_bound() {
    for bound in [0, 1, 3] {
        let reports = run(3, |w| {
            let mut bins = w.zeros::<u64, 1>([BINS])?;
            let zeros = w.zeros::<u64, 1>([BINS])?;
            let mut more = w.buffered(zeros, Sum)?;
            let me = PerWorker::new(w.rank());
            for _pass in 0..4 {
                let (consistency, every) = (Consistency::Bounded(bound), Every::PerPass(20));
                parallel_for!(w, unordered, relax bins, buffer more, consistency = consistency, every = every;
                for k in 0..COUNT {
                    bins.add(bin(k, BINS), 1);
                    more.add(bin(k, BINS), 1);
                    // One worker is slow: by far, also where the others lose their cores.
                    if *me == 1 && k % 50 == 0 {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                })?;
            }
            assert_eq!(bins.to_vec(w)?, more.array().to_vec(w)?);
            w.reports()
        })
        .unwrap();
        let report = &reports[0][0];
        let most = report.staleness.most().unwrap();
        assert!(most <= bound, "{report}");
        assert!(bound == 0 || most > 0, "the slow worker was never behind: {report}");
        assert_eq!(report.passes, 4);
        assert!(report.clocks >= 3 * 4 * 20, "{report}");
        assert!(report.imbalance > 1.2 && report.bytes > 0, "{report}");
    }
}

#[test]
fn ready_made_rules() {
    for consistency in ALL {
        let found = run(2, |w| {
            let (a, b, c) = (w.zeros::<f64, 1>([4])?, w.zeros::<f64, 1>([4])?, w.zeros::<f64, 1>([4])?);
            let mut mean = w.buffered(a, Mean::over(2))?;
            let mut grad = w.buffered(b, AdaGrad::new(0.5))?;
            let mut revised = w.buffered(c, AdaRevision::new(2.0))?;
            for _pass in 0..100 {
                let every = Every::PerPass(4);
                parallel_for!(w, unordered, buffer [mean, grad, revised], consistency = consistency, every = every;
                for k in 0..64 {
                    let at = k * 3 % 4;
                    mean.add(at, 0.02 * (at as f64 - mean.get(at)));
                    grad.add(at, grad.get(at) - at as f64);
                    revised.add(at, revised.get(at) - at as f64);
                })?;
            }
            Ok([mean.array().to_vec(w)?, grad.array().to_vec(w)?, revised.array().to_vec(w)?])
        });
        for values in &found.unwrap()[0] {
            for (at, value) in values.iter().enumerate() {
                assert!((value - at as f64).abs() < 0.05, "{consistency}: {values:?}");
            }
        }
    }
}

#[test]
fn what_is_not_relaxed_keeps_its_dependences() {
    // Rows of `kept` are written by the iterations of one `i`, columns of `rotated` by those of one `j`.
    for consistency in ALL {
        let found = run(3, |w| {
            let mut kept = w.zeros::<u64, 1>([40])?;
            let mut rotated = w.zeros::<u64, 1>([60])?;
            let (mut total, mut each) = (w.zeros::<u64, 1>([1])?, w.zeros::<u64, 2>([40, 60])?);
            for _pass in 0..2 {
                parallel_for!(w, unordered, write [kept, rotated], relax [total, each], consistency = consistency;
                for i in 0..40 {
                    for j in 0..60 {
                        kept[i] += j as u64;
                        rotated[j] += i as u64;
                        each.add([i, j], 1);
                        if i == 39 { total.add(0, 1); }
                    }
                })?;
            }
            let rotates = w.explain()[0].steps > 1;
            Ok((kept.to_vec(w)?, rotated.to_vec(w)?, total.to_vec(w)?, each.to_vec(w)?, rotates))
        });
        let (kept, rotated, total, each, rotates) = &found.unwrap()[0];
        assert!(kept.iter().all(|sum| *sum == 2 * 59 * 30) && rotated.iter().all(|sum| *sum == 2 * 39 * 20));
        // The change of one iteration is lost under no consistency.
        assert_eq!(each, &[2; 40 * 60], "{consistency}");
        // Under `Async` two workers may change an element at once, and of the two changes one is lost. The last one of a
        // pass is not, nor is anything counted twice.
        let least = if consistency == Consistency::Async { 2 } else { 120 };
        assert!((least..=120).contains(&total[0]), "{consistency}: {total:?}");
        assert_eq!(*rotates, consistency != Consistency::Serializable, "{consistency}");
    }
}

/// Every iteration of a bulk-synchronous loop reads the values of its clock, exactly.
#[test]
fn bulk_synchronous_reads_are_those_of_the_clock() {
    const CLOCKS: usize = 4;
    for workers in [2, 3, 4] {
        // 48 cells, so that a clock has as many on each worker.
        let rows = workers * CLOCKS * 12;
        let found = run(workers, |w| {
            let mut sums = w.zeros::<u64, 1>([2])?;
            let zeros = w.zeros::<u64, 1>([2])?;
            let mut more = w.buffered(zeros, Sum)?;
            let mut seen = w.zeros::<u64, 2>([rows, 2])?;
            let mut lists = Vec::new();
            for _pass in 0..3 {
                parallel_for!(w, unordered, write seen, relax sums, buffer more,
                consistency = Consistency::Bsp, every = Every::PerPass(CLOCKS);
                for k in 0..rows {
                    seen[[k, 0]] = sums.get(0);
                    seen[[k, 1]] = more.get(0);
                    sums.add(0, 1 + k as u64);
                    more.add(0, 1 + k as u64);
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
                let (worker, clock) = (k / share, k % share / period);
                let begun: u64 = (0..workers)
                    .flat_map(|other| other * share..other * share + clock * period)
                    .map(|k| 1 + k as u64)
                    .sum();
                let own: u64 = (worker * share + clock * period..k).map(|k| 1 + k as u64).sum();
                assert_eq!(seen[2 * k], base + begun + own, "{workers} workers, iteration {k}");
                assert_eq!(seen[2 * k + 1], base + begun, "{workers} workers, iteration {k}");
            }
            base += (0..rows).map(|k| 1 + k as u64).sum::<u64>();
        }
    }
}
