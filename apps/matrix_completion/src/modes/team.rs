//! The workers of a run: threads of this process, or one in each of several processes that a launcher started.

use super::super::seen;
use anyhow::{Context, Result, bail, ensure};
use hectare::wire::Launch;
use hectare::{Job, Worker};
use std::path::PathBuf;
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
    files: &[PathBuf],
    body: impl Fn(&mut Worker) -> hectare::Result<()> + Sync,
) -> Result<()> {
    match Launch::from_environment()? {
        Some(launch) => run_one_of(&launch, workers, files, body),
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
    files: &[PathBuf],
    body: impl Fn(&mut Worker) -> hectare::Result<()>,
) -> Result<()> {
    let (rank, size) = (launch.rank, launch.size);
    ensure!(workers == size as usize, "{workers} workers are wanted, but {size} processes were started");
    let job = Job::connect(&launch.job)?;
    let mut worker = job.worker()?;
    ensure!(worker.rank() == rank, "worker {} came to be where worker {rank} is wanted", worker.rank());
    // A barrier waits for whoever is there, so all have to be there before the first. An area that each creates
    // says so, with what its process sees of the files, and stays until everybody has seen it.
    let name = |rank: u32| format!("here/{rank}");
    let files = if job.hosts().len() > 1 { files } else { &[] };
    let mut sees = vec![files.len() as u64];
    for file in files {
        sees.extend(seen::see(file).with_context(|| format!("cannot read {}", file.display()))?);
    }
    let mut here = worker.create::<u64>(name(rank), sees.len())?;
    here.write(&worker)?.as_mut_slice().copy_from_slice(&sees);
    let mut all = Vec::new();
    for other in 0..size {
        let seen = worker.attach_within::<u64>(&name(other), LONGEST_WAIT);
        all.push(seen.with_context(|| format!("process {other} of {size} does not come"))?);
    }
    worker.barrier()?;
    let all = all.iter().map(|area| Ok(area.read(&worker)?.to_vec())).collect::<hectare::Result<Vec<_>>>()?;
    check_same(&job, files, &all)?;
    worker.barrier()?;
    body(&mut worker)?;
    Ok(())
}

/// Refuses files that differ: a model would be of parts that do not belong together.
fn check_same(job: &Job, files: &[PathBuf], all: &[Vec<u64>]) -> Result<()> {
    for (rank, sees) in (0..).zip(all) {
        ensure!(sees[0] == all[0][0], "workers 0 and {rank} were started with different options");
        let pairs = all[0][1..].as_chunks::<3>().0.iter().zip(sees[1..].as_chunks::<3>().0);
        if let Some(((first, other), file)) = pairs.zip(files).find(|((first, other), _)| first != other) {
            bail!("{}: {}", file.display(), seen::difference(job, [(0, *first), (rank, *other)]));
        }
    }
    Ok(())
}
