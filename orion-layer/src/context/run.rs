//! Running a program on threads of one process.
use super::Context;
use crate::error::{Error, Result};
use hectare_dsm::Job;

/// Runs `program` on `workers` threads, pinned to a core each where there are enough, and returns what each
/// worker returned, by rank.
///
/// ```
/// let ranks = hectare_orion::run(2, |w| Ok(w.rank()))?;
/// assert_eq!(ranks, [0, 1]);
/// # Ok::<(), hectare_orion::Error>(())
/// ```
///
/// # Errors
/// The error of the worker that failed first, by what the others say; [`Error::Core`] with the message of a
/// panic; [`Error::Invalid`] for no workers.
pub fn run<R: Send>(
    workers: usize,
    program: impl Fn(&mut Context<'_>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if workers == 0 {
        return Err(Error::Invalid("a program needs at least one worker".into()));
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let job = Job::builder().pin_cores(workers <= cores).embedded()?;
    let results = job.run(workers, |worker| {
        let mut context = Context::join(worker, workers)?;
        program(&mut context)
    })?;
    let (values, mut errors): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    // What a worker says of itself is the cause; what others say of it is the consequence.
    let consequence = |result: &Result<R>| result.as_ref().is_err_and(Error::is_consequence);
    errors.sort_by_key(consequence);
    match errors.into_iter().next() {
        Some(Err(error)) => Err(error),
        _ => values.into_iter().collect(),
    }
}
