//! The command line: what there is, and what its exit codes mean.
mod check;
pub mod daemon;
pub mod exit;
mod failure;
mod inspect;
mod key;
mod manage;
mod output;
mod pages;
mod parent_death;
mod parse;
mod peers;
mod plan;
mod read;
pub mod run;
pub mod top;
mod trace;
mod wait;

use crate::logging;
use clap::{Args, Parser, Subcommand};
use hectare_wire::{Connection, RunDir};
use std::path::PathBuf;
use std::process::ExitCode;

pub use read::Form;

/// Starts programs on Hectare, and shows what is running.
#[derive(Debug, Parser)]
#[command(name = "hectare", version, after_long_help = exit::help())]
pub struct Options {
    /// The run directory of the daemon; of `run --hosts`, that of each host's. Default: HECTARE_RUN_DIR there, else the user's
    /// default.
    #[arg(long, global = true)]
    run_dir: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a program in several processes of one job, and waits for them.
    Run(run::Run),
    /// The part of `run` on one of several hosts. It is started by `run`.
    #[command(hide = true, name = run::PART)]
    RunPart,
    /// Predicts how long a program of the loop layer would take on 1, 2, 4 ... 256 hosts, from a run of it here.
    Plan(plan::Plan),
    /// Lists the processes in jobs, and the state of their workers.
    Ps(Listing),
    /// The jobs.
    Jobs {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// The areas of a job.
    Areas(OfJob),
    /// The counters of a job.
    Stat(OfJob),
    /// Checks the health of a job: deaths, stragglers, unlogged writes.
    Check(OfJob),
    /// Shows a live view of jobs, workers and areas: rounds and bytes per second, staleness, late workers.
    Top(top::Top),
    /// Lists the other hosts of jobs on several hosts: state, round trip, bytes, losses.
    Peers(Listing),
    /// Follows an area's versions through this host, with times: published, sent, received, visible, acknowledged.
    Trace(trace::Trace),
    /// The newest published version of an area.
    Read(read::Read),
    /// Waits until a job has ended, or an area has a version or is fresh.
    Wait(wait::Wait),
    /// Creates and removes jobs.
    #[command(subcommand)]
    Job(manage::Job),
    /// The key that the hosts of a cluster share.
    #[command(subcommand)]
    Key(key::Key),
    /// The daemon's configuration.
    #[command(subcommand)]
    Config(manage::Config),
    /// Whether a daemon runs.
    Ping {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Prints completions for a shell: `source <(hectare completions bash)`.
    Completions(pages::Completions),
    /// Prints or writes manual pages.
    Man(pages::ManPages),
}

/// A listing of one job or all.
#[derive(Debug, Args)]
struct Listing {
    /// Only of this job.
    job: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// A question about a job.
#[derive(Debug, Args)]
struct OfJob {
    /// The job.
    job: String,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// A configuration that is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct BadConfig(String);

/// A finding that makes a command fail without an error.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Found(String);

/// Runs a command; says in one line what went wrong.
pub fn main_of(options: Options) -> ExitCode {
    match execute(options) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            logging::say(&format!("hectare: {}", output::one_line(&error)));
            ExitCode::from(exit::code_of(&error))
        }
    }
}

fn execute(options: Options) -> anyhow::Result<u8> {
    let named = options.run_dir.map(RunDir::at);
    let dir = named.clone().unwrap_or_else(RunDir::of_user);
    let connect = || Connection::open(&dir);
    match options.command {
        Command::Run(run) => return run::run(&dir, named.as_ref(), &run),
        Command::RunPart => return run::run_part(&dir),
        Command::Plan(what) => plan::plan(&dir, named.as_ref(), &what)?,
        Command::Ps(listing) => inspect::ps(&connect()?, listing.job.as_deref(), listing.json)?,
        Command::Jobs { json } => inspect::jobs(&connect()?, json)?,
        Command::Areas(of) => inspect::areas(&connect()?, &of.job, of.json)?,
        Command::Stat(of) => inspect::stat(&connect()?, &of.job, of.json)?,
        Command::Check(of) => check::check(&dir, &connect()?, &of.job, of.json)?,
        Command::Top(top) => return top::top(&dir, &top),
        Command::Peers(listing) => peers::peers(&dir, listing.job.as_deref(), listing.json)?,
        Command::Trace(trace) => trace::trace(&dir, &trace)?,
        Command::Read(read) => read::read(&connect()?, &read)?,
        Command::Wait(wait) => wait::wait(&dir, &wait)?,
        Command::Job(job) => manage::job(&connect()?, job)?,
        Command::Key(key) => key::key(key)?,
        Command::Config(config) => manage::config(config)?,
        Command::Ping { json } => inspect::ping(&connect()?, json)?,
        Command::Completions(what) => pages::completions(&what)?,
        Command::Man(what) => pages::man(&what)?,
    }
    Ok(0)
}
