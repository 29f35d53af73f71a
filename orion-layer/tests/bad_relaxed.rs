//! Relaxed loops that go wrong: errors that name the cause, nothing applied twice, nothing taken for a result.
use crate::common::relaxing;
use hectare_orion::relax::{Consistency, Every, Sum};
use hectare_orion::{Error, PerWorker, parallel_for, run};
use relaxing::{COUNT, Touchy, bin};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

const BINS: usize = 37;

const ALL: [Consistency; 5] = [
    Consistency::Serializable,
    Consistency::Bsp,
    Consistency::Bounded(1),
    Consistency::Bounded(5),
    Consistency::Async,
];

#[test]
fn a_body_that_panics_poisons_and_everybody_hears_of_it() {
    for consistency in ALL {
        for at in [0, 2999, 5999] {
            let failed = run(3, |w| {
                let mut bins = w.zeros::<u64, 1>([BINS])?;
                let zeros = w.zeros::<u64, 1>([BINS])?;
                let mut more = w.buffered(zeros, Sum)?;
                let error = parallel_for!(w, unordered, relax bins, buffer more, consistency = consistency;
                for k in 0..COUNT {
                    assert!(k != at, "an accident");
                    bins.add(bin(k, BINS), 1);
                    more.add(bin(k, BINS), 1);
                })
                .unwrap_err();
                assert!(matches!(bins.to_vec(w), Err(Error::Poisoned { .. })));
                assert!(matches!(more.array().to_vec(w), Err(Error::Poisoned { .. })));
                // All have made the same calls, whoever failed and whoever heard of it: the next ones work.
                let mut fresh = w.zeros::<u64, 1>([BINS])?;
                parallel_for!(w, unordered, relax fresh, consistency = consistency;
                for k in 0..COUNT { fresh.add(bin(k, BINS), 1); })?;
                let mut all = [0; BINS];
                (0..COUNT).for_each(|k| all[bin(k, BINS)] += 1);
                for (counted, all) in fresh.to_vec(w)?.into_iter().zip(all) {
                    // Of two changes at once, `Async` may lose one, but not the last.
                    let least = if consistency == Consistency::Async { all.min(1) } else { all };
                    assert!((least..=all).contains(&counted), "{consistency}: {counted} of {all}");
                }
                Err::<(), Error>(error)
            });
            let error = failed.unwrap_err();
            assert!(
                matches!(&error, Error::BodyPanicked { message, iteration, .. }
                    if message == "an accident" && *iteration == format!("k = {at}")),
                "{error}"
            );
        }
    }
}

#[test]
fn a_worker_that_stands_still_is_named() {
    let iterations = AtomicUsize::new(0);
    let failed = run(2, |w| {
        let me = PerWorker::new(w.rank());
        let mut bins = w.zeros::<u64, 1>([BINS])?;
        // Longer than a busy machine holds a worker up; the one that stands still waits for nobody.
        if *me == 0 {
            w.set_timeout(Duration::from_secs(2));
        }
        parallel_for!(w, unordered, relax bins, consistency = Consistency::Bounded(1);
        for k in 0..COUNT {
            // Until the other has stood at the bound for longer than that.
            let mut seen = usize::MAX;
            while *me == 1 && k == 3000 && seen != iterations.load(SeqCst) {
                seen = iterations.load(SeqCst);
                std::thread::sleep(Duration::from_secs(4));
            }
            iterations.fetch_add(1, SeqCst);
            bins.add(bin(k, BINS), 1);
        })
    });
    let error = failed.unwrap_err().to_string();
    assert!(error.contains("worker 1 is at clock 0") && error.contains("a relaxed loop"), "{error}");
}

/// Who has published as much as the one that waits, and stands still before it applies what that one contributes.
#[test]
fn a_worker_that_makes_no_room_is_named() {
    let (iterations, stands) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = run(2, |w| {
        let me = PerWorker::new(w.rank());
        let zeros = w.zeros::<u64, 1>([BINS])?;
        let mut bins = w.buffered(zeros, Sum)?;
        if *me == 1 {
            w.set_timeout(Duration::from_secs(2));
        }
        parallel_for!(w, unordered, buffer bins, consistency = Consistency::UNBOUNDED, every = Every::PerPass(16);
        for k in 0..COUNT {
            // After as many clocks as there is room for.
            let mut seen = usize::MAX;
            while *me == 0 && k == 1100 && seen != iterations.load(SeqCst) {
                stands.store(1, SeqCst);
                seen = iterations.load(SeqCst);
                std::thread::sleep(Duration::from_secs(4));
            }
            while *me == 1 && stands.load(SeqCst) == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
            iterations.fetch_add(1, SeqCst);
            bins.add(bin(k, BINS), 1);
        })
    });
    let error = failed.unwrap_err().to_string();
    let named = "room for contributions at clock 4 of a relaxed loop: worker 0 is at clock 4";
    assert!(error.contains(named), "{error}");
}

