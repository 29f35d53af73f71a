//! Jobs that are made, removed and waited for; the configuration.
use super::BadConfig;
use super::output::print;
use crate::config;
use anyhow::Result;
use clap::Subcommand;
use hectare_wire::{Connection, JobSettings, Request, Stall};
use std::path::PathBuf;

/// Making and removing jobs.
#[derive(Debug, Subcommand)]
pub(super) enum Job {
    /// Makes a job.
    Create {
        /// Its name.
        job: String,
        /// Address space for areas, in bytes: the quota of memory.
        #[arg(long)]
        bytes: Option<u64>,
        /// The maximal number of areas.
        #[arg(long)]
        areas: Option<u32>,
        /// The maximal number of workers.
        #[arg(long)]
        workers: Option<u32>,
        /// How long a round waits for workers to arrive, in ms.
        #[arg(long)]
        round_timeout_ms: Option<u64>,
        /// Kill a worker that stalls in a round for this many ms.
        #[arg(long)]
        kill_after_ms: Option<u64>,
        /// If a worker stalls in a round for this many ms, pin the reader copy that it is writing and continue with the
        /// others; for areas with three reader copies or more.
        #[arg(long, conflicts_with = "kill_after_ms")]
        pin_after_ms: Option<u64>,
        /// Compare what owners publish with what was logged.
        #[arg(long)]
        check: bool,
        /// Keep the job when its last member has left.
        #[arg(long)]
        keep: bool,
    },
    /// Removes a job.
    Remove {
        /// The job.
        job: String,
        /// Even if it has members; they keep its memory and continue among themselves.
        #[arg(long)]
        force: bool,
    },
}

/// The daemon's configuration.
#[derive(Debug, Subcommand)]
pub(super) enum Config {
    /// Prints the effective configuration of a daemon started here.
    Show {
        /// The file. Default: the one that the daemon would find.
        #[arg(long)]
        config: Option<PathBuf>,
    },
    /// Checks a configuration.
    Check {
        /// The file. Default: the one that the daemon would find.
        config: Option<PathBuf>,
    },
    /// Prints one with every key, its default and what it means.
    Example,
}

pub(super) fn job(connection: &Connection, what: Job) -> Result<()> {
    let request = match what {
        Job::Create {
            job,
            bytes,
            areas,
            workers,
            round_timeout_ms,
            kill_after_ms,
            pin_after_ms,
            check,
            keep,
        } => {
            let kill = kill_after_ms.map(Stall::KillAfterMs);
            let stall = kill.or(pin_after_ms.map(Stall::PinAfterMs));
            let check = check.then_some(true);
            let settings = JobSettings { bytes, areas, workers, round_timeout_ms, stall, check };
            Request::Create { job, settings, keep }
        }
        Job::Remove { job, force } => Request::Remove { job, force },
    };
    Ok(connection.order(&request)?)
}

pub(super) fn config(what: Config) -> Result<()> {
    let load = |file| config::Config::load(file).map_err(|error| BadConfig(format!("{error:#}")));
    match what {
        Config::Show { config } => {
            let mut config = load(config)?;
            config.run_dir = Some(config.run_dir().path().to_owned());
            print(toml::to_string(&config)?.as_bytes())
        }
        Config::Check { config } => {
            load(config)?.check_key().map_err(|error| BadConfig(format!("{error:#}")).into())
        }
        Config::Example => print(config::EXAMPLE.as_bytes()),
    }
}
