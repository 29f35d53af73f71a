//! The command line.
use clap::{Parser, ValueEnum};
use hectare::orion::relax::Consistency;
use std::path::PathBuf;

/// How weights are changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Rule {
    /// Stochastic gradient descent with a rate that falls from pass to pass.
    Sgd,
    /// AdaGrad's rates, corrected for late gradients (McMahan and Streeter, 2014), through a buffer.
    AdaRevision,
}

/// Sparse logistic regression; `--serial` runs the loop that one would write without Hectare.
#[derive(Clone, Debug, Parser)]
pub(crate) struct Options {
    /// Workers: threads of this process, or processes under `hectare run`.
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, |cores| cores.get()))]
    pub(crate) workers: usize,
    /// Run the serial twin.
    #[arg(long)]
    pub(crate) serial: bool,
    /// serializable, bsp, bounded:S or async.
    #[arg(long, default_value = "bounded:1")]
    pub(crate) consistency: Consistency,
    /// Train under every consistency, one after the other, for one picture of all.
    #[arg(long)]
    pub(crate) all: bool,
    /// How weights are changed.
    #[arg(long, value_enum, default_value_t = Rule::Sgd)]
    pub(crate) rule: Rule,
    /// Serve the weights: fetch those that the examples of a clock name, instead of copying all.
    #[arg(long)]
    pub(crate) serve: bool,
    /// Clocks in a pass. Changes of all workers are added up: the fewer clocks and the more workers, the further steps
    /// overshoot.
    #[arg(long, default_value_t = 64)]
    pub(crate) clocks: usize,
    /// Examples in LIBSVM's format; generated with RCV1's shape if left out.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// Examples to test with.
    #[arg(long, requires = "data")]
    pub(crate) test: Option<PathBuf>,
    /// Generated examples.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) rows: usize,
    /// Passes over the data.
    #[arg(long, default_value_t = 10)]
    pub(crate) passes: usize,
    /// The size of a step; the default depends on the rule.
    #[arg(long)]
    pub(crate) rate: Option<f32>,
    /// What the rate of SGD is multiplied by from pass to pass.
    #[arg(long, default_value_t = 0.8)]
    pub(crate) decay: f32,
    /// Stop at this test loss, and say how long it took.
    #[arg(long)]
    pub(crate) target: Option<f64>,
    /// Write the losses: a picture if the file's name ends in .svg, else CSV.
    #[arg(long)]
    pub(crate) curve: Option<PathBuf>,
    /// Say how each loop runs, and where its time went.
    #[arg(long)]
    pub(crate) explain: bool,
    /// Say nothing but the last line.
    #[arg(long)]
    pub(crate) quiet: bool,
}

impl Options {
    /// The size of a step in pass `pass`.
    pub(crate) fn rate(&self, pass: usize) -> f32 {
        match self.rule {
            Rule::Sgd => self.rate.unwrap_or(0.5) * self.decay.powi(pass as i32),
            Rule::AdaRevision => self.rate.unwrap_or(0.5),
        }
    }
}
