//! A campaign of faults against a running job of processes and threads.
//!
//! It starts a daemon of its own in a directory of its own and a job of four workers in three processes, which
//! write areas, read each other's and report what they see; injects faults in random order; and judges, after
//! each, the promises of the fault list: that the visible bytes of a version are its owner's (A), that versions
//! never go back (B), one owner per epoch (C), that the survivors go on within twice the time-out (D), that nobody
//! panics and everything that was taken comes back (E), and that a counter or a line of the log names it (G).
//! F, which is about replicas of several hosts, has no fault here. Every process is this program in another
//! role.
mod across;
mod areas;
mod clock;
mod constants;
mod content;
mod daemon;
mod host;
mod hostile;
mod limits;
mod list;
mod load;
mod process;
mod promises;
mod report;
mod stage;
mod stops;
mod system;
mod worker;

use anyhow::{Context, Result, bail};
use clap::Parser;
use hectare_testing::Random;
use list::FAULTS;
use report::{Outcome, Report};
use stage::Stage;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Injects faults into a running job and judges what it promises.
///
/// Exits with 1 if a promise was broken, and prints the seed that repeats the order of faults and every random
/// number in them; what the kernel's scheduler does besides is not repeated. Exits with 3 if none was broken and a
/// fault could not be injected here, which it names.
#[derive(Debug, Parser)]
struct Options {
    /// How long; each fault is injected once at least. Default: each once.
    #[arg(long, value_name = "MINUTES")]
    minutes: Option<f64>,
    /// Where the random numbers begin. Default: the time.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these faults, by number.
    #[arg(long, value_delimiter = ',')]
    only: Vec<u8>,
    /// Faults, by number, without which the campaign is still a success where they cannot be injected.
    #[arg(long, value_delimiter = ',')]
    may_skip: Vec<u8>,
    /// How long a fault that lasts (54) lasts.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    seconds: u64,
    /// Few repetitions, 2 seconds for what lasts, and no judgement of times: for tests on busy machines.
    #[arg(long)]
    short: bool,
    /// Writes what was injected and what held to a file.
    #[arg(long, value_name = "FILE")]
    json: Option<std::path::PathBuf>,
    /// Faults of a job on this number of hosts, which are network namespaces, instead of those of one host.
    #[arg(long, conflicts_with_all = ["may_skip", "json"])]
    hosts: Option<usize>,
    /// Lists the faults.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    if let Err(error) = clock::follow() {
        eprintln!("faults: the clock: {error}");
        return ExitCode::FAILURE;
    }
    let args: Vec<String> = std::env::args().skip(1).collect();
    let done = match args.split_first() {
        Some((first, [_job])) if first == hectare_daemon::agent::WORD => {
            return hectare_daemon::agent::run();
        }
        Some((first, role)) if first == "role" => play(role).map(|()| Outcome::Held),
        _ => campaign(&Options::parse()),
    };
    match done {
        Ok(Outcome::Held) => ExitCode::SUCCESS,
        Ok(Outcome::Broken) => ExitCode::FAILURE,
        Ok(Outcome::Skipped) => ExitCode::from(3),
        Err(error) => {
            eprintln!("faults: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Plays the role in which a campaign has started this program.
fn play(role: &[String]) -> Result<()> {
    let role: Vec<&str> = role.iter().map(String::as_str).collect();
    match role[..] {
        ["daemon", config] => {
            // As hectared says it: one line.
            if let Err(error) = host::serve(config) {
                eprintln!("hectared: {error:#}");
                std::process::exit(1);
            }
        }
        ["worker", job, first, count] => worker::main(job, first.parse()?, count.parse()?),
        ["across", job, size, style, loose] => across::play(job, size, style, loose)?,
        ["attach", points] => process::attacher(points)?,
        ["crowd", job, workers] => process::crowd(job, workers.parse()?, false)?,
        ["victim", job] => process::crowd(job, 0, true)?,
        ["beyond", group] => limits::beyond_the_limit(group)?,
        ["limited", what] => limits::limited(what)?,
        ["stranger"] => limits::stranger()?,
        ["scribble", seed] => hostile::scribble(seed.parse()?)?,
        ["keep", job] => hostile::keep(job)?,
        ["open-often", times] => hostile::open_often(times.parse()?)?,
        _ => bail!("no such role: {role:?}"),
    }
    Ok(())
}

fn campaign(options: &Options) -> Result<Outcome> {
    let known: Vec<(u8, &str)> = match options.hosts {
        Some(_) => across::list().collect(),
        None => FAULTS.iter().map(|fault| (fault.number, fault.name)).collect(),
    };
    if options.list {
        known.iter().for_each(|(number, name)| println!("{number:>3}  {name}"));
        return Ok(Outcome::Held);
    }
    let chosen: Vec<usize> = (0..FAULTS.len())
        .filter(|index| options.only.is_empty() || options.only.contains(&FAULTS[*index].number))
        .collect();
    for number in options.only.iter().chain(&options.may_skip) {
        anyhow::ensure!(
            known.iter().any(|(known, _)| known == number),
            "there is no fault {number}; --list lists them"
        );
    }
    let since_epoch = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let seed = options.seed.unwrap_or(since_epoch.as_nanos() as u64 >> 10);
    if let Some(hosts) = options.hosts {
        anyhow::ensure!(hosts > 1, "faults of several hosts need two at least");
        let (minutes, only) = (options.minutes.unwrap_or(0.0), options.only.clone());
        let plan = across::Plan { hosts, seed, minutes, short: options.short, only };
        return across::campaign(&plan);
    }
    let lasting = Duration::from_secs(if options.short { 2 } else { options.seconds });
    let mut random = Random(seed ^ 0x5eed);
    let mut report = Report::new(seed, &options.may_skip);
    let began = Instant::now();
    let mut stage = Stage::new(seed, options.short, lasting).context("setting the stage")?;
    loop {
        let mut order = chosen.clone();
        for last in (1..order.len()).rev() {
            order.swap(last, random.below(last + 1));
        }
        for index in order {
            let (fault, since) = (&FAULTS[index], Instant::now());
            stage.slowest = Duration::ZERO;
            let verdict = (fault.run)(&mut stage).and_then(|verdict| {
                stage.all_is_well()?;
                Ok(verdict)
            });
            if !report.add(fault, verdict, since.elapsed(), stage.slowest) {
                return report.end(stage.load.seen(), options.json.as_deref());
            }
        }
        let minutes = options.minutes.unwrap_or(0.0);
        if began.elapsed().as_secs_f64() >= minutes * 60.0 {
            break;
        }
    }
    let seen = stage.load.seen();
    report.close(stage.close());
    report.end(seen, options.json.as_deref())
}
