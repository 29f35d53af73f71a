//! Relaxed loops on processes of one job: what threads give, and a worker that is killed in the middle.
use crate::common::*;
use hectare::orion::relax::{AdaRevision, Consistency, Every, Relaxation, Sum};
use hectare::orion::{Context, Error, PerWorker, Result, parallel_for};

const BINS: usize = 41;
const COUNT: usize = 9000;

fn bin(k: usize) -> usize {
    k * k % BINS
}

/// Integer sums through copies and through a buffer, floats that show the order of everything, and sums that one iteration
/// alone changes.
#[allow(clippy::type_complexity)]
fn train(w: &mut Context<'_>, consistency: Consistency) -> Result<(Vec<u64>, Vec<u64>, Vec<u32>, Vec<u64>)> {
    let mut apart = w.zeros::<u64, 1>([COUNT])?;
    let (mut sums, zeros) = (w.zeros::<u64, 1>([BINS])?, w.zeros::<u64, 1>([BINS])?);
    let mut more = w.buffered(zeros, Sum)?;
    let zeros = w.zeros::<f32, 1>([BINS])?;
    let mut steps = w.buffered(zeros, AdaRevision::new(0.1))?;
    for _pass in 0..3 {
        parallel_for!(w, unordered, relax [sums, apart], buffer [more, steps], consistency = consistency;
        for k in 0..COUNT {
            sums.add(bin(k), k as u64);
            apart.add(k, k as u64);
            more.add(bin(k), k as u64);
            steps.add(bin(k), steps.get(bin(k + 1)) - 1.0 / (k + 1) as f32);
        })?;
    }
    let bits = steps.array().to_vec(w)?.into_iter().map(f32::to_bits).collect();
    Ok((sums.to_vec(w)?, more.array().to_vec(w)?, bits, apart.to_vec(w)?))
}

fn expected() -> Vec<u64> {
    let mut sums = vec![0; BINS];
    (0..COUNT).for_each(|k| sums[bin(k)] += 3 * k as u64);
    sums
}

#[test]
fn processes_lose_nothing_either() {
    as_processes("processes_lose_nothing_either", None, |w| {
        for consistency in [Consistency::Bsp, Consistency::Bounded(2), Consistency::Async] {
            let (sums, more, bits, apart) = train(w, consistency).unwrap();
            assert_eq!(more, expected(), "{consistency}");
            assert!(apart.into_iter().eq((0..COUNT as u64).map(|k| 3 * k)), "{consistency}");
            for (sum, all) in sums.into_iter().zip(expected()) {
                // Under `Async` two may change an element at once. The last change is not lost, and nothing counts twice.
                let least = if consistency == Consistency::Async { all.min(1) } else { all };
                assert!((least..=all).contains(&sum), "{consistency}: {sum} of {all}");
            }
            if w.rank() == 0 && consistency == Consistency::Bsp {
                let theirs = hectare::run(3, |w| train(w, consistency)).unwrap();
                assert_eq!(theirs[0].2, bits);
            }
        }
    });
}

/// Contributions to served arrays, foreseen and not, and floats that show the order of everything.
fn serve(w: &mut Context<'_>, consistency: Consistency) -> Result<(Vec<u64>, Vec<u64>, Vec<u32>)> {
    let (first, second) = (w.zeros::<u64, 1>([BINS])?, w.zeros::<u64, 1>([BINS])?);
    let (mut sums, mut looked) = (w.served(first, Sum)?, w.served(second, Sum)?);
    let zeros = w.zeros::<f32, 2>([BINS, 5])?;
    let mut steps = w.served(zeros, AdaRevision::new(0.1))?;
    for _pass in 0..3 {
        parallel_for!(w, unordered, serve [sums, steps], consistency = consistency;
        for k in 0..COUNT {
            sums.add(bin(k), k as u64);
            let value = steps.row(bin(k + 1))[2] - 1.0 / (k + 1) as f32;
            steps.add([bin(k), 2], value);
        })?;
        parallel_for!(w, unordered, serve looked, prefetch = false, consistency = consistency;
        for k in 0..COUNT {
            looked.add(bin(k), k as u64);
        })?;
    }
    let bits = steps.array().to_vec(w)?.into_iter().map(f32::to_bits).collect();
    let reports = w.reports()?;
    let relax = Relaxation { consistency, ..Relaxation::default() };
    // The first of the two loops, under this consistency.
    let report = reports.iter().find(|report| report.serving.plans_made > 0 && report.relax == Some(relax));
    let serving = &report.unwrap().serving;
    assert_eq!((serving.read_misses, serving.write_misses), (0, 0), "{serving:?}");
    Ok((sums.array().to_vec(w)?, looked.array().to_vec(w)?, bits))
}

