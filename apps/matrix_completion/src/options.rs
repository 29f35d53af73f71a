//! The command line.

use super::kernel::{Element, Rate, Step};
use anyhow::{Result, ensure};
use clap::{Parser, ValueEnum};
use hectare::wire::Launch;
use std::path::PathBuf;

/// Matrix completion: predict ratings by a product of two factor matrices, trained by SGD.
#[derive(Clone, Debug, Parser)]
#[command(name = "matrix_completion")]
pub struct Options {
    /// Ratings to train on: MovieLens `::`, CSV, TSV or `user item rating` between spaces; generated if absent
    #[arg(long, value_name = "FILE")]
    pub ratings: Option<PathBuf>,
    /// Ratings to test on
    #[arg(long, value_name = "FILE", conflicts_with = "split", requires = "ratings")]
    pub test: Option<PathBuf>,
    /// Part of the ratings to keep for testing when there is no --test [default: 0.1]
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true)]
    pub split: Option<f64>,
    /// Factors per user and item
    #[arg(long, default_value_t = 32)]
    pub rank: usize,
    /// Passes over the ratings
    #[arg(long, default_value_t = 15)]
    pub epochs: usize,
    /// Workers, each a thread [default: one per core]. In several processes (`hectare run`): each a process
    #[arg(long)]
    pub workers: Option<usize>,
    /// Learning rate [default: 0.05, or 0.1 with adagrad]
    #[arg(long, allow_negative_numbers = true)]
    pub lr: Option<f64>,
    /// Factor of the learning rate after each epoch [default: 0.8, or 1 with adagrad]
    #[arg(long, allow_negative_numbers = true)]
    pub decay: Option<f64>,
    /// Weight of the L2 regularization
    #[arg(long, default_value_t = 0.04, allow_negative_numbers = true)]
    pub reg: f64,
    /// How long a step along the gradient is
    #[arg(long, value_enum, default_value_t = Step::Fixed)]
    pub step: Step,
    /// Decides the generated ratings, the split, the order of the ratings and the initial factors
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Ratings per batch
    #[arg(long, default_value_t = 2000)]
    pub batch: usize,
    /// How workers share the model
    #[arg(long, value_enum, default_value_t = Mode::Handover)]
    pub mode: Mode,
    /// How rows cross between workers in mode areas
    #[arg(long, value_enum, default_value_t = Transports::Published)]
    pub transport: Transports,
    /// Write loss.svg and loss.csv into this directory
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print the last line only
    #[arg(long)]
    pub quiet: bool,
    /// Save the model here after each epoch, and go on from it if it is there
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Which of several processes this is, if a launcher started it as one.
    #[arg(skip)]
    pub launch: Option<Launch>,
}

/// How workers share the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// One worker: the reference
    Serial,
    /// Threads in ordinary shared memory, in conflict-free batches
    Shared,
    /// The same batches over areas that one worker each writes
    Areas,
    /// Blocks of items go from worker to worker by changing owner
    Handover,
}

impl Mode {
    /// The name to print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Serial => "serial",
            Self::Shared => "shared",
            Self::Areas => "areas",
            Self::Handover => "handover",
        }
    }
}

/// How rows get from worker to worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transports {
    /// In an outbox of each worker, published after each batch
    Published,
    /// In mailboxes that one worker fills and gives to the other
    Handed,
    /// All rows that were written are published after each batch
    Logged,
}

/// The step sizes of a run.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// The learning rate of the first epoch.
    pub lr: f64,
    /// Its factor after each epoch.
    pub decay: f64,
    /// The weight of the L2 regularization.
    pub reg: f64,
}

impl Schedule {
    /// The step sizes of what is left after some epochs: to the bit those of the whole run.
    pub fn after(self, epochs: usize) -> Schedule {
        Schedule { lr: (0..epochs).fold(self.lr, |lr, _| lr * self.decay), ..self }
    }

    /// The step sizes of an epoch, counted from 0.
    pub fn rate<E: Element>(&self, epoch: usize) -> Rate<E> {
        // Not `powi`: repeated multiplication is the same on every machine.
        let learning_rate = (0..epoch).fold(self.lr, |lr, _| lr * self.decay);
        Rate { learning_rate: E::from_f64(learning_rate), regularization: E::from_f64(self.reg) }
    }
}

/// The most workers that `--workers` takes.
pub const MOST_WORKERS: usize = 256;

impl Options {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// Each names the option, what it was given and what it takes.
    pub fn check(&self) -> Result<()> {
        ensure!(self.rank > 0, "--rank must be at least 1");
        ensure!(self.epochs > 0, "--epochs must be at least 1");
        ensure!(self.batch > 0, "--batch must be at least 1");
        if let Some(workers) = self.workers {
            ensure!(
                (1..=MOST_WORKERS).contains(&workers),
                "--workers must be from 1 to {MOST_WORKERS}, not {workers}"
            );
        }
        if let Some(Launch { size, .. }) = self.launch {
            let (mode, processes) = (self.mode.name(), size as usize);
            ensure!(
                processes == 1 || matches!(self.mode, Mode::Areas | Mode::Handover),
                "mode {mode} runs in one process, not in {processes}: use --mode areas or handover"
            );
            ensure!(
                self.workers.is_none_or(|workers| workers == processes),
                "--workers is {}, but {processes} processes were started: leave it out",
                self.workers.unwrap_or_default()
            );
            ensure!(processes <= MOST_WORKERS, "{processes} processes are more than {MOST_WORKERS}");
        }
        if let Some(split) = self.split {
            ensure!(split > 0.0 && split < 1.0, "--split must be above 0 and below 1, not {split}");
        }
        let Schedule { lr, decay, reg } = self.schedule();
        ensure!(lr.is_finite() && lr > 0.0, "--lr must be a number above 0, not {lr}");
        ensure!(decay.is_finite() && decay > 0.0, "--decay must be a number above 0, not {decay}");
        ensure!(reg.is_finite() && reg >= 0.0, "--reg must be a number that is not negative, not {reg}");
        Ok(())
    }

    /// The step sizes, with what suits the step rule where the command line says nothing.
    pub fn schedule(&self) -> Schedule {
        let (lr, decay) = match self.step {
            Step::Fixed => (0.05, 0.8),
            Step::Adagrad => (0.1, 1.0),
        };
        Schedule { lr: self.lr.unwrap_or(lr), decay: self.decay.unwrap_or(decay), reg: self.reg }
    }

    /// How many processes there are.
    pub fn processes(&self) -> usize {
        self.launch.as_ref().map_or(1, |launch| launch.size as usize)
    }

    /// Whether this process is the one that shows results.
    pub fn is_first(&self) -> bool {
        self.launch.as_ref().is_none_or(|launch| launch.rank == 0)
    }

    /// How many workers there will be.
    pub fn workers(&self) -> usize {
        match (self.mode, &self.launch) {
            (_, Some(launch)) => launch.size as usize,
            (Mode::Serial, None) => 1,
            _ => self.workers.unwrap_or_else(cores).min(MOST_WORKERS),
        }
    }
}

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
