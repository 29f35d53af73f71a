//! The workers of a run: threads of this process, or one in each of several processes that a launcher started.

use anyhow::{Context, Result, ensure};
use hectare::wire::Launch;
use hectare::{Job, Worker};
use std::time::Duration;

/// How long a process waits for the others: they read the same ratings and make the same plan before they come.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

/// Runs `body` on `workers` workers. Started by `hectare run` or another launcher (see [`Launch`]), this process
/// is one of them, and the others are other processes; else all are threads of this one, in a job that has room
/// for `max_areas` areas.
///
/// # Errors
/// When the system refuses memory or threads, a worker panicked or failed, another process does not come, the
/// launcher started another number of processes, or owners change and the processes are on several hosts.
pub fn run(
    workers: usize,
    max_areas: u32,
    body: impl Fn(&mut Worker) -> hectare::Result<()> + Sync,
) -> Result<()> {
    match Launch::from_environment()? {
        Some(launch) => run_one_of(&launch, workers, body),
        None => {
            let job = Job::builder().max_areas(max_areas).embedded()?;
            let ends = job.run(workers, body)?;
            ends.into_iter().collect::<hectare::Result<()>>()?;
            Ok(())
        }
    }
}

fn run_one_of(
    launch: &Launch,
    workers: usize,
    body: impl Fn(&mut Worker) -> hectare::Result<()>,
) -> Result<()> {
    let (rank, size) = (launch.rank, launch.size);
    ensure!(workers == size as usize, "{workers} workers are wanted, but {size} processes were started");
    let job = Job::connect(&launch.job)?;
    let mut worker = job.worker()?;
    ensure!(worker.rank() == rank, "worker {} came to be where worker {rank} is wanted", worker.rank());
    // A barrier waits for whoever is there, so all have to be there before the first. An area that each creates
    // says so, and stays until everybody has seen it.
    let name = |rank: u32| format!("here/{rank}");
    let _here = worker.create::<u8>(name(rank), 1)?;
    for other in 0..size {
        let seen = worker.attach_within::<u8>(&name(other), LONGEST_WAIT);
        seen.with_context(|| format!("process {other} of {size} does not come"))?;
    }
    worker.barrier()?;
    body(&mut worker)?;
    Ok(())
}