#[test]
fn delays_without_length_are_refused() {
    let refused = |every: Every| {
        let failed = run(2, |w| {
            let zeros = w.zeros::<u64, 1>([BINS])?;
            let mut bins = w.buffered(zeros, Sum)?;
            parallel_for!(w, unordered, buffer bins, every = every;
            for k in 0..10 {
                bins.add(k, 1);
            })
        });
        let error = failed.unwrap_err();
        assert!(matches!(error, Error::InvalidLoop { .. }), "{error}");
        error.to_string()
    };
    assert!(refused(Every::Iterations(0)).contains("`every = Iterations(0)`"));
    assert!(refused(Every::PerPass(0)).contains("`every = PerPass(0)`"));
    assert!(refused(Every::Time(Duration::ZERO)).contains("`every = Time(0ns)`"));
}

#[test]
fn an_index_outside_is_refused() {
    for consistency in ALL {
        let failed = run(2, |w| {
            let mut bins = w.zeros::<u64, 1>([BINS])?.named("bins");
            parallel_for!(w, unordered, relax bins, consistency = consistency;
            for k in 0..COUNT {
                bins.add(if k == 4321 { BINS } else { 0 }, 1);
            })
        });
        let error = failed.unwrap_err();
        let Error::OutOfBounds { loop_name, worker, .. } = &error else { panic!("{error}") };
        let expected = "at k = 4321: index [37] of bins is outside of its shape [37]";
        assert_eq!(error.to_string(), format!("loop {loop_name}, worker {worker}, {expected}"));
    }
}

#[test]
fn an_entry_and_a_row_outside_are_refused() {
    for consistency in ALL {
        let failed = run(2, |w| {
            let entries = w.entries([30, 20], 60, |k| ([k % 30, k % 20], k))?;
            let start = w.zeros::<f64, 2>([20, 3])?.named("table");
            let mut table = w.buffered(start, Sum)?;
            parallel_for!(w, unordered, buffer table, consistency = consistency;
            for ((i, j), value) in entries {
                if *value % 2 == 0 {
                    continue;
                }
                table.add_row(if (i, j) == (27, 17) { 20 } else { j }, &[1.0; 3]);
            })
        });
        let error = failed.unwrap_err();
        let expected = "at i = 27, j = 17: index [20] of table is outside of its shape [20, 3]";
        assert!(error.to_string().ends_with(expected), "{error}");
    }
}

#[test]
fn checked_loops_know_relaxed_and_buffered_arrays() {
    let bins = run(2, |w| {
        w.check_loops(true);
        let mut bins = w.zeros::<u64, 1>([BINS])?;
        let zeros = w.zeros::<u64, 1>([BINS])?;
        let mut more = w.buffered(zeros, Sum)?;
        let mut rows = w.zeros::<u64, 1>([300])?;
        parallel_for!(w, unordered, write rows, relax bins, buffer more, consistency = Consistency::Async;
        for k in 0..300 {
            rows[k] = k as u64;
            bins.add(bin(k, BINS), 1);
            more.add(bin(k, BINS), 1);
        })?;
        let both = [bins.to_vec(w)?, more.array().to_vec(w)?];
        assert_eq!(both[0].iter().sum::<u64>(), 300);
        Ok(both)
    });
    let [bins, more] = &bins.unwrap()[0];
    assert_eq!(bins, more);
}

#[test]
fn an_apply_function_that_panics_poisons() {
    for consistency in ALL {
        let failed = run(3, |w| {
            let zeros = w.zeros::<u64, 1>([BINS])?;
            let mut bins = w.buffered(zeros.named("bins"), Touchy)?;
            let error = parallel_for!(w, unordered, buffer bins, consistency = consistency;
            for k in 0..COUNT {
                bins.add(bin(k, BINS), if k == 3210 { 1000 } else { 0 });
            })
            .unwrap_err();
            // Whoever merged it: all are told.
            let text = error.to_string();
            assert!(text.contains("rule Touchy of \"bins\" panicked on worker"), "{text}");
            assert!(matches!(bins.array().to_vec(w), Err(Error::Poisoned { .. })));
            Err::<(), Error>(error)
        });
        let error = failed.unwrap_err();
        let named = matches!(&error, Error::RulePanicked { array, rule, message, .. }
            if array == "bins" && rule == "Touchy" && message == "an update of 1000");
        assert!(named && error.to_string().contains("not all applied"), "{error}");
    }
}
