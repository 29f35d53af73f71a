//! Random loops on random numbers of workers.
mod common;

use common::case::Case;
use common::check::check;
use common::generate;
use common::random::Random;
use common::running::{Options, Pass, run_case};
use common::watchdog::watched;
use hectare_orion::run;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// How many cases: more with `HECTARE_LONG=1`.
fn cases(usual: u64) -> u64 {
    if std::env::var_os("HECTARE_LONG").is_some_and(|long| long == "1") { usual * 20 } else { usual }
}

/// Runs the cases in one program; what each worker saw, by case. An error says in which case.
fn run_all(workers: usize, cases: &[Case], options: Options<'_>) -> Result<Vec<Vec<Vec<Pass>>>, String> {
    let clock = AtomicU64::new(0);
    let reached = AtomicUsize::new(0);
    let by_worker = run(workers, |w| {
        let one = |(number, case): (usize, &Case)| {
            reached.fetch_max(number, SeqCst);
            run_case(w, case, &clock, options)
        };
        cases.iter().enumerate().map(one).collect::<Result<Vec<_>, _>>()
    });
    let by_worker =
        by_worker.map_err(|error| format!("{workers} workers: {error}\n{}", cases[reached.load(SeqCst)]))?;
    let of_case = |number: usize| by_worker.iter().map(|cases| cases[number].clone()).collect();
    Ok((0..cases.len()).map(of_case).collect())
}

#[test]
fn random_loops_keep_their_dependences() {
    watched("random loops", || {
        let count = cases(300);
        let seeds: Vec<u64> = (0..count).collect();
        for chunk in seeds.chunks(20) {
            let workers = 1 + Random(chunk[0]).below(5);
            let cases: Vec<Case> = chunk.iter().map(|seed| generate::case(*seed)).collect();
            let outcomes = run_all(workers, &cases, Options::default());
            let outcomes = outcomes.unwrap_or_else(|what| panic!("{what}"));
            for (case, outcome) in cases.iter().zip(outcomes) {
                check(case, &outcome).unwrap_or_else(|what| panic!("{workers} workers: {what}\n{case}"));
            }
        }
    });
}
