//! `hectare plan`: one run of a program of the loop layer, and what its passes would take on other numbers of hosts.
mod figures;
mod report;

use super::failure::{Usage, WrongUsage};
use super::output::json;
use anyhow::{Context, Result, bail};
use clap::Args;
use figures::{bandwidth, latency};
use hectare_dependence::hosts::{Link, PassesRecord, PlanRequest, RECORD_VERSION};
use hectare_wire::{Connection, RunDir};
use report::Report;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Runs a program of the loop layer with `hectare run`, and predicts its passes on other numbers of hosts. Give the program
/// its full data and a few passes; its output goes to standard error.
///
/// The links between hosts are given by `--latency` and `--bandwidth`, or, with `--on`, measured by the program's workers.
#[derive(Debug, Args)]
pub(super) struct Plan {
    /// The numbers of hosts. Default: 1, 2, 4 ... 256.
    #[arg(long, value_name = "N,..", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=256))]
    hosts: Vec<u32>,
    /// Workers on each host; without --on, the program runs with as many here. Default: the number of this host's
    /// processors or, with --on, of its first host's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    workers_per_host: Option<u32>,
    /// One-way latency between hosts, half of a round trip, such as `50us`, `5ms`.
    #[arg(long, value_name = "TIME", value_parser = latency, requires = "bandwidth")]
    latency: Option<f64>,
    /// A host's sending rate, such as `10Gbit`, `100Mbit` (per second).
    #[arg(long, value_name = "RATE", value_parser = bandwidth, requires = "latency")]
    bandwidth: Option<f64>,
    /// Run the program on these hosts, as with `hectare run --hosts`. Its workers measure the links, unless they are
    /// given.
    #[arg(long, value_name = "HOST:RANKS,..")]
    on: Option<String>,
    /// The command that runs another command on a host, as for `hectare run`.
    #[arg(long, value_name = "COMMAND", requires = "on")]
    rsh: Option<String>,
    /// The file to which the program reports its passes. With --on, the first host and this one must both have access to
    /// it. Default: a temporary file, which is removed.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
    /// The program and its arguments.
    #[arg(trailing_var_arg = true, required = true, num_args = 1.., value_names = ["PROGRAM", "ARGUMENT"])]
    program: Vec<String>,
}

/// Runs the program, and prints what its passes would take.
///
/// # Errors
/// No figures of links, a list of hosts that cannot be read, no daemon, a program that fails, or that leaves no record.
pub(super) fn plan(dir: &RunDir, named: Option<&RunDir>, what: &Plan) -> Result<()> {
    let link =
        what.latency.zip(what.bandwidth).map(|(latency, bandwidth)| Link::of_network(latency, bandwidth));
    if link.is_none() && what.on.is_none() {
        let what = "what do the links between the hosts do? Give --latency and --bandwidth, or --on with hosts to measure them on";
        return Err(WrongUsage::new(what).into());
    }
    let on_each = what.workers()?;
    if what.on.is_none() {
        // That there is no daemon is not the program's failure.
        drop(Connection::open(dir)?);
    }
    let scratch = match what.record {
        Some(_) => None,
        None => Some(scratch()?),
    };
    let record = match (&what.record, &scratch) {
        (Some(file), _) => std::path::absolute(file).context("the path of the record")?,
        (None, Some(scratch)) => scratch.path().join("record.json"),
        (None, None) => unreachable!("one of them is there"),
    };
    // A record of an earlier run says nothing of this one.
    match std::fs::remove_file(&record) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("{} cannot be replaced", record.display()));
        }
        _ => {}
    }
    let mut hosts: Vec<usize> = match what.hosts.is_empty() {
        true => (0..9).map(|doublings| 1 << doublings).collect(),
        false => what.hosts.iter().map(|hosts| *hosts as usize).collect(),
    };
    hosts.sort_unstable();
    hosts.dedup();
    let request = PlanRequest {
        record: record.to_str().context("the path of the record is not UTF-8")?.into(),
        hosts,
        workers_per_host: on_each as usize,
        link,
    };
    what.run(named, &request)?;
    let report = Report::of(&request, read(&record, &what.program[0])?);
    if what.json { json(&report) } else { super::output::print(report.to_string().as_bytes()) }
}

impl Plan {
    /// How many workers each host has; the list of hosts, if there is one, is read in any case.
    fn workers(&self) -> Result<u32> {
        let found = match &self.on {
            None => std::thread::available_parallelism().map_or(1, |processors| processors.get() as u32),
            Some(list) => {
                let hosts = crate::hosts::parse_list(list)
                    .map_err(|error| anyhow::anyhow!("--on: column {}: {}", error.column, error.what))
                    .usage()?;
                let plan = crate::hosts::Plan::new(&hosts, None).usage()?;
                plan.places.first().map_or(1, |place| place.ranks.len() as u32)
            }
        };
        Ok(self.workers_per_host.unwrap_or(found))
    }

    /// Runs the program by `hectare run`; what it prints goes to standard error.
    fn run(&self, named: Option<&RunDir>, request: &PlanRequest) -> Result<()> {
        let asked = serde_json::to_string(request)?;
        let mut run = Command::new(std::env::current_exe().context("the path of hectare")?);
        if let Some(dir) = named {
            run.arg("--run-dir").arg(dir.path());
        }
        run.arg("run");
        match &self.on {
            Some(list) => {
                run.args(["--hosts", list, "-x", &format!("HECTARE_PLAN={asked}")]);
                if let Some(rsh) = &self.rsh {
                    run.args(["--rsh", rsh]);
                }
            }
            None => {
                run.args(["-n", &request.workers_per_host.to_string()]).env("HECTARE_PLAN", asked);
            }
        }
        run.arg("--").args(&self.program);
        let status = run.stdout(Stdio::from(std::io::stderr())).status().context("hectare run")?;
        if !status.success() {
            bail!(
                "the program failed ({status}), and nothing can be said of its passes: {}",
                self.program.join(" ")
            );
        }
        Ok(())
    }
}

/// Reads the record that the program has written.
fn read(file: &Path, program: &str) -> Result<PassesRecord> {
    let text = match std::fs::read(file) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => bail!(
            "{program} has left no record of its passes in {}: it runs no loop of the loop layer (`parallel_for!`), or is built \
             with another version, or ran where this file is not seen",
            file.display()
        ),
        text => text.with_context(|| format!("the record {}", file.display()))?,
    };
    let record: PassesRecord = serde_json::from_slice(&text).with_context(|| {
        format!("{program} left a record that cannot be read: it is built with another version")
    })?;
    if record.version != RECORD_VERSION {
        bail!(
            "{program} left a record of version {}, and this is for {RECORD_VERSION}: build both alike",
            record.version
        );
    }
    if record.loops.iter().all(|one| one.forecasts.is_empty()) {
        bail!(
            "{program} left no predictions: none of its loops fits any of these numbers of workers, or all passes were checked ones"
        );
    }
    Ok(record)
}

/// A directory of this user alone, with a name that nobody can know before, which goes.
fn scratch() -> Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let made = builder.prefix("hectare-plan-").permissions(Permissions::from_mode(0o700)).tempdir();
    made.with_context(|| format!("a directory cannot be made in {}", std::env::temp_dir().display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_a_directory_that_is_its_own() {
        let all: Vec<TempDir> = (0..3).map(|_| scratch().unwrap()).collect();
        for (at, one) in all.iter().enumerate() {
            let mode = std::fs::metadata(one.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
            assert!(all[..at].iter().all(|other| other.path() != one.path()));
        }
        let path = all[0].path().to_owned();
        drop(all);
        assert!(!path.exists());
    }
}
