//! Logistic regression in the manner of HogWild! (Niu et al., 2011): each worker learns from its own part of the examples,
//! and nobody takes a lock. The sum of a worker's steps is an area that it owns; the weights are the sum of all workers'
//! areas. How old the others' steps may be is what `--consistency` says:
//!
//! - `bsp`: all exchange their steps at a barrier after each period; the same bits in every run.
//! - `bounded:S`: nobody is more than S periods ahead of the slowest (Ho et al., 2013).
//! - `async`: nobody waits; each takes what the others published last.
//!
//! The program knows nothing of hosts: its workers are threads, processes of one host, or processes of several, as it is
//! started.
mod data;
mod model;
mod options;
mod train;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use hectare::wire::Launch;
use hectare::{Job, Worker};
use options::Options;
use std::time::Duration;

/// How long a process waits for the others, who read or make their examples before they come.
const LONGEST_WAIT: Duration = Duration::from_secs(120);

fn main() -> Result<()> {
    let options = Options::parse();
    match Launch::from_environment()? {
        Some(launch) => {
            let job = Job::connect(&launch.job)?;
            let mut worker = job.worker()?;
            ensure!(
                worker.rank() == launch.rank,
                "worker {} came to be where the launcher wants worker {}",
                worker.rank(),
                launch.rank
            );
            learn(&mut worker, launch.size as usize, &options)
        }
        None => {
            let job = Job::embedded()?;
            job.try_run(options.workers, |worker| learn(worker, options.workers, &options)).map(drop)
        }
    }
}

/// One of `size` workers, from its examples to the last report.
fn learn(worker: &mut Worker, size: usize, options: &Options) -> Result<()> {
    let rank = worker.rank() as usize;
    let examples =
        data::load(options, rank, size).with_context(|| format!("the examples of worker {rank}"))?;
    worker.wait_for_workers(size, LONGEST_WAIT)?;
    train::train(worker, size, &examples, options)
}
