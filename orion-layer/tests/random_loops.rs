//! Random loops on random numbers of workers.
use crate::common;

use common::case::Case;
use common::oracle::{Tally, run_nests, way};
use common::running::{Options, Pass, run_case};
use common::watchdog::watched;
use common::{generate, irregular};
use hectare_orion::loop_nest::Order;
use hectare_orion::run;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// So many seeds, more with `HECTARE_LONG=1`.
fn seeds(usual: u64) -> Vec<u64> {
    let long = std::env::var_os("HECTARE_LONG").is_some_and(|long| long == "1");
    (0..if long { usual * 20 } else { usual }).collect()
}

/// The passes of a case, by worker.
type Outcome = Vec<Vec<Pass>>;

/// Runs the cases in one program: what came of each, and the schedules that were chosen. An error says in which
/// case.
fn run_all(
    workers: usize,
    cases: &[Case],
    options: Options<'_>,
) -> Result<(Vec<Outcome>, Vec<String>), String> {
    let clock = AtomicU64::new(0);
    let reached = AtomicUsize::new(0);
    let results = run(workers, |w| {
        let (mut names, mut before) = (Vec::new(), w.explain());
        let one = |(number, case): (usize, &Case)| {
            reached.fetch_max(number, SeqCst);
            let passes = run_case(w, case, &clock, options)?;
            // Plans go with their arrays.
            let now = w.explain();
            names.extend(now.iter().filter(|one| !before.contains(one)).map(way));
            before = now;
            Ok(passes)
        };
        let passes = cases.iter().enumerate().map(one).collect::<hectare_orion::Result<Vec<_>>>()?;
        names.sort();
        Ok((passes, names))
    });
    let results =
        results.map_err(|error| format!("{workers} workers: {error}\n{}", cases[reached.load(SeqCst)]))?;
    let (mut by_worker, schedules): (Vec<_>, Vec<_>) = results.into_iter().unzip();
    by_worker.iter_mut().for_each(|cases| cases.reverse());
    let outcomes =
        cases.iter().map(|_| by_worker.iter_mut().filter_map(|cases: &mut Vec<_>| cases.pop()).collect());
    let outcomes = outcomes.collect();
    assert!(schedules.iter().all(|other| *other == schedules[0]), "workers have made different plans");
    Ok((outcomes, schedules.into_iter().next().unwrap_or_default()))
}

/// The nests that the example `nests` runs, the first of them.
#[test]
fn random_nests_keep_their_dependences() {
    let mut tally = Tally::new();
    for seed in seeds(2000) {
        let run = || run_nests(seed, &mut tally);
        watched("a random nest", run).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
    for (way, least) in [
        ("fully parallel", 50),
        ("one dimension", 50),
        ("rotation", 50),
        ("rotation of three", 5),
        ("serial", 50),
        ("fully parallel, arrays in place", 5),
        ("wavefront of 2 dimensions", 50),
        ("wavefront of 3 dimensions", 5),
        ("a wavefront of any numbers", 20),
        ("inspected: components", 20),
        ("inspected: levels", 20),
        ("inspected: blocks", 20),
    ] {
        assert!(tally.get(way).is_some_and(|loops| *loops >= least), "{way} is rare: {tally:?}");
    }
}

#[test]
fn a_run_depends_on_data_and_number_of_workers_alone() {
    watched("runs repeated", || {
        let cases: Vec<Case> = seeds(40).iter().map(|seed| generate::case(1_000_000 + seed)).collect();
        for workers in [3, 4] {
            let run = || run_all(workers, &cases, Options::default()).unwrap_or_else(|what| panic!("{what}"));
            let ((first, plans), (second, same_plans)) = (run(), run());
            assert_eq!(plans, same_plans);
            for (case, (first, second)) in cases.iter().zip(first.iter().zip(&second)) {
                for (worker, (first, second)) in first.iter().zip(second).enumerate() {
                    for (pass, (first, second)) in first.iter().zip(second).enumerate() {
                        let place = format!("worker {worker} of {workers}, pass {pass}\n{case}");
                        let order = |pass: &Pass| pass.ran.iter().map(|ran| ran.id).collect::<Vec<_>>();
                        assert_eq!(order(first), order(second), "{place}");
                        assert_eq!(first.sums, second.sums, "{place}");
                        assert_eq!(first.arrays, second.arrays, "{place}");
                    }
                }
            }
        }
    });
}

#[test]
fn accumulators_and_ordered_loops_do_not_depend_on_the_number_of_workers() {
    watched("numbers of workers", || {
        // In case 647 entries move twice, and floats are added in the order in which they lie.
        let seeds = seeds(60).into_iter().chain([647]);
        let cases: Vec<Case> = seeds.map(|seed| generate::case(2_000_000 + seed)).collect();
        let run = |workers| {
            let (outcomes, _) =
                run_all(workers, &cases, Options::default()).unwrap_or_else(|what| panic!("{what}"));
            outcomes
        };
        let alone = run(1);
        for workers in 2..=5 {
            for (case, (expected, found)) in cases.iter().zip(alone.iter().zip(run(workers))) {
                let mut forced = case.space.has_distinct_keys();
                for (pass, which) in case.passes.iter().enumerate() {
                    let place = format!("{workers} workers, pass {pass}\n{case}");
                    let (expected, found) = (&expected[0][pass], &found[0][pass]);
                    let (a, b) = (expected.sums, found.sums);
                    assert_eq!((a.1, a.2, a.3), (b.1, b.2, b.3), "{place}");
                    forced &= case.loops[*which].order == Order::Ordered;
                    if forced {
                        assert_eq!(a, b, "{place}");
                        assert_eq!(expected.arrays, found.arrays, "{place}");
                    }
                }
            }
        }
    });
}

/// Those that are inspected, of which one worker runs the groups that several do.
#[test]
fn ordered_loops_over_data_do_not_depend_on_the_number_of_workers() {
    watched("numbers of workers over data", || {
        let is_ordered = |case: &Case| case.loops.iter().all(|spec| spec.order == Order::Ordered);
        let cases: Vec<Case> = (0..)
            .map(|seed| irregular::case(3_000_000 + seed))
            .filter(is_ordered)
            .take(seeds(60).len())
            .collect();
        let run = |workers| {
            let (outcomes, ways) =
                run_all(workers, &cases, Options::default()).unwrap_or_else(|what| panic!("{what}"));
            let ways = ways.into_iter().filter(|way| way.starts_with("inspected")).collect::<Vec<_>>();
            (outcomes, ways)
        };
        let (alone, ways) = run(1);
        assert!(ways.len() >= 15, "{ways:?}");
        for workers in [2, 3, 5, 8] {
            let (found, same_ways) = run(workers);
            assert_eq!(ways, same_ways, "{workers} workers");
            for (case, (expected, found)) in cases.iter().zip(alone.iter().zip(found)) {
                for (pass, (expected, found)) in expected[0].iter().zip(&found[0]).enumerate() {
                    let place = format!("{workers} workers, pass {pass}\n{case}");
                    assert_eq!((expected.sums, &expected.arrays), (found.sums, &found.arrays), "{place}");
                }
            }
        }
    });
}
