//! Clocks by measured staleness: what reads lack is bounded, as counted by the loop's own body.
use hectare_orion::relax::{Consistency, Every, Sum};
use hectare_orion::{Error, PerWorker, parallel_for, run};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;

const COUNT: usize = 12_000;
const MOST: u64 = 240;

/// Each worker counts its iterations in a relaxed and a buffered array, and beside them where all see it at once. The most
/// that reads of the arrays lacked, and what the report says.
fn lacking(workers: usize, consistency: Consistency, every: Every, sleeps: bool) -> ([u64; 2], (u64, u64)) {
    let really: Vec<AtomicU64> = (0..workers).map(|_| AtomicU64::new(0)).collect();
    let most = [const { AtomicU64::new(0) }; 2];
    let reports = run(workers, |w| {
        let mut relaxed = w.zeros::<u64, 1>([workers])?;
        let zeros = w.zeros::<u64, 1>([workers])?;
        let mut buffered = w.buffered(zeros, Sum)?;
        let me = PerWorker::new(w.rank() as usize);
        parallel_for!(w, unordered, relax relaxed, buffer buffered, consistency = consistency, every = every;
        for k in 0..COUNT {
            let (mut others, mut all) = (0, 0);
            for (of, really) in really.iter().enumerate() {
                // Read first, so that what comes meanwhile does not count as lacking.
                let now = really.load(SeqCst);
                all += now.saturating_sub(buffered.get(of));
                others += if of == *me { 0 } else { now.saturating_sub(relaxed.get(of)) };
            }
            most[0].fetch_max(others, SeqCst);
            most[1].fetch_max(all, SeqCst);
            if sleeps && *me == 0 && k % 1000 == 500 {
                std::thread::sleep(Duration::from_millis(3));
            }
            relaxed.add(*me, 1);
            buffered.add(*me, 1);
            really[*me].fetch_add(1, SeqCst);
        })?;
        let counts = relaxed.to_vec(w)?;
        assert_eq!(counts.iter().sum::<u64>(), COUNT as u64);
        assert_eq!(counts, buffered.array().to_vec(w)?);
        assert!(counts.iter().zip(&really).all(|(count, really)| *count == really.load(SeqCst)));
        let report = w.reports()?.remove(0);
        assert!(report.stale_iterations <= report.max_stale_iterations as f64);
        Ok((report.clocks, report.max_stale_iterations))
    });
    (most.map(AtomicU64::into_inner), reports.unwrap()[0])
}

#[test]
fn reads_lack_no_more_than_the_bound_and_a_cell_of_each_worker() {
    for workers in [1usize, 2, 3, 4] {
        for sleeps in [false, true] {
            let cell = MOST / (8 * (workers as u64 - 1).max(1));
            let (most, (clocks, reported)) =
                lacking(workers, Consistency::Bsp, Every::Staleness(MOST), sleeps);
            // One cell that was running when the bound was passed, and one that is not counted before it ends.
            let bound = MOST + 2 * workers as u64 * (cell + 1);
            assert!(most.iter().all(|most| *most <= bound), "{workers} workers: {most:?}, {bound}");
            assert!(reported <= bound, "{workers} workers: {reported}");
            // The bound is used: no more clocks than twice as many as it takes.
            let needed = COUNT as u64 / MOST * workers as u64;
            assert!((needed / 2..=2 * needed + 8).contains(&clocks), "{workers} workers: {clocks}, {needed}");
        }
    }
}

#[test]
fn a_pass_without_the_bound_is_much_staler() {
    let (most, (_, reported)) = lacking(2, Consistency::Bsp, Every::PerPass(2), false);
    assert!(most[1] >= 10 * MOST && reported == 0, "{most:?} {reported}");
}

#[test]
fn nothing_is_lost_where_workers_do_not_wait() {
    for consistency in [Consistency::Bounded(0), Consistency::Bounded(3)] {
        for workers in [2, 3] {
            // The body's own sums are compared; how stale reads are depends on the machine.
            let (_, (clocks, _)) = lacking(workers, consistency, Every::Staleness(MOST), true);
            assert!(clocks > workers as u64, "{clocks}");
        }
    }
}

#[test]
fn bounds_that_say_nothing_are_refused() {
    for (every, says) in [
        (Every::Staleness(0), "`every = Staleness(0)`: clocks would"),
        (Every::Staleness(u64::MAX), "never come"),
    ] {
        let error = run(2, |w| {
            let mut a = w.zeros::<u64, 1>([10])?;
            parallel_for!(w, unordered, relax a, every = every;
            for k in 0..100 {
                a.add(k % 10, 1);
            })
        });
        let error = error.unwrap_err();
        assert!(matches!(error, Error::InvalidLoop { .. }) && error.to_string().contains(says), "{error}");
    }
}
