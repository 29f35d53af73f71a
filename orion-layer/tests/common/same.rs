//! A program that has the same results on every number of workers.
use hectare_orion::{Context, Result, run};

/// The results of all workers are the same, whatever their number.
pub fn same<R: Send + PartialEq + std::fmt::Debug>(
    wanted: R,
    program: impl Fn(&mut Context<'_>) -> Result<R> + Sync,
) {
    for workers in 1..=4 {
        let results =
            run(workers, |w| program(w)).unwrap_or_else(|error| panic!("{workers} workers: {error}"));
        for result in results {
            assert_eq!(result, wanted, "{workers} workers");
        }
    }
}
