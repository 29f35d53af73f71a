//! Matrix completion: predict the ratings that users would give to items they have not rated.
//!
//! ```text
//! cargo run --release -p matrix_completion
//! cargo run --release -p matrix_completion -- --ratings ratings.dat --rank 64 --out curve
//! hectare run -n 4 -- target/release/matrix_completion
//! ```
//!
//! The model is a matrix of factors for users and one for items; the prediction is the product of two rows plus the
//! mean of all ratings. Training is stochastic gradient descent: for one rating after the other, both rows move
//! along the gradient of its squared error. `--mode` says how workers share the two matrices.
//!
//! Where to look first: `kernel/` is one update, `sweep.rs` the loop around it, `plan/` finds what can run
//! at the same time, and `modes/` has a file for each way to run it.

#![allow(unreachable_pub, reason = "tests and benches include this file as a module")]

pub mod barrier;
pub mod blocks;
#[path = "../../../examples/training/chart.rs"]
pub mod chart;
pub mod checkpoint;
pub mod components;
pub mod data;
pub mod evaluate;
pub mod exchange;
pub mod generate;
#[path = "../../../examples/training/interrupt.rs"]
pub mod interrupt;
pub mod kernel;
pub mod model;
pub mod modes;
#[path = "../../../orion-layer/data/src/new_file.rs"]
pub mod new_file;
pub mod options;
pub mod plan;
pub mod random;
pub mod read;
pub mod report;
#[path = "../../../examples/training/said.rs"]
pub mod said;
#[path = "../../../examples/training/seen.rs"]
mod seen;
pub mod sweep;
pub mod train;

use anyhow::{Result, bail};
use clap::Parser;
use data::DataSet;
use hectare::wire::{Launch, LeftAlone};
use kernel::Kernels;
use model::{Layout, Model};
use modes::{areas, handover, serial, shared};
use options::{Mode, Options};
use plan::{Plan, PlanOptions};
use report::{Epoch, Report};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::Instant;
use train::{EpochEnd, Training};

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(error) if error.exit_code() == 0 => error.exit(),
        Err(error) => {
            eprintln!("{} (see --help)", wrong(&error.to_string()));
            return ExitCode::from(2);
        }
    };
    match launched(options)
        .and_then(|options| options.check().map(|()| options))
        .and_then(|options| run(&options))
    {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", said::one_line(&error));
            ExitCode::FAILURE
        }
    }
}

/// All that clap says of wrong arguments, tips included, in one line; the usage is one --help away.
fn wrong(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let parts: Vec<String> = lines
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| if line.starts_with("tip:") { format!("({line})") } else { line.to_owned() })
        .collect();
    parts.join(" ")
}

/// Notes which of several processes this is. The first one alone prints.
fn launched(mut options: Options) -> Result<Options> {
    options.launch = Launch::from_environment()?;
    if let Some(alone) = LeftAlone::from_environment() {
        eprintln!("note: {alone}");
    }
    options.quiet |= !options.is_first();
    Ok(options)
}

