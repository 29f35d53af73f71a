//! Running a program on threads of one process, or as one of several processes.
use super::Context;
use crate::error::{Error, Result};
use hectare_dsm::wire::Launch;
use hectare_dsm::{Job, JobBuilder};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether this process has run its part of a program of several processes.
static HAS_RUN: AtomicBool = AtomicBool::new(false);

/// Runs `program` on `workers` threads, each pinned to a core if there are enough, and returns the result of each worker,
/// by rank.
///
/// In a process that a launcher started as one of several, `program` runs once, as the only worker of this process, among
/// as many workers as there are processes; `workers` is ignored, and only this worker's result is returned. That is so
/// when `HECTARE_JOB` names a job of the daemon and `hectare run`, SLURM, Open MPI, PMI or torchrun say which process
/// this is ([`Launch::from_environment`]). Such a process runs one program: a second call of `run` is an error there.
///
/// ```
/// let ranks = hectare_orion::run(2, |w| Ok(w.rank()))?;
/// assert_eq!(ranks, [0, 1]);
/// # Ok::<(), hectare_orion::Error>(())
/// ```
///
/// # Errors
/// The error of the worker that failed first, according to the others; [`Error::Core`] with the message of a
/// panic; [`Error::Invalid`] for no workers, for more than 256, for variables of a launcher that do not fit, and for a second call in one of
/// several processes.
pub fn run<R: Send>(
    workers: usize,
    program: impl Fn(&mut Context<'_>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if workers == 0 {
        return Err(Error::Invalid("a program needs at least one worker".into()));
    }
    if let Some(launch) = Launch::from_environment().map_err(|error| Error::Invalid(error.to_string()))? {
        return run_one_of(&launch, program).map(|value| vec![value]);
    }
    let most = JobBuilder::DEFAULT_WORKERS;
    if workers > most as usize {
        return Err(Error::Invalid(format!(
            "{workers} workers asked for, and `run` takes at most {most}: ask for fewer, or use `run_on` with a job that is made by \
             `Job::builder().max_workers({workers})`"
        )));
    }
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
    let job = Job::builder().pin_cores(workers <= cores).embedded()?;
    run_on(&job, workers, program)
}

/// [`run`] on threads of this process and the caller's job: one with more workers, areas or memory than the defaults,
/// with a stall policy, or one of the daemon. Launchers are ignored. The job must have no other workers.
///
/// ```
/// let job = hectare_dsm::Job::builder().reserve(64 << 20).max_workers(4).embedded()?;
/// let sizes = hectare_orion::run_on(&job, 2, |w| Ok(w.size()))?;
/// assert_eq!(sizes, [2, 2]);
/// # Ok::<(), hectare_orion::Error>(())
/// ```
///
/// # Errors
/// Those of [`run`]; [`Error::Invalid`] if other workers of the job hold the ranks.
pub fn run_on<R: Send>(
    job: &Job,
    workers: usize,
    program: impl Fn(&mut Context<'_>) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let results = job.run(workers, |worker| {
        let mut context = Context::join(worker, workers)?;
        let result = program(&mut context);
        context.ended(&result);
        result
    })?;
    let (values, mut errors): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    // An error of a worker's own is the cause; errors of others about it are consequences.
    let consequence = |result: &Result<R>| result.as_ref().is_err_and(Error::is_consequence);
    errors.sort_by_key(consequence);
    match errors.into_iter().next() {
        Some(Err(error)) => Err(error),
        _ => values.into_iter().collect(),
    }
}

/// Runs `program` as the worker of this process.
fn run_one_of<R>(launch: &Launch, program: impl Fn(&mut Context<'_>) -> Result<R>) -> Result<R> {
    // Relaxed: nothing else was written that a second call needs.
    if HAS_RUN.swap(true, Ordering::Relaxed) {
        return Err(Error::Invalid(
            "a second `run` in one process of a program of several: its worker has left the job. Do all in one `run`; or start the \
             program without `hectare run`, on threads"
                .into(),
        ));
    }
    let job = Job::connect(&launch.job)?;
    let mut worker = job.worker()?;
    if worker.rank() != launch.rank {
        return Err(Error::Invalid(format!(
            "worker {} came to be where the launcher wants worker {}: run one program per process",
            worker.rank(),
            launch.rank
        )));
    }
    let mut context = Context::join(&mut worker, launch.size as usize)?;
    let result = program(&mut context);
    context.ended(&result);
    result
}
