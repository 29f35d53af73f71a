//! The command line.
use super::grow::Limits;
use super::loss::Loss;
use super::training::Run;
use anyhow::{bail, ensure};
use clap::{Parser, ValueEnum};
use std::path::PathBuf;

/// Which leaf is split next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Growth {
    /// All of a level, level by level.
    Depth,
    /// The one that gains the most, one by one.
    Leaf,
}

/// Gradient-boosted trees; `--serial` runs the loops that one would write without Hectare.
#[derive(Clone, Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    /// The loss function.
    #[arg(long, value_enum, default_value_t = Loss::Logistic)]
    pub(crate) loss: Loss,
    /// Rows to learn from: LIBSVM's format, or numbers between commas if the name ends in .csv. Generated if left out.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// Rows to test with; those to learn from if left out.
    #[arg(long)]
    pub(crate) test: Option<PathBuf>,
    /// Save the trees here, as JSON.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) save: Option<PathBuf>,
    /// Predict the rows of --test by the trees in this file, of --save, instead of learning.
    #[arg(long, value_name = "FILE", requires = "test", conflicts_with_all = ["data", "save", "serial", "all", "curve"])]
    pub(crate) load: Option<PathBuf>,
    /// Write here for each row to test with the predicted number, or how probable its positive label is, line by line.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) predict: Option<PathBuf>,
    /// Trees.
    #[arg(long, default_value_t = 100)]
    pub(crate) trees: usize,
    /// Which leaf is split next.
    #[arg(long, value_enum, default_value_t = Growth::Depth)]
    pub(crate) growth: Growth,
    /// Levels of splits, at most; 0: as many as it takes, with --growth leaf.
    #[arg(long, default_value_t = 6)]
    pub(crate) depth: usize,
    /// Leaves of a tree, at most, with --growth leaf.
    #[arg(long, default_value_t = 64)]
    pub(crate) leaves: usize,
    /// The factor of what a tree predicts.
    #[arg(long, default_value_t = 0.1)]
    pub(crate) rate: f64,
    /// The penalty of large values of leaves: LAMBDA / 2 times their squares.
    #[arg(long, value_name = "LAMBDA", default_value_t = 1.0)]
    pub(crate) lambda: f64,
    /// The least sum of second derivatives in a leaf: for squared loss, of rows.
    #[arg(long, value_name = "WEIGHT", default_value_t = 1.0)]
    pub(crate) least_weight: f64,
    /// The least gain of a split.
    #[arg(long, value_name = "GAIN", default_value_t = 0.0)]
    pub(crate) least_gain: f64,
    /// Bins of a feature, at most.
    #[arg(long, default_value_t = 255)]
    pub(crate) bins: usize,
    /// How many features there are, if rows to test with may have some that none to learn from has.
    #[arg(long)]
    pub(crate) features: Option<usize>,
    /// The column of a .csv file that has the labels, from 1.
    #[arg(long, value_name = "COLUMN", default_value_t = 1)]
    pub(crate) label: usize,
    /// Generated rows.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) rows: usize,
}

impl Options {
    /// Refuses what cannot be meant.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (name, value) in [("--trees", self.trees), ("--label", self.label), ("--rows", self.rows)] {
            ensure!(value > 0, "{name} 0: at least 1");
        }
        ensure!(self.depth <= 16, "--depth {}: at most 16", self.depth);
        ensure!(self.depth > 0 || self.growth == Growth::Leaf, "--depth 0: only with --growth leaf");
        ensure!((2..=1 << 16).contains(&self.leaves), "--leaves {}: from 2 to 65536", self.leaves);
        ensure!((2..=1 << 16).contains(&self.bins), "--bins {}: from 2 to 65536", self.bins);
        let rate = self.rate;
        ensure!(rate > 0.0 && rate.is_finite(), "--rate {rate}: a finite number above 0");
        for (name, value) in [
            ("--lambda", self.lambda),
            ("--least-weight", self.least_weight),
            ("--least-gain", self.least_gain),
        ] {
            ensure!(value >= 0.0 && value.is_finite(), "{name} {value}: a finite number, 0 or greater");
        }
        if self.data.is_none() && self.test.is_some() && self.load.is_none() {
            bail!("--test: only with --data to learn from, or --load to predict");
        }
        Ok(())
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits {
            growth: self.growth,
            depth: self.depth,
            leaves: self.leaves,
            lambda: self.lambda,
            least_weight: self.least_weight,
            least_gain: self.least_gain,
            rate: self.rate,
        }
    }

    /// How trees are grown, if not as usual.
    pub(crate) fn manner(&self) -> Option<&'static str> {
        (self.growth == Growth::Leaf).then_some("leaf by leaf")
    }
}