fn run(options: &Options) -> Result<ExitCode> {
    if options.mode == Mode::Serial && options.workers.is_some_and(|workers| workers > 1) {
        eprintln!("note: mode serial has one worker");
    }
    let mut data = load(options)?;
    // The order in which ratings are learnt from is random, but the same in every epoch and mode: a file sorted by
    // user or time would teach one user after the other, and conflict in every batch.
    random::Random::new(options.seed, "order").shuffle(&mut data.train);

    let layout = Layout::new::<f32>(options.rank, options.step);
    let mut model = Model::<f32>::new(data.users, data.items, layout, options.seed)?;
    let kernels = Kernels::new(layout.lines, options.step);
    let checkpoint = options.checkpoint.as_ref();
    let checkpoint = checkpoint.map(|path| (path, checkpoint::title(&model, options.seed, &data)));
    let begun = match &checkpoint {
        Some((path, title)) => checkpoint::load(path, &mut model, title)?,
        None => 0,
    };
    // The rest is a run of its own, whose first learning rate is that of the epoch that comes.
    let schedule = options.schedule().after(begun);
    let epochs = options.epochs.saturating_sub(begun);
    let files: Vec<_> =
        [&options.ratings, &options.test, &options.checkpoint].into_iter().flatten().cloned().collect();
    let training = Training { kernels, ratings: &data.train, schedule, epochs, files: &files, idle_turns: 0 };

    let workers = options.workers();
    if !options.quiet {
        println!("model: rank {}, {:?} instructions", options.rank, kernels.instructions());
        if begun > 0 {
            println!("goes on after epoch {begun}, from the checkpoint");
        }
    }
    let mut report = options.is_first().then(|| Report::new(options, &data, begun)).transpose()?;
    interrupt::notice()?;
    let (mut diverged, mut unsaved, mut interrupted) = (None, None, None);
    let mut on_epoch = |end: EpochEnd<'_, f32>| {
        let sum = evaluate::squared_error(&kernels, end.model, &data.train, workers);
        let epoch = Epoch {
            train_loss: sum / data.train.len() as f64,
            test_rmse: evaluate::test_rmse(&kernels, end.model, &data.test, &data.test_unseen, workers),
            time: end.time,
        };
        // Without test ratings their error is not a number.
        let tested = data.test.len() + data.test_unseen.len() > 0;
        if epoch.train_loss.is_finite() && (epoch.test_rmse.is_finite() || !tested) {
            if let Some(report) = &mut report {
                report.add(epoch);
            }
            let learnt = begun + end.epoch + 1;
            let saved =
                checkpoint.as_ref().map(|(path, title)| checkpoint::save(path, end.model, title, learnt));
            if let Some(Err(error)) = saved {
                unsaved = Some(error);
                return ControlFlow::Break(());
            }
            if interrupt::is_pressed() {
                interrupted = Some(learnt);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        } else {
            diverged = Some(begun + end.epoch + 1);
            ControlFlow::Break(())
        }
    };
    match options.mode {
        Mode::Serial => serial::train(&training, &mut model, &mut on_epoch),
        Mode::Shared => {
            let plan = make_plan(options, &data);
            shared::train(&training, &plan, &mut model, &mut on_epoch)?;
        }
        Mode::Areas => {
            let plan = make_plan(options, &data);
            areas::train(&training, &plan, options.transport, &mut model, &mut on_epoch)?;
        }
        Mode::Handover => handover::train(&training, workers, &mut model, &mut on_epoch)?,
    }
    if let Some(epoch) = diverged {
        if let Some(report) = &report {
            report.abandon();
        }
        bail!(
            "training diverged in epoch {epoch}: the loss is not finite any more; try a smaller --lr than {}",
            schedule.lr
        );
    }
    if let Some(error) = unsaved {
        if let Some(report) = &report {
            report.abandon();
        }
        return Err(error);
    }
    report.map_or(Ok(()), |report| report.finish())?;
    let Some(epoch) = interrupted else { return Ok(ExitCode::SUCCESS) };
    eprintln!("interrupted: training ended after epoch {epoch} of {}", options.epochs);
    Ok(ExitCode::from(interrupt::CODE))
}

/// Reads or generates the ratings, and splits them.
fn load(options: &Options) -> Result<DataSet> {
    let begin = Instant::now();
    let is_shared = options.launch.as_ref().is_some_and(|launch| launch.size > 1);
    for file in [&options.ratings, &options.test].into_iter().flatten().filter(|_| is_shared) {
        // A pipe is read once.
        if std::fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
            let file = file.display();
            bail!("{file}: not a regular file, which each process would read: copy what it has to one");
        }
    }
    let ratings = match &options.ratings {
        Some(file) => read::read(file)?,
        None => generate::generate(generate::Size::MOVIELENS_1M, options.seed),
    };
    let (train, test) = match &options.test {
        Some(file) => (ratings, read::read(file)?),
        None => data::split(&ratings, options.split.unwrap_or(0.1), options.seed),
    };
    let data = DataSet::new(&train, &test)?;
    if !options.quiet {
        let source = options.ratings.as_ref().map_or("generated".into(), |file| file.display().to_string());
        println!(
            "{source}: {} users, {} items, {} ratings to train on, {} to test, mean {:.3} ({:.2} s)",
            data.users,
            data.items,
            data.train.len(),
            test.len(),
            data.mean,
            begin.elapsed().as_secs_f64()
        );
        if !data.test_unseen.is_empty() {
            println!(
                "{} of users or items without training ratings: the mean is predicted",
                report::counted(data.test_unseen.len(), "test rating")
            );
        }
    }
    Ok(data)
}

/// Deals the batches out to the workers.
fn make_plan(options: &Options, data: &DataSet) -> Plan {
    let begin = Instant::now();
    let plan_options = PlanOptions { batch: options.batch, workers: options.workers(), affinity: true };
    let plan = Plan::new(&data.train, data.users, data.items, plan_options);
    if !options.quiet {
        let balance = plan.balance();
        println!(
            "plan: {} batches for {}, largest component {:.1} % of a batch, speed-up at most {:.2} ({:.3} s)",
            plan.batches(),
            report::counted(plan.workers(), "worker"),
            100.0 * balance.largest_component,
            balance.speed_up_limit,
            begin.elapsed().as_secs_f64()
        );
    }
    plan
}
