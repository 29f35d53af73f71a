//! The command line.
use super::training::Run;
use anyhow::{bail, ensure};
use clap::Parser;
use std::path::PathBuf;

/// The lasso by coordinate descent; `--serial` runs the loops that one would write without Hectare.
#[derive(Clone, Debug, Parser)]
#[command(args_override_self = true)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    /// Rows to learn from, in LIBSVM's format: a number, and the features that are not 0. Generated if left out.
    #[arg(long)]
    pub(crate) data: Option<PathBuf>,
    /// Rows to test with; those to learn from if left out.
    #[arg(long)]
    pub(crate) test: Option<PathBuf>,
    /// The penalty: LAMBDA times the sum of the sizes of all weights.
    #[arg(long, value_name = "LAMBDA", default_value_t = 0.01)]
    pub(crate) lambda: f64,
    /// Learn no intercept.
    #[arg(long)]
    pub(crate) no_intercept: bool,
    /// Draw features uniformly, not by how much they changed.
    #[arg(long)]
    pub(crate) uniform: bool,
    /// Features of a round.
    #[arg(long, default_value_t = 8)]
    pub(crate) batch: usize,
    /// Two features whose correlation is above this, or below its negative, are never in one round.
    #[arg(long, default_value_t = 0.1)]
    pub(crate) bound: f64,
    /// The share of draws that are uniform.
    #[arg(long, default_value_t = 0.1)]
    pub(crate) explore: f64,
    /// Passes, at most, each of as many updates as there are features.
    #[arg(long, default_value_t = 500)]
    pub(crate) passes: usize,
    /// Stop when the objective is no farther than this share of it from the best, by the duality gap.
    #[arg(long, value_name = "SHARE", default_value_t = 1e-4)]
    pub(crate) gap: f64,
    /// Draws depend on it.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Save the model here, as text.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) save: Option<PathBuf>,
    /// Predict the rows of --test by the model in this file, of --save, instead of learning.
    #[arg(long, value_name = "FILE", requires = "test", conflicts_with_all = ["data", "save", "serial", "all", "curve"])]
    pub(crate) load: Option<PathBuf>,
    /// Write here the number that is predicted for each row to test with, line by line.
    #[arg(long, value_name = "FILE", conflicts_with = "all")]
    pub(crate) predict: Option<PathBuf>,
    /// Generated rows.
    #[arg(long, default_value_t = 500)]
    pub(crate) rows: usize,
    /// Features of generated rows.
    #[arg(long, default_value_t = 2000)]
    pub(crate) features: usize,
}

impl Options {
    /// Refuses what cannot be meant.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        for (name, value) in [
            ("--batch", self.batch),
            ("--passes", self.passes),
            ("--rows", self.rows),
            ("--features", self.features),
        ] {
            ensure!(value > 0, "{name} 0: at least 1");
        }
        for (name, value) in [("--lambda", self.lambda), ("--gap", self.gap), ("--bound", self.bound)] {
            ensure!(value >= 0.0 && value.is_finite(), "{name} {value}: a finite number, 0 or greater");
        }
        ensure!((0.0..=1.0).contains(&self.explore), "--explore {}: from 0 to 1", self.explore);
        if self.data.is_none() && self.test.is_some() && self.load.is_none() {
            bail!("--test: only with --data to learn from, or --load to predict");
        }
        Ok(())
    }

    /// How features are drawn, if not as usual.
    pub(crate) fn manner(&self) -> Option<&'static str> {
        self.uniform.then_some("uniform draws")
    }
}
