//! `hectare run`: a program in several processes of one job.
mod hosts;
mod output;
mod processes;
mod room;
mod signals;
mod supervise;
mod terminal;

use super::failure::Usage;
use super::parse::MOST_SECONDS;
use crate::hosts::MOST_RANKS;
use crate::logging::Sink;
use anyhow::{Context, Result};
use clap::Args;
use hectare_dsm::Job;
use hectare_wire::{Member, RunDir, check_job_name};
use hosts::HostOptions;
use output::Output;
use processes::{Process, Program};
use room::check_room;
use rustix::process::Signal;
use signals::Signals;
use std::ops::Range;
use std::time::Duration;
use supervise::Supervisor;
use terminal::Terminal;

/// The program to start. Its processes have `HECTARE_JOB`, `HECTARE_RANK` and `HECTARE_SIZE` in their environment,
/// nothing on their standard input, and a process group of their own each. They are killed when `hectare run` is.
///
/// Signals go to the groups, so also to what a process started. SIGINT, SIGTERM, SIGHUP and SIGQUIT end them: who runs
/// after --grace-s is killed, and all at once at the second Ctrl-C. Ctrl-Z stops all, `fg` has all go on. A process that
/// reads the terminal is handed it until it ends.
#[derive(Debug, Args)]
pub struct Run {
    /// How many processes: at most 256, or `defaults.workers` of hectared's configuration. Default with a list of hosts: as many as they
    /// have slots for.
    #[arg(
        short = 'n',
        long = "processes",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RANKS)),
        required_unless_present_any = ["hosts", "hostfile", "slurm", "launched"]
    )]
    processes: Option<u32>,
    /// The name of the job. Default: a unique name.
    #[arg(long)]
    job: Option<String>,
    /// Print the processes' output unchanged, without their ranks.
    #[arg(long)]
    no_prefix: bool,
    /// When one process fails, let the others continue. Those that wait for it to join the job get an error.
    #[arg(long)]
    keep_going: bool,
    /// Seconds from telling processes to end (by SIGTERM after a failure, or by the signal that this command received) to
    /// killing them.
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=u64::from(MOST_SECONDS)))]
    grace_s: u64,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true, num_args = 1.., value_names = ["PROGRAM", "ARGUMENT"])]
    program: Vec<String>,
    #[command(flatten)]
    on: HostOptions,
}

/// Starts the processes and waits for all; the exit code. `named` is the run directory if the user has named it: then it is that of
/// other hosts too.
///
/// # Errors
/// No daemon, a job that is refused, a program that cannot be started. What was started is ended.
pub fn run(dir: &RunDir, named: Option<&RunDir>, what: &Run) -> Result<u8> {
    if what.on.are_given() {
        return hosts::conduct(named, what, &what.on.plan(what.processes)?);
    }
    if what.on.launched {
        let hosts::Joined { job, rank, size, member } = hosts::join(dir, &what.on, what.job.as_deref())?;
        // The launcher knows how to tell the ranks' lines apart.
        return start(dir, what, &job, (rank..rank + 1, size, true), member);
    }
    what.on.check_one_host()?;
    if let Some(directory) = &what.on.directory {
        std::env::set_current_dir(directory)
            .with_context(|| format!("--directory {}", directory.display()))
            .usage()?;
    }
    let processes = what.processes.unwrap_or(1);
    let own = || format!("run-{}", std::process::id());
    let job = what.job.clone().unwrap_or_else(own);
    check_job_name(&job).map_err(hectare_wire::Error::Refused)?;
    // The job is there before the first process and until after the last, whoever comes and goes.
    let member = Member::hold(dir, &job)?;
    start(dir, what, &job, (0..processes, processes, what.no_prefix), member)
}

/// Starts ranks of a job of `size` ranks, and waits for them. Whether they write themselves, or what they print is copied.
fn start(
    dir: &RunDir,
    what: &Run,
    job: &str,
    (ranks, size, writes): (Range<u32>, u32, bool),
    member: Member,
) -> Result<u8> {
    let variables = what.on.variables()?;
    // Shared by the processes: here those who wait are told whom they wait for in vain.
    let memory = member.memory().try_clone_to_owned().context("dup")?;
    check_room(&memory, job, size)?;
    let shared = Job::from_descriptor(memory)?;
    // An earlier program of this job may have lost some.
    ranks.clone().for_each(|rank| drop(shared.expect(rank)));
    let signals = Signals::catch()?;
    // Messages here must not hold up signals: nobody may be reading them.
    let voice = Sink::start().context("starting a thread")?;
    let output = Output::new(voice.clone())?;
    let mut conductor = Supervisor {
        processes: Vec::new(),
        signals: &signals,
        shared: &shared,
        voice: &voice,
        keep_going: what.keep_going,
        is_launched: what.on.launched,
        grace: Duration::from_secs(what.grace_s),
        terminal: Terminal::find(),
        wait_for_terminal: Vec::new(),
        kill_at: None,
        kills: 0,
        has_said_what_is_left: false,
        first_failure: None,
        on_failure: None,
    };
    let program = Program { words: what.program.clone(), variables, size, writes, prefixed: true };
    let started = ranks.into_iter().try_for_each(|rank| {
        conductor.processes.push(Process::start(dir, &program, job, rank, &output)?);
        Ok(())
    });
    if started.is_err() {
        conductor.end(Signal::TERM);
    }
    let code = conductor.supervise();
    let mut is_to_end = conductor.kill_at.is_some();
    output.finish(|| {
        is_to_end |= signals.came().iter().any(|(signal, _)| signals::ends(*signal));
        is_to_end
    });
    drop(member);
    started.and(code)
}

/// The command of [`run_part`], which nobody types and which no other name looks like: `hectare` suggests similar ones.
pub const PART: &str = "__part";

/// The part of a run on this host, for a caller at the other end of standard input and output.
///
/// # Errors
/// Standard input and output that are not the caller's.
pub fn run_part(dir: &RunDir) -> Result<u8> {
    hosts::part(dir)
}