#[test]
fn processes_are_served_as_threads_are() {
    as_processes("processes_are_served_as_threads_are", None, |w| {
        for consistency in [Consistency::Bsp, Consistency::Bounded(2), Consistency::Async] {
            let (sums, looked, bits) = serve(w, consistency).unwrap();
            assert_eq!((sums, looked), (expected(), expected()), "{consistency}");
            if w.rank() == 0 && consistency == Consistency::Bsp {
                let theirs = hectare::run(3, |w| serve(w, consistency)).unwrap();
                assert_eq!(theirs[0].2, bits);
            }
        }
    });
}

/// More keys than slots have room for at first, with what was seen of each.
fn flood(w: &mut Context<'_>, consistency: Consistency) -> Result<(Vec<u32>, u64)> {
    let zeros = w.zeros::<f32, 2>([2000, 3])?;
    let mut steps = w.served(zeros, AdaRevision::new(0.1))?;
    for pass in 0..3 {
        parallel_for!(w, unordered, serve steps, prefetch = false, consistency = consistency, every = Every::PerPass(2);
        for k in 0..COUNT {
            // A third of the keys in the first pass, all in the last.
            let key = k * 7 % 2000 * (pass + 1) / 3;
            let value = steps.row(key)[1] - 1.0 / (k + 1) as f32;
            steps.add([key, 1], value);
        })?;
    }
    let bits = steps.array().to_vec(w)?.into_iter().map(f32::to_bits).collect();
    Ok((bits, w.reports()?.iter().map(|report| report.clocks).sum()))
}

#[test]
fn slots_grow_between_processes() {
    as_processes("slots_grow_between_processes", None, |w| {
        let mut clocks = 0;
        for consistency in [Consistency::Bsp, Consistency::Bounded(1), Consistency::Async] {
            let (bits, counted) = flood(w, consistency).unwrap();
            clocks += 3 * 3 * 2;
            assert_eq!(counted, clocks, "{consistency}");
            if w.rank() == 0 && consistency == Consistency::Bsp {
                let theirs = hectare::run(3, |w| flood(w, consistency)).unwrap();
                assert_eq!(theirs[0].0, bits);
            }
        }
    });
}

fn killed(name: &str, consistency: Consistency) {
    as_processes(name, Some(2), |w| {
        let (mut sums, zeros) = (w.zeros::<u64, 1>([BINS]).unwrap(), w.zeros::<u64, 1>([BINS]).unwrap());
        let mut more = w.buffered(zeros, Sum).unwrap();
        let me = PerWorker::new(w.rank());
        let failed = parallel_for!(w, unordered, relax sums, buffer more, consistency = consistency;
        for k in 0..COUNT {
            if *me == 2 && k == COUNT - COUNT / 6 {
                // SAFETY: ends this process, as the kernel would when memory runs out.
                unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
            }
            sums.add(bin(k), 1);
            more.add(bin(k), 1);
        })
        .unwrap_err();
        assert!(matches!(failed, Error::WorkerLost { rank: 2, .. }), "{failed}");
        assert!(matches!(sums.to_vec(w), Err(Error::Poisoned { .. })));
        assert!(matches!(more.array().to_vec(w), Err(Error::Poisoned { .. })));
    });
}

#[test]
fn a_worker_killed_under_bsp_is_named() {
    killed("a_worker_killed_under_bsp_is_named", Consistency::Bsp);
}

#[test]
fn a_worker_killed_under_async_is_named() {
    killed("a_worker_killed_under_async_is_named", Consistency::Async);
}
