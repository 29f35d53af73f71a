//! The command line of the training examples.
use super::Run;
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// How steps are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Steps {
    /// The same for every row and pass.
    Fixed,
    /// By what each row has seen so far (AdaGrad).
    Adaptive,
    /// By what each number has seen so far, corrected for late gradients (AdaRevision): of the columns, through a buffer.
    AdaRevision,
}

/// In which order the blocks of a rotation are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Blocks {
    /// Step by step: the same bits in every run.
    Planned,
    /// As they come free: who has the slower core runs less.
    Dynamic,
}

/// Trains by SGD; `--serial` runs the loop that one would write without Hectare.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    /// Entries to learn from: lines of indices from 0 and a value, between spaces, tabs, commas or semicolons, perhaps with
    /// a header, or between `::`, with indices from 1, as in MovieLens. Generated if left out.
    #[arg(long, requires = "test")]
    pub(crate) train: Option<PathBuf>,
    /// Entries to test with, or to predict.
    #[arg(long)]
    pub(crate) test: Option<PathBuf>,
    /// Passes over the data.
    #[arg(long, default_value_t = 12)]
    pub(crate) passes: usize,
    /// Columns of the factors.
    #[arg(long, default_value_t = 32)]
    pub(crate) rank: usize,
    /// How steps are chosen.
    #[arg(long, value_enum, default_value_t = Steps::Adaptive)]
    pub(crate) steps: Steps,
    /// The size of a step: the default depends on the kind of steps.
    #[arg(long)]
    pub(crate) rate: Option<f32>,
    /// Regularization.
    #[arg(long, default_value_t = 0.045)]
    pub(crate) reg: f32,
    /// Where the factors begin depends on it.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// The order of a rotation's blocks, with several workers.
    #[arg(long, value_enum, default_value_t = Blocks::Planned)]
    pub(crate) blocks: Blocks,
    /// Save the factors here after each pass, and go on from them if they are there.
    #[arg(long, conflicts_with_all = ["serial", "all"])]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Save the factors to this folder, a row of f32 for each index of the entries: rows.npy and columns.npy, of a tensor
    /// first.npy, second.npy and third.npy.
    #[arg(long, value_name = "FOLDER", conflicts_with = "all")]
    pub(crate) save: Option<PathBuf>,
    /// Begin with the factors in this folder, of --save. Steps are at their full length again.
    #[arg(long, value_name = "FOLDER", conflicts_with = "checkpoint")]
    pub(crate) load: Option<PathBuf>,
    /// Learn nothing, and write here the values that the loaded factors predict for the entries of --test, line by line.
    #[arg(long, value_name = "FILE", requires = "load", requires = "test",
        conflicts_with_all = ["train", "serial", "all", "save", "checkpoint"])]
    pub(crate) predict: Option<PathBuf>,
}

impl Steps {
    /// Their name, if they are not the usual.
    pub(crate) fn said(self) -> Option<&'static str> {
        match self {
            Steps::Fixed => Some("fixed steps"),
            Steps::Adaptive => None,
            Steps::AdaRevision => Some("AdaRevision"),
        }
    }
}

impl Options {
    /// Refuses what cannot be meant.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let (rate, reg) = (self.rate(), self.reg);
        anyhow::ensure!(rate > 0.0 && rate.is_finite(), "--rate {rate}: a finite number above 0");
        anyhow::ensure!(reg >= 0.0 && reg.is_finite(), "--reg {reg}: a finite number, 0 or greater");
        anyhow::ensure!(
            self.test.is_none() || self.train.is_some() || self.predict.is_some(),
            "--test: needs entries to learn from (--train), or a model (--load) and --predict"
        );
        Ok(())
    }

    /// The size of a step.
    pub(crate) fn rate(&self) -> f32 {
        self.rate.unwrap_or(match self.steps {
            Steps::Fixed => 0.02,
            Steps::Adaptive => 0.13,
            Steps::AdaRevision => 0.1,
        })
    }
}
